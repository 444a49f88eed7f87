"""A published table next to our own measurements in its form: the same columns, our own rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from runs.analysis.judgements import NOT_JUDGED, Judged
from runs.models import Campaign, CellSummary, Measurement, PublishedTable, Run
from runs.published import recompute
from runs.published.document import Rule
from runs.published.figures import Number
from runs.published.recompute import Operand
from runs.selectors import validity
from runs.selectors.archive import versions
from runs.selectors.archive.reproduction import Change, of_campaign
from runs.templatetags.formats import spoken

VERSION = "version"
UNITS = {"factor": "", "inverse": "", "percent": "%", "loss": "%"}


@dataclass(frozen=True)
class MeasuredCell:
    """A cell of our table: a level, or the median of its metric with the number of runs.

    What the publication derives from other figures is derived by the same rule from our medians.
    `mark` says which of the runs behind it are not valid.
    """

    text: str
    is_level: bool = False
    value: float | None = None
    unit: str = ""
    runs: int | None = 0
    mark: str = ""


@dataclass(frozen=True)
class SideBySide:
    """The published campaign, and the rows measured here in the form of its table.

    `columns` are those of our rows: all but the publication's own words. `versions` maps each
    printed version to the one measured here.
    """

    published: Campaign
    table: PublishedTable
    columns: Sequence[Mapping[str, Any]]
    rows: Sequence[Sequence[MeasuredCell]]
    differences: Sequence[Change] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


def side_by_side(campaign: Campaign) -> SideBySide | None:
    """What a campaign reproduces, next to its results; None if nothing. Three queries, or four.

    A row is a combination of the levels that a printed row has. If versions differ from the printed
    ones, the oldest stands for the oldest, and so on.
    """
    if not campaign.reproduces:
        return None
    found = Campaign.objects.select_related("published__source", "scenario")
    published = found.filter(slug=campaign.reproduces, published__isnull=False).first()
    if published is None:
        return None
    table = published.published
    heads = [column["factor"] for column in table.columns if _is_level(column)]
    varied = [list(campaign.factors.get(name, ())) for name in heads]
    if not table.columns or not all(varied):
        return SideBySide(published, table, table.columns, (), of_campaign(campaign))
    measured = _measured(campaign)
    columns = [column for column in table.columns if _is_level(column) or "metric" in column]
    single = _single(campaign) if any("repeat" in column for column in columns) else {}
    stand_for = _versions(published, campaign)
    judged = validity.of_cells(
        {each.cell_id for of_metric in measured.values() for _levels, each in of_metric}
    )
    rows = [
        _row(
            columns,
            dict(zip(heads, levels, strict=True)),
            measured,
            single,
            stand_for,
            campaign,
            judged,
        )
        for levels in product(*varied)
    ]
    kept = [row for row in rows if any(cell.value is not None for cell in row)]
    return SideBySide(published, table, columns, kept, of_campaign(campaign), stand_for)


Measured = Mapping[str, list[tuple[Mapping[str, Any], CellSummary]]]
# A cell, and the summaries that its value is made of.
Figure = tuple[MeasuredCell, Sequence[CellSummary]]
# The value of a cell's metric in one repeat, where the publication prints each.
Single = Mapping[tuple[int, str, int], float]


def _measured(campaign: Campaign) -> Measured:
    """The summaries of each metric, with their cells' levels; one query."""
    found: dict[str, list[tuple[Mapping[str, Any], CellSummary]]] = {}
    listed = CellSummary.objects.filter(cell__campaign=campaign).order_by("cell__ordinal")
    for summary in listed.select_related("cell", "metric"):
        levels = {VERSION: summary.cell.version, **summary.cell.levels}
        found.setdefault(summary.metric.name, []).append((levels, summary))
    return found


def _single(campaign: Campaign) -> Single:
    """What each finished repeat measured; one query."""
    values = Measurement.objects.filter(run__campaign=campaign, run__state=Run.State.FINISHED)
    rows = values.order_by("run_id").values_list(
        "run__cell_id", "metric__name", "run__repeat", "value"
    )
    return {(cell, metric, repeat): value for cell, metric, repeat, value in rows}


def _row(
    columns: Sequence[Mapping[str, Any]],
    levels: Mapping[str, Any],
    measured: Measured,
    single: Single,
    stand_for: Mapping[str, str],
    campaign: Campaign,
    judged: Mapping[int, Judged],
) -> list[MeasuredCell]:
    made = []
    for column in columns:
        if _is_level(column):
            made.append(MeasuredCell(_level(column, levels[column["factor"]]), is_level=True))
        else:
            wanted = {**_translated(column.get("levels") or {}, stand_for, campaign), **levels}
            found, used = _figure(measured.get(column["metric"], ()), wanted, column, single)
            if found.value is None:
                derived = _derived(column, wanted, measured, stand_for, campaign)
                found, used = derived or (found, used)
            behind = (judged.get(each.cell_id, NOT_JUDGED) for each in used)
            made.append(replace(found, mark=validity.mark(Judged.total(behind))))
    return made


def _derived(
    column: Mapping[str, Any],
    wanted: Mapping[str, Any],
    measured: Measured,
    stand_for: Mapping[str, str],
    campaign: Campaign,
) -> Figure | None:
    """By the rule of the publication; None without one, or if an operand is not measured here."""
    if not column.get("derived") or "repeat" in column:
        return None
    rule = Rule.of(column["derived"])
    if recompute.is_part(rule, column["metric"], wanted):
        return None
    to = {**rule.to, **_translated(rule.to, stand_for, campaign)}
    used: list[CellSummary] = []

    def find(metric: str, levels: Mapping[str, Any]) -> Operand | None:
        only = _only(measured.get(metric, ()), levels)
        if only is None:
            return None
        used.append(only)
        return Operand(Number(only.median, 0), str(only.median))

    if rule.kind == "median":
        operand = find(rule.operand, wanted)
        value = operand.number.value if operand else None
    else:
        found = recompute.by_rule(replace(rule, to=to), wanted, find)
        value = found.value if found else None
    if value is None:
        return None
    unit = used[0].metric.unit if rule.kind != "ratio" else UNITS[rule.form]
    runs = min((each.n or 0) for each in used)
    return MeasuredCell("", value=value, unit=unit, runs=runs), used


def _figure(
    summaries: Sequence[tuple[Mapping[str, Any], CellSummary]],
    wanted: Mapping[str, Any],
    column: Mapping[str, Any],
    single: Single,
) -> Figure:
    """The figure of the only cell with these levels; a dash if there is none, or several.

    A column of one repeat has that run's value, and no median in its place.
    """
    only = _only(summaries, wanted)
    if only is None:
        return MeasuredCell("–"), ()
    if "repeat" in column:
        value = single.get((only.cell_id, only.metric.name, int(column["repeat"])))
        if value is None:
            return MeasuredCell("–"), ()
        return MeasuredCell("", value=value, unit=only.metric.unit, runs=1), (only,)
    return MeasuredCell("", value=only.median, unit=only.metric.unit, runs=only.n), (only,)


def _only(
    summaries: Sequence[tuple[Mapping[str, Any], CellSummary]], wanted: Mapping[str, Any]
) -> CellSummary | None:
    found = [
        summary
        for levels, summary in summaries
        if all(str(levels.get(name)) == str(level) for name, level in wanted.items())
    ]
    return found[0] if len(found) == 1 else None


def _translated(
    levels: Mapping[str, Any], stand_for: Mapping[str, str], campaign: Campaign
) -> dict[str, Any]:
    """A column's levels as stored here, without factors that the campaign did not vary."""
    made = {name: level for name, level in levels.items() if name in campaign.factors}
    if VERSION in made:
        made[VERSION] = stand_for.get(str(made[VERSION]), str(made[VERSION]))
    return made


def _versions(published: Campaign, campaign: Campaign) -> dict[str, str]:
    """Which version measured here stands for which printed one."""
    printed = published.published.reproduce.get("versions") or published.factors.get(VERSION, ())
    theirs = sorted(map(str, printed), key=versions.order)
    ours = sorted(campaign.factors.get(VERSION, ()), key=versions.order)
    by_major = {versions.major(each): each for each in ours}
    majors = {each: versions.major(each) for each in theirs}
    same = {each: by_major[major] for each, major in majors.items() if major in by_major}
    if len(same) == len(theirs) or len(theirs) != len(ours):
        return same
    return dict(zip(theirs, ours, strict=True))


def _is_level(column: Mapping[str, Any]) -> bool:
    return bool(column.get("factor")) and column.get("factor") != "metric"


def _level(column: Mapping[str, Any], level: Any) -> str:
    """A level by the publication's name for it, else as it is."""
    names = column.get("label_of") or {}
    return spoken(names.get(level) or names.get(str(level))) or str(level)
