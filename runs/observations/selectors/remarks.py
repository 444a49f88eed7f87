"""What one has to know of an edition's campaign besides its figures, in the reader's language."""

from collections.abc import Iterator
from datetime import timedelta

from django.db.models import F, Window
from django.db.models.functions import Lag
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.cells.selectors import versions
from runs.models import Campaign, Run
from runs.servers.selectors import builds
from runs.shared.formats import worded

# A round that rests for longer was interrupted: by the day, a restart, or a person.
LONGEST_REST = timedelta(minutes=15)


def list_remarks(campaign: Campaign) -> list[str]:
    """Unlike builds, versions without a figure and why, and interrupted rounds. Four queries."""
    unlike = builds.unlike(builds.list_installations(campaign))
    return [
        *filter(
            None, (unlike, *_versions_without_figures(campaign), _interrupted(campaign))
        )
    ]


def _versions_without_figures(campaign: Campaign) -> Iterator[str]:
    """Each version of which all runs have ended, and none finished."""
    lasting = campaign.runs.exclude(state__in=(*Run.UNSUCCESSFUL, Run.State.WITHDRAWN))
    versions_with_figures = set(
        lasting.order_by().values_list("cell_version", flat=True).distinct()
    )
    other_runs = (
        campaign.runs.exclude(cell_version__in=versions_with_figures)
        .order_by("pk")
        .defer("plan")
    )
    last_of_version = {run.cell_version: run for run in other_runs}
    for version, run in sorted(
        last_of_version.items(),
        key=lambda version_and_run: versions.order(version_and_run[0]),
    ):
        text = _("PostgreSQL %(version)s has no figure: %(reason)s")
        reason = worded(run) or str(run.get_state_display())
        yield text % {"version": version, "reason": reason}


def _interrupted(campaign: Campaign) -> str:
    """How many rounds rested in their middle; runs that were measured again are of no round."""
    of_rounds = campaign.runs.filter(
        repeat__lte=campaign.repeats or 0, finished_at__isnull=False
    )
    in_order = {
        name: Window(Lag(name), order_by="started_at")
        for name in ("finished_at", "repeat")
    }
    after = of_rounds.annotate(
        rest=F("started_at") - in_order["finished_at"], last=in_order["repeat"]
    )
    late_runs = after.filter(rest__gt=LONGEST_REST, last=F("repeat")).order_by()
    rested = set(late_runs.values_list("repeat", flat=True))
    if not rested:
        return ""
    text = ngettext(
        "%(number)d of %(rounds)d rounds was interrupted: its versions were not measured one after "
        "the other.",
        "%(number)d of %(rounds)d rounds were interrupted: their versions were not measured one "
        "after the other.",
        len(rested),
    )
    return text % {"number": len(rested), "rounds": campaign.repeats}
