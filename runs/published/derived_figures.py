"""Recomputes every derived figure of a publication, and compares repeated rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from runs.grouping import group_by_key
from runs.published import printing_errors
from runs.published.document import CampaignEntry, DiscrepancyEntry, Rule, SameAs, Text
from runs.published.errors import PublishedFileError
from runs.published.figures import Figure, figures, key_of
from runs.published.printing_errors import Operand, Recomputed

Kind = Literal["measured", "derived", "not_measured"]


@dataclass(frozen=True)
class Fault:
    """A contradiction in the publication; `figures` is empty if it concerns none of its table.

    `weight`: wrong_figure, wrong_conclusion, rounding, wording.
    """

    kind: str
    printed: str
    recomputed: str
    explanation: Text
    weight: str
    figures: tuple[Figure, ...] = ()

    @property
    def figure(self) -> Figure | None:
        """The first figure concerned."""
        return self.figures[0] if self.figures else None


@dataclass(frozen=True)
class Checked:
    """A figure with the value that BenchLab computes for it."""

    figure: Figure
    kind: Kind
    recomputed: float | None
    differs: bool


@dataclass(frozen=True)
class CheckedTable:
    """A campaign's figures, and its contradictions in printed order."""

    campaign: CampaignEntry
    figures: tuple[Checked, ...]
    faults: tuple[Fault, ...]


@dataclass(frozen=True)
class _Result:
    kind: str
    found: Recomputed
    explanation: Text


class _Table:
    """The figures of one campaign, by their search keys."""

    def __init__(self, campaign: CampaignEntry) -> None:
        self.campaign = campaign
        self.figures = figures(campaign)
        # Of several statistics the first counts.
        self._found = {
            (figure.metric, figure.key, figure.repeat): figure
            for figure in self.figures[::-1]
        }
        self.repeats = group_by_key(
            ((figure.metric, figure.key), figure)
            for figure in self.figures
            if figure.repeat is not None
        )

    def find(
        self, metric: str, levels: Mapping[str, Any], repeat: int | None = None
    ) -> Figure | None:
        """The figure at these levels, or that one of its repeats; None also if not measured."""
        figure = self._found.get((metric, key_of(levels), repeat))
        return figure if figure and figure.is_measured else None

    def operand(self, metric: str, levels: Mapping[str, Any]) -> Operand | None:
        """The figure at these levels, to derive another one from."""
        figure = self.find(metric, levels)
        return Operand(figure.number, figure.text) if figure else None


def check(campaigns: Sequence[CampaignEntry]) -> tuple[CheckedTable, ...]:
    """Check all tables of a publication, also against each other.

    Raises PublishedFileError for a table whose figures cannot be read.
    """
    tables = {campaign.table: _Table(campaign) for campaign in campaigns}
    return tuple(_check(table, tables) for table in tables.values())


def is_derived(campaign: CampaignEntry, figure: Figure) -> bool:
    """Whether the figure is only derived from others of its table."""
    rule = campaign.derived.get(figure.metric)
    if rule is None or rule.kind == "same_as" or figure.repeat is not None:
        return False
    return not printing_errors.is_part(rule, figure.metric, figure.levels)


def _check(table: _Table, tables: Mapping[str, _Table]) -> CheckedTable:
    checked: list[Checked] = []
    faults: list[Fault] = []
    explained = {
        text for entry in table.campaign.discrepancies for text in entry.figures
    }
    for figure in table.figures:
        results = list(_results(table, figure, tables)) if figure.is_measured else []
        wrong = [result for result in results if result.found.differs(figure.number)]
        if figure.text not in explained:
            faults += [_fault(figure, result) for result in wrong]
        shown_results = (wrong or results)[:1]
        checked.append(
            Checked(
                figure=figure,
                kind=_kind(table.campaign, figure),
                recomputed=shown_results[0].found.value if shown_results else None,
                differs=bool(wrong),
            )
        )
    faults += _not_measured(table)
    faults += _repeated_rows(table)
    faults += [_reported_fault(table, entry) for entry in table.campaign.discrepancies]
    return CheckedTable(table.campaign, tuple(checked), tuple(faults))


def _kind(campaign: CampaignEntry, figure: Figure) -> Kind:
    if not figure.is_measured:
        return "not_measured"
    return "derived" if is_derived(campaign, figure) else "measured"


def _results(
    table: _Table, figure: Figure, tables: Mapping[str, _Table]
) -> Iterator[_Result]:
    """All values that can be computed for the figure, the most significant first."""
    rule = table.campaign.derived.get(figure.metric)
    if rule and is_derived(table.campaign, figure):
        recomputed = _recompute(table, figure, rule)
        if recomputed:
            yield _Result(
                rule.kind, recomputed, Text(recomputed.formula, recomputed.formula)
            )
    repeats = table.repeats.get((figure.metric, figure.key), [])
    if figure.statistic == "median" and (recomputed := _median(repeats)):
        yield _Result(
            "median", recomputed, Text(recomputed.formula, recomputed.formula)
        )
    references = (*((rule.same_as,) if rule and rule.same_as else ()), *figure.same_as)
    for reference in references:
        if result := _elsewhere(figure, reference, tables):
            yield result


def _recompute(table: _Table, figure: Figure, rule: Rule) -> Recomputed | None:
    if rule.kind == "median":
        return _median(table.repeats.get((rule.operand, figure.key), []))
    return printing_errors.recompute(rule, figure.levels, table.operand)


def _median(repeats: Sequence[Figure]) -> Recomputed | None:
    """None where no repeat was measured."""
    operands = [
        Operand(figure.number, figure.text) for figure in repeats if figure.is_measured
    ]
    return printing_errors.median(operands) if operands else None


def _elsewhere(
    figure: Figure, reference: SameAs, tables: Mapping[str, _Table]
) -> _Result | None:
    other_table = tables.get(reference.table)
    if other_table is None:
        return None
    metric = reference.metric or figure.metric
    levels = printing_errors.changed(figure.levels, reference.levels)
    other_figure = other_table.find(metric, levels, figure.repeat)
    if other_figure is None:
        return None
    explanation = Text(
        f"Table {reference.table} prints {other_figure.text}.",
        f"表 {reference.table} では {other_figure.text}。",
    )
    return _Result(
        "other_table",
        printing_errors.same(other_figure.number, text=other_figure.text),
        explanation,
    )


def _fault(figure: Figure, result: _Result) -> Fault:
    computed = (
        f"{result.found.value:.6g}"
        if result.kind != "other_table"
        else result.found.formula
    )
    # Print and computation differ by at most two units of the last printed digit.
    apart = abs(figure.number.value - result.found.value)
    weight = "rounding" if apart <= 4 * figure.number.half_unit else "wrong_figure"
    return Fault(
        result.kind, figure.text, computed, result.explanation, weight, (figure,)
    )


def _reported_fault(table: _Table, entry: DiscrepancyEntry) -> Fault:
    """What a reader found. Raises PublishedFileError if the table lacks one of its figures."""
    figures = tuple(figure for figure in table.figures if figure.text in entry.figures)
    if missing := set(entry.figures) - {figure.text for figure in figures}:
        first_missing, *_others = sorted(missing)
        message = (
            f"a discrepancy names figures that the table lacks: {', '.join(sorted(missing))}. "
            "Write each as it is printed in “rows”."
        )
        raise PublishedFileError(
            message, campaign=table.campaign.slug, words=("figures:", first_missing)
        )
    weight = entry.weight or ("wording" if entry.kind == "text" else "wrong_figure")
    return Fault(
        entry.kind, entry.printed, entry.recomputed, entry.explanation, weight, figures
    )


def _not_measured(table: _Table) -> Iterator[Fault]:
    """One for each such figure, unless a reader has explained it."""
    if any(entry.kind == "not_measured" for entry in table.campaign.discrepancies):
        return
    explanation = Text(
        "Stands for a measurement that was not made.", "測定していないことを表す値。"
    )
    for figure in table.figures:
        if not figure.is_measured:
            yield Fault(
                "not_measured", figure.text, "", explanation, "wording", (figure,)
            )


def _repeated_rows(table: _Table) -> Iterator[Fault]:
    """Rows that repeat another one, figure by figure, under the same printed label."""
    if any(entry.kind == "repeated_row" for entry in table.campaign.discrepancies):
        return
    rows = group_by_key((figure.row, figure) for figure in table.figures)
    row_of: dict[tuple[Any, ...], int] = {}
    for row, figures_of_row in rows.items():
        content = (
            figures_of_row[0].label,
            *((figure.column, figure.text) for figure in figures_of_row),
        )
        if content in row_of:
            first_row = row_of[content] + 1
            explanation = Text(
                f"Row {row + 1} repeats row {first_row}, figure by figure.",
                f"{row + 1} 行目の値はすべて {first_row} 行目と同じ。",
            )
            yield Fault(
                "repeated_row",
                figures_of_row[0].label,
                "",
                explanation,
                "wrong_figure",
                tuple(figures_of_row),
            )
        row_of.setdefault(content, row)
