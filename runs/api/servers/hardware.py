"""Hardware: what machines are made of, and how much was measured on each."""

from collections.abc import Sequence
from typing import Any

import django_filters
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.reverse import reverse

from runs.api.access.authentication import reader
from runs.api.doors import ReadOnlyDoor
from runs.models import HardwareProfile
from runs.selectors.servers import hardware
from runs.selectors.servers.hardware import MOST_COUNTED, HardwareRow


class HardwareFilters(django_filters.FilterSet):  # type: ignore[misc]
    """Which hardware profiles."""

    cpu_model = django_filters.CharFilter(
        lookup_expr="icontains", label="Part of the CPU model, such as EPYC."
    )
    virtualization = django_filters.CharFilter(
        lookup_expr="iexact", label="What it runs on, such as kvm or AWS m4.2xlarge."
    )
    server = django_filters.CharFilter("server__slug", label="Slug of a server that has it now.")
    source = django_filters.CharFilter(
        "publishednode__table__source__slug",
        distinct=True,
        label="Slug of a publication that measured on it, such as wg1-2017.",
    )


class HardwareSerializer(serializers.Serializer[HardwareProfile]):
    """What a machine is made of; null where it is not known."""

    fingerprint = serializers.CharField()
    name = serializers.CharField()
    cpu_model = serializers.CharField()
    sockets = serializers.IntegerField(allow_null=True)
    cores = serializers.IntegerField(allow_null=True)
    threads = serializers.IntegerField(allow_null=True)
    memory_bytes = serializers.IntegerField(allow_null=True)
    virtualization = serializers.CharField()


class HardwareRowSerializer(serializers.Serializer[HardwareRow]):
    """A hardware profile: `facts` is everything known besides the fields.

    `servers` have it now. `runs` have finished, here or uploaded, `published` are campaigns of
    publications; both of what the reader may see.
    """

    id = serializers.IntegerField(source="hardware.pk")
    fingerprint = serializers.CharField(source="hardware.fingerprint")
    slug = serializers.CharField(
        source="hardware.slug", help_text="Of one that a publication names; else empty."
    )
    name = serializers.CharField(source="hardware.name")
    cpu_model = serializers.CharField(source="hardware.cpu_model")
    sockets = serializers.IntegerField(source="hardware.sockets", allow_null=True)
    cores = serializers.IntegerField(source="hardware.cores", allow_null=True)
    threads = serializers.IntegerField(source="hardware.threads", allow_null=True)
    memory_bytes = serializers.IntegerField(source="hardware.memory_bytes", allow_null=True)
    virtualization = serializers.CharField(source="hardware.virtualization")
    facts = serializers.DictField(source="hardware.facts")
    servers = serializers.SerializerMethodField()
    runs = serializers.IntegerField(help_text=f"Counted up to {MOST_COUNTED:,}.")
    published = serializers.IntegerField()
    url = serializers.SerializerMethodField()

    def get_servers(self, row: HardwareRow) -> list[str]:
        """Slugs of servers."""
        return [server.slug for server in row.servers]

    def get_url(self, row: HardwareRow) -> str:
        """The address of the profile in this API."""
        return reverse(
            "api:hardware-detail", args=[row.hardware.pk], request=self.context["request"]
        )


class HardwareDoor(ReadOnlyDoor[HardwareProfile]):
    """Hardware profiles: of servers, of publications, and of uploads. The newest first."""

    queryset = HardwareProfile.objects.all()
    lookup_value_converter = "int"
    filterset_class = HardwareFilters

    def get_queryset(self) -> QuerySet[HardwareProfile]:
        """Those that the reader may know of."""
        return hardware.listed(to=reader(self.request))

    def get_serializer_class(self) -> Any:
        """The fields shown of a row."""
        return HardwareRowSerializer

    def told(self, found: Sequence[Any]) -> Sequence[HardwareRow]:
        """Profiles with what was measured on them."""
        return hardware.rows(found, to=reader(self.request))
