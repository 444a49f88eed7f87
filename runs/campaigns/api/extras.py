"""What belongs to a campaign besides its results: its design, and people's annotations."""

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from runs.access.api.authentication import person
from runs.archive.selectors.reproduction import (
    Change,
    LostFactor,
    Reproduction,
    reproduction,
)
from runs.campaigns.selectors import annotations as annotation_selectors
from runs.campaigns.selectors.plans_by_hand import plan_by_hand
from runs.campaigns.services import annotations
from runs.models import Annotation, Campaign, Server
from runs.shared.api import doors
from runs.shared.errors import ServiceError
from runs.shared.formats import spoken


class AnnotationSerializer(serializers.Serializer[Annotation]):
    """A note, a conclusion or a discussion. `levels` is null where it is of the whole campaign."""

    id = serializers.IntegerField(read_only=True)
    kind = serializers.ChoiceField(
        choices=Annotation.Kind.choices, default=Annotation.Kind.NOTE
    )
    text = serializers.CharField(max_length=annotations.MOST_CHARACTERS)
    levels = serializers.DictField(
        required=False,
        allow_null=True,
        default=None,
        source="cell.levels",
        help_text="The levels of the cell that a note is about, as the campaign lists them.",
    )
    author = serializers.CharField(
        read_only=True, source="author.username", default=None, allow_null=True
    )
    created_at = serializers.DateTimeField(read_only=True)


class DepartureSerializer(serializers.Serializer[Change]):
    """Something that differs from the printed design, and why."""

    code = serializers.CharField()
    name = serializers.CharField()
    printed = serializers.CharField(source="printed_text")
    chosen = serializers.CharField(source="chosen_text")
    reason = serializers.CharField()


class LostFactorSerializer(serializers.Serializer[LostFactor]):
    """A factor of the printed question that the server cannot ask."""

    code = serializers.CharField()
    name = serializers.CharField()
    printed = serializers.ListField(
        child=serializers.CharField(), help_text="Its printed levels."
    )
    runs = serializers.ListField(
        child=serializers.CharField(), help_text="Those that would run."
    )
    needed = serializers.CharField(help_text="What would ask it.")
    message = serializers.CharField(source="sentence")


class ReproductionSerializer(serializers.Serializer[Reproduction]):
    """`campaign` is a body of `POST /campaigns/`, which takes it as it is."""

    campaign = serializers.DictField(source="body")
    changes = DepartureSerializer(many=True)
    keeps_question = serializers.BooleanField(
        help_text="Whether what would run asks what was printed; if not, `lost_factors` say why."
    )
    lost_factors = LostFactorSerializer(many=True)


class CampaignExtras(GenericViewSet[Campaign]):
    """Actions of a campaign's door."""

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "server", str, required=True, description="Slug; several with commas"
            ),
            OpenApiParameter(
                "quick", bool, description="The form that takes a minute or two"
            ),
            OpenApiParameter(
                "generators", str, description="Slugs: where the load comes from"
            ),
            OpenApiParameter(
                "cluster_servers", str, description="Slugs: where standbys are"
            ),
        ],
        responses=ReproductionSerializer,
    )
    @action(detail=True, pagination_class=None, filterset_class=None)
    def reproduction(self, request: Request, slug: str) -> Response:
        """How a published campaign is measured on your server, and what differs from the print."""
        campaign = self.get_object()
        if not hasattr(campaign, "published"):
            message = _("%(slug)s is not of a publication.") % {"slug": slug}
            raise ServiceError("not_published", message)
        servers = self._servers("server")
        further_servers = {
            name: self._servers(name)
            for name in ("generators", "cluster_servers")
            if request.query_params.get(name)
        }
        is_quick = request.query_params.get("quick", "").lower() in {"true", "1"}
        reproduced = reproduction(
            campaign, servers, is_quick=is_quick, **further_servers
        )
        if reproduced is None:
            theme = (
                campaign.published.reproduce.get("scenario") or campaign.scenario.slug
            )
            message = _("The scenario %(theme)s cannot run here yet.") % {
                "theme": theme
            }
            remedy = _("GET /scenarios/ lists those that can.")
            if reason := spoken(campaign.published.reproduce.get("why_not")):
                message, remedy = reason, ""
            raise ServiceError("scenario_not_runnable", message, remedy=remedy)
        return Response(ReproductionSerializer(reproduced).data)

    @extend_schema(responses=OpenApiTypes.OBJECT)
    @action(detail=True, pagination_class=None, filterset_class=None)
    def plan(self, request: Request, slug: str) -> Response:
        """What another machine does to repeat it: `benchlab-versions --campaign-run` follows it."""
        plan_document = plan_by_hand(self.get_object())
        if plan_document is None:
            message = _(
                "Only a campaign of one cluster and one pgbench script has such a plan."
            )
            raise ServiceError("no_plan", message)
        return Response(plan_document)

    @extend_schema(responses=AnnotationSerializer(many=True))
    @action(detail=True, pagination_class=None, filterset_class=None)
    def annotations(self, request: Request, slug: str) -> Response:
        """What people wrote about the campaign: conclusions, discussion, notes."""
        annotations_of_campaign = annotation_selectors.list_annotations(
            self.get_object()
        )
        serializer: Any = AnnotationSerializer(annotations_of_campaign, many=True)  # type: ignore[arg-type]
        return Response(serializer.data)

    @extend_schema(request=AnnotationSerializer, responses={201: AnnotationSerializer})
    @annotations.mapping.post
    def annotate(self, request: Request, slug: str) -> Response:
        """Add an annotation to the campaign, or a note to one of its cells."""
        campaign = self.get_object()
        body = doors.taken(AnnotationSerializer, request)
        annotation = annotations.add(
            campaign=campaign,
            text=body.validated_data["text"],
            kind=body.validated_data["kind"],
            cell=self._cell(
                campaign, (body.validated_data.get("cell") or {}).get("levels")
            ),
            by=person(request),
        )
        return Response(
            AnnotationSerializer(annotation).data, status=status.HTTP_201_CREATED
        )

    def known_parameters(self) -> list[str]:
        """With those of the actions here."""
        known_names: list[str] = super().known_parameters()  # type: ignore[misc]
        if self.action == "reproduction":
            return [*known_names, "server", "quick", "generators", "cluster_servers"]
        return known_names

    def _servers(self, parameter: str) -> list[Server]:
        """The servers whose slugs a parameter has, in this order. At least one."""
        text = self.request.query_params.get(parameter, "")
        slugs = [slug for slug in dict.fromkeys(text.split(",")) if slug]
        startable = Server.objects.exclude(base_dir="").select_related("hardware")
        server_of = {server.slug: server for server in startable.filter(slug__in=slugs)}
        missing = [slug for slug in slugs if slug not in server_of]
        if not slugs:
            message = _("Name a server by its slug: ?%(parameter)s=SLUG.")
            raise ValidationError(
                {parameter: [message % {"parameter": parameter}]}, "required"
            )
        if missing:
            message = _("There is no server %(slug)s.") % {"slug": ", ".join(missing)}
            raise ValidationError({parameter: [message]}, "does_not_exist")
        return [server_of[slug] for slug in slugs]

    def _cell(self, campaign: Campaign, levels: dict[str, Any] | None) -> Any:
        if not levels:
            return None
        # Of a campaign of uploads, that of the newest revision.
        cell = campaign.cells.filter(levels=levels).order_by("-pk").first()
        if cell is None:
            raise ValidationError(
                {"levels": [_("The campaign has no cell of these levels.")]}
            )
        return cell


# Its actions, which read of a campaign what they show by themselves.
EXTRAS = {
    name
    for method in CampaignExtras.get_extra_actions()
    for name in method.mapping.values()  # type: ignore[attr-defined]  # not in the stubs
}
