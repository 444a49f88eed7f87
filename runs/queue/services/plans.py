"""Freezes a run's plan: what it will do, even if the database changes afterwards."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from django.conf import settings as instance
from django.db import connection
from django.utils.translation import gettext as _

from runs import celery_messages
from runs.campaigns.services.designs import Design, DesignCell, Part
from runs.execution.machine.treatment import Treatment
from runs.execution.nodes import DATABASE_NODE
from runs.execution.plan import ClusterPlan, RunPlan, UnreadablePlan, WorkloadPlan
from runs.fingerprints import fingerprint
from runs.models import Campaign, Cell, Run, WorkloadVersion
from runs.postgresql_settings.fitting import Fitted
from runs.scenarios.definition import FurtherCluster, Scenario
from runs.servers.services.tools import Tools
from runs.shared import queries
from runs.shared.errors import ServiceError
from runs.wording import gettext_noop
from runs.workloads.services import topologies, workloads

PLAN_OF_OTHER_VERSION = "plan_of_other_version"
# The factor whose levels are numbers of processor cores.
CORES = "cores"
# Of the fingerprint that names a prepared cluster.
KEY_DIGITS = 24


def other_version(unreadable: UnreadablePlan) -> ServiceError:
    """Why a stored plan cannot be followed, and what to do."""
    message = _(
        "It was queued by another version, whose plan this version cannot execute: %(what)s."
    )
    remedy = _("Queue its campaign again, or start the version that queued it.")
    return ServiceError(
        PLAN_OF_OTHER_VERSION, message % {"what": unreadable}, remedy=remedy
    )


class NewRun(NamedTuple):
    """A run to queue. `model` has the plan, and what else it shares with all runs of that plan.

    Ten thousand rows of the table as objects took longer than all the rest of queueing.
    """

    model: Run
    repeat: int
    position: int
    again_of: Run | None = None


def store(new_runs: Sequence[NewRun]) -> list[int]:
    """Queue new runs, and wake their servers; their keys, in the same order.

    One statement for their keys, one for the first run of each model, and one for all others, which
    are copies of it: to send ten thousand plans took longer than people wait. A model is not to be
    used again.
    """
    query = "SELECT nextval('runs_run_id_seq') FROM generate_series(1, %s::integer)"
    keys = [int(key) for (key,) in queries.rows(query, [len(new_runs)])]
    first_runs: list[Run] = []
    repeats: list[tuple[int, NewRun]] = []
    stored: set[int] = set()
    for key, new_run in zip(keys, new_runs, strict=True):
        run = new_run.model
        if id(run) in stored:
            repeats.append((key, new_run))
            continue
        stored.add(id(run))
        run.pk, run.plan = key, {**(run.plan or {}), "run_id": key}
        run.repeat, run.position = new_run.repeat, new_run.position
        run.again_of = new_run.again_of
        first_runs.append(run)
    Run.objects.bulk_create(first_runs)
    _copy(repeats)
    for server_id in {run.server_id for run in first_runs if run.server_id is not None}:
        celery_messages.wake(server_id)
    return keys


# What a run does not share with the others of its model, and the plan, which has its key.
_OWN = ("id", "repeat", "position", "again_of_id")
_COPY = """
INSERT INTO runs_run ({own}, plan, {alike})
SELECT {new}, first_run.plan || jsonb_build_object('run_id', new.id), {copied}
FROM unnest(%s::bigint[], %s::bigint[], %s::integer[], %s::integer[], %s::bigint[])
    AS new (first_run, {own})
JOIN runs_run first_run ON first_run.id = new.first_run
"""


def _copy(repeats: Sequence[tuple[int, NewRun]]) -> None:
    if not repeats:
        return
    alike = [
        field.column
        for field in Run._meta.concrete_fields
        if field.column not in {*_OWN, "plan"}
    ]
    statement = _COPY.format(
        own=", ".join(_OWN),
        alike=", ".join(f'"{column}"' for column in alike),
        new=", ".join(f"new.{column}" for column in _OWN),
        copied=", ".join(f'first_run."{column}"' for column in alike),
    )
    values: list[Any] = [
        [new_run.model.pk for _key, new_run in repeats],
        [key for key, _new_run in repeats],
        [new_run.repeat for _key, new_run in repeats],
        [new_run.position for _key, new_run in repeats],
        [new_run.again_of and new_run.again_of.pk for _key, new_run in repeats],
    ]
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def copied(run: Run) -> dict[str, Any]:
    """The plan of a run for a further one of its cell. Raises `plan_of_other_version`."""
    try:
        return RunPlan.from_json(run.plan or {}).as_json()
    except UnreadablePlan as unreadable:
        raise other_version(unreadable) from unreadable


def freeze(
    *,
    campaign: Campaign,
    server_part: Part,
    cell: DesignCell,
    design: Design,
    cell_row: Cell,
) -> RunPlan:
    """The plan of any run `cell_row` a cell, on the server of its part. Raises `missing_program`.

    `store` gives each run the one with its own key.
    """
    server, installation, tools = (
        server_part.server,
        cell.installation,
        server_part.tools,
    )
    if tools is None:
        raise ServiceError(
            "missing_program", _("pgbench or psql is missing on the server.")
        )
    settings, options = cell.cluster_settings, cell.initdb_options
    workload = workload_plan(cell_row.workload_version)
    # Runs of the same machine, binaries, settings and data can share a loaded cluster, whatever
    # their campaign. Another release may load in another way.
    made_of = {
        "release": instance.VERSION,
        "server": server.slug,
        "bindir": installation.bindir,
        "version": installation.version,
        "settings": settings,
        "initdb": options,
        "scenario": design.scenario.slug,
        "parameters": campaign.parameters,
        "data": cell.cluster.data,
        "own tables": _load_of(workload),
    }
    key = fingerprint(made_of)[:KEY_DIGITS]
    # In turn all clusters are up at once: each run has its own copy.
    copies = design.scenario.changes_data(cell.levels) or bool(campaign.slice_seconds)
    return RunPlan(
        run_id=0,
        campaign=campaign.slug,
        scenario=design.scenario.slug,
        host=server.address,
        port=server.port,
        username=server.username,
        base_dir=server.base_dir,
        bindir=installation.bindir,
        version_num=installation.version_num,
        client_bindir=tools.pgbench.bindir,
        client_version_num=tools.pgbench.pgbench_version_num
        or tools.pgbench.version_num,
        psql_bindir=tools.psql.bindir,
        settings={name: str(value) for name, value in settings.items()},
        initdb_options=tuple(options),
        levels=dict(cell.levels),
        parameters=campaign.parameters,
        treatment=Treatment.of(campaign.treatment),
        workload=workload,
        cluster_key="" if copies else key,
        template_key=key if copies else "",
        translated=(
            *_translated(cell.fitted),
            *_overruled(cell.fitted, cell.cluster.required),
        ),
        generators=topologies.generator_plans(server, design.generators),
        cores=int(cell.levels.get(CORES, 0)),
        machines=topologies.machine_plans(server, design.cluster_machines),
        clusters=topologies.placed(
            _clusters(design.scenario, cell, tools),
            design.cluster_machines,
        ),
        mount=topologies.mount_of(server),
        pooler=topologies.pooler_of(cell.levels, design.cluster_machines),
        slice_s=campaign.slice_seconds or 0,
    )


def _load_of(workload: WorkloadPlan | None) -> tuple[str, str, bool]:
    """What a workload says of the data that are loaded; the same as none where it says nothing."""
    if workload is None:
        return "", "", False
    return workload.init_options, workload.init_sql, workload.has_own_tables


def _clusters(
    scenario: Scenario, cell: DesignCell, tools: Tools
) -> tuple[ClusterPlan, ...]:
    """The cell's further clusters, all on the database's machine.

    One that initdb makes gets the settings of the run itself; the others copy them from that one.
    """
    return tuple(
        _cluster(further_cluster, cell, tools)
        for further_cluster in scenario.arrangement(
            cell.installation.version_num, cell.levels
        )
    )


def _cluster(
    further_cluster: FurtherCluster, cell: DesignCell, tools: Tools
) -> ClusterPlan:
    is_new = further_cluster.origin == "initdb"
    settings = {**(cell.cluster_settings if is_new else {}), **further_cluster.settings}
    return ClusterPlan(
        name=further_cluster.name,
        role=further_cluster.role,
        origin=further_cluster.origin,
        machine=DATABASE_NODE,
        bindir=cell.installation.bindir,
        version_num=cell.installation.version_num,
        psql_bindir=tools.psql.bindir,
        settings={name: str(value) for name, value in settings.items()},
        initdb_options=tuple(cell.initdb_options) if is_new else (),
    )


def _overruled(
    fitted: Fitted, required: Mapping[str, str]
) -> tuple[dict[str, Any], ...]:
    """Settings of the configuration that conflict with those the scenario requires."""
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


def workload_plan(version: WorkloadVersion | None) -> WorkloadPlan | None:
    """A version of a user's own scripts, as stored with a run."""
    if version is None:
        return None
    content = vars(workloads.content_of(version))
    return WorkloadPlan(**content, slug=version.workload.slug, number=version.number)


def _translated(fitted: Fitted) -> tuple[dict[str, Any], ...]:
    """Where the run's settings differ from the configuration as written, as stored with the run."""
    changes = (*fitted.changes, *fitted.left_out)
    return tuple(
        {**vars(change), "parameters": dict(change.parameters)} for change in changes
    )


def drop_needless_templates(plans: Sequence[RunPlan], repeats: int) -> list[RunPlan]:
    """A template that only one run would use costs more than it saves: such a run loads itself.

    Each plan is that of a cell with this many repeats.
    """
    uses = Counter(plan.template_key for plan in plans)
    return [
        plan
        if uses[plan.template_key] * repeats > 1
        else replace(plan, template_key="")
        for plan in plans
    ]
