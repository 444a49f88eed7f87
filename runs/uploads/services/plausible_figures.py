"""Which figures an upload cannot have measured."""

import math

from django.utils.translation import gettext as _

from runs.tools import units

# Nothing takes longer than a hundred years.
LONGEST = 100 * 365.25 * 86400
MOST = 1e18  # of a rate, a count or a size
FASTEST = 1e12  # transactions a second
LATENCY = "latency"


def fault_of(
    metric: str, unit: str, least: float, most: float
) -> tuple[str, str] | None:
    """Code and message for values from `least` to `most` that cannot be; None where they can."""
    lowest, highest = limits(metric, unit)
    is_time = units.seconds(unit) is not None
    if least < 0 and is_time:
        return "negative_time", _("A time cannot be negative.")
    if least < lowest and is_time:
        return "negative", _("The latency must be greater than 0.")
    if least < lowest:
        return "negative", _("Below 0, which %(unit)s cannot be.") % {"unit": unit}
    if most > highest and is_time:
        message = _("More than a hundred years: %(value)g.")
        return "out_of_range", message % {"value": most}
    if most > highest:
        return "out_of_range", _("Implausibly large: %(value)g.") % {"value": most}
    return None


def limits(metric: str, unit: str) -> tuple[float, float]:
    """The least and the most that `fault_of` takes for a value of the metric."""
    seconds = units.seconds(unit)
    if seconds is not None:
        is_above_zero = metric.startswith(LATENCY) and "stddev" not in metric
        return math.ulp(0.0) if is_above_zero else 0.0, LONGEST / seconds
    if not units.is_never_negative(unit):
        return -math.inf, math.inf
    return 0.0, FASTEST if unit == "tps" else MOST


def unit_of_name(metric: str) -> str:
    """The unit that follows from a name alone, for bounds only."""
    if metric == "tps":
        return "tps"
    return "ms" if metric.startswith(LATENCY) else ""
