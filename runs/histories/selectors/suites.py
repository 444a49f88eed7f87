"""The suite of a campaign: its series as one table, and what each job did to all of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from runs.analysis import suites
from runs.analysis.change_points import WINDOW
from runs.cells.selectors import metrics, revisions
from runs.models import Campaign, Cell, CellSummary, Metric

# More say nothing further of a machine.
MOST_SERIES = 100

Series = tuple[str, int]
"""The key of a condition, and a metric."""


def sign(metric: Metric) -> int:
    """1 where more is faster, -1 for times."""
    return 1 if metric.direction == Metric.Direction.HIGHER else -1


@dataclass(frozen=True)
class SuiteJobs:
    """By commit the log of what its jobs did to the speed of all series; empty for a few series.

    `moves` are the commits from which on most series are at another level.
    """

    parts: Mapping[str, float] = field(default_factory=dict)
    moves: frozenset[str] = frozenset()


def judge_jobs(campaign: Campaign) -> SuiteJobs:
    """What the jobs of a campaign did to all of its series.

    Of the metrics that tools share only the one that the campaign is about is looked at: the others
    are of the same runs. Three queries, two where there are too few series.
    """
    places = {
        key: (number, sha)
        for number, (key, sha) in enumerate(
            reversed(revisions.tracked(campaign).values_list("pk", "sha")[: WINDOW + 1])
        )
    }
    series = _series(campaign, list(places))
    if len(series) < suites.LEAST_SERIES:
        return SuiteJobs()
    logs = np.full((len(series), len(places)), np.nan)
    rows = {mark: number for number, mark in enumerate(series)}
    for mark, revision, median in _medians(campaign, list(places), series):
        if (row := rows.get(mark)) is not None:
            logs[row, places[revision][0]] = series[mark] * math.log(median)
    suite = suites.judge_suite(logs, [key for key, _metric in series])
    if suite is None:
        return SuiteJobs()
    return SuiteJobs(
        {sha: float(suite.part[number]) for number, sha in places.values()},
        frozenset(sha for number, sha in places.values() if number in suite.moves),
    )


def _series(campaign: Campaign, among: Sequence[int]) -> dict[Series, int]:
    """The series of the newest commits, each with its sign."""
    newest = Cell.objects.filter(campaign=campaign, revision__in=among[-2:]).exclude(
        series_key=""
    )
    stored = CellSummary.objects.filter(cell__in=newest, median__gt=0).select_related(
        "metric"
    )
    keys_found = list(
        stored.order_by("cell__series_key", "metric")
        .values_list("cell__series_key", "metric")
        .distinct()
    )
    metric_of = Metric.objects.in_bulk({metric for _key, metric in keys_found})
    primary = metrics.primary_name(campaign, metric_of.values())
    signs = {
        (key, metric): sign(metric_of[metric])
        for key, metric in keys_found
        if metrics.is_speed(metric_of[metric])
        and (
            metric_of[metric].project_id is not None
            or metric_of[metric].name == primary
        )
    }
    return dict(list(signs.items())[:MOST_SERIES])


def _medians(
    campaign: Campaign, among: Sequence[int], series: Mapping[Series, int]
) -> list[tuple[Series, int, float]]:
    rows = CellSummary.objects.filter(
        cell__campaign=campaign,
        cell__revision__in=among,
        cell__series_key__in={key for key, _metric in series},
        metric__in={metric for _key, metric in series},
        median__gt=0,
    )
    summaries = rows.order_by().values(
        "cell__series_key", "metric", "cell__revision", "median"
    )
    return [
        ((row["cell__series_key"], row["metric"]), row["cell__revision"], row["median"])
        for row in summaries
    ]
