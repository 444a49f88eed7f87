"""Servers: what they are and have. How to reach them is nobody's business here."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from runs.api.doors import ReadOnlyDoor
from runs.api.parsing import StrictSerializer
from runs.api.servers.hardware import HardwareSerializer
from runs.models import Environment, Installation, Server
from runs.selectors.servers import servers
from runs.services.servers import maintenance
from runs.services.servers.servers import fingerprint


class EnvironmentSerializer(serializers.Serializer[Environment]):
    """The system on a machine."""

    fingerprint = serializers.CharField()
    os_name = serializers.CharField()
    kernel = serializers.CharField()
    architecture = serializers.CharField()


class InstallationSerializer(serializers.Serializer[Installation]):
    """One set of PostgreSQL binaries. Sizes in bytes; null if the binaries do not report it."""

    version = serializers.CharField()
    version_num = serializers.IntegerField()
    major = serializers.CharField()
    bindir = serializers.CharField()
    vendor = serializers.CharField()
    configure_options = serializers.CharField()
    cflags = serializers.CharField()
    block_size = serializers.IntegerField(allow_null=True)
    wal_segment_size = serializers.IntegerField(allow_null=True)
    extensions = serializers.ListField(child=serializers.CharField())
    pgbench_version_num = serializers.IntegerField(allow_null=True)


class ServerProblemSerializer(serializers.Serializer[Any]):
    """What is wrong with a server, and what to do about it."""

    code = serializers.CharField()
    message = serializers.CharField()
    remedy = serializers.CharField()


class MaintenanceSerializer(StrictSerializer):
    """Why no run begins on a server, and until when; without an end until somebody says so."""

    reason = serializers.CharField(max_length=200, allow_blank=True, default="")
    until = serializers.DateTimeField(allow_null=True, default=None)


class ServerSerializer(serializers.Serializer[Server]):
    """A server, without address, user and keys."""

    id = serializers.IntegerField()
    slug = serializers.CharField()
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=Server.State.choices)
    site = serializers.CharField(help_text="Workers that serve it reach the server; empty: all.")
    problem = serializers.SerializerMethodField()
    maintenance = serializers.SerializerMethodField()
    host_key_fingerprint = serializers.SerializerMethodField()
    hardware = HardwareSerializer(allow_null=True)
    environment = EnvironmentSerializer(allow_null=True)
    installations = InstallationSerializer(source="present_installations", many=True)
    checked_at = serializers.DateTimeField(allow_null=True)

    @extend_schema_field(ServerProblemSerializer(allow_null=True))
    def get_problem(self, server: Server) -> dict[str, str] | None:
        """Null for a server without a problem."""
        if not server.problem_code:
            return None
        return {
            "code": server.problem_code,
            "message": server.problem,
            "remedy": _(server.problem_remedy) if server.problem_remedy else "",
        }

    @extend_schema_field(MaintenanceSerializer(allow_null=True))
    def get_maintenance(self, server: Server) -> dict[str, Any] | None:
        """Null where runs may begin."""
        if not server.is_maintained:
            return None
        shown = {"reason": server.maintenance_reason, "until": server.maintenance_until}
        return dict(MaintenanceSerializer(shown).data)

    def get_host_key_fingerprint(self, server: Server) -> str | None:
        """SHA256 of the pinned host key, as ssh-keygen prints it; null before it is pinned."""
        return fingerprint(server.host_key) if server.host_key else None


class ServerFilters(django_filters.FilterSet):  # type: ignore[misc]
    """Which servers."""

    state = django_filters.ChoiceFilter(choices=Server.State.choices)
    hardware = django_filters.CharFilter(
        "hardware__fingerprint", label="Fingerprint of the hardware profile that it has now."
    )


class ServerDoor(ReadOnlyDoor[Server]):
    """Servers: the registered machines, with their hardware and installations of PostgreSQL."""

    queryset = servers.listed()
    lookup_field = "slug"
    serializer_class = ServerSerializer
    filterset_class = ServerFilters

    def get_queryset(self) -> QuerySet[Server]:
        """Servers with all that is shown of them."""
        return servers.listed()

    @extend_schema(request=MaintenanceSerializer, responses={200: ServerSerializer})
    @action(detail=True, methods=["post"])
    def maintain(self, request: Request, slug: str) -> Response:
        """Let no run begin on a server; the one in progress ends as usual."""
        server, given = self.get_object(), MaintenanceSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        maintenance.begin(server=server, **given.validated_data)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(request=None, responses={200: ServerSerializer})
    @action(detail=True, methods=["post"])
    def release(self, request: Request, slug: str) -> Response:
        """Let runs begin again on a server."""
        maintenance.end(server=self.get_object())
        return Response(self.get_serializer(self.get_object()).data)
