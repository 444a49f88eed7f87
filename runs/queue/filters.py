"""By what lists of runs can be filtered: once for page and API."""

from typing import Any

import django_filters
from django.db.models import QuerySet

from runs.analysis.judged_runs import JUDGEMENTS
from runs.cells.filters import VersionFilter
from runs.models import (
    Campaign,
    Run,
    Server,
)
from runs.models.campaigns import Origin
from runs.queue.selectors import runs
from runs.shared.filters import Filters, NamedFilter


class RunFilters(Filters):
    """Which runs."""

    campaign = NamedFilter(Campaign, "campaign")
    state = django_filters.ChoiceFilter(choices=Run.State.choices)
    validity = django_filters.ChoiceFilter(
        method="judged", choices=[(each, each) for each in JUDGEMENTS]
    )
    version = VersionFilter()
    server = NamedFilter(Server, "server")
    hardware = django_filters.CharFilter(
        method=lambda rows, _name, value: runs.on_hardware(rows, fingerprint=value),
        label="Fingerprint of the hardware profile that it was made on.",
    )
    origin = django_filters.ChoiceFilter(choices=Origin.choices)

    def judged(self, rows: QuerySet[Any], _name: str, value: str) -> QuerySet[Any]:
        """Those of one judgement; unknown are all results that nobody could judge."""
        if value != "unknown":
            return rows.filter(validity=value)
        return rows.filter(validity="", state__in=(Run.State.FINISHED, Run.State.WITHDRAWN))
