"""Numbers as publications print them, and how far rounding may have moved them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

EMPTY = frozenset({"", "-", "--", "–", "—", "n/a", "N/A"})
# (*1), [8], *2: marks of footnotes; (*) and a lone * as well.
FOOTNOTE = re.compile(r"\(\*\d*\)|\[\d+\]|\*\d*")
# "7/4 =1.75", "13/9 ≃1.44": the value comes after the sign.
EQUALS = re.compile(r".*[=≃≒≈]")
NUMBER = re.compile(
    r"(?P<sign>[▲△−-]?)\s*"
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
    plain = EQUALS.sub("", FOOTNOTE.sub("", text))
    found = list(NUMBER.finditer(plain))
    if len(found) != 1:
        raise ValueError(f"“{text}” is not one number.")
    (match,) = found
    scale = _scale(plain[match.end() :], units) if units else 1.0
    power, fraction = int(match["exponent"] or 0), match["fraction"] or ""
    value = Decimal(match["digits"].replace(",", "") + fraction).scaleb(power)
    half_unit = Decimal(5).scaleb(power - len(fraction.lstrip(".")) - 1)
    return Number(
        value=float(-value if match["sign"] else value) * scale, half_unit=float(half_unit) * scale
    )


def unit(text: str) -> str:
    """What is printed around the number of a figure: its unit with brackets and blanks."""
    plain = EQUALS.sub("", FOOTNOTE.sub("", text))
    return NUMBER.sub("", plain)


def _scale(rest: str, units: Mapping[str, float]) -> float:
    unit = rest.strip(" ()[]")
    if unit not in units:
        raise ValueError(f"The unit “{unit}” is not among {', '.join(units)}.")
    return units[unit]
