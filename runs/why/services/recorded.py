"""What runs of their own recorded on both sides: instructions, waits, calls, stacks, profiles."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from runs.analysis.why import functions, waits
from runs.analysis.why.functions import MOST_FUNCTIONS, Compared
from runs.analysis.why.parts import Difference
from runs.analysis.why.waits import Slept
from runs.execution.evidence import instructions
from runs.execution.evidence.profiling import FOLDED, SWITCHES
from runs.models import Artifact, Cell, Measurement, Run
from runs.tools import known_metrics
from runs.why.selectors.recordings import Call, Instructions, Recorded, Stack, Triple
from runs.why.services import sides

WAITS, CALLS, STACKS = (
    f"evidence-{name}.json" for name in ("waits", "syscalls", "stacks")
)
MISSING = frozenset({"evidence_missing", "profile_missing"})
MOST_CALLS, MOST_STACKS, MOST_PROFILES = 10, 4, 6
# A cell may have thousands of runs, and the newest say it.
MOST_FILES, MOST_RUNS = 200, 24


def recorded(
    a: Collection[int],
    b: Collection[int],
    cells: tuple[Cell, Cell],
    difference: Difference | None,
) -> Recorded:
    """By the newest runs of the cells `a` and `b`; `cells` are what is compared.

    At most three queries, and a file for each table and profile.
    """
    files = _kept(a, b)

    def newest(name: str) -> tuple[Artifact, Artifact] | None:
        files_of_sides = files[name]
        return (
            (files_of_sides[0][-1], files_of_sides[1][-1])
            if files_of_sides[0] and files_of_sides[1]
            else None
        )

    profiled = newest(FOLDED)
    return Recorded(
        instructions=_instructions(newest(instructions.FILE), 0),
        reading=_instructions(newest(instructions.FILE), 1),
        waits=_waits(newest(WAITS), cells, difference),
        calls=_calls(newest(CALLS)),
        stacks=_stacks(newest(STACKS)),
        sleeps=_most(
            [
                functions.sleeps_of(sides.text(artifact))
                for artifact in newest(SWITCHES) or ()
            ]
        ),
        profile=_profile(files[FOLDED], difference),
        profiles=(profiled[0].run_id, profiled[1].run_id) if profiled else None,
        missing=_missing(a, b),
    )


def _kept(
    a: Collection[int], b: Collection[int]
) -> dict[str, tuple[list[Artifact], ...]]:
    names = (instructions.FILE, WAITS, CALLS, STACKS, FOLDED, SWITCHES)
    files_by_name: dict[str, tuple[list[Artifact], ...]] = defaultdict(lambda: ([], []))
    artifacts = Artifact.objects.filter(
        run__cell__in=[*a, *b], name__in=names
    ).order_by("-pk")
    newest = artifacts.select_related("run").defer("run__plan")[:MOST_FILES]
    for artifact in reversed(newest):
        files_by_name[artifact.name][artifact.run.cell_id in b].append(artifact)
    return files_by_name


def _texts(rows: Sequence[Sequence[object]]) -> list[list[str]]:
    return [[str(text) for text in row] for row in rows]


def _rows(artifacts: tuple[Artifact, Artifact] | None) -> list[list[list[str]]] | None:
    """The rows of a table on both sides; None where one has none, or another form."""
    documents = [sides.document(artifact) for artifact in artifacts or ()]
    try:
        rows_of_sides = [_texts(document["rows"]) for document in documents]
    except (KeyError, TypeError):
        return None
    return rows_of_sides if all(rows_of_sides) and rows_of_sides else None


# What callgrind calls a function of which no symbol tells the name, by its place in the file.
ADDRESS = "0x"


def _instructions(
    artifacts: tuple[Artifact, Artifact] | None, column: int
) -> Instructions | None:
    counted: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    try:
        for side, rows in zip(counted, _rows(artifacts) or (), strict=False):
            for name, *numbers in rows:
                side[ADDRESS if name.startswith(ADDRESS) else name] += int(
                    numbers[column]
                )
    except (IndexError, ValueError):
        return None
    totals = counted[0].pop("", 0), counted[1].pop("", 0)
    if not all(totals):
        return None
    counts_of = {
        name: (counted[0][name], counted[1][name]) for name in counted[0] | counted[1]
    }
    most = sorted(
        counts_of, key=lambda name: -abs(counts_of[name][1] - counts_of[name][0])
    )
    return Instructions(
        *totals, {name: counts_of[name] for name in most[:MOST_FUNCTIONS]}
    )


def _waits(
    artifacts: tuple[Artifact, Artifact] | None,
    cells: tuple[Cell, Cell],
    difference: Difference | None,
) -> Sequence[Slept]:
    rows = _rows(artifacts)
    if rows is None or difference is None:
        return ()
    try:
        of_a, of_b = map(waits.sampled, rows)
    except ValueError:
        return ()
    clients = sides.clients_of(cells[0]), sides.clients_of(cells[1])
    return waits.split(
        of_a, of_b, (difference.a.seconds, difference.b.seconds), clients
    )


def _calls(artifacts: tuple[Artifact, Artifact] | None) -> Sequence[Call]:
    rows = _rows(artifacts)
    if artifacts is None or rows is None:
        return ()
    runs = [artifact.run_id for artifact in artifacts]
    measured = Measurement.objects.filter(
        run__in=runs, metric__name=known_metrics.TRANSACTIONS.name
    )
    number = dict(measured.values_list("run", "value"))
    try:
        of_a, of_b = (
            _called(traces, number[run]) for traces, run in zip(rows, runs, strict=True)
        )
    except (ArithmeticError, IndexError, KeyError, ValueError):
        return ()
    none = (0.0, 0.0, 0.0)
    names = of_a.keys() | of_b.keys()
    most = sorted(names, key=lambda n: -max(of_a.get(n, none)[0], of_b.get(n, none)[0]))
    return [
        Call(name, of_a.get(name, none), of_b.get(name, none))
        for name in most[:MOST_CALLS]
    ]


# What strace -c charges to these is the time of children that have ended.
OF_CHILDREN = frozenset({"wait4", "waitid"})


def _called(rows: Sequence[Sequence[str]], transactions: float) -> dict[str, Triple]:
    """By call, of (call, share of the time, seconds, calls, errors, share of errors in %)."""
    process_rows = [row for row in rows if row[0] not in OF_CHILDREN]
    total_share = sum(float(row[1]) for row in process_rows)
    return {
        row[0]: (
            float(row[1]) / total_share,
            int(row[3]) / transactions,
            float(row[5]) / 100,
        )
        for row in process_rows
    }


def _stacks(artifacts: tuple[Artifact, Artifact] | None) -> Sequence[Stack]:
    try:
        counted = [
            Counter({(call, stack): int(times) for times, call, stack in rows})
            for rows in _rows(artifacts) or ()
        ]
    except ValueError:
        return ()
    return _most(counted)


def _most(counted: Sequence[Counter[tuple[str, str]]]) -> Sequence[Stack]:
    return [
        Stack(bool(is_of_b), call, stack, times / counts.total())
        for is_of_b, counts in enumerate(counted)
        for (call, stack), times in counts.most_common(MOST_STACKS)
    ]


def _profile(
    artifacts: tuple[list[Artifact], ...], difference: Difference | None
) -> Compared | None:
    if difference is None or difference.a.cpu is None or difference.b.cpu is None:
        return None
    of_a, of_b = (
        [
            functions.samples_of(sides.text(artifact))
            for artifact in files[-MOST_PROFILES:]
        ]
        for files in artifacts
    )
    return functions.compare(of_a, of_b, (difference.a.cpu, difference.b.cpu))


def _missing(a: Collection[int], b: Collection[int]) -> Sequence[Mapping[str, Any]]:
    runs = Run.objects.filter(cell__in=[*a, *b]).order_by("-pk")
    notes = runs.values_list("quality", flat=True)[:MOST_RUNS]
    missing_notes = [
        note
        for of_run in reversed(notes)
        for note in of_run
        if note.get("code") in MISSING
    ]
    return list({str(note.get("message")): note for note in missing_notes}.values())
