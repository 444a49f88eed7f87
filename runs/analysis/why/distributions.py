"""How values of a column lie, by its statistics: a sample, so that only much is a difference."""

import re
from collections.abc import Mapping

_FIGURE = re.compile(r"([a-z_ ]{1,20}?) (-?\d{1,18}(?:\.\d{1,6})?)(?: |\Z)")
# How far two samples of the same values may lie apart.
MOST_TIMES, MOST_SHARE, MOST_CORRELATION = 1.5, 0.1, 0.35


def figures(text: str) -> Mapping[str, float]:
    """The figures of a recorded distribution: "n_distinct 100.000 null 0.00 width 4"."""
    return {name: float(number) for name, number in _FIGURE.findall(text)}


def are_alike(a: str, b: str) -> bool:
    """Whether samples of the same values may differ as these do.

    Of a column of which a side has no statistics nothing is known.
    """
    if not (a and b):
        return True
    of_a, of_b = figures(a), figures(b)
    return (
        _are_near(of_a.get("n_distinct"), of_b.get("n_distinct"))
        and _are_near(of_a.get("width"), of_b.get("width"))
        and _is_within(of_a, of_b, "null", MOST_SHARE)
        and _is_within(of_a, of_b, "most common", MOST_SHARE)
        and _is_within(of_a, of_b, "correlation", MOST_CORRELATION)
    )


def _are_near(a: float | None, b: float | None) -> bool:
    if a is None or b is None or a == b:
        return True
    if a * b <= 0:
        return False  # A number of values, or their share of the rows.
    return max(a / b, b / a) <= MOST_TIMES


def _is_within(
    a: Mapping[str, float], b: Mapping[str, float], name: str, most: float
) -> bool:
    return abs(a.get(name, 0.0) - b.get(name, 0.0)) <= most
