"""What a campaign says, a sentence for each two things that it compares."""

from functools import partial

from runs.models import Campaign
from runs.selectors import caching
from runs.selectors.campaigns import campaigns, factor_names, metrics
from runs.selectors.compare import summary
from runs.selectors.compare.ratio_pairs import subjects
from runs.selectors.compare.ratios import concluding


def of_campaign(campaign: Campaign) -> list[str]:
    """The sentences of its page, the first of the whole; kept until a result of it changes.

    In the reader's language. Nine queries where they are not kept.
    """
    known = caching.versions([campaign.pk])
    return caching.answer(("sentences", campaign.pk), known.results, lambda: _said(campaign))


def _said(campaign: Campaign) -> list[str]:
    metric = metrics.primary(campaign)
    if metric is None:
        return []
    measured = campaigns.measured(campaign, metric)
    by_subject = partial(_ratios, campaign, metric.name, measured)
    rows = concluding(subjects(list(measured.cells)), by_subject)
    words = factor_names.words(campaign).among(row.levels for row in rows)
    return list(summary.of_table(rows, words).values())


def _ratios(
    campaign: Campaign, metric: str, among: campaigns.Measured, subject: str
) -> list[campaigns.RatioRow]:
    return campaigns.ratios(campaign, metric, among=among, subject=subject)
