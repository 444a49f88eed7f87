"""Loads and their campaigns: members of a load's project see it, and nobody else."""

from django.db.models import QuerySet

from runs.access.selectors import projects
from runs.access.selectors.projects import Reader
from runs.models import Campaign, Load
from runs.scenarios import statements
from runs.statements import trial


def listed(*, to: Reader) -> QuerySet[Load]:
    """The loads that the reader may see, the newest first; of a public project its members' too."""
    rows = Load.objects.kept().select_related("project").order_by("-pk")
    return projects.filter_by_membership(rows, to=to)


def campaigns_of(load: Load) -> QuerySet[Campaign]:
    """The campaigns that measured a load, the newest first."""
    measured = {statements.FACTOR: [load.slug]}
    return (
        Campaign.objects.filter(
            scenario__slug=statements.SCENARIO.slug, factors__contains=measured
        )
        .exclude(parameters__has_key=trial.OF_CAMPAIGN)
        .order_by("-pk")
    )


def trials_of(measured: Campaign) -> QuerySet[Campaign]:
    """Those that tried settings for a statement of a campaign's answer, the newest first."""
    return Campaign.objects.filter(
        scenario=measured.scenario_id,
        parameters__contains={trial.OF_CAMPAIGN: measured.pk},
    ).order_by("-pk")
