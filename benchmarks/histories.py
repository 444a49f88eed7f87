"""What is told of histories: of suites that jobs move, of single steps, and of recorded series.

Called by `benchmarks.verdicts`, which prints the tables.
Points arrive one by one, and what is told is reconciled as the product does it.
"""

import csv
import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from runs.analysis import change_points, monitoring, suites
from runs.analysis.monitoring import Known, News
from runs.analysis.noise import estimate

Floats = NDArray[np.float64]
Random = np.random.Generator

SERIES = 20
COMMITS = 60
RUNS = 3
LOST = 40
NEAR = change_points.SAME_PLACE
# Of recorded series: where a loss begins, within how many points it is to be told, and the running
# median that takes true regimes out.
BEGIN, WITHIN, MEDIANS = 140, 40, (15, 61)


@dataclass
class Told:
    """What was told of one history as its points arrived."""

    known: list[Known] = field(default_factory=list)
    when: dict[int, int] = field(default_factory=dict)

    def add(self, news: News, at: int) -> None:
        """Take in what a point brought; `at` is how many there are."""
        moved = dict(news.moved)
        gone = {*news.refuted}
        kept = []
        for each in self.known:
            is_back = each.id in news.reopened
            is_refuted = (each.refuted or each.id in gone) and not is_back
            step = moved.get(each.id)
            place, ratio = (
                (step.position, step.ratio) if step else (each.position, each.ratio)
            )
            settled = (
                is_refuted
                or (each.settled and not is_back)
                or each.id in news.confirmed
            )
            kept.append(Known(each.id, each.kind, place, ratio, settled, is_refuted))
        found = [("step", each.position, each.ratio) for each in news.steps]
        if news.alarm is not None:
            found.append(("alarm", news.alarm.position, news.alarm.ratio))
        for kind, place, ratio in found:
            self.when[len(kept)] = at
            kept.append(Known(len(kept), kind, place, ratio))  # type: ignore[arg-type]  # of two
        self.known = kept

    def standing(self, kind: str = "step") -> list[Known]:
        """What nothing has refuted."""
        return [each for each in self.known if each.kind == kind and not each.refuted]


def arrived(values: Sequence[Sequence[float]], start: int = 20) -> Told:
    """What is told of a history as its points arrive, from the point `start` on."""
    told = Told()
    for at in range(start, len(values) + 1):
        told.add(monitoring.news(values[:at], told.known), at)
    return told


# Suites


def suite(hosts: Floats, random: Random, loss: tuple[int, int] | None = None) -> Floats:
    """Logs of series x commits x runs on these hosts; one series loses 10 % from a commit on."""
    logs: Floats = (
        random.normal(0, 0.01, (SERIES, COMMITS, RUNS)) + hosts[None, :, None]
    )
    if loss is not None:
        logs[loss[0], loss[1] :] += math.log(0.9)
    return logs


def told_of_suite(logs: Floats) -> tuple[set[int], set[int], list[int]]:
    """(commits blamed, moves of the machine, how long after LOST the loss there was told)."""
    told = [Told() for _series in range(SERIES)]
    machine: set[int] = set()
    for at in range(2 * change_points.MINIMUM_SEGMENT, COMMITS + 1):
        medians = np.median(logs[:, :at], axis=2)
        found = suites.judge_suite(medians, list(range(SERIES)))
        part = np.zeros(at) if found is None else found.part
        moves = () if found is None else found.moves
        machine |= set(moves)
        for number, own in enumerate(told):
            values = np.exp(logs[number, :at] - part[:, None]).tolist()
            own.add(monitoring.news(values, own.known, moves=moves), at)
    steps = [
        (number, each) for number, own in enumerate(told) for each in own.standing()
    ]
    blamed = {each.position for _number, each in steps if each.position not in machine}
    found = [
        told[number].when[each.id] - LOST
        for number, each in steps
        if number == 7 and abs(each.position - LOST) <= 3
    ]
    return blamed, {each.position for _number, each in steps} & machine, found[:1]


def of_suites(random: Random, repetitions: int) -> Iterator[str]:
    """A table: suites of 20 series x 60 commits, told as they arrive."""
    even, slow = np.zeros(COMMITS), np.zeros(COMMITS)
    slow[30:33] = math.log(0.8)
    for_good = np.zeros(COMMITS)
    for_good[30:] = math.log(0.8)
    yield f"**Suites** of {SERIES} series x {COMMITS} commits, {RUNS} runs of 1 % of scatter, told"
    yield f"as they arrive; {repetitions} suites a line. Last: a series loses 10 % at {LOST}."
    yield ""
    yield "| jobs | commits blamed (most) | moves of the machine | loss found, commits later |"
    yield "|---|---|---|---|"
    for name, hosts, is_random in (
        ("all on one host", even, False),
        ("hosts differ by 5 %", even, True),
        ("three jobs at -20 %", slow, False),
        ("-20 % from commit 30 on", for_good, False),
        ("hosts differ by 5 %, and -20 % from commit 30 on", for_good, True),
    ):
        blamed, machine, later = [], [], []
        for _ in range(repetitions):
            own = hosts + (random.normal(0, 0.05, COMMITS) if is_random else 0)
            quiet = told_of_suite(suite(own, random))
            blamed.append(len(quiet[0]))
            machine.append(len(quiet[1]))
            later += told_of_suite(suite(own, random, (7, LOST)))[2]
        delay = (
            f"{len(later)} of {repetitions}, {statistics.median(later or [math.nan]):g}"
        )
        means = f"{statistics.fmean(blamed):.2f} ({max(blamed)}) | {statistics.fmean(machine):.1f}"
        yield f"| {name} | {means} | {delay} |"
    yield ""


# Recorded series


def recorded(folder: Path) -> dict[str, list[float]]:
    """The values of each series of a folder, a file each, with a column `value`."""
    found = {}
    for path in sorted(folder.glob("*.csv")):
        with path.open(newline="") as file:
            values = [
                float(row["value"]) for row in csv.DictReader(file) if row["value"]
            ]
        found[path.stem] = values
    return found


def without_regimes(values: Sequence[float], width: int) -> Floats:
    """The noise of a series: its running median taken out."""
    logs, half = np.log(np.array(values)), width // 2
    medians = [
        np.median(logs[max(0, at - half) : at + half + 1]) for at in range(len(logs))
    ]
    noise: Floats = logs - np.array(medians)
    return noise


def of_recorded(series: Sequence[Sequence[float]], width: int) -> str:
    """Cells of a table: recorded series and their reverses, steps put into them.

    Nearer to an end than half the width the running median does not follow a true step, so steps
    told there count as neither right nor wrong.
    """
    delays: dict[float, list[int]] = {0.95: [], 0.9: []}
    steps = points = stretches = 0
    half = width // 2
    for noise in (noise for values in series for noise in _noises(values, width)):
        stretches += 1
        inner = range(half, len(noise) - half)
        told = arrived(_points(noise)).known
        steps += sum(each.kind == "step" and each.position in inner for each in told)
        points += len(inner)
        for share, own in delays.items():
            lost = noise[: BEGIN + WITHIN].copy()
            lost[BEGIN:] += math.log(share)
            found = arrived(_points(lost), BEGIN - 10)
            later = [
                found.when[each.id] - BEGIN
                for each in found.known
                if each.kind == "step"
                and each.ratio < 1
                and abs(each.position - BEGIN) <= NEAR
            ]
            own.extend([min(later)] if later and min(later) > 0 else [])
    cells = [
        f"{len(found)} of {stretches}, {statistics.median(found or [math.nan]):g}"
        for found in delays.values()
    ]
    return f"{width} | {stretches} | {281 * steps / points:.1f} | {' | '.join(cells)}"


def _noises(values: Sequence[float], width: int) -> list[Floats]:
    """Stretches of 281 points, each as it is and reversed."""
    noise = without_regimes(values, width)
    whole = [noise[at : at + 281] for at in range(0, len(noise) - 280, 281)]
    return [each for stretch in whole for each in (stretch, stretch[::-1])]


def _points(logs: Floats) -> list[list[float]]:
    return [[value] for value in np.exp(logs).tolist()]


def of_folder(folder: Path) -> Iterator[str]:
    """Tables of recorded series."""
    known = recorded(folder)
    yield f"**Recorded series** ({len(known)} public histories of single runs, in stretches of 281"
    yield "points, each also reversed): their running median taken out, so that little changes;"
    yield "nearer to an end than half its width nothing is counted. A loss put in at 140; found"
    yield "within 40 points, and how many points later (median). s: the scatter that stays."
    yield ""
    yield "| series | median of | stretches | steps told in 281 points | -5 % found | -10 % found |"
    yield "|---|---|---|---|---|---|"
    for kind, names in itertools.groupby(
        known, key=lambda name: name.partition("-")[0]
    ):
        group = [known[name] for name in names]
        scatter = statistics.median(
            100 * estimate(noise).sd
            for values in group
            for noise in _noises(values, MEDIANS[0])
        )
        for width in MEDIANS:
            yield f"| {kind} (s {scatter:.1f} %) | {of_recorded(group, width)} |"
    yield ""
    raised = [
        told
        for values in known.values()
        for told in [arrived([[each] for each in values])]
    ]
    alarms = [each for told in raised for each in told.known if each.kind == "alarm"]
    stand = sum(not each.refuted for each in alarms)
    yield f"Alarms in the series as they are: {len(alarms)}, of which {stand} stand at the end."
    yield ""
