"""Webhooks: where BenchLab reports to, and how each report went. For the scope admin only."""

from typing import Any, cast

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from runs.api.access.authentication import reader
from runs.api.doors import ReadOnlyDoor
from runs.api.parsing import refuse_others
from runs.models import Project, Token, Webhook, WebhookDelivery
from runs.selectors.access import permissions
from runs.selectors.access.rights import Right
from runs.selectors.changes import webhooks as webhook_selectors
from runs.services.access import projects
from runs.services.changes import webhooks

Shape = serializers.Serializer[Any]


class WebhookSerializer(Shape):
    """A webhook. Its secret is part of the answer that makes it, and of no other."""

    id = serializers.IntegerField(read_only=True)
    project = serializers.CharField(source="project.slug", read_only=True)
    url = serializers.CharField(max_length=500)
    events = serializers.ListField(child=serializers.ChoiceField(webhooks.EVENTS), required=False)
    is_active = serializers.BooleanField(required=False)
    created_at = serializers.DateTimeField(read_only=True)


class GivenWebhookSerializer(Shape):
    """A webhook to be made, or what of one is to be changed."""

    url = serializers.CharField(max_length=500)
    events = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text=f"Of {', '.join(webhooks.EVENTS)}; all by default.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse unknown fields."""
        refuse_others(self.initial_data, self.fields)
        return attrs


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


MADE = OpenApiExample(
    "To a chat",
    {"url": "https://chat.example/hooks/4711", "events": ["change.found", "upload.missing"]},
    request_only=True,
)


@extend_schema_view(list=extend_schema(operation_id="webhooks_list"))
class WebhookDoor(ReadOnlyDoor[Webhook]):
    """Webhooks of the token's project. The newest first.

    Also reading takes the right: addresses of webhooks are often secrets themselves.
    """

    queryset = Webhook.objects.all()
    serializer_class = WebhookSerializer

    def get_queryset(self) -> QuerySet[Webhook]:
        """The token's project's; of a person those that they maintain."""
        if getattr(self, "swagger_fake_view", False):
            return Webhook.objects.none()
        return webhook_selectors.of(cast(Any, reader(self.request)))

    @extend_schema(
        request=NewWebhookSerializer, responses={201: MadeWebhookSerializer}, examples=[MADE]
    )
    def create(self, request: Request) -> Response:
        """Make a webhook of the token's project."""
        given = NewWebhookSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        project = _project(request)
        permissions.require(reader(request), Right.WEBHOOKS, project)
        made = webhooks.create(project=project, **given.validated_data)
        made.webhook.secret = made.secret  # type: ignore[attr-defined]  # for this answer only
        return Response(MadeWebhookSerializer(made.webhook).data, status.HTTP_201_CREATED)

    @extend_schema(request=ChangedWebhookSerializer, responses={200: WebhookSerializer})
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change the address or the events, or switch it off and on."""
        given = ChangedWebhookSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        changed = webhooks.change(webhook=self.get_object(), **given.validated_data)
        return Response(WebhookSerializer(changed).data)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Remove it, with everything that waits for it."""
        webhooks.remove(webhook=self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=None, responses={202: WebhookDeliverySerializer})
    @action(detail=True, methods=["post"])
    def ping(self, request: Request, pk: str) -> Response:
        """Queue a report without an event, to see whether they arrive."""
        delivery = webhooks.ping(webhook=self.get_object())
        return Response(WebhookDeliverySerializer(delivery).data, status.HTTP_202_ACCEPTED)

    @extend_schema(responses={200: WebhookDeliverySerializer(many=True)})
    @action(detail=True, methods=["get"], pagination_class=None)
    def deliveries(self, request: Request, pk: str) -> Response:
        """Give the last hundred reports and their outcome, the newest first."""
        found = webhook_selectors.deliveries(self.get_object())[:100]
        return Response([WebhookDeliverySerializer(each).data for each in found])


def _project(request: Request) -> Project:
    token = request.auth
    return token.project if isinstance(token, Token) else projects.default()
