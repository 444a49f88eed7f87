"""By what lists of scenarios and topologies can be filtered: once for page and API."""

import django_filters
from django.utils.translation import gettext_lazy as _

from runs.models import (
    Topology,
)
from runs.shared.filters import Filters


class TopologyFilters(Filters):
    """Which topologies."""

    shown = ("kind",)
    kind = django_filters.ChoiceFilter(choices=Topology.Kind.choices, label=_("Kind"))


class ScenarioFilters(Filters):
    """Which scenarios."""

    runnable = django_filters.BooleanFilter(
        label="Whether BenchLab can run it: true or false."
    )
