"""Whether a campaign has regressions that nobody has decided about."""

from runs.models import Campaign, Change


def open_regressions(campaign: Campaign) -> int:
    """Of how many series and metrics the newest change is for the worse, and waits for a decision.

    One query.
    """
    # What changed with the machine is no regression of the code.
    standing_ones = Change.objects.filter(
        campaign=campaign, kind__in=[Change.Kind.STEP, Change.Kind.ALARM]
    ).exclude(decision__in=Change.GONE)
    newest_of_each = (
        standing_ones.order_by("cell__series_key", "metric_id", "-pk")
        .distinct("cell__series_key", "metric_id")
        .select_related("metric")
    )
    return sum(
        change.decision == Change.Decision.OPEN and change.verdict == "slower"
        for change in newest_of_each
    )
