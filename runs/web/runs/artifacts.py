"""Files of runs, as downloads."""

from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from runs.models import Artifact
from runs.models.runs import CONTROL, MEDIA_TYPE
from runs.selectors.access import projects
from runs.services.runs import artifacts


@require_safe
def artifact_download(request: HttpRequest, run_id: int, name: str) -> StreamingHttpResponse:
    """The file as an attachment: what a target wrote is never shown as a page of ours."""
    artifact = get_object_or_404(
        projects.visible(Artifact.objects.all(), to=request.user), run_id=run_id, name=name
    )
    try:
        content = artifacts.open_artifact(artifact)
    except FileNotFoundError as error:
        raise Http404(_("This file is no longer kept.")) from error
    is_known = MEDIA_TYPE.fullmatch(artifact.media_type)
    media_type = artifact.media_type if is_known else "application/octet-stream"
    response = StreamingHttpResponse(artifacts.chunks(content), content_type=media_type)
    response["Content-Length"] = artifact.size
    filename = CONTROL.sub("_", artifact.name.rsplit("/", 1)[-1])
    response["Content-Disposition"] = content_disposition_header(True, filename)
    response["X-Content-Type-Options"] = "nosniff"
    return response
