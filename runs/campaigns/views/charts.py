"""The chart of a campaign as a picture with an address of its own."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from runs.access import addresses
from runs.access.selectors import projects
from runs.archive.selectors import answers as archive_answers
from runs.archive.selectors import chart
from runs.campaigns.selectors import answers
from runs.campaigns.selectors import campaigns as campaign_selectors
from runs.campaigns.services import kept_verdicts
from runs.campaigns.views import page, parts
from runs.campaigns.views.verdicts import Found
from runs.cells.selectors.level_names import factors
from runs.charts import framed
from runs.models import Campaign
from runs.shared import caching, chart_files, embedding
from runs.shared.chart_files import ChartFile
from runs.shared.formats import translate_field
from runs.shared.whole_numbers import whole_number

RATIOS = "ratios"


@addresses.page("campaign-chart")
@embedding.tagged
def campaign_chart(request: HttpRequest, slug: str, form: str) -> HttpResponseBase:
    """The chart of a campaign's page: of `metric`, and of a publication `chart=2` or `ratios`."""
    campaigns = campaign_selectors.listed().select_related(
        "topology", "published__source"
    )
    campaign: Campaign = get_object_or_404(
        projects.visible(campaigns, to=request.user), slug=slug
    )
    if hasattr(campaign, "published"):
        number = request.GET.get("chart", "1")
        return chart_files.answer(
            request,
            form,
            (campaign.pk, "published", number[:10]),
            caching.versions([campaign.pk]).results,
            lambda: _published(campaign, number),
        )
    versions = page.versions_of(campaign)
    standing = page.standing(campaign)
    is_wide = kept_verdicts.is_wide(standing.counts)
    return chart_files.answer(
        request,
        form,
        (campaign.pk, parts.query(request.GET)),
        # Control makes the values of a wide campaign, which changes no version.
        None if is_wide else versions.results,
        lambda: _measured(Found(campaign, request.GET, versions, is_wide=is_wide)),
    )


def _measured(results: Found) -> ChartFile | None:
    figure = page.figure_of(results)
    if figure is None:
        return None
    campaign = results.campaign
    answer = answers.read_known_answers([campaign]).get(campaign.pk)
    dates = answers.dates_of([campaign]).get(campaign.pk)
    first, last = (dates.first, dates.last) if dates else (None, None)
    return ChartFile(
        [framed.tile(figure)],
        title=translate_field(campaign, "title"),
        texts=[answer.sentence] if answer and answer.is_there else [],
        data=chart_files.dates_text(first, last),
        path=f"/campaigns/{campaign.slug}/",
    )


def _published(campaign: Campaign, number: str) -> ChartFile | None:
    """The publication's charts are counted from 1, as on its page."""
    table = campaign.published
    drawn = chart.charts(campaign, factors(table.columns))
    place = whole_number(number) or 0
    if number == RATIOS:
        figure = chart.draw_ratios(*drawn[0]) if drawn else None
    elif 1 <= place <= len(drawn):
        figure = chart.draw(*drawn[place - 1])
    else:
        figure = None
    if figure is None:
        return None
    source = table.source
    answer = archive_answers.answer_of(table)
    return ChartFile(
        [framed.tile(figure)],
        title=translate_field(campaign, "title"),
        texts=[answer.text] if answer else [],
        data=_("%(title)s, %(year)s")
        % {"title": translate_field(source, "title"), "year": source.year},
        path=f"/campaigns/{campaign.slug}/",
    )
