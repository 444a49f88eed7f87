"""Units of one quantity: figures in one of them can be stored in another."""

from fractions import Fraction

KIB = 1024
# Of each quantity its units, as so many of its base unit.
QUANTITIES: dict[str, dict[str, Fraction | int]] = {
    "time": {
        **dict.fromkeys(("ns", "nsec"), Fraction(1, 10**9)),
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
    "rate of queries": dict.fromkeys(("qps", "queries/s"), 1),
    "rate of operations": dict.fromkeys(("ops/s", "op/s", "iops", "IOPS", "operations/s"), 1),
}
_PLACES = {
    unit: (quantity, Fraction(size))
    for quantity, units in QUANTITIES.items()
    for unit, size in units.items()
}


def factor(given: str, wanted: str) -> Fraction | None:
    """What a figure in `given` is multiplied by to be in `wanted`; None for other quantities."""
    if given == wanted:
        return Fraction(1)
    one, other = _place(given), _place(wanted)
    if one is None or other is None or one[0] != other[0]:
        return None
    return one[1] / other[1]


def _place(unit: str) -> tuple[str, Fraction] | None:
    """The quantity, and how many of its base unit; of a size per second as of the size."""
    per_second = unit.removesuffix("ec") if unit.endswith("/sec") else unit
    if per_second in _PLACES:
        return _PLACES[per_second]
    size = _PLACES.get(per_second.removesuffix("/s")) if per_second.endswith("/s") else None
    return (f"{size[0]} per second", size[1]) if size and size[0] == "size" else None


def times(value: float, by: Fraction) -> float:
    """A product that has the digits of the printed figure: 150 us are 0.15 ms."""
    return value * by.numerator / by.denominator
