"""What the runs of two cells recorded, as sides of an explanation."""

import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from benchlab.bucket import StoreError
from runs import foreign_json
from runs.analysis.why import account
from runs.analysis.why.account import Account, Load
from runs.analysis.why.suspects import Side
from runs.execution.evidence.accounting import FILE
from runs.execution.machine.treatment import Treatment
from runs.execution.nodes import DATABASE_NODE
from runs.grouping import group_by_key
from runs.models import Artifact, Cell, Measurement, Run
from runs.postgresql_settings import comparing
from runs.postgresql_settings.catalogue import known_major
from runs.queue.services import artifacts
from runs.scenarios import arrangements, pgbench_load, registry
from runs.servers.selectors.hardware import ENVIRONMENT_FIELDS, HARDWARE_FIELDS
from runs.tools import known_metrics

MOST_ROUNDS = 12
# Units of metrics that are the time of what is measured, which then is one transaction.
SECONDS = {"s": 1.0, "ms": 1e-3}
# How a user's own script makes its data, in the plan of a run.
SETUP = ("init_options", "init_sql", "has_own_tables")
# The sources of settings that a role or the database has (pg_settings).
OF_ROLE = frozenset({"database", "user", "database user"})
MOST_BYTES = 4 * 1024 * 1024


def read_sides(cells: Sequence[Cell]) -> dict[int, Side]:
    """The sides of cells by key, from their newest runs. Four queries, and a file a run."""
    runs = _runs([cell.pk for cell in cells])
    every = [run.pk for of_cell in runs.values() for run in of_cell]
    values: dict[int, dict[str, float]] = defaultdict(dict)
    measured = Measurement.objects.filter(run__in=every).values_list(
        "run", "metric__name", "value"
    )
    for run, name, value in measured:
        values[run][name] = value
    documents = {
        artifact.run_id: document(artifact)
        for artifact in Artifact.objects.filter(run__in=every, name=FILE)
    }
    return {
        cell.pk: _side(cell, runs.get(cell.pk, []), values, documents) for cell in cells
    }


def clients_of(cell: Cell) -> int:
    """How many clients its load has."""
    return int(
        cell.levels.get("clients") or cell.campaign.parameters.get("clients") or 1
    )


def _runs(cells: Sequence[int]) -> dict[int, list[Run]]:
    """Those that are left out since others had the machine are among them: the parts say so."""
    runs = Run.objects.filter(Run.MEASURED, cell__in=cells).select_related(
        "settings", "hardware", "environment"
    )
    runs_of_cell = group_by_key((run.cell_id, run) for run in runs.order_by("repeat"))
    return {cell: of_cell[-MOST_ROUNDS:] for cell, of_cell in runs_of_cell.items()}


def document(artifact: Artifact) -> Mapping[str, Any]:
    """What a run recorded; empty if it was pruned, or is none of ours."""
    try:
        document_read = foreign_json.loads(text(artifact))
    except ValueError:
        return {}
    return document_read if isinstance(document_read, dict) else {}


def text(artifact: Artifact) -> str:
    """The beginning of a file; empty if it was pruned."""
    try:
        with artifacts.open_artifact(artifact) as content:
            return content.read(MOST_BYTES).decode(errors="replace")
    except (OSError, EOFError, zlib.error, StoreError):
        return ""


def _side(
    cell: Cell,
    runs: Sequence[Run],
    values: Mapping[int, Mapping[str, float]],
    documents: Mapping[int, Mapping[str, Any]],
) -> Side:
    accounts = [
        _account(cell, run, values.get(run.pk, {}), documents.get(run.pk, {}))
        for run in runs
    ]
    known_accounts = [account for account in accounts if account is not None]
    major = known_major(cell.version) or ""
    known_settings = [run.settings.settings for run in runs if run.settings]
    settings = known_settings[-1] if known_settings else {}
    return Side(
        major=major,
        version_num=cell.version_num or 0,
        settings=comparing.read_server(settings, major) if major else {},
        accounts=known_accounts,
        query_mode=str(cell.levels.get("query_mode", "simple")),
        further=_further(cell, runs, known_accounts),
        number_of_runs=len(runs),
        measured=_measured(runs),
        of_role=frozenset(
            name
            for name, printed in settings.items()
            if printed.get("source") in OF_ROLE
        ),
    )


def _measured(runs: Sequence[Run]) -> tuple[datetime, datetime] | None:
    """When the first one began and the last one ended."""
    begun = [run.started_at for run in runs if run.started_at is not None]
    ended = [run.finished_at for run in runs if run.finished_at is not None]
    return (min(begun), max(ended)) if begun and ended else None


def _further(
    cell: Cell, runs: Sequence[Run], accounts: Sequence[Account]
) -> dict[str, dict[str, str]]:
    """What differs besides settings, by kind and name; a kind that nobody recorded is missing.

    By the newest run. What the database has is recorded by the run itself.
    """
    further: dict[str, dict[str, str]] = {}
    if not runs:
        return further
    plan = runs[-1].plan or {}
    workload = plan.get("workload") or {}
    setup = {name: str(workload.get(name) or "") for name in SETUP}
    further["setup"] = {name: text for name, text in setup.items() if text}
    treatment = Treatment.of(plan.get("treatment"))
    further["treatment"] = {
        name: str(value) for name, value in vars(treatment).items() if value
    }
    further["initdb"] = {"options": " ".join(plan.get("initdb_options", ()))}
    further["client"] = {runs[-1].tool_name or "client": runs[-1].tool_version}
    further["build"] = {"version": f"{cell.version} {plan.get('bindir', '')}".strip()}
    further["machine"] = _machine(runs[-1])
    for newest in accounts[-1:]:
        further |= {kind: dict(by_name) for kind, by_name in newest.objects.items()}
    return further


def _machine(run: Run) -> dict[str, str]:
    """What is known of the machine and its system, by name."""
    facts: dict[str, Any] = {}
    if run.hardware is not None:
        facts |= {name: getattr(run.hardware, name) for name in HARDWARE_FIELDS}
    if run.environment is not None:
        facts |= {name: getattr(run.environment, name) for name in ENVIRONMENT_FIELDS}
        facts |= run.environment.facts
    return {
        name: str(value) for name, value in facts.items() if value not in (None, "")
    }


def _account(
    cell: Cell, run: Run, values: Mapping[str, float], document: Mapping[str, Any]
) -> Account | None:
    """None for a run without evidence, or whose evidence is not in its form."""
    scenario = registry.get(cell.campaign.scenario.slug)
    value = values.get(scenario.primary_metric, 0.0)
    metric = scenario.metric(scenario.primary_metric)
    is_rate = metric.unit == "tps"
    if not document or value <= 0 or not (is_rate or metric.unit in SECONDS):
        return None
    parameters, levels = cell.campaign.parameters, cell.levels
    load = Load(
        clients=clients_of(cell),
        tps=value if is_rate else 1 / (value * SECONDS[metric.unit]),
        transactions=values.get(known_metrics.TRANSACTIONS.name) if is_rate else 1,
        reconnects=levels.get("connection") == pgbench_load.RECONNECTING,
        is_paced=bool(parameters.get("rate")),
        has_pooler=levels.get(arrangements.NAME) == arrangements.POOLED,
        is_elsewhere=bool((run.plan or {}).get("generators")),
        round=run.round or run.repeat,
    )
    try:
        return account.read(document, load, DATABASE_NODE)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        return None
