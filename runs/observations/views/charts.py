"""The charts of an edition as pictures with addresses of their own."""

from collections.abc import Collection
from dataclasses import dataclass

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from runs.access import addresses
from runs.campaigns.selectors import answers as campaign_answers
from runs.charts import framed
from runs.charts.figure import Figure
from runs.models import Campaign, Edition
from runs.observations.selectors import anchors, answers, editions
from runs.observations.views import observations
from runs.shared import chart_files, embedding
from runs.shared.chart_files import ChartFile

ANCHOR = "anchor-"


@dataclass(frozen=True)
class _Chart:
    title: str
    sentence: str
    figure: Figure
    campaigns: Collection[Campaign]


@addresses.page("observation-chart")
@embedding.tagged
def observation_chart(request: HttpRequest, slug: str, form: str) -> HttpResponseBase:
    """The lines of an `edition` are counted from 1, `chart=2`; those of its anchor, too."""
    edition = observations.edition_of(request, slug)
    # An edition grows over days, and its anchor with later ones: nothing of it is kept here.
    return chart_files.answer(
        request,
        form,
        None,
        None,
        lambda: _drawn(edition, request.GET.get("chart", "1")) if edition else None,
    )


def _drawn(edition: Edition, name: str) -> ChartFile | None:
    number_text = name.removeprefix(ANCHOR)
    if not (number_text.isascii() and number_text.isdecimal() and len(number_text) < 3):
        return None
    is_of_anchor = name.startswith(ANCHOR)
    charts = _draw_anchor(edition) if is_of_anchor else _draw_parts(edition)
    position = int(number_text) - 1
    chart = charts[position] if 0 <= position < len(charts) else None
    if chart is None:
        return None
    dates = campaign_answers.dates_of(chart.campaigns)
    days = [
        day
        for ends in dates.values()
        for day in (ends.first, ends.last)
        if day is not None
    ]
    observation = edition.observation
    return ChartFile(
        [framed.tile(chart.figure)],
        title=f"{observation.title} {edition.label}: {chart.title}",
        texts=[chart.sentence] if chart.sentence else [],
        data=chart_files.dates_text(min(days, default=None), max(days, default=None)),
        path=f"/observations/{observation.slug}/?edition={edition.label}",
    )


def _draw_parts(edition: Edition) -> list[_Chart | None]:
    """In the order of the page; None for one without a line."""
    charts: list[_Chart | None] = []
    for part in editions.parts(edition):
        figure = observations.figure_of(part)
        if figure is None:
            charts.append(None)
            continue
        answer = answers.answer_part(part)
        charts.append(_Chart(answer.scenario, answer.total, figure, [part.campaign]))
    return charts


def _draw_anchor(edition: Edition) -> list[_Chart | None]:
    campaigns = Campaign.objects.filter(
        editions__observation=edition.observation_id, editions__pk__lte=edition.pk
    ).distinct()
    return [
        _Chart(f"{edition.observation.anchor}, {scenario}", "", figure, campaigns)
        for scenario, figure in anchors.line(edition)
    ]
