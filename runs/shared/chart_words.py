"""Words that charts of several subjects show."""

from collections.abc import Collection
from typing import Any

from django.utils.translation import gettext as _

from runs.charts.scaling import Words


def cell_words(values: Collection[Any]) -> Words:
    """The words of a chart of cells: of what the model says of them, else of medians."""
    if not values:
        return hover_words()
    return hover_words(_("the model's value"), _("interval of the value (95 %)"))


def hover_words(value: str = "", interval: str = "") -> Words:
    """The words of a chart's hover text: of medians and their range, unless others are named."""
    return Words(
        value or _("median"), interval or _("min–max"), _("runs"), _("unknown")
    )
