"""By what lists of changes can be filtered: once for page and API."""

import django_filters
from django.utils.translation import gettext_lazy as _

from runs.models import (
    Campaign,
    Change,
    Metric,
)
from runs.shared.filters import Filters, NamedFilter


class ChangeFilters(Filters):
    """Which changes."""

    campaign = NamedFilter(Campaign, "campaign", label=_("Campaign"))
    metric = NamedFilter(Metric, "metric", "Name of the metric.", label=_("Metric"))
    kind = django_filters.ChoiceFilter(choices=Change.Kind.choices, label=_("Kind"))
    decision = django_filters.ChoiceFilter(
        choices=Change.Decision.choices, label=_("Decision")
    )
