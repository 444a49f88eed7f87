"""The noise of campaigns as known from before: how others scatter on their servers."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from runs.analysis.inference import Noise
from runs.analysis.inference.variances import noise_of
from runs.models import Campaign, Run
from runs.models.campaigns import Origin
from runs.shared import queries

# So many of the newest campaigns that have ended say how their machines scatter.
NOISE_CAMPAIGNS = 20
# How many cells are used, of all of them and of each: a wide one is not read whole.
NOISE_CELLS = 300
# Cells of campaigns on other servers are read as well, and passed over.
MOST_READ = 2300

# The scatter of the newest campaigns' cells and of those asked for, and where they ran. One that is
# at work is not among the newest: each of its runs would change what is said of all others. Tables
# are read by lists of keys that follow each other: a large one costs what a small one does.
# Each machine has a scatter: its join is FULL since that is never made by nested loops. The planner
# expects ten rows of a list of any length, and compared each of 2,300 cells with each machine. For
# that reason IN is asked whether it IS TRUE, which is looked up in a hash table and never joined.
_ON_SERVERS = """
WITH newest AS MATERIALIZED (
    SELECT id FROM runs_campaign
    WHERE origin = %(executed)s AND treatment = '{}' AND state <> ALL(%(live)s)
        AND slice_seconds IS NULL
    ORDER BY id DESC LIMIT %(newest)s
), cell AS MATERIALIZED (
    SELECT last.*, true AS is_newest FROM newest, LATERAL (
        SELECT id, campaign_id FROM runs_cell WHERE campaign_id = newest.id
        ORDER BY ordinal DESC LIMIT %(cells)s) AS last
    UNION ALL
    SELECT id, campaign_id, false FROM runs_cell WHERE campaign_id = ANY(%(asked)s)
), stored AS MATERIALIZED (
    SELECT cell_id, metric_id, n, log_variance FROM runs_cellsummary
    WHERE cell_id = ANY(ARRAY(SELECT id FROM cell)) AND metric_id = ANY(%(metrics)s)
        AND log_variance IS NOT NULL
), scatter AS MATERIALIZED (
    (SELECT * FROM stored WHERE (cell_id IN (SELECT id FROM cell WHERE is_newest)) IS TRUE
        ORDER BY cell_id DESC LIMIT %(most)s)
    UNION
    SELECT * FROM stored
    WHERE (cell_id IN (SELECT id FROM cell WHERE campaign_id = ANY(%(asked)s))) IS TRUE
), machine AS MATERIALIZED (
    SELECT cell_id, (array_agg(server_id ORDER BY repeat))[1] AS server,
        (array_agg(hardware_id ORDER BY repeat))[1] AS hardware,
        bool_or(validity = ANY(%(doubted)s)) AS doubted
    FROM runs_run
    WHERE cell_id = ANY(ARRAY(SELECT cell_id FROM scatter)) AND state = %(finished)s
    GROUP BY cell_id
)
SELECT campaign_id, metric_id, server, hardware, coalesce(doubted, false), is_newest, n,
    log_variance
FROM scatter FULL JOIN machine USING (cell_id) JOIN cell ON cell.id = cell_id
ORDER BY cell_id DESC
"""


class Row(NamedTuple):
    """A row of the query."""

    campaign: int
    metric: int
    server: int | None
    hardware: int | None
    is_doubted: bool
    is_newest: bool
    n: int | None
    variance: float | None


# A campaign with the number of runs of a cell and the variance of their logs.
Scattered = tuple[int, int, float]


class _Scatter:
    """How the cells of the newest campaigns scatter, by metric and machine, the last cell first."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._of: dict[tuple[int, Hashable], list[Scattered]] = defaultdict(list)
        self._noise: dict[Hashable, Noise | None] = {}
        for row in rows:
            # What else is judged with a campaign does not change what is said of it.
            if row.is_newest and not row.is_doubted:
                scattered = (row.campaign, row.n or 1, row.variance or 0.0)
                self._of[row.metric, (row.server, row.hardware)].append(scattered)
        self._campaigns = {
            campaign
            for entries_of_machine in self._of.values()
            for campaign, *_rest in entries_of_machine
        }

    def noise(
        self, campaign: int, metric: int, machines: tuple[Hashable, ...]
    ) -> Noise | None:
        """The noise of these machines as others than this campaign know it; None for too few."""
        # The same for all campaigns that are not among the newest, as one that is at work.
        key = (campaign if campaign in self._campaigns else None, metric, machines)
        if key not in self._noise:
            other_variances = [
                (n, variance)
                for machine in machines
                for campaign_key, n, variance in self._of.get((metric, machine), ())
                if campaign_key != campaign
            ]
            self._noise[key] = noise_of(other_variances[:NOISE_CELLS])
        return self._noise[key]


@dataclass(frozen=True)
class Scope:
    """The cells of one campaign that its model uses: those of the same revisions."""

    campaign: Campaign
    revisions: frozenset[int | None]


def scopes(cells: Iterable[tuple[Campaign, int | None]]) -> list[Scope]:
    """Of cells that are given as campaign and revision: the scope of each campaign, by its key."""
    revisions: dict[Campaign, set[int | None]] = defaultdict(set)
    for campaign, revision in cells:
        revisions[campaign].add(revision)
    campaigns_sorted = sorted(revisions, key=lambda campaign: campaign.pk)
    return [
        Scope(campaign, frozenset(revisions[campaign])) for campaign in campaigns_sorted
    ]


def find_noise(
    scopes: Sequence[Scope], metrics: Mapping[int, Any]
) -> dict[tuple[int, int], Noise]:
    """The noise of each campaign as known from before, by (campaign, metric).

    For executed campaigns: how others that have ended scatter on the same servers and hardware, by
    their cells without a run in doubt. A campaign that has doubtful runs itself gets none: what the
    machine is like while nobody disturbs it says nothing about it. Nor does it of slices, whose
    rounds say enough. Uploads get none: what comes later would change their answers. One query at
    most.
    """
    executed_keys = {
        scope.campaign.pk
        for scope in scopes
        if scope.campaign.origin == Origin.EXECUTED and not scope.campaign.slice_seconds
    }
    if not executed_keys:
        return {}
    rows = _rows(executed_keys, list(metrics))
    machines: dict[int, dict[Hashable, None]] = defaultdict(
        dict
    )  # in the order of its cells
    for row in rows:
        machines[row.campaign][row.server, row.hardware] = None
    disturbed = {row.campaign for row in rows if row.is_doubted}
    scatter = _Scatter(rows)
    return {
        (campaign, metric): campaign_noise
        for campaign in executed_keys - disturbed
        for metric in metrics
        if (
            campaign_noise := scatter.noise(campaign, metric, tuple(machines[campaign]))
        )
    }


def _rows(campaign_keys: Iterable[int], metrics: list[int]) -> list[Row]:
    """The last cell first."""
    values: dict[str, Any] = {
        "executed": Origin.EXECUTED.value,
        "live": [campaign_state.value for campaign_state in Campaign.LIVE],
        "newest": NOISE_CAMPAIGNS,
        "asked": list(campaign_keys),
        "metrics": metrics,
        "cells": NOISE_CELLS,
        "most": MOST_READ,
        "finished": Run.State.FINISHED.value,
        "doubted": [run_validity.value for run_validity in Run.DOUBTED],
    }
    return [Row(*row) for row in queries.rows(_ON_SERVERS, values)]
