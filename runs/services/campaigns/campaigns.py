"""Campaigns: queueing a draft, and cancelling what was queued."""

import json
import random
import secrets
from dataclasses import replace

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from runs import dispatch
from runs.execution.plan import RunPlan
from runs.models import Campaign, Cell, Installation, Project, Run, Scenario, Server
from runs.postgresql_settings.fitting import Fitted
from runs.scenarios import registry
from runs.services import slugs
from runs.services.campaigns import drafts, topologies
from runs.services.campaigns.drafts import Draft
from runs.services.campaigns.estimates import Estimate, estimate
from runs.services.configurations import configurations
from runs.services.errors import ServiceError
from runs.services.problems import Problem
from runs.services.runs import attempts, plans
from runs.services.runs import runs as run_service
from runs.services.servers.tools import Tools, installed, tools_among

__all__ = [
    "Draft",
    "Estimate",
    "Problem",
    "cancel",
    "create",
    "estimate",
    "pause",
    "prioritise",
    "resume",
    "retry",
]

# A page beside those of the campaigns.
NOT_SLUGS = ("new",)


@transaction.atomic
def create(*, draft: Draft, by: User | None = None, project: Project | None = None) -> Campaign:
    """Queue a draft: its cells, and its runs in a random order whose seed is stored.

    It is the project's from its first moment on: nobody else ever sees one of a private project.
    Raises ServiceError with the first problem of the draft's estimate.
    """
    if draft.configuration is None:
        draft = replace(draft, configuration=configurations.built_in())
    for problem in estimate(draft).problems:
        raise ServiceError(
            problem.code, problem.message, remedy=problem.remedy, field=problem.field
        )
    campaign = _campaign(draft, by, project)
    _queue(campaign, draft, _cells(campaign, draft))
    for server in draft.servers:
        dispatch.wake(server.pk)
    return campaign


@transaction.atomic
def cancel(*, campaign: Campaign, by: object = None) -> Campaign:
    """Cancel every run of a campaign that has not ended. Raises `campaign_has_ended`."""
    if not run_service.cancel_all(runs=campaign.runs.all(), by=by):
        raise ServiceError("campaign_has_ended", _("This campaign has ended already."))
    run_service.refresh_campaign(campaign_id=campaign.pk)
    _wake_servers(campaign)
    campaign.refresh_from_db()
    return campaign


@transaction.atomic
def retry(*, campaign: Campaign, by: object = None) -> Campaign:
    """Queue every run anew that ended without success. Raises `nothing_to_retry`."""
    if not attempts.retry_all(runs=campaign.runs.all(), by=by):
        raise ServiceError("nothing_to_retry", _("No run of this campaign failed."))
    run_service.refresh_campaign(campaign_id=campaign.pk)
    campaign.refresh_from_db()
    return campaign


@transaction.atomic
def pause(*, campaign: Campaign) -> Campaign:
    """Let no further run of a campaign begin; the one in progress ends as usual.

    Raises `campaign_has_ended`.
    """
    waiting = Campaign.objects.filter(pk=campaign.pk, state__in=Campaign.LIVE)
    if not waiting.update(paused_at=timezone.now()):
        raise ServiceError("campaign_has_ended", _("This campaign has ended already."))
    campaign.refresh_from_db()
    return campaign


@transaction.atomic
def resume(*, campaign: Campaign) -> Campaign:
    """Let a paused campaign's runs begin again. Raises `campaign_not_paused`."""
    paused = Campaign.objects.filter(pk=campaign.pk, paused_at__isnull=False)
    if not paused.update(paused_at=None):
        raise ServiceError("campaign_not_paused", _("This campaign is not paused."))
    _wake_servers(campaign)
    campaign.refresh_from_db()
    return campaign


@transaction.atomic
def prioritise(*, campaign: Campaign, priority: int) -> Campaign:
    """Let a campaign's runs go before those of lower priorities. Raises `out_of_range`.

    A run in progress is never interrupted for another.
    """
    if abs(priority) > drafts.HIGHEST_PRIORITY:
        raise ServiceError(
            "out_of_range",
            _("A priority is from -%(most)d to %(most)d.") % {"most": drafts.HIGHEST_PRIORITY},
            field="priority",
        )
    Campaign.objects.filter(pk=campaign.pk).update(priority=priority)
    campaign.refresh_from_db()
    return campaign


def _wake_servers(campaign: Campaign) -> None:
    for server_id in set(campaign.runs.values_list("server_id", flat=True)) - {None}:
        dispatch.wake(server_id)


def _campaign(draft: Draft, by: User | None, project: Project | None) -> Campaign:
    campaign = Campaign(
        title=draft.title.strip(),
        scenario=Scenario.objects.get(slug=draft.scenario),
        topology=topologies.topology_of(
            server=draft.server,
            generators=draft.generators,
            more_servers=draft.servers[1:],
            arrangement=registry.get(draft.scenario).kind,
        ),
        configuration=draft.configuration,
        configuration_revision=configurations.current_revision(configuration=draft.configuration)
        if draft.configuration
        else None,
        factors=drafts.factors(draft),
        parameters=dict(draft.parameters),
        treatment=draft.treatment.chosen(),
        repeats=draft.repeats,
        wanted_half_width=draft.wanted_half_width,
        most_repeats=draft.most_repeats if draft.wanted_half_width is not None else None,
        priority=draft.priority,
        most_attempts=draft.most_attempts or settings.MAXIMUM_ATTEMPTS,
        seed=draft.seed if draft.seed is not None else secrets.randbelow(2**31),
        project=project,
        created_by=by,
    )
    return slugs.store(campaign, called=draft.title, otherwise="campaign", taken=NOT_SLUGS)


def _cells(campaign: Campaign, draft: Draft) -> list[tuple[Cell, Installation]]:
    made = [
        (
            Cell(
                campaign=campaign,
                ordinal=ordinal,
                levels=levels,
                key=json.dumps(levels, sort_keys=True),
                installation=installation,
                version=installation.version,
                version_num=installation.version_num,
            ),
            installation,
        )
        for ordinal, (installation, levels) in enumerate(drafts.cells(draft), start=1)
    ]
    Cell.objects.bulk_create([cell for cell, _installation in made])
    return made


def _queue(campaign: Campaign, draft: Draft, cells: list[tuple[Cell, Installation]]) -> None:
    """One random order for all; each server then takes its own runs of it."""
    order = _order(len(cells), campaign.repeats, campaign.seed)
    placed = [(repeat, *cells[index]) for repeat, index in order]
    servers = {each.pk: each for each in draft.servers}
    queued = [
        _run(campaign, cell, repeat, position, servers[installation.server_id])
        for position, (repeat, cell, installation) in enumerate(placed, start=1)
    ]
    Run.objects.bulk_create(queued)
    tools = _tools(draft)
    fitted = {each.installation.pk: each.fitted for each in drafts.configuration_fits(draft)}
    frozen = [
        _plan(
            run,
            campaign,
            servers[installation.server_id],
            tools[installation.server_id],
            fitted[installation.pk],
            cell,
            installation,
        )
        for run, (_repeat, cell, installation) in zip(queued, placed, strict=True)
    ]
    generators = topologies.generator_plans(draft.servers, draft.generators)
    kept = plans.without_needless_templates(frozen)
    for run, plan, (_repeat, _cell, installation) in zip(queued, kept, placed, strict=True):
        run.plan = replace(plan, generators=generators[installation.server_id]).as_json()
    Run.objects.bulk_update(queued, ["plan"], batch_size=500)


def _run(campaign: Campaign, cell: Cell, repeat: int, position: int, server: Server) -> Run:
    return Run(
        campaign=campaign,
        cell=cell,
        repeat=repeat,
        position=position,
        server=server,
        # As known now; the attempt that is measured tells its own.
        hardware_id=server.hardware_id,
        environment_id=server.environment_id,
    )


def _order(cells: int, repeats: int, seed: int) -> list[tuple[int, int]]:
    """(repeat, cell index) in the order of execution: each repeat shuffles all cells anew."""
    shuffler = random.Random(seed)  # noqa: S311 -- repeatable on purpose
    order = []
    for repeat in range(1, repeats + 1):
        indexes = list(range(cells))
        shuffler.shuffle(indexes)
        order += [(repeat, index) for index in indexes]
    return order


def _tools(draft: Draft) -> dict[int, Tools]:
    """The tools of each server, by its key."""
    present = installed(draft.servers)
    found = {each.pk: tools_among(present[each.pk], draft.client) for each in draft.servers}
    if None in found.values():
        raise ServiceError("missing_program", _("pgbench or psql is missing on the server."))
    return {server: tools for server, tools in found.items() if tools is not None}


def _plan(
    run: Run,
    campaign: Campaign,
    server: Server,
    tools: Tools,
    fitted: Fitted,
    cell: Cell,
    installation: Installation,
) -> RunPlan:
    return plans.freeze(
        run=run,
        campaign=campaign,
        cell=cell,
        scenario=registry.get(campaign.scenario.slug),
        server=server,
        installation=installation,
        tools=tools,
        fitted=fitted,
    )
