"""Freezing a run's plan: what it will do, whatever changes in the database afterwards."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from runs.execution.nodes import DATABASE_NODE
from runs.execution.plan import ClusterPlan, RunPlan
from runs.execution.treatment import Treatment
from runs.models import Campaign, Cell, Installation, Run, Server
from runs.postgresql_settings.fitting import Fitted
from runs.scenarios.definition import Scenario
from runs.services.servers.tools import Tools
from runs.wording import gettext_noop

# The factor whose levels are numbers of processor cores.
CORES = "cores"


def freeze(
    *,
    run: Run,
    campaign: Campaign,
    cell: Cell,
    scenario: Scenario,
    server: Server,
    installation: Installation,
    tools: Tools,
    fitted: Fitted,
) -> RunPlan:
    """The plan of one run.

    `tools` says whose pgbench and psql are used, `fitted` what the installation gets of the
    campaign's configuration.
    """
    configuration = campaign.configuration
    wanted = scenario.cluster(installation.version_num, cell.levels)
    settings = {**wanted.settings, **fitted.settings, **wanted.required}
    options = [*wanted.initdb_options, *(configuration.initdb_options if configuration else [])]
    key = _cluster_key(campaign, server, installation, settings, options, wanted.data)
    writes = scenario.changes_data(cell.levels)
    return RunPlan(
        run_id=run.pk,
        campaign=campaign.slug,
        scenario=scenario.slug,
        host=server.address,
        port=server.port,
        username=server.username,
        base_dir=server.base_dir,
        bindir=installation.bindir,
        version_num=installation.version_num,
        client_bindir=tools.pgbench.bindir,
        client_version_num=tools.pgbench.pgbench_version_num or tools.pgbench.version_num,
        psql_bindir=tools.psql.bindir,
        settings={name: str(value) for name, value in settings.items()},
        initdb_options=tuple(options),
        levels=cell.levels,
        parameters=campaign.parameters,
        treatment=Treatment.of(campaign.treatment),
        cores=int(cell.levels.get(CORES, 0)),
        cluster_key="" if writes else key,
        template_key=key if writes else "",
        translated=(*_translated(fitted), *_overruled(fitted, wanted.required)),
        clusters=_clusters(scenario, cell, installation, tools, settings, options),
    )


def _clusters(
    scenario: Scenario,
    cell: Cell,
    installation: Installation,
    tools: Tools,
    settings: Mapping[str, Any],
    options: Sequence[str],
) -> tuple[ClusterPlan, ...]:
    """The cell's further clusters, all on the database's machine until they are placed elsewhere.

    One that initdb makes gets the settings of the run's own; the others have them from that.
    """
    version_num = installation.version_num
    return tuple(
        ClusterPlan(
            name=each.name,
            role=each.role,
            origin=each.origin,
            machine=DATABASE_NODE,
            bindir=installation.bindir,
            version_num=version_num,
            psql_bindir=tools.psql.bindir,
            settings={
                name: str(value)
                for name, value in (
                    {**(settings if each.origin == "initdb" else {}), **each.settings}
                ).items()
            },
            initdb_options=tuple(options) if each.origin == "initdb" else (),
        )
        for each in scenario.arrangement(version_num, cell.levels)
    )


def _overruled(fitted: Fitted, required: Mapping[str, str]) -> tuple[dict[str, Any], ...]:
    """Settings of the configuration that the scenario cannot be without in another value."""
    return tuple(
        {
            "name_from": name,
            "value_from": str(fitted.settings[name]),
            "name_to": name,
            "value_to": value,
            "reason": gettext_noop("The scenario needs it."),
            "parameters": {},
        }
        for name, value in required.items()
        if name in fitted.settings and str(fitted.settings[name]) != value
    )


def _translated(fitted: Fitted) -> tuple[dict[str, Any], ...]:
    """What the configuration says in other words than the run's settings, as the run keeps it."""
    changes = [vars(change) for change in fitted.changes]
    lost = [
        {
            "name_from": each.name,
            "value_from": each.value,
            "name_to": "",
            "value_to": "",
            "reason": each.reason,
            "parameters": each.parameters,
        }
        for each in fitted.left_out
    ]
    return tuple({**each, "parameters": dict(each["parameters"])} for each in [*changes, *lost])


def without_needless_templates(plans: Sequence[RunPlan]) -> list[RunPlan]:
    """A template that a single run would use costs more than it saves: that run loads by itself."""
    uses = Counter(plan.template_key for plan in plans)
    return [
        replace(plan, template_key="") if uses[plan.template_key] < 2 else plan for plan in plans
    ]


def _cluster_key(
    campaign: Campaign,
    server: Server,
    installation: Installation,
    settings: object,
    options: object,
    data: object,
) -> str:
    """The same for runs that can share a loaded cluster: same machine, binaries, settings, data."""
    binaries = [server.slug, installation.bindir, installation.version]
    made_of = [*binaries, settings, options, campaign.parameters, data]
    digest = hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()
    return f"{campaign.pk}-{digest[:12]}"
