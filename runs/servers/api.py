"""Servers, their hardware, and preflight. How to reach a server is not shown."""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from runs.access import addresses
from runs.access.api.authentication import reader
from runs.access.selectors.permission_table import Right
from runs.access.services import audit
from runs.campaigns.api.drafts import CampaignDraftSerializer
from runs.models import Environment, HardwareProfile, Installation, Server, ServerCheck
from runs.servers.filters import HardwareFilters, ServerFilters
from runs.servers.selectors import hardware, servers
from runs.servers.selectors.hardware import MOST_COUNTED, HardwareRow
from runs.servers.services import maintenance, server_checks, shared_machines
from runs.servers.services.machines import Finding
from runs.servers.services.servers import fingerprint
from runs.shared.api import doors
from runs.shared.api.doors import ReadOnlyDoor, Schema
from runs.shared.api.parsing import StrictSerializer
from runs.shared.api.shapes import computed, shape
from runs.wording import say_stored


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
    memory_bytes = serializers.IntegerField(
        source="hardware.memory_bytes", allow_null=True
    )
    virtualization = serializers.CharField(source="hardware.virtualization")
    facts = serializers.DictField(source="hardware.facts")
    servers = computed(
        serializers.ListField,
        lambda row: [server.slug for server in row.servers],
        "Their slugs.",
        child=serializers.CharField(),
    )
    runs = serializers.IntegerField(help_text=f"Counted up to {MOST_COUNTED:,}.")
    published = serializers.IntegerField()
    url = serializers.HyperlinkedRelatedField[HardwareProfile](
        "api:hardware-detail", source="hardware", read_only=True
    )


@addresses.door(
    {
        "hardware-detail": addresses.reading(),
        "hardware-list": addresses.reading(),
    }
)
class HardwareDoor(ReadOnlyDoor[HardwareProfile]):
    """Hardware profiles: of servers, of publications, and of uploads. The newest first."""

    queryset = HardwareProfile.objects.all()
    listed = staticmethod(hardware.listed)
    serializer_class = HardwareRowSerializer
    lookup_value_converter = "int"
    filterset_class = HardwareFilters

    def prepared(self, profiles: Sequence[Any]) -> Sequence[HardwareRow]:
        """Profiles with what was measured on them."""
        return hardware.rows(profiles, to=reader(self.request))


class EnvironmentSerializer(serializers.Serializer[Environment]):
    """The system on a machine."""

    fingerprint = serializers.CharField()
    os_name = serializers.CharField()
    kernel = serializers.CharField()
    architecture = serializers.CharField()


class InstallationSerializer(serializers.Serializer[Installation]):
    """One set of PostgreSQL binaries. Sizes in bytes; null if the binaries do not report it.

    `bindir` is the folder of its programs, null for whoever has not logged in.
    """

    version = serializers.CharField()
    version_num = serializers.IntegerField()
    major = serializers.CharField()
    bindir = serializers.SerializerMethodField()
    vendor = serializers.CharField()
    configure_options = serializers.CharField()
    cflags = serializers.CharField()
    compiler = serializers.CharField()
    block_size = serializers.IntegerField(allow_null=True)
    wal_segment_size = serializers.IntegerField(allow_null=True)
    extensions = serializers.ListField(child=serializers.CharField())
    pgbench_version_num = serializers.IntegerField(allow_null=True)

    def get_bindir(self, installation: Installation) -> str | None:
        """Null for strangers, as the server's page has it: the folders are the machine's own."""
        is_signed_in = self.context["request"].user.is_authenticated
        return installation.bindir if is_signed_in else None


class ServerProblemSerializer(serializers.Serializer[Any]):
    """What is wrong with a server or its check, and what to do about it."""

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
    site = serializers.CharField(
        help_text="Workers that serve it reach the server; empty: all."
    )
    problem = serializers.SerializerMethodField()
    maintenance = serializers.SerializerMethodField()
    host_key_fingerprint = computed(
        serializers.CharField,
        lambda server: fingerprint(server.host_key) if server.host_key else None,
        help_text="SHA256 of the pinned key, as ssh-keygen prints it; null before it is pinned.",
        allow_null=True,
    )
    hardware = HardwareSerializer(allow_null=True)
    environment = EnvironmentSerializer(allow_null=True)
    installations = InstallationSerializer(source="present_installations", many=True)
    checked_at = serializers.DateTimeField(allow_null=True)
    takes_turns_with = computed(
        serializers.ListField,
        lambda server: (
            [twin.slug for twin in server.machine.servers.all() if twin != server]
            if server.machine
            else []
        ),
        "Slugs of other registrations of the same machine: one of them measures at a time.",
        child=serializers.CharField(),
    )
    is_apart = serializers.BooleanField(
        help_text="Somebody has said that it is a machine of its own, whatever ids it shares."
    )

    @extend_schema_field(ServerProblemSerializer(allow_null=True))
    def get_problem(self, server: Server) -> dict[str, str] | None:
        """Null for a server without a problem."""
        if not server.problem_code:
            return None
        return {
            "code": server.problem_code,
            "message": say_stored(server.wording, server.problem, _),
            "remedy": _(server.problem_remedy) if server.problem_remedy else "",
        }

    @extend_schema_field(MaintenanceSerializer(allow_null=True))
    def get_maintenance(self, server: Server) -> dict[str, Any] | None:
        """Null where runs may begin."""
        if not server.is_maintained:
            return None
        maintenance = {
            "reason": server.maintenance_reason,
            "until": server.maintenance_until,
        }
        return dict(MaintenanceSerializer(maintenance).data)


@addresses.door(
    {
        "server-detail": addresses.reading(),
        "server-list": addresses.reading(),
        "server-maintain": addresses.acting(post=Right.MAINTAIN),
        "server-release": addresses.acting(post=Right.MAINTAIN),
        "server-separate": addresses.acting(post=Right.SERVERS),
        "server-join": addresses.acting(post=Right.SERVERS),
    }
)
class ServerDoor(ReadOnlyDoor[Server]):
    """Servers: the registered machines, with their hardware and installations of PostgreSQL."""

    queryset = servers.listed()
    lookup_field = "slug"
    serializer_class = ServerSerializer
    filterset_class = ServerFilters

    @extend_schema(request=MaintenanceSerializer)
    @action(detail=True, methods=["post"])
    def maintain(self, request: Request, slug: str) -> Response:
        """Let no run begin on a server; the one in progress ends as usual."""
        return self.acted(maintenance.begin, MaintenanceSerializer)

    @action(detail=True, methods=["post"])
    def release(self, request: Request, slug: str) -> Response:
        """Let runs begin again on a server."""
        return self.acted(maintenance.end)

    @action(detail=True, methods=["post"])
    def separate(self, request: Request, slug: str) -> Response:
        """Say that a server is a machine of its own: it measures while its twins do."""
        return self.acted(shared_machines.set_apart)

    @action(detail=True, methods=["post"])
    def join(self, request: Request, slug: str) -> Response:
        """Let a server that was set apart take turns with its twins again."""
        return self.acted(shared_machines.join)


SECONDS_BETWEEN_POLLS = 1


class PreflightSerializer(serializers.Serializer[dict[str, Any]]):
    """What was found, in how many seconds. `answered`: whether every server could be asked."""

    clear = serializers.BooleanField(source="is_clear")
    answered = serializers.BooleanField(source="has_answers")
    seconds = serializers.FloatField()
    findings = shape(Finding)(many=True)


class CheckSerializer(serializers.Serializer[ServerCheck]):
    """How far a check is: `answer` once it is done, `problem` if it failed."""

    address = ""
    id = serializers.UUIDField()
    url = serializers.SerializerMethodField()
    state = serializers.ChoiceField(choices=ServerCheck.State.choices)
    problem = serializers.SerializerMethodField()

    def get_url(self, check: ServerCheck) -> str:
        """The address to ask until `state` is `done` or `failed`."""
        return reverse(
            self.address, args=[check.pk], request=self.context.get("request")
        )

    @extend_schema_field(ServerProblemSerializer(allow_null=True))
    def get_problem(self, check: ServerCheck) -> dict[str, str] | None:
        """Null unless it failed."""
        if check.state != ServerCheck.State.FAILED:
            return None
        return {name: getattr(check, name) for name in ("code", "message", "remedy")}


class PreflightCheckSerializer(CheckSerializer):
    """How far a preflight is: `answer` once it is done, `problem` if it failed."""

    address = "api:preflight-check"
    answer = PreflightSerializer(allow_null=True)


class AskedDoor(APIView):
    """What a worker is asked for: the answer comes later, at the address of the check."""

    schema = Schema()
    serializer_class: type[CheckSerializer]

    def accepted(self, check: ServerCheck) -> Response:
        """202 for a check that a worker makes."""
        content = self.serializer_class(check, context={"request": self.request}).data
        headers = {
            "Location": content["url"],
            "Retry-After": str(SECONDS_BETWEEN_POLLS),
        }
        return Response(content, 202, headers=headers)


class AskedCheckDoor(AskedDoor):
    """What was asked for. It says when to ask again while it is open."""

    kinds: Collection[str]
    missing: Any

    def get(self, request: Request, check_id: UUID) -> Response:
        """How far it is. Only whoever asked for it finds it, for a day."""
        server_checks.give_up_the_overdue()
        actor = audit.present()
        check = servers.readable(check_id, name=actor.name, by_way_of=actor.by_way_of)
        if check is None or check.kind not in self.kinds:
            raise NotFound(self.missing)
        headers = {"Retry-After": str(SECONDS_BETWEEN_POLLS)} if check.is_open else None
        content = self.serializer_class(check, context={"request": request}).data
        return Response(content, headers=headers)


@addresses.door(
    {
        "preflight": addresses.acting(post=Right.PREFLIGHT),
    }
)
class PreflightDoor(AskedDoor):
    """Preflight of a campaign that is not queued yet."""

    serializer_class = PreflightCheckSerializer

    @extend_schema(
        request=CampaignDraftSerializer, responses={202: PreflightCheckSerializer}
    )
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Have a worker ask the servers. The body is that of a new campaign.

        The answer comes at once; its `url` (also in `Location`) has the findings seconds later.
        """
        serializer = doors.taken(CampaignDraftSerializer, request)
        return self.accepted(
            server_checks.request_draft_check(draft=serializer.unchecked_draft())
        )


@addresses.door(
    {
        "preflight-check": addresses.reading(Right.PREFLIGHT),
    }
)
class PreflightCheckDoor(AskedCheckDoor):
    """A preflight that was asked for."""

    serializer_class = PreflightCheckSerializer
    kinds = {ServerCheck.Kind.PREFLIGHT, ServerCheck.Kind.CAMPAIGN}
    missing = gettext_lazy("There is no such preflight of yours.")
