"""Compared series: the cells of a campaign under fixed levels, along one factor."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.translation import gettext as _

from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.analysis.summary import Summary
from runs.cells.selectors import metrics, provenance, series_cells, versions
from runs.cells.selectors.series_cells import SeriesKey, level_text
from runs.compare.selectors.address import state
from runs.compare.selectors.load import comparability, stored_cells
from runs.compare.selectors.load.comparability import Comparability
from runs.compare.selectors.load.stored_cells import CellRuns
from runs.models import (
    Campaign,
    Cell,
    Environment,
    HardwareProfile,
    Metric,
    SettingsSnapshot,
)
from runs.models.campaigns import Origin

# Fields of a published table that a comparison has no use for.
LONG = (
    "grid",
    "columns",
    "search",
    "method",
    "findings",
    "notes",
    "chart",
    "reproduce",
)


@dataclass(frozen=True)
class SeriesCell:
    """A cell of a series: its level on the x axis (None if there is none), its summary and runs."""

    id: int
    x: Any
    levels: Mapping[str, Any]
    summary: Summary
    runs: CellRuns
    revision: int | None = None


@dataclass(frozen=True)
class Series:
    """Cells along the x axis; `key` fixes what else varies, `levels` are what all share."""

    key: SeriesKey
    campaign: Campaign
    version: str
    levels: Mapping[str, Any]
    cells: tuple[SeriesCell, ...]

    @property
    def runs(self) -> CellRuns:
        """The conditions of its cells: those of the first, which are usually those of all."""
        return self.cells[0].runs if self.cells else CellRuns()


@dataclass(frozen=True)
class Loaded:
    """Everything that a comparison reads. `faults` say what was requested but does not exist.

    `factors` are those that can be the x axis; `metrics` those that the cells have. `provenance` is
    the record of the printed figures of each published cell, a fact a line.
    """

    series: tuple[Series, ...] = ()
    x: str | None = None
    metric: Metric | None = None
    factors: tuple[str, ...] = ()
    metrics: tuple[Metric, ...] = ()
    hardware: Mapping[int, HardwareProfile] = field(default_factory=dict)
    environments: Mapping[int, Environment] = field(default_factory=dict)
    settings: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    provenance: Mapping[int, Sequence[str]] = field(default_factory=dict)
    comparability: Comparability = field(default_factory=Comparability)
    faults: tuple[str, ...] = ()


def load(
    keys: Sequence[SeriesKey],
    *,
    metric: str = "",
    x: str = "",
    reader: Reader,
    seen: Collection[int] | None = None,
) -> Loaded:
    """The series that the keys name, with summaries of one metric.

    At most nine queries, and three more if any series is published. `seen` are the campaigns of
    these names that the reader may see, where the caller has asked for them.

    A key that leaves factors open besides `x` gives a series for each combination of their
    levels. For uploads without a fixed revision the newest one is used. Campaigns of projects that
    the reader may not see are reported like those that do not exist.
    """
    campaigns = _named(frozenset(key.slug for key in keys), reader, seen)
    faults = [
        _("There is no campaign %(slug)s.") % {"slug": slug}
        for slug in dict.fromkeys(key.slug for key in keys)
        if slug not in campaigns
    ]
    known_keys = [key for key in keys if key.slug in campaigns]
    if not known_keys:
        return Loaded(faults=tuple(faults))
    cells = _wanted(known_keys, campaigns, x)
    metrics_found, chosen, rows = _rows(cells, metric, faults)
    parts_of_keys = [
        (key, campaigns[key.slug], _cells_of_key(key, campaigns[key.slug], rows))
        for key in known_keys
    ]
    factors = _factors(parts_of_keys)
    axis = _axis(x, factors, faults)
    series = _series(parts_of_keys, axis, faults)
    return Loaded(
        series=series,
        x=axis,
        metric=chosen,
        factors=tuple(factors),
        metrics=tuple(metrics_found),
        provenance=_provenance(series, chosen),
        faults=tuple(faults),
        **conditions_of(series),
    )


def _named(
    slugs: frozenset[str], reader: Reader, visible_keys: Collection[int] | None
) -> dict[str, Campaign]:
    """The campaigns of these names that the reader may see: `visible_keys`, if that is known."""
    if visible_keys is None:
        campaigns = projects.visible(Campaign.objects.filter(slug__in=slugs), to=reader)
    else:
        campaigns = Campaign.objects.filter(pk__in=visible_keys)
    related = campaigns.select_related(
        "scenario", "topology", "configuration", "published"
    )
    short = related.defer(*(f"published__{name}" for name in LONG))
    return {campaign.slug: campaign for campaign in short}


_Cells = Sequence[tuple[Cell, Mapping[str, Any]]]
# The key of a campaign, and a cell of it.
_Row = tuple[int, SeriesCell]
# A key, its campaign, and the cells that it names.
_Part = tuple[SeriesKey, Campaign, list[SeriesCell]]


def _wanted(
    keys: Sequence[SeriesKey], campaigns: Mapping[str, Campaign], x: str
) -> _Cells:
    cells_wanted = series_cells.wanted(keys, campaigns, x).select_related("revision")
    ordered = cells_wanted.order_by("campaign_id", "ordinal", "pk")
    return [(cell, series_cells.levels_of(cell)) for cell in ordered]


def _rows(
    cells: _Cells, metric_name: str, faults: list[str]
) -> tuple[list[Metric], Metric | None, list[_Row]]:
    """The metrics of the cells, the one that is compared, and the cells that have it."""
    metrics_found, summaries = _measured(cells, metric_name or USUAL)
    chosen = next(
        (metric for metric in metrics_found if metric.name == metric_name),
        metrics_found[0] if metrics_found else None,
    )
    if metric_name and (chosen is None or chosen.name != metric_name):
        faults.append(
            _("None of these series has the metric %(name)s.") % {"name": metric_name}
        )
    if (
        chosen is not None
        and sum(metric.name == chosen.name for metric in metrics_found) > 1
    ):
        message = _(
            "%(name)s has another unit or direction in some of these series: left out."
        )
        faults.append(message % {"name": chosen.name})
    if chosen is not None and chosen.name != (metric_name or USUAL):
        _found, summaries = _measured(cells, chosen.name)
    runs = stored_cells.read_runs(summaries)
    rows = [
        (
            cell.campaign_id,
            SeriesCell(
                cell.pk,
                None,
                levels,
                summaries[cell.pk],
                runs.get(cell.pk, CellRuns()),
                cell.revision_id,
            ),
        )
        for cell, levels in cells
        if cell.pk in summaries
    ]
    return metrics_found, chosen, rows


# The metric that most comparisons are about.
USUAL = "tps"
# All metrics of the cells, and what is stored of one of them. By the list of cells alone: to look
# up the metrics of a subquery takes PostgreSQL three times as long.
_MEASURED = f"""
SELECT metric.*,
    {
    ", ".join(
        f"array_agg(summary.{name}) FILTER (WHERE name = %(name)s) AS of_{name}"
        for name in ("cell_id", *metrics.FIELDS)
    )
}
FROM runs_metric metric JOIN runs_cellsummary summary ON metric_id = metric.id
WHERE cell_id = ANY(%(cells)s)
GROUP BY metric.id
"""  # noqa: S608 - of constants


def _measured(cells: _Cells, name: str) -> tuple[list[Metric], dict[int, Summary]]:
    """The metrics of the cells, the most useful first, and by cell the summary of this one."""
    values = {"cells": [cell.pk for cell, _levels in cells], "name": name}
    stored = list(Metric.objects.raw(_MEASURED, values))
    one_of = metrics.joined(stored)
    metrics_found = metrics.sort_by_use(dict.fromkeys(one_of.values()))
    chosen = next((metric for metric in metrics_found if metric.name == name), None)
    summaries: dict[int, Summary] = {}
    for metric in stored:
        if one_of[metric.pk] is chosen:
            keys, *figures = (
                getattr(metric, f"of_{field}") for field in ("cell_id", *metrics.FIELDS)
            )
            summaries |= zip(keys, map(Summary, *figures), strict=True)
    return metrics_found, summaries


def _factors(parts_of_keys: Sequence[_Part]) -> dict[str, int]:
    """The factors that vary within one key, with the highest number of levels."""
    most: dict[str, int] = {}
    for _key, _campaign, of_key in parts_of_keys:
        for name, count in series_cells.open_factors(
            cell.levels for cell in of_key
        ).items():
            most[name] = max(most.get(name, 0), count)
    return most


def _cells_of_key(
    key: SeriesKey, campaign: Campaign, rows: Sequence[_Row]
) -> list[SeriesCell]:
    return [
        cell
        for owner, cell in rows
        if owner == campaign.pk and key.matches(cell.levels)
    ]


def _provenance(
    series: Sequence[Series], metric: Metric | None
) -> Mapping[int, Sequence[str]]:
    published = [
        series for series in series if series.campaign.origin == Origin.PUBLISHED
    ]
    if metric is None or not published:
        return {}
    return provenance.read_cells(
        [cell.id for one_series in published for cell in one_series.cells], metric
    )


def _axis(axis_asked: str, factors: Mapping[str, int], faults: list[str]) -> str | None:
    if axis_asked == state.NO_AXIS:
        return None
    if axis_asked and axis_asked not in factors:
        faults.append(
            _(
                "The factor %(name)s does not vary in these series: it cannot be the x axis."
            )
            % {"name": axis_asked}
        )
        axis_asked = ""
    return axis_asked or series_cells.best_axis(factors)


def _series(
    parts_of_keys: Sequence[_Part], axis: str | None, faults: list[str]
) -> tuple[Series, ...]:
    series_of: dict[SeriesKey, Series] = {}
    for key, campaign, of_key in parts_of_keys:
        if not of_key:
            faults.append(_("No finished run belongs to %(key)s.") % {"key": key})
        for full, group in _groups(key, of_key, axis):
            series_of.setdefault(full, _one(full, campaign, group, axis))
    if len(series_of) > state.MOST_SERIES:
        faults.append(state.too_many(len(series_of)))
    return tuple(series_of.values())[: state.MOST_SERIES]


def _one(
    key: SeriesKey, campaign: Campaign, group: Sequence[SeriesCell], axis: str | None
) -> Series:
    """One series from the cells of one group, in the order of the axis."""
    cells = [replace(cell, x=cell.levels.get(axis) if axis else None) for cell in group]
    if all(isinstance(cell.x, int | float) for cell in cells):
        cells.sort(key=lambda cell: cell.x)
    elif axis == series_cells.VERSION:
        cells.sort(key=lambda cell: versions.order(str(cell.x)))
    shared = {name: level for name, level in group[0].levels.items() if name != axis}
    version = str(shared.get(series_cells.VERSION, ""))
    return Series(key, campaign, version, shared, tuple(cells))


def _groups(
    key: SeriesKey, cells: Sequence[SeriesCell], axis: str | None
) -> list[tuple[SeriesKey, list[SeriesCell]]]:
    """The cells by the levels of the factors that the key leaves open, old versions first."""
    named_factors = {axis, *(name for name, _text in key.levels)}
    parting = [
        name
        for name in series_cells.open_factors(cell.levels for cell in cells)
        if name not in named_factors
    ]
    grouped: dict[tuple[tuple[str, str], ...], list[SeriesCell]] = defaultdict(list)
    for cell in cells:
        fixed = tuple((name, level_text(cell.levels.get(name, ""))) for name in parting)
        grouped[fixed].append(cell)
    places = {
        levels_of_others: position
        for position, levels_of_others in reversed(
            list(enumerate(map(_others, grouped)))
        )
    }

    def order(fixed: tuple[tuple[str, str], ...]) -> tuple[int, tuple[int, ...]]:
        version = dict(fixed).get(series_cells.VERSION, "")
        return places[_others(fixed)], versions.order(version)

    return [(key.fixed(fixed), grouped[fixed]) for fixed in sorted(grouped, key=order)]


def _others(fixed: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(level for level in fixed if level[0] != series_cells.VERSION)


def conditions_of(series: Sequence[Series]) -> dict[str, Any]:
    """The stored conditions of series, as fields of Loaded: one query per kind."""
    by_cell = {cell.id: cell.runs for one_series in series for cell in one_series.cells}
    hardware, environments, settings = (
        stored_cells.keys_of(by_cell.values(), kind)
        for kind in ("hardware", "environment", "settings")
    )
    snapshots = SettingsSnapshot.objects.in_bulk(settings)
    return {
        "hardware": HardwareProfile.objects.in_bulk(hardware),
        "environments": Environment.objects.in_bulk(environments),
        "settings": {key: snapshot.settings for key, snapshot in snapshots.items()},
        "comparability": comparability.read_comparability(by_cell, by_cell),
    }
