"""Campaigns: lists with the states of their runs, and what a campaign's page shows."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Avg, Case, Count, F, Min, Q, QuerySet, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce
from django.utils import timezone

from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.analysis.inference.cells import CellValue
from runs.analysis.judged_runs import NOT_JUDGED, Judged
from runs.analysis.summary import Summary
from runs.campaigns.selectors import grids
from runs.cells.selectors import versions
from runs.cells.selectors.series_cells import SERVER
from runs.charts.scaling import Line, Point
from runs.grouping import group_by_key
from runs.models import Campaign, CellSummary, Load, Metric, Run, RunCount, Topology
from runs.models.campaigns import Origin
from runs.queue.selectors import certificate_words
from runs.scenarios import statements
from runs.shared import queries
from runs.shared.formats import estimate, quantity
from runs.statements import trial

# In place of a campaign's key, where runs are counted: RunCount has sums of each origin as well.
EXECUTED_HERE = 0


@dataclass(frozen=True)
class Progress:
    """How many of a campaign's runs are done. `seconds_left` is unknown until one has finished."""

    done: int
    total: int
    seconds_left: float | None


@dataclass(frozen=True)
class CampaignRow:
    """A campaign in a list. `run_counts` has the states that occur."""

    campaign: Campaign
    run_counts: Mapping[str, int]

    @property
    def progress(self) -> Progress:
        """How many of its runs have finished."""
        return finished(self.run_counts)

    @property
    def is_paused(self) -> bool:
        """No further run of it begins until it is resumed."""
        return (
            self.campaign.paused_at is not None and self.campaign.state in Campaign.LIVE
        )


def listed() -> QuerySet[Campaign]:
    """Campaigns for a list, the newest first."""
    return Campaign.objects.select_related("scenario").order_by("-pk")


def shown() -> QuerySet[Campaign]:
    """Campaigns with what is shown of a single one."""
    return listed().select_related("topology", "configuration")


@dataclass(frozen=True)
class MeasuredLoad:
    """The load whose statements a campaign measured, and the campaign that its answer is of."""

    load: Load
    campaign: Campaign


def find_measured_load(campaign: Campaign, *, to: Reader) -> MeasuredLoad | None:
    """None for all other campaigns, and for whoever may not see the load; a trial has that of the
    campaign that asked. Up to two queries."""
    slugs = campaign.factors.get(statements.FACTOR, ())
    if not slugs or campaign.scenario.slug != statements.SCENARIO.slug:
        return None
    kept_loads = Load.objects.kept().filter(slug__in=slugs)
    load = projects.filter_by_membership(kept_loads, to=to).first()
    asking = campaign.parameters.get(trial.OF_CAMPAIGN)
    measured = (
        campaign if asking is None else Campaign.objects.filter(pk=asking).first()
    )
    if load is None or measured is None:
        return None
    return MeasuredLoad(load, measured)


SUMMARY = ("n", "median", "minimum", "maximum", "mean")


def cells_in_full(campaign: Campaign) -> list[dict[str, Any]]:
    """All cells in their order, with their summaries and what certificates say. Four queries."""
    cells = list(
        campaign.cells.order_by("ordinal", "pk").values_list("pk", "levels", "version")
    )
    keys = [key for key, *_rest in cells]
    cell_summaries = CellSummary.objects.filter(cell__in=keys).order_by()
    rows = list(cell_summaries.values_list("cell", "metric", *SUMMARY))
    metrics_found = Metric.objects.filter(pk__in={row[1] for row in rows}).order_by(
        "name"
    )
    heads = {
        metric.pk: {
            "metric": metric.name,
            "unit": metric.unit,
            "direction": metric.direction,
        }
        for metric in metrics_found
    }
    places = {key: position for position, key in enumerate(heads)}
    summaries: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for cell, metric, *row in sorted(rows, key=lambda row: places[row[1]]):
        summaries[cell].append(heads[metric] | dict(zip(SUMMARY, row, strict=True)))
    judged = {  # of uploads none is
        key: Judged(unknown=max(cell_row["n"] or 0 for cell_row in cell_rows))
        for key, cell_rows in summaries.items()
    }
    if campaign.origin == Origin.EXECUTED:
        judged = certificate_words.judge_cells(keys)
    return [
        {
            "levels": levels,
            "version": version,
            "summaries": summaries[key],
            "judged": judged.get(key, NOT_JUDGED).counts,
            "is_machine_taken": judged.get(key, NOT_JUDGED).was_machine_taken,
        }
        for key, levels, version in cells
    ]


def unpublished() -> QuerySet[Campaign]:
    """Campaigns that were executed here or uploaded, the newest first."""
    return listed().exclude(origin=Origin.PUBLISHED)


def recent_and_finished(*, limit: int, to: Reader) -> tuple[list[CampaignRow], int]:
    """The newest campaigns, without published ones, and how many runs of all that were executed
    here have finished: for the first page. Two queries.
    """
    newest = list(projects.newest(unpublished(), to=to, number=limit))
    counts = run_counts([*(campaign.pk for campaign in newest), EXECUTED_HERE])
    executed = counts[EXECUTED_HERE].get(Run.State.FINISHED, 0)
    return [CampaignRow(campaign, counts[campaign.pk]) for campaign in newest], executed


def rows(campaigns: Iterable[Campaign]) -> list[CampaignRow]:
    """These campaigns with the states of their runs, counted in one query for all."""
    campaigns = list(campaigns)
    counts = run_counts([campaign.pk for campaign in campaigns])
    return [CampaignRow(campaign, counts[campaign.pk]) for campaign in campaigns]


# Wordings without words of their own: a tool's message, or several reasons in one.
ONLY_QUOTES = r"^(%\(\w+\)s)*$"


def causes(campaign: Campaign, states: Collection[str]) -> Any:
    """Why runs are in these states: each cause once, with the `number` of its runs, and `runs`.

    Messages of one text are one cause, whatever they quote, but not those that only quote.
    """
    text = Case(
        When(wording__text__regex=ONLY_QUOTES, then="message"),
        default=Coalesce(KeyTextTransform("text", "wording"), "message"),
    )
    runs_in_states = campaign.runs.filter(state__in=states).order_by()
    grouped = runs_in_states.values("state", "code", cause=text)
    counted = grouped.annotate(
        number=Count("pk"),
        runs=ArrayAgg("pk", order_by="position"),
        first=Min("position"),
    )
    return counted.order_by("first")


def run_counts(campaign_ids: Collection[int]) -> dict[int, dict[str, int]]:
    """By campaign (or EXECUTED_HERE) the number of runs in each state that occurs. One query."""
    counts: dict[int, dict[str, int]] = {
        campaign_id: {} for campaign_id in campaign_ids
    }
    if not counts:
        return counts
    values = [list(counts), Origin.EXECUTED.value]
    for campaign_id, state, number in queries.rows(_COUNTS, values, of=RunCount):
        if number:
            counts[campaign_id][state] = int(number)
    return counts


# In PostgreSQL's words: to write it from a query set takes ten times as long.
_COUNTS = f"""
SELECT campaign, state, sum(number) FROM runs_runcount
WHERE campaign = ANY(%s) AND (campaign <> {EXECUTED_HERE} OR origin = %s)
GROUP BY campaign, state ORDER BY campaign, state
"""  # noqa: S608 - of a constant


def can_retry(campaign: Campaign) -> bool:
    """Whether it has a run that ended without success and can be queued again."""
    return campaign.runs.filter(Run.RETRIABLE).exists()


def lines_of(
    rows: Sequence[grids.Row],
    factor: str | None,
    summaries: Mapping[int, Summary],
    values: Mapping[int, CellValue],
) -> list[Line]:
    """The rows as lines over the factor across, where its levels are numbers. One query.

    What is drawn of a cell is what the model says of it; the median where it says nothing.
    """
    judged = certificate_words.judge_cells(
        [cell.pk for row in rows for cell in row.cells]
    )
    return [
        Line(
            label=row.label,
            major=versions.major(row.version),
            points=_points(row, factor, summaries, values, judged),
            version=row.version,
        )
        for row in rows
    ]


def point_of(
    level: Any,
    summary: Summary,
    value: CellValue | None,
    *,
    mark: str = "",
    url: str = "",
) -> Point:
    """The point of a cell: what the model says of it with its runs, else its median and range."""
    if value is None:
        return Point.of(
            level, summary, mark=mark, url=url, text=quantity(summary.median)
        )
    return Point(
        level,
        value.value,
        # Without an interval of its own, what was printed or measured.
        summary.minimum if value.low is None else value.low,
        summary.maximum if value.high is None else value.high,
        summary.n,
        mark,
        url=url,
        runs=value.runs,
        text=estimate(value.value),
    )


def progress(campaign: Campaign) -> Progress:
    """How many runs have ended, and how long the others take at this pace. Two queries.

    Servers work at the same time, so the slowest one counts. Those that share load generators
    take turns. The formula is in docs/statistics.md.
    """
    apart = "server" if SERVER in campaign.factors else "campaign"
    grouped = campaign.runs.order_by(apart).values(apart)
    groups = list(
        grouped.annotate(
            total=Count("pk"),
            done=Count("pk", filter=Q(state__in=Run.ENDED)),
            mean=Avg(
                F("finished_at") - F("started_at"), filter=Q(state=Run.State.FINISHED)
            ),
        )
    )
    done, total = (sum(group[name] for group in groups) for name in ("done", "total"))
    if done == total:
        return Progress(done, total, 0.0)
    going_on = [group for group in groups if group["done"] < group["total"]]
    known_means = [group["mean"] for group in groups if group["mean"] is not None]
    if not known_means:
        return Progress(done, total, None)
    active = campaign.runs.filter(state__in=Run.ACTIVE, started_at__isnull=False)
    started = group_by_key(active.values_list(apart, "started_at"))
    # A server without a finished run is assumed to be as slow as the slowest.
    seconds_left = [
        _seconds_left(
            group["total"] - group["done"],
            group["mean"] or max(known_means),
            started[group[apart]],
        )
        for group in going_on
    ]
    is_shared = bool(
        campaign.topology and campaign.topology.kind == Topology.Kind.CLIENT
    )
    return Progress(done, total, sum(seconds_left) if is_shared else max(seconds_left))


def finished(counts: Mapping[str, int]) -> Progress:
    """How many of these runs, by state, have finished; not those that ended otherwise."""
    done = sum(counts.get(state, 0) for state in Run.WITH_RESULT)
    return Progress(done, sum(counts.values()), None)


def measured_again(campaign: Campaign) -> int:
    """How many of its runs were not valid and got another one for that. One query."""
    return campaign.runs.filter(again_of__isnull=False).count()


def machines(campaign: Campaign) -> list[Run]:
    """The first run on each server, in the order of the factor, with what it ran on. One query."""
    # By their keys: whole rows of all runs take five times as long to sort.
    first_runs = (
        campaign.runs.order_by("server_id", "position")
        .distinct("server_id")
        .values("pk")
    )
    runs_found = Run.objects.filter(pk__in=first_runs).defer("plan")
    places = {
        slug: position for position, slug in enumerate(campaign.factors.get(SERVER, ()))
    }
    return sorted(
        runs_found.select_related("server", "hardware", "environment"),
        key=lambda run: (
            places.get(run.server.slug if run.server else "", 0),
            run.position,
        ),
    )


def _seconds_left(
    remaining: int, mean: timedelta, started: Iterable[datetime]
) -> float:
    now = timezone.now()
    spent = sum((min(now - started_at, mean) for started_at in started), timedelta())
    return max((remaining * mean - spent).total_seconds(), 0.0)


def _points(
    row: grids.Row,
    factor: str | None,
    summaries: Mapping[int, Summary],
    values: Mapping[int, CellValue],
    judged: Mapping[int, Judged],
) -> tuple[Point, ...]:
    points = (
        point_of(
            level,
            summaries[cell.pk],
            values.get(cell.pk),
            mark=certificate_words.counted(judged.get(cell.pk, NOT_JUDGED)),
            url=f"#cell-{cell.pk}",
        )
        for cell in row.cells
        if cell.pk in summaries
        and isinstance(level := cell.levels.get(factor), int | float)
    )
    return tuple(sorted(points, key=lambda point: point.x))
