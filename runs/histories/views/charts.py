"""The histories of a campaign as a picture with an address of its own."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404

from runs.access import addresses
from runs.cells.selectors import metrics as campaign_metrics
from runs.cells.selectors.metrics import metric_title
from runs.charts import history
from runs.histories.selectors import answers, histories
from runs.histories.views import histories as history_page
from runs.models import Campaign
from runs.shared import chart_files, embedding, skipping
from runs.shared.chart_files import ChartFile


@addresses.page("campaign-history-chart")
@embedding.tagged
def campaign_history_chart(
    request: HttpRequest, slug: str, form: str
) -> HttpResponseBase:
    """The charts of the page: of `metric`, `level=clients=8`, and from series `skip` on."""
    campaign = get_object_or_404(history_page.uploaded(request), slug=slug)
    # Uploads come at any time: nothing of them is kept here.
    return chart_files.answer(
        request, form, None, None, lambda: _drawn(request, campaign)
    )


def _drawn(request: HttpRequest, campaign: Campaign) -> ChartFile | None:
    metrics = list(campaign_metrics.list_campaign_metrics(campaign))
    history_series = histories.histories(
        campaign,
        metric=history_page.chosen_metric(
            campaign, request.GET.get("metric", ""), metrics
        ),
        levels=history_page.levels_of(request),
        skip=skipping.skipped(request.GET.get("skip", "0")) or 0,
    )
    answer = answers.answer_histories(history_series)
    tiles = history_page.tiles(answer, history_series)
    if not tiles:
        return None
    metric = metric_title(history_series.metric) if history_series.metric else ""
    return ChartFile(
        tiles,
        title=f"{campaign.title}: {metric}",
        texts=[answer.sentence],
        data=chart_files.dates_text(answer.first, answer.last),
        path=f"/campaigns/{campaign.slug}/history/",
        style=history.STYLE,
    )
