"""The anchor's own line: what the machine gained or lost from edition to edition."""

from django.utils.translation import gettext as _

from runs.campaigns.selectors.report_parts.results import forest_of
from runs.charts.figure import Figure
from runs.charts.forest import Branch
from runs.models import Edition
from runs.observations.selectors import editions


def line(edition: Edition) -> list[tuple[str, Figure]]:
    """For each scenario its title, and the anchor of each edition against the first.

    Nothing before there are two. Some six queries for an edition and a scenario.
    """
    first_edition, *later = edition.observation.editions.filter(
        pk__lte=edition.pk
    ).order_by("pk")
    branches_of: dict[str, list[Branch]] = {}
    for later_edition in later:
        for again in editions.again(later_edition, first_edition):
            drift = again.drift
            if drift.is_same:
                verdict = "same"
            elif drift.is_apart:
                verdict = "different"
            else:
                verdict = "undecided" if drift.low else "too_few_runs"
            branches_of.setdefault(_(again.campaign.scenario.title), []).append(
                Branch(
                    f"{later_edition.label} : {first_edition.label}",
                    verdict,
                    drift.ratio,
                    drift.low,
                    drift.high,
                )
            )
    return [(title, forest_of(branches)) for title, branches in branches_of.items()]
