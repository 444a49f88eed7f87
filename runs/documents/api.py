"""The report of a campaign as a file."""

from django.http import HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import override
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from runs.access import addresses
from runs.access.api.authentication import reader
from runs.campaigns.selectors import campaigns
from runs.documents.selectors import reports
from runs.loads.services import results
from runs.models import Campaign
from runs.reports import formats
from runs.shared.api.doors import ReadOnlyDoor
from runs.shared.api.rendering import known_format

LANGUAGES = ("en", "ja")
# One file that opens offline, or a zip with the figures as SVG.
REPORTS = [
    known_format(report_format.media_type.partition(";")[0], name)
    for name, report_format in formats.FORMATS.items()
]


@addresses.door({"campaign-report": addresses.reading()})
class ReportDoor(ReadOnlyDoor[Campaign]):
    """A campaign's report."""

    queryset = campaigns.listed()
    lookup_field = "slug"
    renderer_classes = REPORTS
    pagination_class = None

    @extend_schema(
        parameters=[
            OpenApiParameter("format", str, enum=list(formats.FORMATS), default="html"),
            OpenApiParameter("lang", str, enum=list(LANGUAGES), default="en"),
        ],
        responses={
            (200, "text/html"): OpenApiTypes.BINARY,
            (200, "application/zip"): OpenApiTypes.BINARY,
        },
    )
    def report(self, request: Request, slug: str) -> HttpResponse:
        """The report: HTML that opens offline, or Markdown or reStructuredText with its figures."""
        campaign = self.get_object()
        language = self._language(request)
        with override(language):
            load_answer = results.answer_of(campaign, to=reader(request))
        report = reports.make_report(
            campaign,
            language=language,
            address=request.build_absolute_uri(f"/campaigns/{slug}/"),
            today=timezone.localdate(),
            load_answer=load_answer,
        )
        report_format = formats.FORMATS[str(request.accepted_renderer.format)]
        response = HttpResponse(
            report_format.write(report), content_type=report_format.media_type
        )
        response["Content-Disposition"] = (
            f'attachment; filename="{report.name}.{report_format.ending}"'
        )
        return response

    def known_parameters(self) -> list[str]:
        """With its language."""
        return [*super().known_parameters(), "lang"]

    def _language(self, request: Request) -> str:
        language = request.query_params.get("lang", "en")
        if language not in LANGUAGES:
            message = _("There is no language %(lang)s; known are %(known)s.")
            placeholders = {"lang": language, "known": ", ".join(LANGUAGES)}
            raise ValidationError({"lang": [message % placeholders]}, "invalid_choice")
        return language
