"""The figures of a printed table: each cell with its levels, metric and value."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from runs.published.document import CampaignEntry, Column, NodeEntry, SameAs, Statistic
from runs.published.errors import PublishedFileError
from runs.published.fields import typed

EMPTY = frozenset({"", "-", "--", "–", "—", "n/a", "N/A"})
# (*1), [8], *2: marks of footnotes; (*) and a lone * as well.
FOOTNOTE = re.compile(r"\(\*\d*\)|\[\d+\]|\*\d*")
# "7/4 =1.75", "13/9 ≃1.44": the value comes after the sign.
EQUALS = "=≃≒≈"
NUMBER = re.compile(
    r"(?:(?P<sign>[▲△−+-])\s*+|(?<!\s)\s++)?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+|\d+)(?P<fraction>\.\d+)?(?:[eE](?P<exponent>[+-]?\d+))?"
)


@dataclass(frozen=True)
class Number:
    """A printed number. Its exact value is within `half_unit` of `value`."""

    value: float
    half_unit: float

    @property
    def low(self) -> float:
        """The lowest value that is printed like this."""
        return self.value - self.half_unit

    @property
    def high(self) -> float:
        """The highest value that is printed like this."""
        return self.value + self.half_unit


def is_empty(text: str) -> bool:
    """Whether a cell has no figure."""
    return text.strip() in EMPTY


def read(text: str, units: Mapping[str, float] | None = None) -> Number:
    """The number in a printed text: "1,234.5", "98.3 %", "(2.04E-05)", "▲92.3%" (-92.3).

    `units` gives the factor of each unit to the metric's own, if cells have units of several sizes.
    Raises ValueError if the text has no number, several, or an unknown unit.
    """
    plain = _value(text)
    numbers = list(NUMBER.finditer(plain))
    if len(numbers) != 1:
        raise ValueError(f"“{text}” is not one number.")
    (match,) = numbers
    scale = _scale(plain[match.end() :], units) if units else 1.0
    power, fraction = int(match["exponent"] or 0), match["fraction"] or ""
    value = Decimal(match["digits"].replace(",", "") + fraction).scaleb(power)
    half_unit = Decimal(5).scaleb(power - len(fraction.lstrip(".")) - 1)
    return Number(
        value=float(value if match["sign"] in (None, "+") else -value) * scale,
        half_unit=float(half_unit) * scale,
    )


def unit(text: str) -> str:
    """What is printed around the number of a figure: its unit with brackets and blanks."""
    return NUMBER.sub("", _value(text))


def _value(text: str) -> str:
    """What comes after the last sign, without footnotes."""
    plain = FOOTNOTE.sub("", text)
    return plain[max(plain.rfind(sign) for sign in EQUALS) + 1 :]


def _scale(text_behind: str, units: Mapping[str, float]) -> float:
    unit = text_behind.strip(" ()[]")
    if unit not in units:
        raise ValueError(f"The unit “{unit}” is not among {', '.join(units)}.")
    return units[unit]


# Not levels, although their columns are read like those of factors.
METRIC = "metric"
# Keeps rows with one printed label apart.
ROW = "row"


@dataclass(frozen=True)
class Figure:
    """A number at a place of the table; `row` and `column` count from 0.

    `repeat` is None except for printed repeats. `label` is the text in front of its row.
    `n` and `statistic` are None if the publication does not print how often it measured.
    """

    row: int
    column: int
    text: str
    number: Number
    metric: str
    levels: Mapping[str, Any]
    repeat: int | None
    statistic: Statistic | None
    n: int | None
    is_measured: bool
    is_exact: bool
    node: NodeEntry | None
    label: str
    same_as: tuple[SameAs, ...] = ()

    @property
    def key(self) -> str:
        """The canonical text of its levels."""
        return key_of(self.levels)


def key_of(levels: Mapping[str, Any]) -> str:
    """Levels as one text, independent of their order."""
    return json.dumps(levels, sort_keys=True, ensure_ascii=False)


def figures(campaign: CampaignEntry) -> tuple[Figure, ...]:
    """Every figure of a campaign's table, row by row.

    Raises PublishedFileError for a text that is not a number, a figure without a metric, and for
    two figures that cannot be distinguished.
    """
    figures_read = tuple(
        figure
        for row in range(len(campaign.grid))
        for figure in _read_row(campaign, row)
    )
    figure_of: dict[tuple[Any, ...], Figure] = {}
    for figure in figures_read:
        identity = (figure.key, figure.repeat, figure.metric, figure.statistic)
        if other_one := figure_of.get(identity):
            message = (
                f"“{figure.text}” has the metric {figure.metric} and the levels {figure.key}, "
                f"as has “{other_one.text}” in row {other_one.row + 1}. Give the column or the row "
                "a level that keeps them apart."
            )
            raise PublishedFileError(
                message,
                campaign=campaign.slug,
                row=figure.row,
                words=("|", figure.text),
            )
        figure_of[identity] = figure
    return figures_read


def _read_row(campaign: CampaignEntry, row: int) -> Iterator[Figure]:
    cells = campaign.grid[row]
    levels, metric = _levels_of_row(campaign, row)
    label = " ".join(
        text
        for text, column in zip(cells, campaign.columns, strict=True)
        if (column.is_text or (column.factor and column.factor != ROW)) and text
    )
    for column_number, (text, column) in enumerate(
        zip(cells, campaign.columns, strict=True)
    ):
        if column.factor or column.is_text or is_empty(text):
            continue
        merged = {**levels, **column.levels}
        chosen = {name: level for name, level in merged.items() if level is not None}
        if not (own_metric := column.metric or metric):
            message = f"“{text}” has no metric: name one in “metric” of its column."
            raise PublishedFileError(
                message, campaign=campaign.slug, row=row, words=("|", text)
            )
        statistic, n = _statistic(campaign, column, chosen)
        yield Figure(
            row=row,
            column=column_number,
            text=text,
            number=_number(campaign, row, text, column),
            metric=own_metric,
            levels=chosen,
            repeat=column.repeat,
            statistic=statistic,
            n=n,
            is_measured=text not in campaign.not_measured,
            is_exact=text not in campaign.inexact,
            node=_node(campaign, column, chosen),
            label=label,
            same_as=(*column.same_as, *campaign.same_as),
        )


def _levels_of_row(campaign: CampaignEntry, row: int) -> tuple[dict[str, Any], str]:
    levels, metric = dict(campaign.levels), ""
    for text, column in zip(campaign.grid[row], campaign.columns, strict=True):
        if not column.factor or is_empty(text):
            continue
        level_values = column.values.get(text, typed(text, name=column.factor))
        named_levels = (
            level_values
            if isinstance(level_values, Mapping)
            else {column.factor: level_values}
        )
        metric = str(named_levels.get(METRIC, metric))
        levels |= {
            name: level for name, level in named_levels.items() if name != METRIC
        }
    return levels, metric


def _number(campaign: CampaignEntry, row: int, text: str, column: Column) -> Number:
    try:
        return read(text, column.units)
    except ValueError as error:
        raise PublishedFileError(
            str(error), campaign=campaign.slug, row=row, words=("|", text)
        ) from error


def _statistic(
    campaign: CampaignEntry, column: Column, levels: Mapping[str, Any]
) -> tuple[Statistic | None, int | None]:
    if column.repeat is not None:
        return "single", 1
    if any(
        unprinted_repeat.items() <= levels.items()
        for unprinted_repeat in campaign.unprinted_repeats
    ):
        return None, None
    statistic = column.statistic or campaign.statistic
    return statistic, column.n or campaign.repeats


def _node(
    campaign: CampaignEntry, column: Column, levels: Mapping[str, Any]
) -> NodeEntry | None:
    """The node that the column names, else the first database node with these levels."""
    for node in campaign.nodes:
        if column.node:
            if column.node in (node.role, node.name.en, node.name.ja, node.hardware):
                return node
        elif node.role == "database" and node.levels.items() <= levels.items():
            return node
    if column.node:
        message = (
            f"a column names the node “{column.node}”, which the campaign does not have; name a "
            "role or a name of “nodes”."
        )
        raise PublishedFileError(
            message, campaign=campaign.slug, words=("node:", column.node)
        )
    return None
