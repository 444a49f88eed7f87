"""The campaigns of uploaded runs: created when first named, never in another project.

Slugs are those of addresses, so that each is there once. A private project's campaign has the
project in its slug (`runs.shared.slugs`), whatever others have, and later uploads of the name
find it. Private campaigns of earlier releases may have a plain slug. A public project's campaign of
that name gets a number.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from django.utils.translation import gettext as _

from runs.access.selectors import projects
from runs.models import Campaign, Configuration, Project, Scenario
from runs.models.campaigns import Origin
from runs.shared import slugs
from runs.shared.database import Rows, Statement, perform
from runs.shared.errors import Fault
from runs.uploads.services.uploaded_run import GivenRun

# What is asked of a campaign, as `Known` has it.
COLUMNS = (
    "campaign.slug, campaign.id, campaign.origin, campaign.project_id, scenario.slug,"
    " coalesce(configuration.slug, '')"
)
TABLES = (
    "runs_campaign campaign JOIN runs_scenario scenario ON scenario.id = campaign.scenario_id"
    " LEFT JOIN runs_configuration configuration ON configuration.id = campaign.configuration_id"
)


class Known(NamedTuple):
    """What an upload needs to know of a campaign."""

    slug: str
    pk: int
    origin: str
    project_id: int
    scenario: str
    configuration: str


def addressed(run: GivenRun, project: Project) -> GivenRun:
    """The run with the slug that a new campaign of its name has in this project."""
    if run.uploaded_as:
        return run
    slug = slugs.in_project(run.campaign, project, of=Campaign)
    if slug == run.campaign:
        return run
    return replace(run, campaign=slug, uploaded_as=run.campaign)


def named(run: GivenRun, own: Mapping[str, str]) -> GivenRun:
    """The run with the slug of the project's own campaign; `own` are the answers of `own_names`."""
    name = run.uploaded_as or run.campaign
    if name not in own:
        return run
    return replace(run, campaign=own[name], uploaded_as=name)


def own_names(runs: Sequence[GivenRun], rows: Rows, project: Project) -> dict[str, str]:
    """The slugs of the project's campaigns by the name given, where runs have another slug.

    No query where all campaigns are there and of the project.
    """
    known_campaigns = _by_slug(rows)
    slug_of = {
        run.uploaded_as or run.campaign: run.campaign
        for run in runs
        if run.campaign not in known_campaigns
        or known_campaigns[run.campaign].project_id != project.pk
    }
    if not slug_of:
        return {}
    own = {name: name for name in slug_of} | own_slugs(slug_of.keys(), project)
    return {name: slug for name, slug in own.items() if slug != slug_of[name]}


def own_slugs(names: Set[str], project: Project) -> dict[str, str]:
    """Of these names those under which the project's campaign has another slug, with that."""
    own_campaigns = Campaign.objects.filter(project=project)
    slug_of = dict(own_campaigns.filter(uploaded_as__in=names).values_list("uploaded_as", "slug"))
    others = names - slug_of.keys()
    if not project.is_public:
        earlier = own_campaigns.filter(slug__in=others).values_list("slug", flat=True)
        for name in others - set(earlier):
            slug_of[name] = slugs.in_project(name, project, of=Campaign)
        return slug_of
    hidden = Campaign.objects.filter(slug__in=others, project__is_public=False)
    for slug in hidden.values_list("slug", flat=True):
        if slugs.OF not in slug:  # of an earlier release
            slug_of[slug] = slugs.free(Campaign, slug)
    return slug_of


def resolve(
    runs: Sequence[GivenRun], rows: Rows, project: Project, faults: list[Fault]
) -> dict[str, Known]:
    """The campaigns of these runs by slug, new ones created; `rows` begin with their columns.

    A contradiction becomes a fault.
    """
    known_campaigns = _by_slug(rows)
    reserved = [run for run in runs if _is_reserved(run, known_campaigns, project)]
    if reserved:
        message = _("Two hyphens in a row are for names of private projects: use one.")
        faults += [Fault(f"{run.at}/campaign", "campaign_name", message) for run in reserved]
        return {}
    missing = [run for run in runs if run.campaign not in known_campaigns]
    if missing:
        _make(missing, project, faults)
        known_campaigns = _by_slug(perform([_question(runs)])[0])
    for run in runs:
        if campaign := known_campaigns.get(run.campaign):
            faults += _contradictions(run, campaign, project)
    return known_campaigns


def _is_reserved(run: GivenRun, known: Mapping[str, Known], project: Project) -> bool:
    """Whether only a private project may have this slug, be it there or not."""
    if not project.is_public or slugs.OF not in run.campaign:
        return False
    campaign = known.get(run.campaign)
    return campaign is None or campaign.project_id != project.pk


def _question(runs: Sequence[GivenRun]) -> Statement:
    slugs = list({run.campaign for run in runs})
    sql = f"SELECT {COLUMNS} FROM {TABLES} WHERE campaign.slug = ANY(%s)"  # noqa: S608 -- our names
    return Statement(sql, (slugs,))


def _by_slug(rows: Rows) -> dict[str, Known]:
    return {row[0]: Known(*row[: len(Known._fields)]) for row in rows}


def _make(runs: Sequence[GivenRun], project: Project, faults: list[Fault]) -> None:
    first_run_of = {run.campaign: run for run in reversed(runs)}
    nameless = [run for run in first_run_of.values() if not run.scenario]
    for run in nameless:
        message = _("The campaign %(slug)s is new: name its scenario.")
        faults.append(Fault(f"{run.at}/scenario", "required", message % {"slug": run.campaign}))
    scenarios = _scenarios({run.scenario for run in first_run_of.values() if run.scenario})
    configurations = _configurations(
        {run.configuration for run in first_run_of.values()} - {""}, project
    )
    campaigns = [
        Campaign(
            slug=slug,
            uploaded_as=run.uploaded_as,
            title=run.campaign_title or run.uploaded_as or slug,
            project=project,
            origin=Origin.UPLOADED,
            # Uploaded runs have already ended: the campaign waits for nothing.
            state=Campaign.State.FINISHED,
            scenario=scenarios[run.scenario],
            configuration=configurations.get(run.configuration),
            repeats=1,
        )
        for slug, run in sorted(first_run_of.items())
        if run.scenario
    ]
    Campaign.objects.bulk_create(campaigns, ignore_conflicts=True)


def _scenarios(slugs: set[str]) -> dict[str, Scenario]:
    """These scenarios; an unknown one has only data, and cannot be run."""
    Scenario.objects.bulk_create(
        [Scenario(slug=slug, title=slug) for slug in sorted(slugs)], ignore_conflicts=True
    )
    return {scenario.slug: scenario for scenario in Scenario.objects.filter(slug__in=slugs)}


def _configurations(slugs: set[str], project: Project) -> dict[str, Configuration]:
    if not slugs:
        return {}
    usable = projects.usable(Configuration.objects.filter(slug__in=slugs), in_project=project.pk)
    return {configuration.slug: configuration for configuration in usable}


def _contradictions(run: GivenRun, campaign: Known, project: Project) -> list[Fault]:
    faults_found = []
    if campaign.origin != Origin.UPLOADED:
        message = _("The campaign %(slug)s was not uploaded: its results are its own.")
        faults_found.append(("campaign", "campaign_not_uploaded", message % {"slug": run.campaign}))
    elif campaign.project_id != project.pk:
        message = _("The name %(slug)s is taken by a campaign of another project.")
        faults_found.append(("campaign", "campaign_taken", message % {"slug": run.campaign}))
    elif run.scenario and run.scenario != campaign.scenario:
        message = _("The campaign is of the scenario %(known)s, not of %(given)s.")
        names = {"known": campaign.scenario, "given": run.scenario}
        faults_found.append(("scenario", "scenario_differs", message % names))
    if run.configuration and run.configuration != campaign.configuration:
        message = _("The campaign has the configuration %(known)s, not %(given)s.")
        names = {"known": campaign.configuration or "–", "given": run.configuration}
        faults_found.append(("configuration", "configuration_differs", message % names))
    return [Fault(f"{run.at}/{name}", code, message) for name, code, message in faults_found]
