"""Which changes hold now, and whether a campaign has regressions that nobody has decided about."""

from collections.abc import Hashable, Iterable

from runs.models import Campaign, Change

# A campaign of years has hundreds; a badge looks at the newest.
MOST_CHANGES = 20


def filter_current(changes: Iterable[Change]) -> set[int]:
    """The keys of the changes after which their series has not changed again."""
    newest_of: dict[Hashable, int] = {}
    for change in changes:
        series = (change.campaign_id, change.cell.series_key, change.metric_id)
        newest_of[series] = max(change.pk, newest_of.get(series, 0))
    return set(newest_of.values())


def open_regressions(campaign: Campaign) -> int:
    """Of how many series and metrics the newest change is for the worse, and waits for a decision.

    Of the newest changes that nobody and nothing took back. One query.
    """
    # What changed with the machine is no regression of the code.
    standing_ones = Change.objects.filter(
        campaign=campaign, kind__in=[Change.Kind.STEP, Change.Kind.ALARM]
    ).exclude(decision__in=Change.GONE)
    newest = standing_ones.select_related("metric", "cell").order_by("-pk")
    changes = list(newest[:MOST_CHANGES])
    present = filter_current(changes)
    return sum(
        change.pk in present
        and change.decision == Change.Decision.OPEN
        and change.verdict == "slower"
        for change in changes
    )
