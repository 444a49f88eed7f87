"""Units of one quantity: figures in one of them can be stored in another."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

KIB = 1024
# Of each quantity its units, as so many of its base unit.
QUANTITIES: dict[str, dict[str, Fraction | int]] = {
    "time": {
        **dict.fromkeys(("ns", "nsec", "nanoseconds"), Fraction(1, 10**9)),
        **dict.fromkeys(("us", "µs", "μs", "usec", "microseconds"), Fraction(1, 10**6)),
        **dict.fromkeys(("ms", "msec", "milliseconds"), Fraction(1, 1000)),
        **dict.fromkeys(("s", "sec", "second", "seconds"), 1),
        **dict.fromkeys(("min", "minutes"), 60),
        "h": 3600,
    },
    "size": {
        **dict.fromkeys(("B", "byte", "bytes"), 1),
        **dict.fromkeys(("kB", "KB"), 1000),
        "MB": 1000**2,
        "GB": 1000**3,
        "TB": 1000**4,
        "KiB": KIB,
        "MiB": KIB**2,
        "GiB": KIB**3,
        "TiB": KIB**4,
    },
    "rate of transactions": {
        **dict.fromkeys(("tps", "transactions/s", "requests/s", "req/s", "rps"), 1),
        **dict.fromkeys(("tpm", "transactions/min"), Fraction(1, 60)),
    },
    "rate of new orders": dict.fromkeys(("tpmC", "NOPM"), Fraction(1, 60)),
    "rate of queries": {
        **dict.fromkeys(("qps", "queries/s"), 1),
        "queries/h": Fraction(1, 3600),
    },
    "rate of operations": dict.fromkeys(
        ("ops/s", "op/s", "iops", "IOPS", "operations/s"), 1
    ),
    "share": {"%": 1},
    "ratio": {"ratio": 1},
    # Numbers of things and their rates, each of its own.
    **{
        unit: {unit: 1}
        for unit in (
            "allocations",
            "transactions",
            "queries",
            "requests",
            "calls",
            "events",
            "errors",
            "retries",
            "deadlocks",
            "connections",
            "sessions",
            "processes",
            "processors",
            "workers",
            "rows",
            "blocks",
            "vacuums",
            "ops",
            "events/s",
            "errors/s",
            "items/s",
            "rows/s",
            "inserts/s",
        )
    },
}
# How a rate ends.
_A_SECOND = ("/s", "/sec", "/second")
# What can be below zero.
_SIGNED = frozenset({"share", "ratio"})
_PLACES = {
    unit: (quantity, Fraction(size))
    for quantity, units in QUANTITIES.items()
    for unit, size in units.items()
}

# Numbers of things: compared as counts, and not by their logarithms.
COUNTS = frozenset(
    {
        "transactions",
        "retries",
        "deadlocks",
        "conflicts",
        "errors",
        "failures",
        "events",
        "count",
    }
)


def quantity_of(unit: str) -> str:
    """The quantity that is measured in the unit. Raises KeyError for an unknown unit."""
    if (position := _place(unit)) is None:
        raise KeyError(unit)
    return position[0]


def seconds(unit: str) -> float | None:
    """The seconds of a unit of time; None for others."""
    position = _place(unit)
    return float(position[1]) if position and position[0] == "time" else None


def is_measured(unit: str) -> bool:
    """Whether it is of a time or a rate, which no two runs have in all digits."""
    position = _place(unit)
    return unit.endswith(_A_SECOND) or (
        position is not None and ("time" in position[0] or "rate" in position[0])
    )


def is_never_negative(unit: str) -> bool:
    """Whether it is a number of something, a size or a rate."""
    position = _place(unit)
    return unit.endswith(_A_SECOND) or (
        position is not None and position[0] not in _SIGNED
    )


def factor(unit: str, target_unit: str) -> Fraction | None:
    """What a figure in `unit` times is one in `target_unit`; None for other quantities."""
    if unit == target_unit:
        return Fraction(1)
    position, target_position = _place(unit), _place(target_unit)
    if position is None or target_position is None or position[0] != target_position[0]:
        return None
    return position[1] / target_position[1]


@lru_cache(4096)
def _place(unit: str) -> tuple[str, Fraction] | None:
    """The quantity, and how many of its base unit; of a size per second as of the size."""
    words = [word for word in _A_SECOND if unit.endswith(word)]
    per_second = f"{unit.removesuffix(words[0])}/s" if words else unit
    if per_second in _PLACES:
        return _PLACES[per_second]
    size = (
        _PLACES.get(per_second.removesuffix("/s"))
        if per_second.endswith("/s")
        else None
    )
    return (f"{size[0]} per second", size[1]) if size and size[0] == "size" else None


def times(value: float, multiplier: Fraction) -> float:
    """A product that has the digits of the printed figure: 150 us are 0.15 ms."""
    return value * multiplier.numerator / multiplier.denominator
