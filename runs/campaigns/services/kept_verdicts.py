"""Verdicts of wide campaigns take seconds: control makes them, and pages show what is kept."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.utils.translation import get_language

from runs import celery_messages
from runs.queue.services import transitions
from runs.shared import caching
from runs.shared.caching import Latest

# A campaign of more runs is wide: the verdicts of fewer take less than a second.
MOST_RUNS = 10_000


class Verdicts(NamedTuple):
    """What the page of a campaign says of verdicts, as it is kept.

    Findings and the table of ratios are HTML; `more_rounds` may decide what is open. It `has_heat`
    where many versions are a table of their steps, which stands before the chart.
    """

    findings: str = ""
    sentences: Sequence[str] = ()
    more_rounds: int | None = None
    has_history: bool = False
    table: str = ""
    has_heat: bool = False


# Those that have changed, until what is kept of them is of what they are now.
_changed: set[int] = set()


def is_wide(counts: Mapping[str, int]) -> bool:
    """By the number of runs in each state."""
    return sum(counts.values()) > MOST_RUNS


def key(campaign_id: int, page_query: str = "") -> tuple[str, int, str, str]:
    """Of what is kept in a language; `page_query` is what the page's address says of the table."""
    return "results", campaign_id, page_query, get_language() or ""


def latest(campaign_id: int, page_query: str = "") -> Latest | None:
    """What control made last; where the campaign is newer, control is asked for more. One query.

    None for uploads and in a transaction, where nothing is kept.
    """
    version = caching.versions([campaign_id]).results
    if version is None:
        return None
    ask = partial(celery_messages.judge_campaign, campaign_id, page_query)
    return caching.latest(key(campaign_id, page_query), version, ask)


def values_key(campaign_id: int, metric: str) -> tuple[str, int, str]:
    """Of the values of cells that verdicts are made of, which have no language."""
    return "values", campaign_id, metric


def values(campaign_id: int, metric: str) -> Sequence[Mapping[str, Any]]:
    """Those that control made last, as JSON has them; empty where nothing is kept."""
    return caching.latest(values_key(campaign_id, metric), "").value or ()


def keep(
    campaign_id: int, page_query: str, make: Callable[[], Mapping[Any, object]]
) -> None:
    """Keep what is made of a campaign as it is now, unless that was done, or a moment ago."""
    version = caching.versions([campaign_id]).results
    if version is not None:
        caching.make_latest(key(campaign_id, page_query), version, make)


def waits() -> bool:
    """Whether what is kept of a campaign may be older than the campaign."""
    return bool(_changed)


def look() -> None:
    """Add up how many runs there are, and let what has changed of wide campaigns be judged."""
    counts = transitions.add_up_counts()
    _changed.update(campaign for campaign, runs in counts.items() if runs > MOST_RUNS)
    for campaign in sorted(_changed):
        latest_verdicts = latest(campaign)
        if latest_verdicts is None or latest_verdicts.is_current:
            _changed.discard(campaign)
