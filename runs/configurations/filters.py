"""By what lists of configurations can be filtered: once for page and API."""

import django_filters
from django.utils.translation import gettext_lazy as _

from runs.models import (
    Configuration,
)
from runs.shared import words
from runs.shared.filters import Filters, WordsFilter


class ConfigurationFilters(Filters):
    """Which configurations."""

    shown = ("q", "origin")
    q = WordsFilter(
        _("name, publication, or a setting such as wal_compression"),
        words.filter_configurations,
        "Words of its name, description or settings.",
    )
    origin = django_filters.ChoiceFilter(
        choices=Configuration.Origin.choices, label=_("Origin")
    )
    setting = django_filters.CharFilter(
        "settings",
        lookup_expr="has_key",
        label=_("Setting"),
        help_text="Name of a setting that they contain.",
    )
