"""What the search for change points is worth: false alarms, steps found, alarms, milliseconds.

    .venv/bin/python -m benchmarks.change_points [--repetitions 400] [--seed 1]

Histories have 2 % noise a run; points are single runs or medians of three. "Found" is exactly one
change within 10 points of the true place. Under two minutes.
"""

import argparse
import math
import time

import numpy as np
from numpy.typing import NDArray

from runs.analysis import change_points
from runs.analysis.monitoring import single_run_alarm

SD = 0.02
LENGTHS = (20, 30, 100, 1000)
REPEATS = (1, 3)
KINDS = ("normal", "spikes", "autocorrelated")
NEAR = 10

Floats = NDArray[np.float64]


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    print(f"{'noise':16} runs  points   no change  +10 % step   +5 % step   -5 % step     CPU")
    for kind in KINDS:
        for repeats in REPEATS:
            for length in LENGTHS:
                _print_row(random, kind, repeats, length, options.repetitions)
    print("\na change told while 200 single runs arrive, one after the other, and none is there:")
    for kind in KINDS:
        share = _arriving(random, kind, max(options.repetitions // 10, 20))
        print(f"{kind:34}{share:9.1%}")
    print("\nalarm for a single run after 50:      same     -5 %    -10 %    -20 %")
    for kind in KINDS:
        rates = [_alarms(random, kind, drop, options.repetitions) for drop in (0, 0.05, 0.1, 0.2)]
        print(f"{kind:34}" + "".join(f"{share:9.1%}" for share in rates))


def _print_row(
    random: np.random.Generator, kind: str, repeats: int, length: int, repetitions: int
) -> None:
    false = 0
    began = time.process_time()
    for _ in range(repetitions):
        false += bool(change_points.find(history(random, kind, repeats, length).tolist()))
    spent = (time.process_time() - began) / repetitions
    found = [
        sum(_is_found(random, kind, repeats, length, step) for _ in range(repetitions))
        for step in (1.1, 1.05, 1 / 1.05)
    ]
    shares = "".join(f"{count / repetitions:11.1%} " for count in (false, *found))
    print(f"{kind:16} {repeats:4} {length:7} {shares} {spent * 1000:5.1f} ms")


def history(random: np.random.Generator, kind: str, repeats: int, length: int) -> Floats:
    """(points, repeats) of a metric that does not change."""
    noise = random.normal(0, SD, (length, repeats))
    if kind == "spikes":  # three runs in a hundred lose 5 % and more, by 20 % on average
        lost = 0.05 + random.exponential(0.15, (length, repeats))
        noise -= np.where(random.random((length, repeats)) < 0.03, lost, 0)
    if kind == "autocorrelated":
        noise *= math.sqrt(0.75)
        noise[0] /= math.sqrt(0.75)
        for point in range(1, length):
            noise[point] += 0.5 * noise[point - 1]
    values: Floats = 1000 * np.exp(noise)
    return values


def _is_found(
    random: np.random.Generator, kind: str, repeats: int, length: int, step: float
) -> bool:
    """Whether a step away from the ends is reported once, and in its place."""
    points = history(random, kind, repeats, length)
    from_end = min(NEAR, length // 3)
    place = int(random.integers(from_end, length - from_end + 1))
    points[place:] *= step
    found = change_points.find(points.tolist())
    return sum(abs(change.position - place) <= NEAR for change in found) == 1


def _arriving(random: np.random.Generator, kind: str, repetitions: int) -> float:
    """The share of histories in which any analysis, one after each run, reports a change."""
    count = 0
    for _ in range(repetitions):
        points = history(random, kind, 1, 200).tolist()
        count += any(change_points.find(points[:seen]) for seen in range(12, 201))
    return count / repetitions


def _alarms(random: np.random.Generator, kind: str, drop: float, repetitions: int) -> float:
    """The share of histories of 50 single runs whose next run raises an alarm."""
    count = 0
    for _ in range(repetitions):
        runs = history(random, kind, 1, 51)[:, 0]
        value = float(runs[-1]) * (1 - drop)
        count += single_run_alarm(runs[:-1].tolist(), value) is not None
    return count / repetitions


if __name__ == "__main__":
    main()
