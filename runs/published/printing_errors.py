"""Recomputes a printed figure, and how far rounding lets print and computation differ.

Every printed digit means an interval: 3.50 is anything from 3.495 to 3.505. What follows from
printed figures is in the interval that follows from theirs; the print is wrong only if the two
intervals do not overlap.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from runs.published.document import Rule
from runs.published.figures import Number

Form = Literal["factor", "percent", "inverse", "loss", "less"]

# Relative: the error of binary fractions at the borders of intervals.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Recomputed:
    """The value from the operands as printed, the interval from their digits, and the formula."""

    value: float
    low: float
    high: float
    formula: str

    def differs(self, printed: Number) -> bool:
        """Whether no rounding of operands and result explains the printed figure."""
        slack = TOLERANCE * max(abs(self.low), abs(self.high), abs(printed.value))
        return printed.low > self.high + slack or printed.high < self.low - slack


@dataclass(frozen=True)
class Operand:
    """A figure from which another one is derived, and its text for the formula."""

    number: Number
    text: str


# The figure of a metric at some levels; None if there is none.
Find = Callable[[str, Mapping[str, Any]], Operand | None]


def recompute(rule: Rule, levels: Mapping[str, Any], find: Find) -> Recomputed | None:
    """A ratio or a sum at these levels; None if an operand is missing, and for other rules."""
    if rule.kind == "ratio":
        value, base = (
            find(rule.operand, levels),
            find(rule.operand, changed(levels, rule.to)),
        )
        if value is None or base is None:
            return None
        return ratio(value, base, rule.form)
    if rule.kind != "sum":
        return None
    operands_found = [
        find(
            rule.operand,
            changed(levels, dict(zip(rule.over, combination, strict=True))),
        )
        for combination in product(*rule.over.values())
    ]
    operands = [operand for operand in operands_found if operand]
    return (
        total(operands) if operands and len(operands) == len(operands_found) else None
    )


def is_part(rule: Rule, metric: str, levels: Mapping[str, Any]) -> bool:
    """Whether a figure of the metric at these levels is an operand of its own rule."""
    is_over_part = any(levels.get(name) in among for name, among in rule.over.items())
    return rule.operand == metric and (is_over_part or rule.kind == "median")


def changed(levels: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The levels with those of `changes` over them; a null there removes a level."""
    merged = {**levels, **changes}
    return {name: level for name, level in merged.items() if level is not None}


def ratio(value: Operand, base: Operand, form: Form) -> Recomputed | None:
    """`value` compared with `base`; None if the base may be zero.

    `form`: factor, percent (of the base), inverse (base / value), loss (percent of change), less
    (the same without its sign).
    """
    if form == "inverse":
        value, base = base, value
    top, bottom = value.number, base.number
    if bottom.low <= 0:
        return None
    ends = product((top.low, top.high), (bottom.low, bottom.high))
    quotients = [value_end / base_end for value_end, base_end in ends]
    scale = {"factor": 1, "inverse": 1, "percent": 100, "loss": 100, "less": -100}[form]
    shift = 1 if form in {"loss", "less"} else 0
    least, most = sorted(
        (quotient - shift) * scale for quotient in (min(quotients), max(quotients))
    )
    formula = f"{value.text} ÷ {base.text}" + (" − 1" if shift else "")
    return Recomputed((top.value / bottom.value - shift) * scale, least, most, formula)


def median(repeats: Sequence[Operand]) -> Recomputed:
    """The median of printed repeats, of which there are some."""
    texts = "; ".join(operand.text for operand in repeats)
    return _combine_all(statistics.median, repeats, f"median({texts})")


def total(operands: Sequence[Operand]) -> Recomputed:
    """The sum of printed figures."""
    return _combine_all(sum, operands, " + ".join(operand.text for operand in operands))


def _combine_all(
    combine: Callable[[Iterable[float]], float],
    operands: Sequence[Operand],
    formula: str,
) -> Recomputed:
    numbers = [operand.number for operand in operands]
    low, high = (
        combine([number.low for number in numbers]),
        combine([number.high for number in numbers]),
    )
    return Recomputed(combine([number.value for number in numbers]), low, high, formula)


def same(value: Number, *, text: str) -> Recomputed:
    """The same figure as printed elsewhere."""
    return Recomputed(value.value, value.low, value.high, formula=text)
