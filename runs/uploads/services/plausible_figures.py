"""Which figures an upload cannot have measured."""

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
    seconds = units.seconds(unit)
    if seconds is not None:
        if least < 0:
            return "negative_time", _("A time cannot be negative.")
        if least == 0 and metric.startswith(LATENCY) and "stddev" not in metric:
            return "negative", _("The latency must be greater than 0.")
        if most * seconds > LONGEST:
            return "out_of_range", _("More than a hundred years: %(value)g.") % {
                "value": most
            }
        return None
    if not units.is_never_negative(unit):
        return None
    if least < 0:
        return "negative", _("Below 0, which %(unit)s cannot be.") % {"unit": unit}
    if most > (FASTEST if unit == "tps" else MOST):
        return "out_of_range", _("Implausibly large: %(value)g.") % {"value": most}
    return None


def unit_of_name(metric: str) -> str:
    """The unit that follows from a name alone, for bounds only."""
    if metric == "tps":
        return "tps"
    return "ms" if metric.startswith(LATENCY) else ""
