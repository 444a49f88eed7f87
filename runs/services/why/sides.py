"""What the runs of two cells recorded, as sides of an explanation."""

import zlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from benchlab.bucket import StoreError
from runs import foreign_json
from runs.analysis.why import account
from runs.analysis.why import waits as waits_of
from runs.analysis.why.account import Account, Load
from runs.analysis.why.suspects import Side
from runs.analysis.why.waits import Sampled
from runs.execution import instructions as instructions_of
from runs.execution.accounting import FILE
from runs.execution.nodes import DATABASE_NODE
from runs.models import Artifact, Cell, Measurement, Run
from runs.postgresql_settings import comparing
from runs.postgresql_settings.catalogue import known_major
from runs.scenarios import arrangements, pgbench_load, registry
from runs.scenarios.metrics import TRANSACTIONS
from runs.services.runs import artifacts

MOST_ROUNDS = 12
MOST_FUNCTIONS = 15
MEASURED = Q(state=Run.State.FINISHED) | Run.LEFT_OUT
# Units of metrics that are the time of what is measured, which then is one transaction.
SECONDS = {"s": 1.0, "ms": 1e-3}
WAITS_FILE = "evidence-waits.json"
MOST_BYTES = 4 * 1024 * 1024


def of_cells(cells: Sequence[Cell]) -> dict[int, Side]:
    """The sides of cells by key, from their newest runs. Four queries, and a file a run."""
    runs = _runs([cell.pk for cell in cells])
    every = [run.pk for of_cell in runs.values() for run in of_cell]
    values: dict[int, dict[str, float]] = defaultdict(dict)
    measured = Measurement.objects.filter(run__in=every).values_list("run", "metric__name", "value")
    for run, name, value in measured:
        values[run][name] = value
    documents = {
        each.run_id: _document(each) for each in Artifact.objects.filter(run__in=every, name=FILE)
    }
    return {cell.pk: _side(cell, runs.get(cell.pk, []), values, documents) for cell in cells}


@dataclass(frozen=True)
class Instructions:
    """Instructions of a transaction on both sides, and the functions that differ most: (a, b)."""

    a: int
    b: int
    functions: Mapping[str, tuple[int, int]]


def instructions(a: Collection[int], b: Collection[int]) -> Instructions | None:
    """What callgrind counted in the newest runs of these cells. A query and two files."""
    documents = _newest(a, b, instructions_of.FILE)
    if documents is None:
        return None
    of_a, of_b = map(_counted, documents)
    if not (of_a.get("") and of_b.get("")):
        return None
    names = (of_a.keys() | of_b.keys()) - {""}
    found = {name: (of_a.get(name, 0), of_b.get(name, 0)) for name in names}
    most = sorted(found, key=lambda name: -abs(found[name][1] - found[name][0]))
    return Instructions(of_a[""], of_b[""], {name: found[name] for name in most[:MOST_FUNCTIONS]})


def waits(a: Collection[int], b: Collection[int]) -> tuple[Sampled, Sampled] | None:
    """What sessions of the newest runs of these cells waited for. A query and two files."""
    documents = _newest(a, b, WAITS_FILE)
    if documents is None:
        return None
    try:
        of_a, of_b = (waits_of.sampled(each["rows"]) for each in documents)
    except (KeyError, TypeError, ValueError):
        return None
    return of_a, of_b


def clients_of(cell: Cell) -> int:
    """How many clients its load has."""
    return int(cell.levels.get("clients") or cell.campaign.parameters.get("clients") or 1)


def _newest(
    a: Collection[int], b: Collection[int], name: str
) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """The newest file of that name on both sides; None where one has none."""
    kept = Artifact.objects.filter(run__cell__in=[*a, *b], name=name)
    newest: dict[bool, Artifact] = {}
    for each in kept.select_related("run").order_by("pk"):
        newest[each.run.cell_id in a] = each
    return (_document(newest[True]), _document(newest[False])) if len(newest) == 2 else None


def _counted(document: Mapping[str, Any]) -> dict[str, int]:
    try:
        return {str(name): int(number) for name, number in document["rows"]}
    except (KeyError, TypeError, ValueError):
        return {}


def _runs(cells: Sequence[int]) -> dict[int, list[Run]]:
    """Those that are left out since others had the machine are among them: the parts say so."""
    found: dict[int, list[Run]] = defaultdict(list)
    listed = Run.objects.filter(MEASURED, cell__in=cells)
    for run in listed.select_related("settings").order_by("-repeat"):
        if len(found[run.cell_id]) < MOST_ROUNDS:
            found[run.cell_id].append(run)
    return {cell: of_cell[::-1] for cell, of_cell in found.items()}


def _document(artifact: Artifact) -> Mapping[str, Any]:
    """What a run recorded; empty if it was pruned, or is none of ours."""
    try:
        with artifacts.open_artifact(artifact) as content:
            found = foreign_json.loads(content.read(MOST_BYTES).decode())
    except (OSError, ValueError, EOFError, zlib.error, StoreError):
        return {}
    return found if isinstance(found, dict) else {}


def _side(
    cell: Cell,
    runs: Sequence[Run],
    values: Mapping[int, Mapping[str, float]],
    documents: Mapping[int, Mapping[str, Any]],
) -> Side:
    found = [_account(cell, run, values.get(run.pk, {}), documents.get(run.pk, {})) for run in runs]
    major = known_major(cell.version) or ""
    known = [run.settings.settings for run in runs if run.settings]
    settings = known[-1] if known else {}
    return Side(
        major=major,
        version_num=cell.version_num or 0,
        settings=comparing.of_server(settings, major) if major else {},
        accounts=[each for each in found if each is not None],
        query_mode=str(cell.levels.get("query_mode", "simple")),
    )


def _account(
    cell: Cell, run: Run, values: Mapping[str, float], document: Mapping[str, Any]
) -> Account | None:
    """None for a run without evidence, or whose evidence is not in its form."""
    scenario = registry.get(cell.campaign.scenario.slug)
    value, metric = (
        values.get(scenario.primary_metric, 0.0),
        scenario.metric(scenario.primary_metric),
    )
    is_rate = metric.unit == "tps"
    if not document or value <= 0 or not (is_rate or metric.unit in SECONDS):
        return None
    parameters = cell.campaign.parameters
    levels = cell.levels
    load = Load(
        clients=clients_of(cell),
        tps=value if is_rate else 1 / (value * SECONDS[metric.unit]),
        transactions=values.get(TRANSACTIONS.name) if is_rate else 1,
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
