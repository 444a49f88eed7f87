"""By what lists of runs can be filtered: once for page and API."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from runs.analysis.judged_runs import JUDGEMENTS
from runs.cells.filters import VersionFilter
from runs.models import (
    Campaign,
    Run,
    Server,
)
from runs.models.campaigns import Origin
from runs.queue.selectors import runs
from runs.queue.selectors.certificate_words import LABELS
from runs.shared.filters import Filters, NamedFilter


class RunFilters(Filters):
    """Which runs."""

    shown = ("state", "validity", "server")
    campaign = NamedFilter(Campaign, "campaign", label=_("Campaign"))
    state = django_filters.ChoiceFilter(choices=Run.State.choices, label=_("State"))
    validity = django_filters.ChoiceFilter(
        method="judged",
        choices=[(judgement, LABELS[judgement]) for judgement in JUDGEMENTS],
        label=_("Judgement"),
    )
    version = VersionFilter()
    server = NamedFilter(Server, "server", label=_("Server"))
    hardware = django_filters.CharFilter(
        method=lambda rows, _name, value: runs.filter_by_hardware(
            rows, fingerprint=value
        ),
        label=_("Hardware"),
        help_text="Fingerprint of the hardware profile that it was made on.",
    )
    origin = django_filters.ChoiceFilter(choices=Origin.choices, label=_("Origin"))

    def judged(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        """Those of one judgement; unknown are all results that nobody could judge."""
        if value != "unknown":
            return rows.filter(validity=value)
        return rows.filter(validity="", state__in=Run.WITH_RESULT)
