"""Units of memory and time as each PostgreSQL version reads and prints them.

Source: `convert_to_base_unit()` and `ShowGUCOption()` in PostgreSQL's `guc.c`. Versions to 11
convert whole numbers and truncate; from 12 on fractions are accepted and numbers are rounded.
"""

from collections.abc import Mapping

from runs.patterns import re
from runs.postgresql_settings.catalogue import is_older

BYTES: Mapping[str, int] = {
    "TB": 1024**4,
    "GB": 1024**3,
    "MB": 1024**2,
    "kB": 1024,
    "B": 1,
}
MICROSECONDS: Mapping[str, int] = {
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "min": 60_000_000,
    "s": 1_000_000,
    "ms": 1000,
    "us": 1,
}
# The first version that knows the unit; the others are older than 9.2.
SINCE: Mapping[str, str] = {"TB": "9.4", "B": "11", "us": "12"}
# The `unit` of a setting that counts blocks or WAL segments.
_COUNTED = re.compile(r"\A(?P<count>\d+)(?P<unit>kB|MB)")


def size(base: str) -> int:
    """What one of a setting's unit is: bytes, or microseconds. `8kB` is 8192, `s` is 1,000,000."""
    counted = _COUNTED.fullmatch(base)
    if counted:
        return int(counted["count"]) * BYTES[counted["unit"]]
    return BYTES[base] if base in BYTES else MICROSECONDS[base]


def family(base: str) -> Mapping[str, int]:
    """The units that can be written for a setting in that base unit, largest first."""
    return MICROSECONDS if base in MICROSECONDS else BYTES


def known(base: str, major: str) -> tuple[str, ...]:
    """The units that the version reads for a setting in that base unit, smallest first.

    PostgreSQL has no unit for what is smaller than it can count: 9.2 to 10 know no bytes.
    """
    smallest_first = reversed(list(family(base)))
    return tuple(
        unit
        for unit in smallest_first
        if unit not in SINCE or not is_older(major, SINCE[unit])
    )


def convert_to_base(number: float, unit: str, base: str, major: str) -> float:
    """A number of `unit` in the setting's own base unit, rounded as the version rounds.

    From 12 on, a fraction is first rounded to the next smaller unit: 30.1GB is 30822MB.
    """
    family_ = family(base)
    if is_older(major, "12"):
        return _cut_off(int(number) * family_[unit], size(base))
    converted = number * family_[unit] / size(base)
    order = list(family(base))
    below = order[order.index(unit) + 1 :]
    smaller = below[0] if below else None
    if smaller is not None and not float(number).is_integer():
        step = family_[smaller] / size(base)
        converted = round(converted / step) * step
    return converted


def spelled(number: float, base: str, major: str) -> str:
    """A number of base units in the largest unit that holds it without a fraction: `128MB`.

    The version that is to read it knows the unit. Zero and negative numbers, which have meanings
    of their own, stay bare.
    """
    if number <= 0 or not base:
        return _plain(number)
    small = number * size(base)
    for unit in reversed(known(base, major)):
        if small >= family(base)[unit] and (small / family(base)[unit]).is_integer():
            return f"{int(small / family(base)[unit])}{unit}"
    return _plain(number)


def rounded(number: float, base: str) -> str:
    """A number of base units for people, at most three digits: `8TB`, `24.9d`, `1kB`."""
    if number <= 0 or not base:
        return _plain(number)
    small = number * size(base)
    units = family(base)
    unit = next(
        (unit for unit, unit_size in units.items() if small >= unit_size),
        list(units)[-1],
    )
    amount = small / units[unit]
    return f"{amount:.0f}{unit}" if amount >= 1000 else f"{amount:.3g}{unit}"


def _cut_off(dividend: int, divisor: int) -> int:
    """Division as in C, towards zero."""
    quotient = abs(dividend) // divisor
    return quotient if dividend >= 0 else -quotient


def _plain(number: float) -> str:
    if float(number).is_integer() and abs(number) < 2**63:
        return str(int(number))
    return f"{number:.10g}"
