"""Schedules: campaigns that are queued by themselves, and what each firing came to."""

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import addresses
from runs.access.api.authentication import person, reader, require_own
from runs.access.selectors import permissions, projects
from runs.access.selectors.permission_table import Right
from runs.models import Campaign, Schedule, ScheduleEvent
from runs.schedules.selectors import schedules as schedule_selectors
from runs.schedules.services import schedules
from runs.shared.api import doors
from runs.shared.api.doors import ReadOnlyDoor
from runs.shared.api.examples import EXAMPLES
from runs.shared.api.parsing import StrictSerializer
from runs.shared.api.shapes import computed


class ScheduleEventSerializer(serializers.Serializer[ScheduleEvent]):
    """A firing: the campaign that it queued, or why there is none."""

    at = serializers.DateTimeField()
    code = serializers.CharField()
    message = serializers.CharField()
    campaign = serializers.CharField(
        source="campaign.slug", allow_null=True, default=None
    )


class ScheduleSerializer(serializers.Serializer[Schedule]):
    """A schedule. `next_at` is null where it waits for an installation."""

    id = serializers.IntegerField()
    title = serializers.CharField()
    server = serializers.CharField(source="server.slug")
    kind = serializers.ChoiceField(choices=Schedule.Kind.choices)
    weekdays = serializers.ListField(child=serializers.IntegerField())
    at = computed(
        serializers.CharField,
        lambda schedule: f"{schedule.hour:02}:{schedule.minute:02}",
        help_text="Hour and minute in its time zone.",
    )
    time_zone = serializers.CharField()
    is_paused = computed(
        serializers.BooleanField,
        lambda schedule: not schedule.enabled,
        "It queues nothing.",
    )
    next_at = serializers.DateTimeField(allow_null=True)
    # The newest five firings, the newest first.
    events = ScheduleEventSerializer(source="newest_events", many=True)


class ChangedScheduleSerializer(StrictSerializer):
    """What of a schedule is to be changed."""

    title = serializers.CharField(max_length=200, required=False)
    kind = serializers.ChoiceField(choices=Schedule.Kind.choices, required=False)
    weekdays = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=7),
        required=False,
        allow_empty=False,
        help_text="As in ISO 8601: 1 is Monday. Every day by default.",
    )
    at = serializers.RegexField(
        r"^([01][0-9]|2[0-3]):[0-5][0-9]$",
        required=False,
        help_text="Hour and minute in the time zone, such as 02:30.",
    )
    time_zone = serializers.CharField(
        max_length=60, required=False, help_text="Such as Asia/Tokyo; UTC by default."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Part the time of day."""
        if "at" in attrs:
            hour, _colon, minute = attrs.pop("at").partition(":")
            attrs |= {"hour": int(hour), "minute": int(minute)}
        return attrs


class NewScheduleSerializer(ChangedScheduleSerializer):
    """A schedule to be made."""

    campaign = serializers.CharField(
        help_text="The slug of a campaign that BenchLab executed."
    )


MADE = OpenApiExample(
    "On weekdays at half past two", EXAMPLES["schedule"], request_only=True
)


@addresses.door(
    {
        "schedule-detail": addresses.reading(patch=Right.QUEUE, delete=Right.QUEUE),
        "schedule-list": addresses.reading(post=Right.QUEUE),
        "schedule-pause": addresses.acting(post=Right.QUEUE),
        "schedule-resume": addresses.acting(post=Right.QUEUE),
    }
)
class ScheduleDoor(ReadOnlyDoor[Schedule]):
    """Schedules: campaigns that BenchLab queues automatically. The newest first."""

    queryset = Schedule.objects.all()
    listed = staticmethod(schedule_selectors.listed)
    serializer_class = ScheduleSerializer
    filterset_class = None

    @extend_schema(request=NewScheduleSerializer, examples=[MADE])
    def create(self, request: Request) -> Response:
        """Queue a campaign's design again automatically."""
        body = dict(doors.taken(NewScheduleSerializer, request).validated_data)
        campaign = self._campaign(body.pop("campaign"))
        permissions.require(reader(request), Right.QUEUE, campaign.project)
        may_prioritise = permissions.may_for(
            reader(request), Right.PRIORITISE, campaign.project
        )
        schedule = schedules.create(
            campaign=campaign,
            by=person(request),
            may_prioritise=may_prioritise,
            **{"title": "", **body},
        )
        return self.shown(
            self.get_queryset().get(pk=schedule.pk), status.HTTP_201_CREATED
        )

    @extend_schema(request=ChangedScheduleSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change the title or the times; what it missed under the old ones is not made up for."""
        return self.acted(schedules.edit, ChangedScheduleSerializer)

    def destroy(self, request: Request, pk: str) -> Response:
        """Remove it with its history; its campaigns stay."""
        schedules.delete(schedule=self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @action(detail=True, methods=["post"])
    def pause(self, request: Request, pk: str) -> Response:
        """Let it queue nothing until it is resumed."""
        return self.acted(schedules.enable, enabled=False)

    @action(detail=True, methods=["post"])
    def resume(self, request: Request, pk: str) -> Response:
        """Let it queue again; missed times are not made up for."""
        return self.acted(schedules.enable, enabled=True)

    def _campaign(self, slug: str) -> Campaign:
        visible_campaigns = projects.visible(
            Campaign.objects.all(), to=reader(self.request)
        )
        campaign = visible_campaigns.filter(slug=slug).first()
        if campaign is None:
            message = _("There is no campaign %(slug)s.") % {"slug": slug}
            raise ValidationError(
                {"campaign": [ErrorDetail(message, "does_not_exist")]}
            )
        require_own(self.request, lambda token: projects.is_own(campaign, token))
        return campaign
