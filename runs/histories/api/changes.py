"""Changes in histories with people's decisions, and the webhooks that report them."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import addresses
from runs.access.api.authentication import person, reader
from runs.access.selectors import permissions
from runs.access.selectors.permission_table import Right
from runs.access.services import projects
from runs.histories.filters import ChangeFilters
from runs.histories.selectors import histories
from runs.histories.selectors import webhooks as webhook_selectors
from runs.histories.services import changes, webhooks
from runs.models import Change, Token, Webhook, WebhookDelivery
from runs.shared.api import doors
from runs.shared.api.doors import ReadOnlyDoor
from runs.shared.api.examples import EXAMPLES
from runs.shared.api.parsing import StrictSerializer
from runs.shared.api.shapes import ChangeRevisionSerializer

DECISIONS = (Change.Decision.OPEN, Change.Decision.CONFIRMED, Change.Decision.DISMISSED)


class MachineFactSerializer(serializers.Serializer[Any]):
    """A fact of the machine that differs after the change."""

    kind = serializers.ChoiceField(choices=["hardware", "environment"])
    name = serializers.CharField()
    before = serializers.ListField()
    after = serializers.ListField()


class ChangeSerializer(serializers.Serializer[Change]):
    """A step of a history's level, a change of the machine, or the alarm of two jobs.

    Of the kind `machine` are steps where the machine changed (`facts` are what is known of that),
    or with which most series of a suite moved.

    `ratio` is `after` / `before`, the medians of the levels; `run` the first run after the change,
    begun at `at`, and `revision` its revision, where it has one. A step lies from `earliest` to
    `latest` (commits, else days) in 95 of 100 cases; both are empty for alarms. `rules` is the
    version of the rules that judged it last. A refuted one has `reason` and `settled_at`; what is
    found again has no reason. `decided_by` is null where later
    runs have decided.
    """

    id = serializers.IntegerField()
    campaign = serializers.CharField(source="cell.campaign.slug")
    metric = serializers.CharField(source="metric.name")
    unit = serializers.CharField(source="metric.unit")
    levels = serializers.DictField(source="cell.levels")
    kind = serializers.ChoiceField(choices=Change.Kind.choices)
    verdict = serializers.ChoiceField(choices=["faster", "slower", "different"])
    revision = ChangeRevisionSerializer(source="cell.revision", allow_null=True)
    run = serializers.IntegerField(source="run_id")
    at = serializers.DateTimeField(source="run.started_at", allow_null=True)
    ratio = serializers.FloatField()
    before = serializers.FloatField()
    after = serializers.FloatField()
    p_value = serializers.FloatField(allow_null=True)
    earliest = serializers.CharField()
    latest = serializers.CharField()
    facts = MachineFactSerializer(many=True)
    rules = serializers.IntegerField()
    found_at = serializers.DateTimeField()
    decision = serializers.ChoiceField(choices=Change.Decision.choices)
    reason = serializers.ChoiceField(choices=Change.Reason.choices, allow_blank=True)
    settled_at = serializers.DateTimeField(allow_null=True)
    note = serializers.CharField()
    decided_by = serializers.CharField(
        source="decided_by.username", allow_null=True, default=None
    )
    decided_at = serializers.DateTimeField(allow_null=True)


class DecisionSerializer(serializers.Serializer[Any]):
    """What somebody says of a change; `open` takes it back.

    `of` is `cause` for all changes of its campaign that begin at the same commit (or day) and have
    the same decision, as in the inbox.
    """

    decision = serializers.ChoiceField(
        choices=[
            (change_decision.value, change_decision.label)
            for change_decision in DECISIONS
        ]
    )
    note = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=2000
    )
    of = serializers.ChoiceField(choices=["change", "cause"], default="change")


@addresses.door(
    {
        "change-decision": addresses.acting(post=Right.DECIDE),
        "change-detail": addresses.reading(),
        "change-list": addresses.reading(),
    }
)
class ChangeDoor(ReadOnlyDoor[Change]):
    """Changes found in the histories of uploads. The newest first."""

    queryset = histories.all_changes()
    serializer_class = ChangeSerializer
    filterset_class = ChangeFilters

    @extend_schema(
        request=DecisionSerializer,
        examples=[
            OpenApiExample(
                "Confirmed",
                {"decision": "confirmed", "note": "Reverted in 9c1d."},
                request_only=True,
            )
        ],
    )
    @action(detail=True, methods=["post"])
    def decision(self, request: Request, pk: str) -> Response:
        """Confirm or dismiss a change, or its cause; later analyses keep the decision."""
        change = self.get_object()
        body = doors.taken(DecisionSerializer, request)
        fields = dict(body.validated_data)
        decide = changes.decide_cause if fields.pop("of") == "cause" else changes.decide
        decide(change=change, by=person(request), **fields)
        return self.shown()


Shape = serializers.Serializer[Any]


class WebhookSerializer(Shape):
    """A webhook. Its secret is part of the answer that makes it, and of no other."""

    id = serializers.IntegerField(read_only=True)
    project = serializers.CharField(source="project.slug", read_only=True)
    url = serializers.CharField(max_length=500)
    kind = serializers.ChoiceField(choices=Webhook.Kind.choices, required=False)
    events = serializers.ListField(
        child=serializers.ChoiceField(webhooks.EVENTS), required=False
    )
    is_active = serializers.BooleanField(required=False)
    created_at = serializers.DateTimeField(read_only=True)


class GivenWebhookSerializer(StrictSerializer):
    """A webhook to be made, or what of one is to be changed."""

    url = serializers.CharField(max_length=500)
    kind = serializers.CharField(
        required=False,
        max_length=12,
        help_text=f"Of {', '.join(Webhook.Kind.values)}: the shape of what is sent.",
    )
    events = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text=f"Of {', '.join(webhooks.EVENTS)}; all by default.",
    )


class NewWebhookSerializer(GivenWebhookSerializer):
    """A webhook to be made."""

    secret = serializers.CharField(
        required=False,
        max_length=200,
        help_text="At least 16 characters; left out, one is made and given once in the answer.",
    )


class ChangedWebhookSerializer(GivenWebhookSerializer):
    """What of a webhook is to be changed."""

    url = serializers.CharField(max_length=500, required=False)
    is_active = serializers.BooleanField(required=False)


class MadeWebhookSerializer(WebhookSerializer):
    """A webhook just made."""

    secret = serializers.CharField()


class WebhookDeliverySerializer(serializers.Serializer[WebhookDelivery]):
    """A report: `payload` is the body that is sent, `status` and `problem` the last answer."""

    id = serializers.IntegerField()
    event = serializers.CharField()
    state = serializers.ChoiceField(choices=WebhookDelivery.State.choices)
    tries = serializers.IntegerField()
    status = serializers.IntegerField(allow_null=True)
    problem = serializers.CharField()
    payload = serializers.CharField()
    created_at = serializers.DateTimeField()
    next_try_at = serializers.DateTimeField(allow_null=True)
    delivered_at = serializers.DateTimeField(allow_null=True)


MADE = OpenApiExample("To a chat", EXAMPLES["webhook"], request_only=True)


@addresses.door(
    {
        "webhook-deliveries": addresses.reading(Right.WEBHOOKS),
        "webhook-detail": addresses.reading(
            Right.WEBHOOKS, patch=Right.WEBHOOKS, delete=Right.WEBHOOKS
        ),
        "webhook-list": addresses.reading(Right.WEBHOOKS, post=Right.WEBHOOKS),
        "webhook-ping": addresses.acting(post=Right.WEBHOOKS),
    }
)
@extend_schema_view(list=extend_schema(operation_id="webhooks_list"))
class WebhookDoor(ReadOnlyDoor[Webhook]):
    """Webhooks of the token's project. The newest first.

    Also reading takes the right: addresses of webhooks are often secrets themselves.
    """

    queryset = Webhook.objects.all()
    listed = staticmethod(webhook_selectors.webhooks)
    serializer_class = WebhookSerializer

    @extend_schema(
        request=NewWebhookSerializer,
        responses={201: MadeWebhookSerializer},
        examples=[MADE],
    )
    def create(self, request: Request) -> Response:
        """Make a webhook of the token's project."""
        body = doors.taken(NewWebhookSerializer, request)
        token = request.auth
        project = token.project if isinstance(token, Token) else projects.default()
        permissions.require(reader(request), Right.WEBHOOKS, project)
        new_webhook = webhooks.create(project=project, **body.validated_data)
        # The secret is in this answer only.
        webhook_data = {
            **WebhookSerializer(new_webhook.webhook).data,
            "secret": new_webhook.secret,
        }
        return Response(webhook_data, status.HTTP_201_CREATED)

    @extend_schema(request=ChangedWebhookSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change the address or the events, or switch it off and on."""
        body = doors.taken(ChangedWebhookSerializer, request)
        changed = webhooks.change(webhook=self.get_object(), **body.validated_data)
        return Response(WebhookSerializer(changed).data)

    def destroy(self, request: Request, pk: str) -> Response:
        """Remove it, with everything that waits for it."""
        webhooks.remove(webhook=self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=None, responses={202: WebhookDeliverySerializer})
    @action(detail=True, methods=["post"])
    def ping(self, request: Request, pk: str) -> Response:
        """Queue a report without an event, to see whether they arrive."""
        delivery = webhooks.ping(webhook=self.get_object())
        return Response(
            WebhookDeliverySerializer(delivery).data, status.HTTP_202_ACCEPTED
        )

    @extend_schema(responses={200: WebhookDeliverySerializer(many=True)})
    @action(detail=True, methods=["get"], pagination_class=None)
    def deliveries(self, request: Request, pk: str) -> Response:
        """Give the last hundred reports and their outcome, the newest first."""
        webhook_deliveries = webhook_selectors.deliveries(self.get_object())[:100]
        return Response(
            [
                WebhookDeliverySerializer(webhook_delivery).data
                for webhook_delivery in webhook_deliveries
            ]
        )
