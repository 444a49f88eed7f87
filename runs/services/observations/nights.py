"""Observations that are measured at night only: their campaigns pause by day, and go on."""

from datetime import datetime
from zoneinfo import ZoneInfo

from django.db.models import Q
from django.utils import timezone

from runs.models import Campaign, Observation
from runs.services.campaigns import campaigns


def is_night(observation: Observation, now: datetime) -> bool:
    """Whether it may be measured now, by the clock on the wall of its time zone."""
    begins, ends = observation.night_from, observation.night_until
    if begins is None or ends is None:
        return True
    clock = now.astimezone(ZoneInfo(observation.time_zone)).time()
    if begins <= ends:
        return begins <= clock < ends
    return clock >= begins or clock < ends


def keep() -> None:
    """Pause and resume the campaigns of observations that have a night.

    One query where there is none. A run in progress ends as usual. What a person pauses in the
    night stays paused.
    """
    live = Q(campaigns__state__in=Campaign.LIVE)
    with_nights = Observation.objects.exclude(night_from=None)
    for observation in with_nights:
        is_on = is_night(observation, timezone.now())
        for edition in observation.editions.filter(live).distinct():
            for campaign in edition.campaigns.filter(state__in=Campaign.LIVE):
                if is_on and campaign.paused_at is not None and _by_day(observation, campaign):
                    campaigns.resume(campaign=campaign)
                elif not is_on and campaign.paused_at is None:
                    campaigns.pause(campaign=campaign)


def _by_day(observation: Observation, campaign: Campaign) -> bool:
    """Whether it was paused outside of the night: a person's pause in the night stays."""
    return campaign.paused_at is not None and not is_night(observation, campaign.paused_at)
