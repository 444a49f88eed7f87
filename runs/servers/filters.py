"""By what lists of servers and hardware can be filtered: once for page and API."""

import django_filters
from django.utils.translation import gettext_lazy as _

from runs.models import (
    Server,
    Source,
)
from runs.shared import words
from runs.shared.filters import Filters, NamedFilter, WordsFilter


class HardwareFilters(Filters):
    """Which hardware profiles."""

    shown = ("q",)
    q = WordsFilter(
        _("name, CPU model, or cloud, such as EPYC or AWS"),
        words.filter_hardware,
        "Words of its name, CPU model or cloud.",
    )
    cpu_model = django_filters.CharFilter(
        lookup_expr="icontains",
        label=_("CPU model"),
        help_text="Part of the CPU model, such as EPYC.",
    )
    virtualization = django_filters.CharFilter(
        lookup_expr="iexact",
        label=_("Virtualisation or cloud"),
        help_text="What it runs on, such as kvm or AWS m4.2xlarge.",
    )
    server = NamedFilter(
        Server, "server", "Slug of a server that has it now.", label=_("Server")
    )
    source = NamedFilter(
        Source,
        "publishednode__table__source",
        "Slug of a publication that measured on it, such as wg1-2017.",
        label=_("Publication"),
        distinct=True,
    )


class ServerFilters(Filters):
    """Which servers."""

    state = django_filters.ChoiceFilter(choices=Server.State.choices, label=_("State"))
    hardware = django_filters.CharFilter(
        "hardware__fingerprint",
        label=_("Hardware"),
        help_text="Fingerprint of the hardware profile that it has now.",
    )
