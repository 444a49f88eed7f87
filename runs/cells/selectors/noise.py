"""Noise floors of servers and hardware: how much repeats scatter, and what they can detect."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django.db.models import Exists, OuterRef, Q, QuerySet

from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.analysis.designs import Expected
from runs.analysis.noise import NoiseFloor, minimum_detectable_effect, noise_floor
from runs.analysis.summary import Summary
from runs.cells.selectors import recorded_seconds
from runs.cells.selectors.metrics import summary_of
from runs.cells.selectors.series_cells import SIDE
from runs.models import CellSummary, HardwareProfile, Run, Server
from runs.models.campaigns import Origin

# What a server was like long ago says little about it now.
NEWEST_CELLS = 500
NEWEST_RUNS = 3 * NEWEST_CELLS
SHOWN_REPEATS = (2, 3, 5, 10)


@dataclass(frozen=True)
class ServerNoise:
    """The noise floor of a metric on servers or hardware, as a fraction (0.02 is 2 %)."""

    metric: str
    floor: NoiseFloor

    @property
    def scatter(self) -> float:
        """One standard deviation of the repeats, as a fraction of their mean."""
        return math.expm1(self.floor.log_sd)

    def can_show(self, repeats: int, rows: int = 1) -> float | None:
        """The smallest effect that this many repeats a side detect in 4 of 5 cases; None below two.

        For one comparison in a table of `rows` rows.
        """
        if repeats < 2:
            return None
        return minimum_detectable_effect(self.floor.log_sd, repeats, rows=rows)

    @property
    def shown(self) -> list[tuple[int, float | None]]:
        """What several numbers of repeats can detect."""
        return [(repeats, self.can_show(repeats)) for repeats in SHOWN_REPEATS]


# For so much it is said what a server can show: repeats of whole runs, and slices of 1 s in turn.
ANSWERED_REPEATS, ANSWERED_SLICES = 3, 36


@dataclass(frozen=True)
class Resolution:
    """The smallest differences that a server can show: of whole runs, and of slices in turn.

    Each is known by what was measured that way, and neither says anything of the other.
    `is_doubted`: whole runs were repeated, and each cell of them has a run in doubt.
    """

    whole_runs: ServerNoise | None
    is_doubted: bool
    in_turn: Expected | None

    @property
    def repeats(self) -> int:
        """Of whole runs, for which it is said."""
        return ANSWERED_REPEATS

    @property
    def run_effect(self) -> float | None:
        """By whole runs, as a fraction."""
        return self.whole_runs.can_show(self.repeats) if self.whole_runs else None

    @property
    def slice_effect(self) -> float | None:
        """By slices of 1 s in turn, as a fraction."""
        return self.in_turn.slices if self.in_turn else None


def resolution(server: Server, metric: str) -> Resolution:
    """What a server can show of a metric: the answer that all its pages print. Seven queries."""
    floor = find_server_noise([server], metric)
    expected = recorded_seconds.expected_on(
        server, metric, repeats=ANSWERED_REPEATS, rounds=ANSWERED_SLICES
    )
    return Resolution(
        floor,
        floor is None and is_doubted_on(server, metric),
        expected if expected.seconds else None,
    )


def find_server_noise(servers: Sequence[Server], metric: str) -> ServerNoise | None:
    """How the repeats of a metric scatter on the present hardware of servers; None if unknown.

    The two sides of an A/A campaign count as repeats of one cell, so that differences between them
    are noise, too. Campaigns with a treatment are left out, and cells with a run in doubt. One
    query.
    """
    present = Q(pk__in=[])
    for server in servers:
        present |= Q(server=server, hardware=server.hardware_id)
    newest = Run.objects.filter(present, state=Run.State.FINISHED).order_by("-pk")[
        :NEWEST_RUNS
    ]
    return _noise_of_runs(Run.objects.filter(pk__in=newest.values("pk")), metric)


def find_hardware_noise(
    hardware: HardwareProfile, metric: str, *, to: Reader
) -> ServerNoise | None:
    """The same of the newest runs on a hardware profile that the reader may see."""
    return _noise_of_runs(_newest_on(hardware, to), metric)


def _newest_on(hardware: HardwareProfile, to: Reader) -> QuerySet[Run]:
    # Not by their origin: the index of all that was executed here has those of other machines.
    finished = Run.objects.filter(hardware=hardware, state=Run.State.FINISHED)
    finished_runs = finished.exclude(origin=Origin.UPLOADED).order_by("-pk")
    newest = projects.newest(finished_runs, to=to, number=NEWEST_RUNS)
    return Run.objects.filter(pk__in=newest.values("pk"))


def is_doubted_on(server: Server, metric: str) -> bool:
    """Whether a server's noise is unknown because each cell with repeats has a run in doubt.

    Of a server of which it is unknown. One query.
    """
    return _repeated(
        Run.objects.filter(server=server, hardware=server.hardware_id), metric
    ).exists()


def is_doubted_of(hardware: HardwareProfile, metric: str, *, to: Reader) -> bool:
    """The same of the runs on a hardware profile that the reader may see."""
    return _repeated(_newest_on(hardware, to), metric).exists()


def _noise_of_runs(runs: QuerySet[Run], metric: str) -> ServerNoise | None:
    doubted = _finished(runs).filter(Run.DOUBTFUL, cell=OuterRef("cell"))
    rows = (
        _repeated(runs, metric)
        .filter(~Exists(doubted))
        .select_related("cell")
        .order_by("-cell_id")[:NEWEST_CELLS]
    )
    floor = noise_floor(_exclude_sides(rows))
    return ServerNoise(metric, floor) if floor is not None else None


def _finished(runs: QuerySet[Run]) -> QuerySet[Run]:
    return runs.filter(state=Run.State.FINISHED).order_by()


def _repeated(runs: QuerySet[Run], metric: str) -> QuerySet[CellSummary]:
    """Summaries of cells of these runs with repeats, without those of a treatment."""
    return CellSummary.objects.filter(
        metric__name=metric,
        cell__in=_finished(runs).values("cell"),
        log_variance__isnull=False,
        cell__campaign__origin=Origin.EXECUTED,
        cell__campaign__treatment={},
        cell__campaign__slice_seconds=None,
    )


def _exclude_sides(rows: Iterable[CellSummary]) -> list[Summary]:
    groups: dict[str, list[Summary]] = defaultdict(list)
    for row in rows:
        levels = sorted(
            (name, level) for name, level in row.cell.levels.items() if name != SIDE
        )
        groups[f"{row.cell.campaign_id} {levels}"].append(summary_of(row))
    return [_pooled(group) for group in groups.values()]


def _pooled(cells: list[Summary]) -> Summary:
    """One cell from all their runs: the scatter within and between campaigns, on logs."""
    if len(cells) == 1:
        return cells[0]
    counts = [cell.n or 1 for cell in cells]
    runs = sum(counts)
    means = [cell.log_mean or 0.0 for cell in cells]
    mean = (
        math.fsum(n * log_mean for n, log_mean in zip(counts, means, strict=True))
        / runs
    )
    squares = math.fsum(
        (n - 1) * (cell.log_variance or 0.0) + n * (log_mean - mean) ** 2
        for cell, n, log_mean in zip(cells, counts, means, strict=True)
    )
    return replace(cells[0], n=runs, log_mean=mean, log_variance=squares / (runs - 1))
