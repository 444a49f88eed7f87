"""The series of a run over a part of its time, down to single seconds."""

import math
from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from runs.charts.timeline import Track, timeline
from runs.execution.machine.monitors import is_monitored
from runs.models import Run, Series
from runs.selectors import runs as run_selectors
from runs.selectors.archive import versions
from runs.web.pages import or_404
from runs.web.runs.page import series_title

PARTS = 10


@dataclass(frozen=True)
class Span:
    """Seconds of the load, both included."""

    begun: float
    ended: float


def run_series(request: HttpRequest, run_id: int) -> HttpResponse:
    """`?from=` and `?to=` are seconds of the load; without them it is the complete run."""
    with or_404(Run.DoesNotExist):
        run = run_selectors.detail(run_id, to=request.user)
    series = [each for each in run.series.all() if each.values and not is_monitored(each.name)]
    if not series:
        raise Http404(_("This run has no series."))
    whole = Span(min(each.start for each in series), max(map(_end, series)))
    begun = _second(request, "from", whole.begun)
    ended = _second(request, "to", whole.ended)
    shown = Span(begun, ended) if begun < ended else whole
    tracks = [track for each in series if (track := _part(each, shown)) is not None]
    major = versions.major(run.server_version or run.cell.version)
    context = {
        "run": run,
        "shown": shown,
        "whole": whole,
        "parts": _parts(shown),
        "figure": timeline(tracks, x_title=_("seconds of measuring"), major=major),
    }
    return render(request, "runs/series.html", context)


def _part(series: Series, span: Span) -> Track | None:
    """The values of that time; None if there are none."""
    first = max(0, math.ceil((span.begun - series.start) / series.interval))
    last = math.floor((span.ended - series.start) / series.interval)
    values = series.values[first : last + 1]
    if not any(value is not None for value in values):
        return None
    name = series_title(series.name)
    start = series.start + first * series.interval
    return Track(name, series.unit or name, start, series.interval, values)


def _parts(span: Span) -> list[Span]:
    """The span in ten, for a closer look; none of a few seconds."""
    width = (span.ended - span.begun) / PARTS
    if width < 1:
        return []
    return [
        Span(round(span.begun + at * width), round(span.begun + (at + 1) * width))
        for at in range(PARTS)
    ]


def _end(series: Series) -> float:
    return series.start + (len(series.values) - 1) * series.interval


def _second(request: HttpRequest, name: str, otherwise: float) -> float:
    try:
        value = float(request.GET.get(name, ""))
    except ValueError:
        return otherwise
    return value if math.isfinite(value) else otherwise
