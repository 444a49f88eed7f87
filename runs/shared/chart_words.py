"""Words that charts of several subjects show."""

from django.utils.translation import gettext as _

from runs.charts.scaling import Words


def hover_words(value: str = "", interval: str = "") -> Words:
    """The words of a chart's hover text: of medians and their range, unless others are named."""
    return Words(value or _("median"), interval or _("min–max"), _("runs"), _("unknown"))
