"""What of the campaigns enters the line through versions."""

from runs.analysis.summary import Summary
from runs.models import Campaign
from runs.models.campaigns import Origin

METRIC = "tps"
# What a campaign executed here needs to be included: a try of some seconds means little.
LEAST_REPEATS, LEAST_SECONDS = 3, 30
# How many campaigns executed here the line uses.
MOST_EXECUTED = 12
# Of the newest of the theme, whether they have figures at all.
MOST_LOOKED_AT = 100


def enters(campaign: Campaign, summary: Summary) -> bool:
    """Whether a cell is measured long and often enough; published cells always are.

    Whoever observes the line has chosen how long; the intervals say how much it shows.
    """
    if campaign.origin != Origin.EXECUTED:
        return True
    if getattr(campaign, "is_observed", False):
        return (summary.n or 0) >= LEAST_REPEATS
    seconds = campaign.parameters.get("duration")
    is_long = not isinstance(seconds, int | float) or seconds >= LEAST_SECONDS
    return is_long and (summary.n or 0) >= LEAST_REPEATS
