"""What BenchLab's verdicts are worth: false alarms and power, by simulation.

    .venv/bin/python -m benchmarks.verdicts [--repetitions 4000] [--seed 1]

Noise is normal, normal with spikes, autocorrelated, and drawn from real runs of pgbench
(benchmarks/data/). Prints the share of verdicts "faster" or "slower" where nothing differs (A
against A), and the share of right verdicts where head is 5 % faster or slower. Under a minute.
"""

import argparse
import csv
import math
import random
import statistics
from collections.abc import Callable
from pathlib import Path

from runs.analysis.comparison import compare

from runs.analysis import noise
from runs.analysis.summary import summarise

RECORDED = Path(__file__).parent / "data" / "pgbench_repeats.csv"
REPEATS = (3, 5, 10)
SD = 0.02

Source = Callable[[random.Random, int], list[float]]


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repetitions", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sources: dict[str, Source] = {
        "normal, 2 %": normal,
        "with spikes": spiky,
        "autocorrelated 0.5": autocorrelated,
        **{f"recorded, {name}": drawn(logs) for name, logs in recorded().items()},
        **{f"recorded, {name}, as 2 %": drawn(scaled(logs)) for name, logs in recorded().items()},
    }
    print(f"{'noise':34}   n   A/A called   5 % faster   5 % slower")
    for name, source in sources.items():
        for repeats in REPEATS:
            rates = [
                rate(source, repeats, effect, options.seed, options.repetitions)
                for effect in (1.0, 1.05, 0.95)
            ]
            print(f"{name:34} {repeats:3}" + "".join(f"{share:12.1%} " for share in rates))
    print("\nby formula, 2 %: power for 5 %, and the effect that is found in 80 %")
    for repeats in REPEATS:
        effect = noise.minimum_detectable_effect(SD, repeats)
        print(f"{repeats:37} {noise.power(SD, repeats, 0.05):12.1%} {effect:12.1%}")


def rate(source: Source, repeats: int, effect: float, seed: int, repetitions: int) -> float:
    """The share of wrong verdicts for an effect of 1, else of right ones."""
    generator = random.Random(f"{seed} {repeats}")
    wanted = ("faster", "slower") if effect == 1 else ("faster" if effect > 1 else "slower",)
    hits = 0
    for _ in range(repetitions):
        both = source(generator, 2 * repeats)
        base = summarise([math.exp(log) for log in both[:repeats]])
        head = summarise([effect * math.exp(log) for log in both[repeats:]])
        hits += compare(base, head, direction="higher").verdict in wanted
    return hits / repetitions


def normal(generator: random.Random, count: int) -> list[float]:
    """Independent logs."""
    return [generator.gauss(0, SD) for _ in range(count)]


def spiky(generator: random.Random, count: int) -> list[float]:
    """One run in thirty loses 5 % and more, by 20 % on average."""
    return [
        log - (0.05 + generator.expovariate(1 / 0.15) if generator.random() < 1 / 30 else 0)
        for log in normal(generator, count)
    ]


def autocorrelated(generator: random.Random, count: int) -> list[float]:
    """Neighbours in time resemble each other; BenchLab's random order deals them to both sides."""
    logs = [generator.gauss(0, SD)]
    while len(logs) < count:
        logs.append(0.5 * logs[-1] + generator.gauss(0, SD * math.sqrt(0.75)))
    generator.shuffle(logs)
    return logs


def recorded() -> dict[str, list[float]]:
    """The logs of the recorded runs by script, around 0."""
    logs: dict[str, list[float]] = {}
    with RECORDED.open(newline="") as file:
        for row in csv.DictReader(file):
            logs.setdefault(row["script"], []).append(math.log(float(row["tps"])))
    return {
        name: [log - statistics.fmean(values) for log in values] for name, values in logs.items()
    }


def scaled(logs: list[float]) -> list[float]:
    """The same shape of noise on a quieter machine: a standard deviation of 2 %."""
    factor = SD / statistics.stdev(logs)
    return [factor * log for log in logs]


def drawn(logs: list[float]) -> Source:
    """Runs drawn from the recorded ones."""
    return lambda generator, count: generator.choices(logs, k=count)


if __name__ == "__main__":
    main()
