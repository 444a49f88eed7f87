"""Trials of own scripts over the API, before a version of a workload is stored."""

from typing import Any

from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import addresses
from runs.access.selectors.permission_table import Right
from runs.execution.plan import WorkloadContent
from runs.models import Server, ServerCheck
from runs.servers.api import AskedCheckDoor, AskedDoor, CheckSerializer
from runs.servers.services import server_checks
from runs.shared.api import doors
from runs.shared.api.parsing import StrictSerializer
from runs.tools.pgbench.scripts import (
    MOST_CHARACTERS,
    MOST_SCRIPTS,
    MOST_WEIGHT,
    GivenScript,
)
from runs.workloads.services import workloads


class ScriptSerializer(StrictSerializer):
    """A script in the syntax of pgbench 9.6 and later."""

    name = serializers.CharField(max_length=100)
    text = serializers.CharField(max_length=MOST_CHARACTERS, trim_whitespace=False)
    weight = serializers.IntegerField(
        min_value=-MOST_WEIGHT, max_value=MOST_WEIGHT, default=1
    )


class TrialSerializer(StrictSerializer):
    """The content of a workload, and the server that it is tried on."""

    server = serializers.SlugRelatedField(
        slug_field="slug",
        queryset=Server.objects.filter(state=Server.State.READY).exclude(base_dir=""),
    )
    scripts = serializers.ListField(
        child=ScriptSerializer(), min_length=1, max_length=MOST_SCRIPTS
    )
    variables = serializers.DictField(
        child=serializers.CharField(max_length=1000, allow_blank=True), default=dict
    )
    init_options = serializers.CharField(
        max_length=200, allow_blank=True, default="", help_text="Of pgbench -i."
    )
    init_sql = serializers.CharField(
        allow_blank=True,
        trim_whitespace=False,
        default="",
        help_text="Run after the tables.",
    )
    has_own_tables = serializers.BooleanField(
        default=False, help_text="init_sql makes the tables, in place of pgbench -i."
    )


class TrialAnswerSerializer(serializers.Serializer[Any]):
    """Everything that is wrong, with script and line; an empty list: nothing."""

    faults = serializers.ListField(child=serializers.CharField())


class TrialCheckSerializer(CheckSerializer):
    """How far a trial is: `answer` once it is done, `problem` if it failed."""

    address = "api:trial-check"
    answer = TrialAnswerSerializer(allow_null=True)


@addresses.door(
    {
        "trial": addresses.acting(post=Right.CONFIGURE),
    }
)
class TrialDoor(AskedDoor):
    """Trial of own scripts that are not stored."""

    serializer_class = TrialCheckSerializer

    @extend_schema(request=TrialSerializer, responses={202: TrialCheckSerializer})
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Have a worker run each script once, on a scratch cluster of the server.

        What is wrong without a server is answered with 400. Otherwise the answer comes at once; its
        `url` (also in `Location`) has the faults seconds later.
        """
        body = dict(doors.taken(TrialSerializer, request).validated_data)
        server, scripts = body.pop("server"), body.pop("scripts")
        content = WorkloadContent(
            scripts=tuple(GivenScript(**script) for script in scripts), **body
        )
        workloads.check(content)
        return self.accepted(
            server_checks.request_workload_check(server=server, content=content)
        )


@addresses.door(
    {
        "trial-check": addresses.reading(Right.CONFIGURE),
    }
)
class TrialCheckDoor(AskedCheckDoor):
    """A trial that was asked for."""

    serializer_class = TrialCheckSerializer
    kinds = {ServerCheck.Kind.TRIAL}
    missing = _("There is no such trial of yours.")
