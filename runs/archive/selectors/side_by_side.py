"""A published table next to our own measurements: each printed figure, and ours in its place."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.translation import gettext as _

from runs.analysis.judged_runs import NOT_JUDGED, Judged
from runs.analysis.noise import half_width
from runs.archive.selectors.reproduction import OF_SIZE, Change, list_changes
from runs.cells.selectors import provenance, versions
from runs.cells.selectors.metrics import metric_label, summary_of
from runs.grouping import group_by_key
from runs.models import (
    Campaign,
    CellSummary,
    Measurement,
    PrintedFigure,
    PublishedTable,
    Run,
)
from runs.published import printing_errors
from runs.published.document import Rule
from runs.published.figures import Number
from runs.published.printing_errors import Operand
from runs.queue.selectors import certificate_words
from runs.shared.formats import change, factor, spoken

VERSION = "version"
UNITS = {"factor": "", "inverse": "", "percent": "%", "loss": "%", "less": "%"}
# Figures that keep their proportions within this are said to, else by how much they do not.
ALIKE = 1.25
# A constant that differs by this much is said beside the figures.
FAR_APART = 10
# The interval of two runs says nothing.
LEAST_REPEATS = 3


@dataclass(frozen=True)
class Own:
    """What was measured here: the median of a metric, in `unit`.

    What the publication derives from other figures is derived by the same rule from our medians.
    `mark` says which of the runs behind it are not valid. `low` and `high` are the 95 % interval
    of `value`; None of fewer than three runs, and of what is derived.
    """

    value: float
    unit: str
    mark: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Line:
    """A printed figure that was measured here: its row's words, its column's head, and ours."""

    row: Sequence[str]
    head: str
    printed: str
    figure: PrintedFigure
    own: Own

    @property
    def ratio(self) -> float | None:
        """Ours by the printed one; None where that is a share, or derived."""
        figure = self.figure
        if (
            figure.kind != PrintedFigure.Kind.MEASURED
            or figure.measurement.metric.unit in {"%", ""}
            or not figure.measurement.value
        ):
            return None
        return self.own.value / float(figure.measurement.value)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The 95 % interval of the ratio."""
        ratio, own_ratio = self.ratio, self.own
        if not ratio or own_ratio.low is None or own_ratio.high is None:
            return None
        return (
            ratio * own_ratio.low / own_ratio.value,
            ratio * own_ratio.high / own_ratio.value,
        )


@dataclass(frozen=True)
class SideBySide:
    """The published campaign, and the figures of its table that were measured here too.

    `heads` name the words of a line's row. `printed` is how many figures the table has, and
    `versions` maps each printed version to another one that was measured in its place. `judged`
    counts the campaign's runs.
    """

    published: Campaign
    table: PublishedTable
    heads: Sequence[str]
    lines: Sequence[Line]
    printed: int
    differences: Sequence[Change] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    judged: Judged = NOT_JUDGED

    @property
    def far_apart(self) -> Sequence[Change]:
        """The constants, as amounts of data and times, that differ by an order of magnitude."""
        return [change for change in self.differences if change.ratio >= FAR_APART]

    @property
    def has_runs(self) -> bool:
        """Whether runs count, although they may have measured none of the printed figures."""
        return sum(self.judged.counts.values()) > self.judged.left_out

    @property
    def missing(self) -> int:
        """How many printed figures were not measured here."""
        return self.printed - len(self.lines)

    @property
    def sentence(self) -> str:
        """How large ours are, of the first metric of the table; empty where nothing says it."""
        if not self.lines and self.judged.was_machine_taken:
            return _(
                "Not measured: others used the machine, and most runs are invalid."
            )
        ratios = [
            (line.figure.measurement.metric, line.ratio)
            for line in self.lines
            if line.ratio
        ]
        if not ratios:
            return ""
        metric = ratios[0][0]
        own_ratios = [ratio for name, ratio in ratios if name == metric]
        values = {
            "number": len(own_ratios),
            "metric": metric_label(metric),
            "low": factor(min(own_ratios)),
            "high": factor(max(own_ratios)),
            "share": change(max(own_ratios) / min(own_ratios)).removeprefix("+"),
            "factor": factor(max(own_ratios) / min(own_ratios)),
        }
        if len(own_ratios) == 1:
            return (
                _("Measured here: %(low)s times the printed figure (%(metric)s).")
                % values
            )
        text = _(
            "Measured here: %(low)s to %(high)s times the %(number)d printed figures (%(metric)s)."
        )
        shape = (
            _("Their proportions are as printed, within %(share)s.")
            if max(own_ratios) / min(own_ratios) < ALIKE
            else _(
                "Their proportions differ from the print, by a factor of up to %(factor)s."
            )
        )
        return f"{text % values} {shape % values}"


def side_by_side(campaign: Campaign) -> SideBySide | None:
    """What a campaign reproduces, next to its results; None if nothing. Six queries, or seven.

    If versions differ from the printed ones, the oldest stands for the oldest, and so on.
    """
    if not campaign.reproduces:
        return None
    campaigns = Campaign.objects.select_related("published__source", "scenario")
    published = campaigns.filter(
        slug=campaign.reproduces, published__isnull=False
    ).first()
    if published is None:
        return None
    table = published.published
    figures = list(
        table.printed.select_related("measurement__metric", "measurement__run__cell")
    )
    stand_for = _versions(published, campaign)
    ours = _Ours(
        campaign,
        _measured(campaign),
        _single(campaign)
        if any("repeat" in column for column in table.columns)
        else {},
        stand_for,
        _constant_sizes(figures, campaign),
    )
    judged = certificate_words.judge_cells(campaign.cells.values_list("pk", flat=True))
    of_figures = {figure.column for figure in figures}
    words = [column for column in range(len(table.columns)) if column not in of_figures]
    lines = (_line(table, figure, words, ours, judged) for figure in figures)
    other_versions = {
        theirs: ours_version
        for theirs, ours_version in stand_for.items()
        if theirs != ours_version
    }
    return SideBySide(
        published,
        table,
        [spoken(table.columns[column].get("label")) for column in words],
        [line for line in lines if line is not None],
        len(figures),
        list_changes(campaign),
        other_versions,
        Judged.total(judged.values()),
    )


Measured = Mapping[str, list[tuple[Mapping[str, Any], CellSummary]]]
# A figure, and the summaries that its value is made of.
Found = tuple[Own, Sequence[CellSummary]]
# The value of a cell's metric in one repeat, where the publication prints each.
Single = Mapping[tuple[int, str, int], float]


@dataclass(frozen=True)
class _Ours:
    """What a campaign measured, by metric and levels, and by repeat where that is asked for."""

    campaign: Campaign
    measured: Measured
    single: Single
    stand_for: Mapping[str, str]
    constant_sizes: frozenset[str] = frozenset()

    def translated(self, levels: Mapping[str, Any]) -> dict[str, Any]:
        """Printed levels as stored here, without factors that the campaign did not vary."""
        stored_levels = {
            name: level
            for name, level in levels.items()
            if name in self.campaign.factors and name not in self.constant_sizes
        }
        if VERSION in stored_levels:
            stored_levels[VERSION] = self.stand_for.get(
                str(stored_levels[VERSION]), str(stored_levels[VERSION])
            )
        return stored_levels

    def only(self, metric: str, levels: Mapping[str, Any]) -> CellSummary | None:
        """The summary of the only cell with these levels."""
        matching = [
            summary
            for own_levels, summary in self.measured.get(metric, ())
            if all(
                str(own_levels.get(name)) == str(level)
                for name, level in levels.items()
            )
        ]
        return matching[0] if len(matching) == 1 else None


def _constant_sizes(
    figures: Sequence[PrintedFigure], campaign: Campaign
) -> frozenset[str]:
    """Sizes of which the print has one and the campaign another: no question, but a difference."""
    printed: dict[str, set[str]] = defaultdict(set)
    for figure in figures:
        for name, level in figure.measurement.run.cell.levels.items():
            printed[name].add(str(level))
    return frozenset(
        name
        for name in OF_SIZE
        if len(printed[name]) == len(campaign.factors.get(name, ())) == 1
    )


def _measured(campaign: Campaign) -> Measured:
    """The summaries of each metric, with their cells' levels; one query."""
    cell_summaries = CellSummary.objects.filter(cell__campaign=campaign).order_by(
        "cell__ordinal"
    )
    return group_by_key(
        (
            cell_summary.metric.name,
            (
                {VERSION: cell_summary.cell.version, **cell_summary.cell.levels},
                cell_summary,
            ),
        )
        for cell_summary in cell_summaries.select_related("cell", "metric")
    )


def _single(campaign: Campaign) -> Single:
    """What each finished repeat measured; one query."""
    values = Measurement.objects.filter(
        run__campaign=campaign, run__state=Run.State.FINISHED
    )
    rows = values.order_by("run_id").values(
        "run__cell_id", "metric__name", "run__repeat", "value"
    )
    return {
        (row["run__cell_id"], row["metric__name"], row["run__repeat"]): row["value"]
        for row in rows
    }


def _line(
    table: PublishedTable,
    figure: PrintedFigure,
    words: Sequence[int],
    ours: _Ours,
    judged: Mapping[int, Judged],
) -> Line | None:
    column, cell = table.columns[figure.column], figure.measurement.run.cell
    version = {VERSION: cell.version} if cell.version else {}
    figure_and_summaries = _figure(
        figure, column, ours.translated({**version, **cell.levels}), ours
    )
    if figure_and_summaries is None:
        return None
    own_ratio, used = figure_and_summaries
    behind = (judged.get(cell_summary.cell_id, NOT_JUDGED) for cell_summary in used)
    row = [
        _level(table.grid[figure.row][column], table.columns[column])
        for column in words
    ]
    marked = replace(own_ratio, mark=certificate_words.mark(Judged.total(behind)))
    return Line(row, provenance.head(column), figure.text, figure, marked)


def _figure(
    figure: PrintedFigure,
    column: Mapping[str, Any],
    levels_wanted: Mapping[str, Any],
    ours: _Ours,
) -> Found | None:
    """Ours in its place: of one repeat that run's value, and no median; else by its rule."""
    metric = figure.measurement.metric.name
    only = ours.only(metric, levels_wanted)
    if only is None:
        return _derived(column, metric, levels_wanted, ours)
    unit = only.metric.unit
    if "repeat" in column:
        value = ours.single.get((only.cell_id, metric, int(column["repeat"])))
        return None if value is None else (Own(value, unit), (only,))
    width = half_width(summary_of(only))
    if width is None or (only.n or 0) < LEAST_REPEATS:
        return Own(only.median, unit), (only,)
    value = only.median
    return Own(value, unit, low=value / (1 + width), high=value * (1 + width)), (only,)


def _derived(
    column: Mapping[str, Any],
    metric: str,
    levels_wanted: Mapping[str, Any],
    ours: _Ours,
) -> Found | None:
    """By the rule of the publication; None without one, or if an operand is not measured here."""
    if not column.get("derived") or "repeat" in column:
        return None
    rule = Rule.of(column["derived"])
    if printing_errors.is_part(rule, metric, levels_wanted):
        return None
    used: list[CellSummary] = []

    def find(metric: str, levels: Mapping[str, Any]) -> Operand | None:
        only = ours.only(metric, levels)
        if only is None:
            return None
        used.append(only)
        return Operand(Number(only.median, 0), str(only.median))

    if rule.kind == "median":
        operand = find(rule.operand, levels_wanted)
        value = operand.number.value if operand else None
    else:
        target_levels = {**rule.to, **ours.translated(rule.to)}
        recomputed = printing_errors.recompute(
            replace(rule, to=target_levels), levels_wanted, find
        )
        value = recomputed.value if recomputed else None
    if value is None:
        return None
    unit = used[0].metric.unit if rule.kind != "ratio" else UNITS[rule.form]
    return Own(value, unit), used


def _versions(published: Campaign, campaign: Campaign) -> dict[str, str]:
    """Which version measured here stands for which printed one."""
    printed = published.published.reproduce.get("versions") or published.factors.get(
        VERSION, ()
    )
    theirs = sorted(map(str, printed), key=versions.order)
    ours = sorted(campaign.factors.get(VERSION, ()), key=versions.order)
    by_major = {versions.major(version): version for version in ours}
    majors = {version: versions.major(version) for version in theirs}
    same = {
        version: by_major[major]
        for version, major in majors.items()
        if major in by_major
    }
    if len(same) == len(theirs) or len(theirs) != len(ours):
        return same
    return dict(zip(theirs, ours, strict=True))


def _level(text: str, column: Mapping[str, Any]) -> str:
    """A level by the publication's name for it, else as printed."""
    level = (column.get("values") or {}).get(text, text)
    names = {str(level): name for level, name in (column.get("label_of") or {}).items()}
    return spoken(names.get(str(level))) or text
