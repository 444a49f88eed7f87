"""What slices answer on recorded noise: wrong words, widths, and losses that are found.

    .venv/bin/python -m benchmarks.recorded_slices [--campaigns 2000] [--seed 1]

A campaign has two sides of one pgbench that take turns by the second, in an order that is drawn for
each round. Its seconds follow each other in one of the records of benchmarks/data/, from a moment
that is drawn; where a record ends, the next one follows. Both sides are the same, so each word but
*undecided* and *the same* is wrong. A campaign of one look has all its rounds; others add twelve
rounds until the interval of the difference is as narrow as wanted, or until a verdict is reached,
and the level of a look is the one that campaigns have. Losses are put into the same seconds.
"""

import argparse
import csv
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from runs.analysis import slices
from runs.analysis.inference import (
    SIGNIFICANCE,
    Cell,
    Inference,
    Model,
    Pair,
    critical,
    judge,
)
from runs.analysis.slices import SlicedRun

RECORDED = Path(__file__).parent / "data" / "pgbench_seconds.csv"
# Of one run of a side, as the first campaign and observations have them.
ROUNDS = 12
LOSSES = (0.0, 0.05, 0.2)
WRONG = ("slower", "faster")
# Between the beginnings of two slices.
APART_SECONDS = 1.1

Floats = NDArray[np.float64]
Random = np.random.Generator


@dataclass(frozen=True)
class Design:
    """After how many repeats a campaign is looked at, and when it ends before the last."""

    name: str
    looks: tuple[int, ...]
    wanted_width: float | None = None
    ends_when_decided: bool = False

    @property
    def level(self) -> float:
        """The level of each look."""
        return critical.level_of_look(self.looks, SIGNIFICANCE)


DESIGNS = (
    Design("36 s a side", (3,)),
    Design("12 to 96 s, until ±10 %", tuple(range(1, 9)), wanted_width=0.10),
    Design("12 to 96 s, until decided", tuple(range(1, 9)), ends_when_decided=True),
)


@dataclass(frozen=True)
class Ended:
    """What a campaign says when it ends, and after how many repeats."""

    answer: Inference
    repeats: int


def main() -> None:
    """Simulate and print."""
    options = _options()
    random = np.random.default_rng(options.seed)
    print("| | load | wrong | half width | -5 % found | -20 % found | s a side |")
    print("|---|---|---|---|---|---|---|")
    for design in DESIGNS:
        for load, seconds in recorded().items():
            print(_row(design, load, seconds, random, options.campaigns), flush=True)


def _row(
    design: Design, load: str, seconds: Floats, random: Random, campaigns: int
) -> str:
    ended: dict[float, list[Ended]] = {loss: [] for loss in LOSSES}
    for _campaign in range(campaigns):
        runs = list(drawn(seconds, random, design.looks[-1]))
        for loss in LOSSES:
            ended[loss].append(measure(design, runs, loss))
    wrong = sum(one.answer.verdict in WRONG for one in ended[0.0])
    answers = [one.answer for one in ended[0.0]]
    widths = [
        width for answer in answers if (width := half_width(answer.low, answer.high))
    ]
    found = [
        sum(one.answer.verdict == "slower" for one in ended[loss])
        for loss in LOSSES[1:]
    ]
    repeats = statistics.fmean(one.repeats for one in ended[0.0])
    cells = (
        design.name,
        load,
        f"{wrong / campaigns:.1%}",
        f"{statistics.median(widths):.1f} %",
        *(f"{hits / campaigns:.0%}" for hits in found),
        f"{repeats * ROUNDS:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def recorded() -> dict[str, Floats]:
    """The seconds of each load (tps), record after record."""
    seconds: dict[str, list[float]] = {}
    with RECORDED.open(newline="") as file:
        for row in csv.DictReader(file):
            seconds.setdefault(row["load"], []).append(float(row["tps"]))
    return {load: np.array(values) for load, values in seconds.items()}


def drawn(seconds: Floats, random: Random, repeats: int) -> Iterator[SlicedRun]:
    """The runs of both sides (cells 0 and 1), repeat after repeat."""
    begin = int(random.integers(len(seconds)))
    for repeat in range(repeats):
        first = begin + 2 * ROUNDS * repeat
        places = (first + np.arange(2 * ROUNDS)) % len(seconds)
        # In each round one side is first.
        firsts = random.integers(2, size=ROUNDS)
        for side in (0, 1):
            own = 2 * np.arange(ROUNDS) + (firsts ^ side)
            yield SlicedRun(
                cell=side,
                server="server",
                repeat=repeat + 1,
                at=[APART_SECONDS * (first + place) for place in own.tolist()],
                figures={"tps": seconds[places[own]].tolist()},
            )


def measure(design: Design, runs: Sequence[SlicedRun], loss: float) -> Ended:
    """A campaign of these runs in which the second side has lost that share."""
    with_loss = [_slowed(run, loss) if run.cell else run for run in runs]
    for look in design.looks:
        so_far = with_loss[: 2 * look]
        answer = _answer(so_far, design.level)
        is_narrow = (
            design.wanted_width is not None
            and _width_so_far(so_far) <= design.wanted_width
        )
        is_decided = design.ends_when_decided and answer.verdict != "undecided"
        if is_narrow or is_decided or look == design.looks[-1]:
            return Ended(answer, look)
    raise ValueError("a design has no looks")


def _slowed(run: SlicedRun, loss: float) -> SlicedRun:
    slower = [(1 - loss) * (value or 0.0) for value in run.figures["tps"]]
    return replace(run, figures={"tps": slower})


def _answer(runs: Sequence[SlicedRun], level: float) -> Inference:
    in_rounds = slices.cells_of(runs, "tps")
    cells = [_cell(side, runs, in_rounds[side]) for side in (0, 1)]
    (answer,) = judge(
        Model(cells, turns=["campaign"]),
        [Pair(0, 1)],
        direction="higher",
        significance=level,
    )
    return answer


def _cell(side: int, runs: Sequence[SlicedRun], in_rounds: slices.SlicedCell) -> Cell:
    logs = [
        math.log(statistics.fmean(value or 0.0 for value in run.figures["tps"]))
        for run in runs
        if run.cell == side
    ]
    return Cell(
        n=len(logs),
        mean=statistics.fmean(logs),
        variance=None,
        campaign="campaign",
        logs=tuple(logs),
        slices=in_rounds.logs,
        rounds=in_rounds.rounds,
    )


def _width_so_far(runs: Sequence[SlicedRun]) -> float:
    width = slices.half_width(slices.cells_of(runs, "tps"), SIGNIFICANCE)
    return math.inf if width is None else math.expm1(width)


def half_width(low: float | None, high: float | None) -> float | None:
    """Half the interval of a ratio in percent, on the logarithm; None if there is none."""
    if not low or not high:
        return None
    return 100 * math.expm1(math.log(high / low) / 2)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--campaigns", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
