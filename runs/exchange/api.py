"""Whole projects: export and import as lines of JSON."""

import shutil
from pathlib import Path
from tempfile import TemporaryFile

from django.conf import settings
from django.db.models import Q
from django.http import StreamingHttpResponse, UnreadablePostError
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.exceptions import ParseError, UnsupportedMediaType
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from runs.access import addresses
from runs.access.api.authentication import reader
from runs.access.selectors import permissions, projects
from runs.access.selectors.permission_table import Right
from runs.exchange import services
from runs.exchange.services.results import Imported
from runs.export_reader import LONGEST_LINE
from runs.models import Token
from runs.shared.api.doors import Schema
from runs.shared.api.shapes import shape

MEDIA_TYPE = "application/x-ndjson"
ImportedSerializer = shape(Imported)


class ImportSchema(Schema):
    """Adds the problems that only imports have."""

    problems = ("400", "401", "403", "415", "422", "429")


@addresses.door(
    {
        "project-export": addresses.reading(),
    }
)
class ExportDoor(APIView):
    """All that a project has."""

    schema = Schema()

    @extend_schema(
        operation_id="projects_export", responses={(200, MEDIA_TYPE): OpenApiTypes.STR}
    )
    def get(self, request: Request, slug: str) -> StreamingHttpResponse:
        """Export a project as lines of JSON; docs/export-format.md describes the form."""
        project = get_object_or_404(projects.readable(reader(request)), slug=slug)
        response = StreamingHttpResponse(
            services.lines(project), content_type=MEDIA_TYPE
        )
        response["Content-Disposition"] = (
            f'attachment; filename="{project.slug}.ndjson"'
        )
        return response


@addresses.door(
    {
        "project-import": addresses.acting(post=Right.IMPORT),
    }
)
class ImportDoor(APIView):
    """An export that is stored."""

    schema = ImportSchema()

    @extend_schema(
        operation_id="projects_import",
        request={MEDIA_TYPE: OpenApiTypes.STR},
        responses={200: ImportedSerializer},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Store an export in a project: all of it, or nothing; what is there stays."""
        own_project = (
            Q(pk=request.auth.project_id) if isinstance(request.auth, Token) else Q()
        )
        project = get_object_or_404(
            projects.readable(reader(request)).filter(own_project), slug=slug
        )
        sent = request._request
        if sent.content_type != MEDIA_TYPE:
            raise UnsupportedMediaType(sent.content_type or "?")
        may = permissions.may(reader(request), Right.IMPORT_EXECUTED, project.pk)
        folder = Path(settings.ARTIFACTS_DIR)
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as file:
            # All of it comes before anything of the database is held.
            try:
                shutil.copyfileobj(sent, file)
            except UnreadablePostError as error:
                raise ParseError(_("The body broke off."), "broken_off") from error
            file.seek(0)
            # A line without an end must not fill the memory.
            lines = iter(lambda: file.readline(LONGEST_LINE + 1), b"")
            done = services.load(lines=lines, into=project, may_bring_executed=may)
        return Response(ImportedSerializer(done).data, status=status.HTTP_200_OK)
