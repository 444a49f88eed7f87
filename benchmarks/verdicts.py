"""What BenchLab's answers are worth: wrong verdicts, power and coverage, by simulation.

    .venv/bin/python -m benchmarks.verdicts [--repetitions 2000] [--seed 1] [--write]

Cells are measured in rounds whose order is random, as campaigns are. Noise is normal, normal with
spikes, autocorrelated in time, and that of recorded pgbench runs in their time order
(benchmarks/data/). Prints tables; --write puts the greatest rates into docs/statistics.md, and into
runs/analysis/inference/error_rates.json for pages, which name them. Ten minutes of a processor with
2,000 repetitions. --histories has recorded series, a CSV file each (see benchmarks.histories).
"""

import argparse
import csv
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import histories
from runs.analysis.inference import Cell, Inference, Model, Noise, Pair, judge
from runs.analysis.inference.job_prior import JobPoint
from runs.analysis.inference.job_scatter import BASELINE, JobRow, begins_of, judge_jobs

RECORDED = Path(__file__).parent / "data" / "pgbench_repeats.csv"
DOCS = Path(__file__).parents[1] / "docs" / "statistics.md"
RATES = (
    Path(__file__).parents[1] / "runs" / "analysis" / "inference" / "error_rates.json"
)
BEGIN, END = (
    "<!-- begin: benchmarks.verdicts -->\n",
    "<!-- end: benchmarks.verdicts -->",
)
ROWS, ROUNDS = (1, 8, 20, 165), (3, 5, 10)
SD = 0.02
# Recorded runs are drawn in stretches of this many consecutive ones.
STRETCH = 20
FALSE = ("faster", "slower")
# (n, standard deviation) of base and head.
UNLIKE = (
    ((10, 0.02), (3, 0.02)),
    ((10, 0.01), (3, 0.05)),
    ((10, 0.05), (3, 0.01)),
    ((3, 0.01), (3, 0.05)),
    ((5, 0.01), (3, 0.05)),
    ((5, 0.01), (5, 0.05)),
)

Rates = dict[str, list[dict[str, Any]]]
Floats = NDArray[np.float64]
Random = np.random.Generator
Source = Callable[[Random, int], Floats]

# Any wrong word in tables of up to 20 rows of which nothing lasting changes, by the jobs of the
# base: the mean of public projects, each judged by the constants of the others (statistics.md).
OF_PUBLIC_HISTORIES = [
    {"rows": 1, "n": jobs, "rate": rate}
    for jobs, rate in ((1, 0.035), (2, 0.044), (3, 0.049))
]


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--write", action="store_true", help="the rates, for pages and docs"
    )
    parser.add_argument(
        "--histories", type=Path, help="only the tables of this folder of series"
    )
    options = parser.parse_args()
    rates: Rates = {"few_jobs": OF_PUBLIC_HISTORIES}
    random = np.random.default_rng(options.seed)
    of_folder = options.histories and histories.of_folder(options.histories)
    for line in of_folder or report(random, options.repetitions, rates):
        print(line, flush=True)
    if options.write and rates:
        RATES.write_text(json.dumps(rates, indent=1, sort_keys=True) + "\n")
        text = "\n".join([BEGIN, *greatest(rates), END])
        docs = DOCS.read_text()
        DOCS.write_text(
            re.sub(f"{BEGIN}.*{END}", lambda _: text, docs, flags=re.DOTALL)
        )


def greatest(rates: Rates) -> Iterator[str]:
    """The greatest rates as docs/statistics.md has them, a line for each number of runs."""
    yield f"| any wrong word, at most | {' | '.join(f'{rows} rows' for rows in ROWS)} |"
    yield "|---" * (len(ROWS) + 1) + "|"
    for name, listed in sorted(rates.items()):
        found = {
            (each["n"], each.get("points"), each["rows"]): each["rate"]
            for each in listed
        }
        for n, points in dict.fromkeys(place[:2] for place in found):
            cells = (found.get((n, points, rows)) for rows in ROWS)
            told = " | ".join("" if rate is None else f"{rate:.1%}" for rate in cells)
            yield f"| {name}, n = {n}{f', {points} points' if points else ''} | {told} |"


def report(random: Random, repetitions: int, rates: Rates) -> Iterator[str]:
    """The tables as Markdown; `rates` takes those that pages name."""
    # They are looked through for changes first.
    of_history = max(repetitions * 2 // 5, 50)
    yield (
        f"{repetitions:,} simulated tables in each cell of the first table "
        f"({_fewer(repetitions, 165):,} of 165 rows), {of_history:,} histories of "
        f"jobs, {repetitions:,} tables in the others."
    )
    yield ""
    yield from _of_tables(random, repetitions, rates)
    yield from _of_jobs(np.random.default_rng(2), of_history, rates)
    yield from _of_pairs(np.random.default_rng(4), repetitions, rates)
    yield from _of_unlike(np.random.default_rng(3), repetitions, rates)
    yield from histories.of_suites(np.random.default_rng(5), max(repetitions // 75, 2))
    yield from _of_power(random, repetitions)
    tables = max(repetitions * 5, 100)
    wrong = contradictions(random, tables)
    told = f"Contradictions between interval and verdict in {tables:,} tables of 8 rows"
    yield f"{told}: **{wrong}**."


def sources() -> dict[str, Source]:
    """The noises by name: each gives this many runs in time order."""
    return {
        "normal, 2 %": normal,
        "with spikes": spiky,
        "autocorrelated 0.5": autocorrelated,
        **{f"recorded {name}": drawn(logs) for name, logs in recorded().items()},
    }


def _of_tables(random: Random, repetitions: int, kept: Rates) -> Iterator[str]:
    yield "**Any wrong *faster* or *slower* in a whole table of which nothing differs.**"
    yield ""
    counts = ", ".join(map(str, ROUNDS))
    heads = [f"{rows} row{'s' if rows > 1 else ''}, n = {counts}" for rows in ROWS]
    yield f"| noise | {' | '.join(heads)} |"
    yield "|---" * (len(heads) + 1) + "|"
    for name, source in sources().items():
        rates = {
            (rows, n): any_false(random, source, rows, n, _fewer(repetitions, rows))
            for rows, n in itertools.product(ROWS, ROUNDS)
        }
        cells = (" ".join(f"{rates[rows, n]:.1%}" for n in ROUNDS) for rows in ROWS)
        yield f"| {name} | {' | '.join(cells)} |"
        for (rows, n), rate in rates.items():
            _keep(kept, "rounds", rate, rows=rows, n=n)
    yield ""


def _keep(rates: Rates, table: str, rate: float, **at: int) -> None:
    """The greatest rate of each place of a table."""
    rows = rates.setdefault(table, [])
    same = next(
        (row for row in rows if all(row[name] == at[name] for name in at)), None
    )
    if same is None:
        rows.append({**at, "rate": round(rate, 4)})
    else:
        same["rate"] = max(same["rate"], round(rate, 4))


def _of_jobs(random: Random, repetitions: int, kept: Rates) -> Iterator[str]:
    yield "**Jobs after jobs**: a job measures each commit, and a run scatters by 1 %. Any wrong"
    yield "word on an unchanged commit against its parent / the last points of the branch; and how"
    yield "often the latter find a loss of 10 % of a row. AR: jobs resemble the one before."
    yield ""
    yield "| rows | n | points | 0 % between jobs | 1 % | 2 % | 5 % | 2 %, AR 0.5 | -10 % at 2 % |"
    yield "|---" * 9 + "|"
    for rows, n, count in itertools.product((1, 8), (3, 5), (5, 30)):
        rates = []
        for of_job, ar in (
            (0.0, 0.0),
            (0.01, 0.0),
            (0.02, 0.0),
            (0.05, 0.0),
            (0.02, 0.5),
        ):
            both = [
                after_jobs(random, rows, n, count, of_job, repetitions, of=of, ar=ar)
                for of in (1, BASELINE)
            ]
            rates.append("/".join(f"{rate:.1%}" for rate in both))
            _keep(kept, "jobs", max(both), rows=rows, n=n)
        hits = after_jobs(random, rows, n, count, 0.02, repetitions, loss=math.log(0.9))
        yield f"| {rows} | {n} | {count} | {' | '.join(rates)} | {hits:.1%} |"
    yield ""


def _of_pairs(random: Random, repetitions: int, kept: Rates) -> Iterator[str]:
    yield "**Both sides in one job**: rounds in turn on a host that moves from round to round by"
    yield "20 %, and by 1 % within it; a run scatters by 1 %."
    yield ""
    yield "| rows | rounds | any wrong word | -5 % of a row found |"
    yield "|---|---|---|---|"
    for rows, rounds in itertools.product((1, 8), (3, 5, 10)):
        wrong, found = (
            in_turns(random, rows, rounds, loss, repetitions) for loss in (0.0, 0.05)
        )
        _keep(kept, "turns", wrong, rows=rows, n=rounds)
        yield f"| {rows} | {rounds} | {wrong:.1%} | {found:.1%} |"
    yield ""


def _of_unlike(random: Random, repetitions: int, kept: Rates) -> Iterator[str]:
    yield "**Sides that are not alike**: any wrong word in a table of which nothing differs."
    yield ""
    yield "| base | head | 1 row | 8 rows |"
    yield "|---|---|---|---|"
    for base, head in UNLIKE:
        rates = [unlike(random, rows, base, head, repetitions) for rows in (1, 8)]
        for rows, rate in zip((1, 8), rates, strict=True):
            _keep(kept, "unlike", rate, rows=rows, n=min(base[0], head[0]))
        sides = (f"n = {n}, {sd:.0%}" for n, sd in (base, head))
        yield f"| {' | '.join(sides)} | {' | '.join(f'{rate:.1%}' for rate in rates)} |"
    yield ""


def _of_power(random: Random, repetitions: int) -> Iterator[str]:
    yield "**Right answers** at 2 % normal noise, for the row that differs, without and with a"
    yield "server whose noise is known (20 degrees of freedom)."
    yield ""
    yield "| truth | rows | n | found | with known noise |"
    yield "|---|---|---|---|---|"
    gains = [
        (gain, rows, n)
        for gain, n in ((1.1, 3), (1.05, 5), (0.95, 5))
        for rows in (1, 8, 20)
    ]
    for gain, rows, n in gains:
        found = [
            power(random, rows, n, math.log(gain), repetitions, noise=noise)
            for noise in (None, Noise(SD**2, 20))
        ]
        yield f"| {gain - 1:+.0%} | {rows} | {n} | {found[0]:.1%} | {found[1]:.1%} |"
    drifting = power(random, 8, 3, math.log(1.1), repetitions, drift=0.05)
    yield f"| +10 %, each round 5 % faster than the one before | 8 | 3 | {drifting:.1%} | |"
    cases = (("no difference", 0.0, ""), ("+5 %", math.log(1.05), " (wrong)"))
    for (truth, effect, word), rows in itertools.product(cases, (1, 8)):
        told = same(random, rows, 5, effect, repetitions)
        yield f"| {truth}, noise 1 %: told *the same*{word} | {rows} | 5 | {told:.1%} | |"
    yield ""


def _fewer(repetitions: int, rows: int) -> int:
    """Large tables take long: fewer of them."""
    return repetitions if rows <= 20 else max(repetitions // 5, min(repetitions, 100))


# The measurements


def cells(logs: Floats) -> list[Cell]:
    """Cells as the kernel takes them, each run with its round."""
    n = logs.shape[1]
    blocks = tuple(range(n))
    means, variances = logs.mean(axis=1), logs.var(axis=1, ddof=1)
    return [
        Cell(n, float(mean), float(variance), None, tuple(own), blocks)
        for own, mean, variance in zip(logs.tolist(), means, variances, strict=True)
    ]


def measured(
    random: Random, source: Source, count: int, n: int, drift: float = 0.0
) -> Floats:
    """`count` cells in `n` rounds, each in an order of its own."""
    in_time = source(random, count * n)
    logs = np.zeros((count, n))
    for number in range(n):
        logs[random.permutation(count), number] = in_time[
            number * count : (number + 1) * count
        ]
        logs[:, number] += drift * number
    return logs


def table(
    random: Random,
    source: Source,
    rows: int,
    n: int,
    effect: float = 0.0,
    drift: float = 0.0,
) -> Floats:
    """Logs of a table whose first row has an effect."""
    logs = measured(random, source, 2 * rows, n, drift)
    logs[1] += effect
    return logs


def judged(
    logs: Floats, *, noise: Noise | None = None, significance: float = 0.05
) -> list[Inference]:
    """The answers of rows of two cells each, as two versions under many numbers of clients."""
    pairs = [Pair(cell, cell + 1) for cell in range(0, len(logs), 2)]
    return judge(
        Model(cells(logs), noise), pairs, direction="higher", significance=significance
    )


# What is counted


def any_false(
    random: Random, source: Source, rows: int, n: int, repetitions: int
) -> float:
    """The share of tables without any difference in which a row reports one."""
    found = (judged(table(random, source, rows, n)) for _ in range(repetitions))
    return sum(map(is_false, found)) / repetitions


def after_jobs(
    random: Random,
    rows: int,
    n: int,
    count: int,
    of_job: float,
    repetitions: int,
    *,
    of: int = BASELINE,
    ar: float = 0.0,
    loss: float = 0.0,
) -> float:
    """The share of heads with a wrong word after `count` jobs; with a loss those that are found.

    A job moves all rows by `of_job`; `of` of the points are the baseline, one is the parent.
    """
    slower = 0
    for _ in range(repetitions):
        jobs: Floats = random.normal(0, 1, count + 1)
        for place in range(1, count + 1):
            jobs[place] = ar * jobs[place - 1] + math.sqrt(1 - ar**2) * jobs[place]
        logs = of_job * jobs[:, None, None] + random.normal(
            0, SD / 2, (count + 1, rows, n)
        )
        logs[-1, 0] += loss
        words = _words_after_jobs(logs, of)
        slower += (
            words[0] == "slower" if loss else bool({"slower", "faster"} & set(words))
        )
    return slower / repetitions


def _words_after_jobs(logs: Floats, of: int) -> list[str]:
    """The words of the last job's rows; `of` is 1 for the parent, else the last points."""
    means, variances = logs.mean(axis=2), logs.var(axis=2, ddof=1)
    rows = {}
    for row in range(logs.shape[1]):
        points = [
            JobPoint(logs.shape[2], float(mean), float(variance), key=job)
            for job, (mean, variance) in enumerate(
                zip(means[:, row], variances[:, row], strict=True)
            )
        ]
        history = points[:-1]
        base = history[-1:] if of == 1 else ()
        rows[str(row)] = JobRow(points[-1:], history, begins_of(history), base)
    answers = judge_jobs(rows, direction="higher", effect=0.03)
    return [answers[row].inference.verdict for row in rows]


def in_turns(
    random: Random, rows: int, rounds: int, loss: float, repetitions: int
) -> float:
    """The share of pairs measured in turn with a wrong word; with a loss those that find it."""
    hits = 0
    for _ in range(repetitions):
        host = random.normal(0, 0.2, (1, rounds)) + random.normal(
            0, 0.01, (2 * rows, rounds)
        )
        logs = host + random.normal(0, 0.01, (2 * rows, rounds))
        logs[rows] += math.log1p(-loss)
        asked = [Pair(row, rows + row) for row in range(rows)]
        found = judge(Model(cells(logs), turns={None}), asked, direction="higher")
        hits += found[0].verdict == "slower" if loss else is_false(found)
    return hits / repetitions


def unlike(
    random: Random,
    rows: int,
    base: tuple[int, float],
    head: tuple[int, float],
    repetitions: int,
) -> float:
    """The share of tables with a wrong word whose sides have other n or another scatter."""
    wrong = 0
    for _ in range(repetitions):
        sides = [cells(random.normal(0, sd, (rows, n))) for n, sd in (base, head)]
        asked = [Pair(row, rows + row) for row in range(rows)]
        wrong += is_false(
            judge(Model([*sides[0], *sides[1]]), asked, direction="higher")
        )
    return wrong / repetitions


def is_false(answers: Sequence[Inference]) -> bool:
    """Whether any row says that the sides differ."""
    return any(answer.verdict in FALSE for answer in answers)


def power(
    random: Random,
    rows: int,
    n: int,
    effect: float,
    repetitions: int,
    *,
    noise: Noise | None = None,
    drift: float = 0.0,
) -> float:
    """The share of tables whose first row is reported correctly."""
    wanted = "faster" if effect > 0 else "slower"
    hits = 0
    for _ in range(repetitions):
        logs = table(random, normal, rows, n, effect, drift)
        hits += judged(logs, noise=noise)[0].verdict == wanted
    return hits / repetitions


def same(random: Random, rows: int, n: int, effect: float, repetitions: int) -> float:
    """The share of first rows that are reported as the same, at a noise of 1 %."""
    hits = 0
    for _ in range(repetitions):
        hits += judged(table(random, quiet, rows, n, effect))[0].verdict == "same"
    return hits / repetitions


def contradictions(random: Random, tables: int) -> int:
    """Rows whose word is not that of their interval, or not that of their p-value."""
    wrong = 0
    for _ in range(tables):
        for answer in judged(table(random, normal, 8, 3, random.normal(0, 0.05))):
            low, high = answer.low or 0.0, answer.high or math.inf
            excludes = low > 1 or high < 1
            inside = low >= 1 / 1.03 and high <= 1.03
            if inside:
                expected = "same"
            elif excludes:
                expected = "proven"
            else:
                expected = "undecided"
            told = "proven" if answer.is_proven else answer.verdict
            p_value = answer.adjusted_p_value or 0.0
            wrong += told != expected or excludes != (p_value < 0.05)
    return wrong


# The noises


def normal(random: Random, count: int) -> Floats:
    """Independent logs."""
    return random.normal(0, SD, count)


def quiet(random: Random, count: int) -> Floats:
    """Half as noisy."""
    return random.normal(0, SD / 2, count)


def spiky(random: Random, count: int) -> Floats:
    """One run in thirty loses 5 % and more, by 20 % on average."""
    lost = np.where(
        random.random(count) < 1 / 30, 0.05 + random.exponential(0.15, count), 0.0
    )
    found: Floats = normal(random, count) - lost
    return found


def autocorrelated(random: Random, count: int) -> Floats:
    """Neighbours in time resemble each other."""
    logs = random.normal(0, SD * math.sqrt(0.75), count)
    logs[0] /= math.sqrt(0.75)
    for place in range(1, count):
        logs[place] += 0.5 * logs[place - 1]
    return logs


def recorded() -> dict[str, Floats]:
    """The logs of the recorded runs by script, in their order of time, around 0."""
    logs: dict[str, list[float]] = {}
    with RECORDED.open(newline="") as file:
        for row in csv.DictReader(file):
            logs.setdefault(row["script"], []).append(math.log(float(row["tps"])))
    return {name: np.array(values) - np.mean(values) for name, values in logs.items()}


def drawn(logs: Floats) -> Source:
    """Recorded runs in stretches that begin anywhere, each in its order of time."""

    def source(random: Random, count: int) -> Floats:
        starts = random.integers(0, len(logs), -(-count // STRETCH))
        places = (starts[:, None] + np.arange(STRETCH)) % len(logs)
        return logs[places.ravel()[:count]]

    return source


if __name__ == "__main__":
    main()
