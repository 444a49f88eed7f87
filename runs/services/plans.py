"""Freezing a run's plan: what it will do, whatever changes in the database afterwards."""

import hashlib
import json

from runs.execution.plan import RunPlan
from runs.models import Campaign, Cell, Installation, Run, Server
from runs.scenarios.definition import Scenario


def freeze(
    *,
    run: Run,
    campaign: Campaign,
    cell: Cell,
    scenario: Scenario,
    server: Server,
    installation: Installation,
    client: Installation,
) -> RunPlan:
    """The plan of one run. `client` is the installation whose pgbench and psql are used."""
    configuration = campaign.configuration
    settings = {**scenario.settings, **(configuration.settings if configuration else {})}
    options = [*scenario.initdb_options, *(configuration.initdb_options if configuration else [])]
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
        client_bindir=client.bindir,
        client_version_num=client.pgbench_version_num or client.version_num,
        settings={name: str(value) for name, value in settings.items()},
        initdb_options=tuple(options),
        levels=cell.levels,
        parameters=campaign.parameters,
        cluster_key=""
        if scenario.writes
        else _cluster_key(campaign, installation, settings, options),
    )


def _cluster_key(
    campaign: Campaign, installation: Installation, settings: object, options: object
) -> str:
    """The same for runs that can share a loaded cluster: same binaries, settings and data."""
    made_of = [installation.bindir, installation.version, settings, options, campaign.parameters]
    digest = hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()
    return f"{campaign.pk}-{digest[:12]}"
