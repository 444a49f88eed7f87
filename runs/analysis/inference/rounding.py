"""What rounding leaves open: figures have a last decimal, and nothing is known beyond it.

Tools round what they print. Runs that print the same figure may differ by as much as its last
digit, and all of them by the same: then their mean is no better known than each.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal

# What is known to this share of itself is taken for exact.
EXACT = 1e-5


def resolution(values: Iterable[float], *, is_whole_exact: bool = False) -> float:
    """One unit of the last decimal that any of a metric's values has; 0 where it is no matter.

    `is_whole_exact`: whole numbers are counts, of bytes for example, which nobody has rounded.
    """
    decimals, least, is_known = 0, float("inf"), False
    for value in values:
        is_known = True
        least = min(least, abs(value) or least)
        if not value.is_integer():
            exponent = Decimal(repr(value)).normalize().as_tuple().exponent
            decimals = max(decimals, -exponent if isinstance(exponent, int) else 0)
        if 10.0**-decimals < EXACT * least:
            return 0.0
    if not is_known or (is_whole_exact and decimals == 0):
        return 0.0
    return float(10.0**-decimals)


def rounding(values: Sequence[float], unit: float) -> float:
    """The variance of the mean of the logs of these positive values that rounding to `unit` adds.

    A rounded value is even within one unit (its variance is a twelfth of the square). Values that
    differ are rounded each on its own; those that are all the same may all be off alike.
    """
    if not unit:
        return 0.0
    mean = sum(values) / len(values)
    rounding_variance = (unit / mean) ** 2 / 12
    return (
        rounding_variance
        if max(values) - min(values) < unit / 2
        else rounding_variance / len(values)
    )
