"""Runs: the live page, files, and the series over a part of its time, down to single seconds."""

import math
from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.views.decorators.vary import vary_on_headers

from runs.access import addresses
from runs.access.selectors import projects
from runs.campaigns.selectors import waiting
from runs.cells.selectors import provenance, versions
from runs.charts.figure import Figure
from runs.charts.timeline import Track, timeline
from runs.execution.machine.monitors import is_monitored
from runs.models import Artifact, Run, Series
from runs.models.campaigns import Origin
from runs.models.runs import CONTROL, MEDIA_TYPE
from runs.queue.filters import RunFilters
from runs.queue.selectors import runs
from runs.queue.services import artifacts
from runs.queue.views import run_page
from runs.seals.selectors import seals
from runs.shared import pages
from runs.shared.pages import or_404


@addresses.page("artifact")
def artifact_download(
    request: HttpRequest, run_id: int, name: str
) -> StreamingHttpResponse:
    """The file as an attachment: what a target wrote is never shown as a page of ours."""
    artifact = get_object_or_404(
        projects.visible(Artifact.objects.all(), to=request.user),
        run_id=run_id,
        name=name,
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


@addresses.page("run-list")
def run_list(request: HttpRequest) -> HttpResponse:
    """Runs, the newest first, or those that the filters leave: such as all that failed, and why."""
    filters = RunFilters(request.GET, runs.listed(), request=request)
    page = pages.page(filters.qs, request.GET, to=request.user)
    rows = [(run, runs.beginning(run)) for run in page.rows]
    return render(
        request,
        "queue/runs/list.html",
        {"filters": filters, "page": page, "rows": rows},
    )


@addresses.page("run-detail")
@vary_on_headers("HX-Request")
def run_detail(request: HttpRequest, run_id: int) -> HttpResponse:
    """The page, or its live part when htmx asks."""
    with or_404(Run.DoesNotExist):
        run = runs.detail(run_id, to=request.user)
    if run.campaign.origin == Origin.PUBLISHED:
        # BenchLab executed nothing: what is known of a printed figure is on the figure's page.
        address = provenance.address_of_run(run)
        return redirect(address or reverse("campaign-detail", args=[run.campaign.slug]))
    hindrances = waiting.find_run_hindrances(run)
    context = {
        "hindrances": hindrances,
        "seals": seals.entries_of(run_id),
        **run_page.live(run),
    }
    if getattr(request, "htmx", False):
        return pages.live(request, "queue/runs/_live.html", context)
    return render(request, "queue/runs/detail.html", context)


PARTS = 10


@dataclass(frozen=True)
class Span:
    """Seconds of the load, both included."""

    begun: float
    ended: float


@dataclass(frozen=True)
class ShownSeries:
    """The series of a run over a part of its time."""

    span: Span
    figure: Figure


@addresses.page("run-series")
def run_series(request: HttpRequest, run_id: int) -> HttpResponse:
    """`?from=` and `?to=` are seconds of the load; without them it is the complete run."""
    with or_404(Run.DoesNotExist):
        run = runs.detail(run_id, to=request.user)
    run_charts = shown_series(request, run)
    if run_charts is None:
        raise Http404(_("This run has no series."))
    context = {
        "run": run,
        "shown": run_charts.span,
        "parts": _parts(run_charts.span),
        "figure": run_charts.figure,
    }
    return render(request, "queue/runs/series.html", context)


def shown_series(request: HttpRequest, run: Run) -> ShownSeries | None:
    """What the address asks for, `from` and `to` in seconds; None of a run without a series."""
    series = [
        series
        for series in run.series.all()
        if series.values and not is_monitored(series.name) and run_page.is_drawn(series)
    ]
    if not series:
        return None
    whole_span = Span(min(series.start for series in series), max(map(_end, series)))
    begun = _second(request, "from", whole_span.begun)
    ended = _second(request, "to", whole_span.ended)
    span = Span(begun, ended) if begun < ended else whole_span
    tracks = [track for series in series if (track := _part(series, span)) is not None]
    major = versions.major(run.server_version or run.cell.version)
    return ShownSeries(
        span, timeline(tracks, x_title=_("seconds of measuring"), major=major)
    )


def _part(series: Series, span: Span) -> Track | None:
    """The values of that time; None if there are none."""
    first_index = max(0, math.ceil((span.begun - series.start) / series.interval))
    last_index = math.floor((span.ended - series.start) / series.interval)
    values = series.values[first_index : last_index + 1]
    if not any(value is not None for value in values):
        return None
    name = run_page.series_title(series.name)
    start = series.start + first_index * series.interval
    return Track(name, series.unit or name, start, series.interval, values)


def _parts(span: Span) -> list[Span]:
    """The span in ten, for a closer look; none of a few seconds."""
    width = (span.ended - span.begun) / PARTS
    if width < 1:
        return []
    return [
        Span(round(span.begun + index * width), round(span.begun + (index + 1) * width))
        for index in range(PARTS)
    ]


def _end(series: Series) -> float:
    return series.start + (len(series.values) - 1) * series.interval


def _second(request: HttpRequest, name: str, otherwise: float) -> float:
    try:
        value = float(request.GET.get(name, ""))
    except ValueError:
        return otherwise
    return value if math.isfinite(value) else otherwise
