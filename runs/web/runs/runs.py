"""Runs: the live page, and cancelling."""

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.views.decorators.vary import vary_on_headers

from runs.models import Artifact, Run
from runs.models.campaigns import Origin
from runs.models.runs import CONTROL, MEDIA_TYPE
from runs.selectors import runs as run_selectors
from runs.selectors import seals
from runs.selectors.access import projects
from runs.selectors.archive import provenance
from runs.selectors.campaigns import waiting
from runs.services.runs import artifacts
from runs.web import pages
from runs.web.pages import or_404
from runs.web.runs import page as run_page


def artifact_download(request: HttpRequest, run_id: int, name: str) -> StreamingHttpResponse:
    """The file as an attachment: what a target wrote is never shown as a page of ours."""
    artifact = get_object_or_404(
        projects.visible(Artifact.objects.all(), to=request.user), run_id=run_id, name=name
    )
    with or_404(FileNotFoundError, _("This file is no longer kept.")):
        content = artifacts.open_artifact(artifact)
    is_known = MEDIA_TYPE.fullmatch(artifact.media_type)
    media_type = artifact.media_type if is_known else "application/octet-stream"
    response = StreamingHttpResponse(artifacts.chunks(content), content_type=media_type)
    response["Content-Length"] = artifact.size
    filename = CONTROL.sub("_", artifact.name.rsplit("/", 1)[-1])
    response["Content-Disposition"] = content_disposition_header(True, filename)
    response["X-Content-Type-Options"] = "nosniff"
    return response


@vary_on_headers("HX-Request")
def run_detail(request: HttpRequest, run_id: int) -> HttpResponse:
    """The page, or its live part when htmx asks."""
    with or_404(Run.DoesNotExist):
        run = run_selectors.detail(run_id, to=request.user)
    if run.campaign.origin == Origin.PUBLISHED:
        # BenchLab executed nothing: what is known of a printed figure is on the figure's page.
        address = provenance.address_of_run(run)
        return redirect(address or reverse("campaign-detail", args=[run.campaign.slug]))
    hindrances = waiting.of_run(run)
    context = {
        "hindrances": hindrances,
        "seals": seals.entries_of(run_id),
        **run_page.live(run),
    }
    if getattr(request, "htmx", False):
        return pages.live(request, "runs/_live.html", context)
    return render(request, "runs/detail.html", context)
