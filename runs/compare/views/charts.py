"""The charts of a comparison as pictures with addresses of their own."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from runs.access import addresses
from runs.campaigns.selectors import answers as campaign_answers
from runs.cells.selectors.metrics import metric_title
from runs.charts import framed
from runs.charts.framed import Tile
from runs.compare.selectors import answers
from runs.compare.selectors.address import state as compare_state
from runs.compare.selectors.address.state import CompareState
from runs.compare.selectors.answers import ComparisonAnswer
from runs.compare.selectors.describe import series_labels
from runs.compare.selectors.describe.series_labels import Wording
from runs.compare.selectors.judge.comparisons import (
    ComparedPage,
    compared,
    seen_campaigns,
)
from runs.compare.views import figures
from runs.models import Campaign
from runs.shared import caching, chart_files, embedding
from runs.shared.chart_files import ChartFile

FOREST = "forest"


@addresses.page("compare-chart")
@embedding.tagged
def compare_chart(request: HttpRequest, form: str) -> HttpResponseBase:
    """The charts of the comparison that the address says; `chart=forest` is that of the ratios."""
    state, _faults = compare_state.read(request.GET)
    campaigns = seen_campaigns(state, to=request.user)
    is_forest = request.GET.get("chart") == FOREST
    versions = caching.versions(campaigns) if campaigns else caching.NEVER

    def make() -> ChartFile | None:
        if not campaigns:
            return None
        words = series_labels.wording({key.slug for key in state.series})
        page = compared(state, reader=request.user, wording=words, seen=campaigns)
        return _drawn(page, words, is_forest=is_forest)

    key = ("compare", state, campaigns, is_forest)
    return chart_files.answer(request, form, key, versions.results, make)


def _drawn(page: ComparedPage, words: Wording, *, is_forest: bool) -> ChartFile | None:
    if not page.loaded.series or page.loaded.metric is None:
        return None
    answer = answers.answer_series(page, words)
    tiles = _tiles(page, answer, words, is_forest=is_forest)
    if not tiles:
        return None
    shown_campaigns = [series.campaign for series in page.loaded.series]
    return ChartFile(
        tiles,
        title=_("%(metric)s: %(question)s")
        % {"metric": metric_title(page.loaded.metric), "question": answer.question},
        texts=[answer.sentence],
        data=_dated(shown_campaigns),
        path=_path(page.state),
    )


def _tiles(
    page: ComparedPage, answer: ComparisonAnswer, words: Wording, *, is_forest: bool
) -> list[Tile]:
    if is_forest:
        forest = figures.forest_plot(answer.by_effect, page)
        return [framed.tile(forest)] if forest else []
    return [
        framed.tile(figure, label=facet)
        for facet, figure in figures.lines(page, answer, words)
    ]


def _dated(campaigns: list[Campaign]) -> str:
    """From the first run of all to the last one."""
    dates = campaign_answers.dates_of(campaigns).values()
    first = min((moment.first for moment in dates if moment.first), default=None)
    last = max((moment.last for moment in dates if moment.last), default=None)
    return chart_files.dates_text(first, last)


def _path(state: CompareState) -> str:
    """The page of the comparison. A long query would be all that one sees of the picture."""
    path = f"/compare/?{state.query}"
    return path if len(path) <= 200 else "/compare/"
