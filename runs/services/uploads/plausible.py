"""Figures that nobody can have measured: times below nothing, rates beyond any machine."""

from django.utils.translation import gettext as _

# Seconds of each. Nothing takes less than no time, nor longer than a hundred years.
TIMES = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "seconds": 1.0,
    "min": 60.0,
    "h": 3600.0,
}
LONGEST = 100 * 365.25 * 86400
COUNTS = frozenset(
    {"transactions", "errors", "queries", "rows", "calls", "events", "retries", "requests", "ops"}
)
SIZES = frozenset({"B", "kB", "KB", "KiB", "MB", "MiB", "GB", "GiB", "bytes"})
RATES = frozenset({"tps", "tpm", "tpmC", "NOPM", "ops/s"})
MOST = 1e18  # of a rate, a count or a size
FASTEST = 1e12  # transactions a second
LATENCY = "latency"


def fault_of(metric: str, unit: str, least: float, most: float) -> tuple[str, str] | None:
    """Code and message for values from `least` to `most` that cannot be; None where they can."""
    if unit in TIMES:
        return _of_time(metric, unit, least, most)
    if not (unit in COUNTS or unit in SIZES or unit in RATES or unit.endswith("/s")):
        return None
    if least < 0:
        return "negative", _("Below 0, which %(unit)s cannot be.") % {"unit": unit}
    if most > (FASTEST if unit == "tps" else MOST):
        return "out_of_range", _("More than any machine does: %(value)g.") % {"value": most}
    return None


def unit_of_name(metric: str) -> str:
    """The unit that follows from a name alone, for bounds only."""
    if metric == "tps":
        return "tps"
    return "ms" if metric.startswith(LATENCY) else ""


def _of_time(metric: str, unit: str, least: float, most: float) -> tuple[str, str] | None:
    if least < 0:
        return "negative_time", _("A time cannot be negative.")
    if least == 0 and metric.startswith(LATENCY) and "stddev" not in metric:
        return "negative", _("A latency of 0: nothing answers in no time.")
    if most * TIMES[unit] > LONGEST:
        return "out_of_range", _("More than a hundred years: %(value)g.") % {"value": most}
    return None
