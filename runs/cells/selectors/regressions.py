"""Whether a campaign has regressions that nobody has decided about."""

from runs.models import Campaign, Change

# A campaign of years has hundreds; a badge looks at the newest.
MOST_CHANGES = 20


def open_regressions(campaign: Campaign) -> int:
    """Of how many series and metrics the newest change is for the worse, and waits for a decision.

    Of the newest changes that nobody and nothing took back. One query.
    """
    # What changed with the machine is no regression of the code.
    standing_ones = Change.objects.filter(
        campaign=campaign, kind__in=[Change.Kind.STEP, Change.Kind.ALARM]
    ).exclude(decision__in=Change.GONE)
    newest_of_each: dict[tuple[str, int], Change] = {}
    for change in standing_ones.select_related("metric", "cell").order_by("-pk")[
        :MOST_CHANGES
    ]:
        series = (change.cell.series_key, change.metric_id)
        newest_of_each.setdefault(series, change)
    return sum(
        change.decision == Change.Decision.OPEN and change.verdict == "slower"
        for change in newest_of_each.values()
    )
