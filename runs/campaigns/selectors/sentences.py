"""What a campaign says, a sentence for each two things that it compares."""

from dataclasses import dataclass

from runs.cells.selectors import factor_names, metrics
from runs.compare.selectors.describe import summary
from runs.compare.selectors.judge.ratios import Tables
from runs.models import Campaign
from runs.shared import caching


@dataclass(frozen=True)
class Sentence:
    """What a campaign says, and whether it is a difference that is proven."""

    text: str
    is_proven: bool


def list_sentences(campaign: Campaign) -> list[str]:
    """The sentences of its page, the first of the whole; kept until a result of it changes.

    In the reader's language. Nine queries where they are not kept.
    """
    cache_versions = caching.versions([campaign.pk])
    return caching.answer(
        ("sentences", campaign.pk),
        cache_versions.results,
        lambda: [sentence.text for sentence in made(campaign)],
    )


def made(campaign: Campaign) -> list[Sentence]:
    """The same, made now, each with whether it is proven."""
    metric = metrics.primary(campaign)
    if metric is None:
        return []
    rows = Tables(campaign, metric.name).conclusions()
    words = factor_names.words(campaign).omit_common(row.levels for row in rows)
    return [
        Sentence(
            summary.summarise_pair(*names, ratio_rows),
            any(row.comparison.is_proven for row in ratio_rows),
        )
        for names, ratio_rows in summary.group_by_pair(rows, words).items()
    ]
