"""The addresses at which commits of a campaign are compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from runs.cells.selectors import revisions
from runs.cells.selectors.series_cells import REVISION, SeriesKey
from runs.models import Campaign, Revision

DIGITS = 12  # of a commit, as pages show it


@dataclass(frozen=True)
class CommitPair:
    """A commit against an earlier one; `query` is that of the page that compares them."""

    base: Revision
    head: Revision
    query: str


def pair(campaign: Campaign, base: Revision, head: Revision) -> CommitPair:
    """Two commits of a campaign, the earlier one as the baseline."""
    keys = [
        str(SeriesKey(campaign.slug, ((REVISION, revision.sha[:DIGITS]),)))
        for revision in (base, head)
    ]
    return CommitPair(base, head, urlencode([("s", key) for key in keys]))


def around(campaign: Campaign, head: Revision) -> CommitPair | None:
    """A commit against the one before; None for the first. Four queries at most."""
    base = revisions.previous(campaign, head)
    return pair(campaign, base, head) if base is not None else None


def list_commit_pairs(campaign: Campaign, revision: Revision) -> Sequence[CommitPair]:
    """A commit against the one before, and the newest against it. Six queries at most."""
    before = around(campaign, revision)
    newest = revisions.newest(campaign)
    pairs = [before] if before is not None else []
    if newest is not None and newest != revision:
        pairs.append(pair(campaign, revision, newest))
    return pairs
