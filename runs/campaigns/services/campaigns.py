"""Campaigns: queueing a draft, and cancelling, pausing and retrying."""

import json
import secrets
from collections.abc import Sequence

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from runs import celery_messages
from runs.access.selectors import projects
from runs.access.services import audit
from runs.archive.selectors import reproduction
from runs.campaigns.services import random_order
from runs.campaigns.services.campaign_limits import HIGHEST_PRIORITY
from runs.campaigns.services.designs import Design, DesignCell, Part, resolve
from runs.campaigns.services.drafts import RULES, Draft
from runs.campaigns.services.estimates import estimate
from runs.configurations.services import configurations
from runs.execution.plan import RunPlan
from runs.models import (
    Campaign,
    CampaignConfiguration,
    Cell,
    Configuration,
    Project,
    Run,
    Scenario,
    Server,
    WorkloadVersion,
)
from runs.queue.services import attempts, plans, transitions
from runs.queue.services.plans import NewRun
from runs.shared import slugs
from runs.shared.errors import ServiceError
from runs.workloads.services import topologies, workloads

# Cannot be slugs: they are the addresses of other pages.
NOT_SLUGS = ("new",)


def create(
    *, draft: Draft, by: User | None = None, project: Project | None = None
) -> Campaign:
    """Resolve a draft, and queue it as `queue` does."""
    return queue(design=resolve(draft), by=by, project=project)


@transaction.atomic
def queue(
    *, design: Design, by: User | None = None, project: Project | None = None
) -> Campaign:
    """Queue a design: its cells, and its runs in a random order whose seed is stored.

    It belongs to its project from the start: outsiders never see a campaign of a private project.
    Raises ServiceError with the first problem of the design's estimate, or `of_other_project`.
    """
    for problem in estimate(design).problems:
        raise ServiceError(**vars(problem))
    _refuse_of_others(
        design.draft, audit.find_project_id(project.pk if project else None)
    )
    campaign = _campaign(design, by, project)
    _queue(campaign, design, _cells(campaign, design))
    if campaign.reproduces:
        campaign.changes = reproduction.stored(reproduction.list_changes(campaign))
        campaign.save(update_fields=["changes"])
    details = {
        "title": campaign.title,
        "factors": campaign.factors,
        "repeats": campaign.repeats,
    }
    audit.record("campaign_queued", campaign, after=details)
    return campaign


@transaction.atomic
def cancel(*, campaign: Campaign, by: object = None) -> Campaign:
    """Cancel every unfinished run of a campaign. Raises `campaign_has_ended`."""
    if not transitions.cancel_all(runs=campaign.runs.all(), by=by):
        raise ServiceError("campaign_has_ended", _("This campaign has ended already."))
    Campaign.objects.filter(pk=campaign.pk).update(cancelled_at=timezone.now())
    _wake_servers(campaign)
    return _refreshed(campaign, "campaign_cancelled")


@transaction.atomic
def retry(*, campaign: Campaign, by: object = None) -> Campaign:
    """Queue every run again that ended without success. Raises `nothing_to_retry`."""
    if not attempts.retry_all(runs=campaign.runs.all(), by=by):
        raise ServiceError("nothing_to_retry", _("No run of this campaign failed."))
    Campaign.objects.filter(pk=campaign.pk).update(cancelled_at=None)
    return _refreshed(campaign, "campaign_queued_again")


def _refreshed(campaign: Campaign, act: str) -> Campaign:
    """With the state that follows from its runs, after what somebody did to all of them."""
    before = campaign.state
    transitions.refresh_campaign(campaign_id=campaign.pk)
    campaign.refresh_from_db()
    audit.record(
        act, campaign, before={"state": before}, after={"state": campaign.state}
    )
    return campaign


@transaction.atomic
def pause(*, campaign: Campaign) -> Campaign:
    """Start no further run of a campaign; the one in progress ends as usual.

    Raises `campaign_has_ended`.
    """
    waiting = Campaign.objects.filter(pk=campaign.pk, state__in=Campaign.LIVE)
    if not waiting.update(paused_at=timezone.now()):
        raise ServiceError("campaign_has_ended", _("This campaign has ended already."))
    campaign.refresh_from_db()
    audit.record("campaign_paused", campaign)
    return campaign


@transaction.atomic
def resume(*, campaign: Campaign) -> Campaign:
    """Let a paused campaign continue. Raises `campaign_not_paused`."""
    paused = Campaign.objects.filter(pk=campaign.pk, paused_at__isnull=False)
    if not paused.update(paused_at=None):
        raise ServiceError("campaign_not_paused", _("This campaign is not paused."))
    _wake_servers(campaign)
    campaign.refresh_from_db()
    audit.record("campaign_resumed", campaign)
    return campaign


@transaction.atomic
def prioritise(*, campaign: Campaign, priority: int) -> Campaign:
    """Set a campaign's priority; its runs go before those of lower priority.

    Raises `out_of_range`. A run in progress is never interrupted.
    """
    if abs(priority) > HIGHEST_PRIORITY:
        message = _("A priority is from -%(most)d to %(most)d.") % {
            "most": HIGHEST_PRIORITY
        }
        raise ServiceError("out_of_range", message, field="priority")
    before = campaign.priority
    Campaign.objects.filter(pk=campaign.pk).update(priority=priority)
    campaign.refresh_from_db()
    was, now = {"priority": before}, {"priority": priority}
    audit.record("priority_changed", campaign, before=was, after=now)
    return campaign


def _refuse_of_others(draft: Draft, project: int | None) -> None:
    """Raise ServiceError where the campaign would show what is private in another project."""
    scripts = workloads.versions(draft.levels.get(workloads.SCRIPT_FACTOR, ()))
    configurations = {
        configuration.pk
        for configuration in draft.configurations
        if configuration is not None
    }
    for field, model, keys in (
        ("configuration", Configuration, configurations),
        (
            workloads.SCRIPT_FACTOR,
            WorkloadVersion,
            {workload_version.pk for workload_version in scripts.values()},
        ),
    ):
        rows = model._default_manager.filter(pk__in=keys)
        if keys and projects.usable(rows, in_project=project).count() < len(keys):
            message = _(
                "It is private in another project, which the campaign would show."
            )
            remedy = _("Copy it into the campaign's project.")
            raise ServiceError("of_other_project", message, remedy=remedy, field=field)


def _wake_servers(campaign: Campaign) -> None:
    for server_id in set(campaign.runs.values_list("server_id", flat=True)) - {None}:
        celery_messages.wake(server_id)


def _campaign(design: Design, by: User | None, project: Project | None) -> Campaign:
    draft = design.draft
    used = [
        configuration or configurations.built_in()
        for configuration in draft.configurations
    ]
    revisions = [
        configurations.current_revision(configuration=configuration)
        for configuration in used
    ]
    is_one = len(used) == 1
    campaign = Campaign(
        title=draft.title.strip(),
        title_ja=draft.title_ja,
        scenario=Scenario.objects.get(slug=draft.scenario),
        topology=topologies.topology_of(
            server=draft.server,
            generators=draft.generators,
            more_servers=draft.servers[1:],
            arrangement=design.kind,
            cluster_servers=draft.cluster_servers,
        ),
        configuration=used[0] if is_one else None,
        configuration_revision=revisions[0] if is_one else None,
        factors=dict(design.factors),
        parameters=dict(draft.parameters),
        treatment=draft.treatment.chosen(),
        reproduces=draft.reproduces,
        **{name: getattr(draft, name) for name in RULES},
        most_repeats=draft.most_repeats
        if draft.wanted_half_width is not None
        else None,
        most_attempts=draft.most_attempts or settings.MAXIMUM_ATTEMPTS,
        seed=draft.seed if draft.seed is not None else secrets.randbelow(2**31),
        project=project,
        created_by=by,
    )
    campaign = slugs.store(
        campaign,
        called=draft.title,
        otherwise="campaign",
        project=project,
        taken=NOT_SLUGS,
    )
    if not is_one:
        CampaignConfiguration.objects.bulk_create(
            CampaignConfiguration(
                campaign=campaign,
                configuration=configuration,
                revision=revision,
                ordinal=ordinal,
            )
            for ordinal, (configuration, revision) in enumerate(
                zip(used, revisions, strict=True), start=1
            )
        )
    return campaign


def _cells(campaign: Campaign, design: Design) -> list[tuple[Cell, DesignCell, Part]]:
    version_of_level = workloads.versions(
        design.draft.levels.get(workloads.SCRIPT_FACTOR, ())
    )
    planned = [
        (design_cell, server_part)
        for server_part in design.parts
        for design_cell in server_part.cells
    ]
    cells = [
        Cell(
            campaign=campaign,
            ordinal=ordinal,
            levels=dict(design_cell.levels),
            workload_version=version_of_level.get(
                str(design_cell.levels.get(workloads.SCRIPT_FACTOR))
            ),
            key=json.dumps(design_cell.levels, sort_keys=True),
            installation=design_cell.installation,
            version=design_cell.installation.version,
            version_num=design_cell.installation.version_num,
        )
        for ordinal, (design_cell, _part) in enumerate(planned, start=1)
    ]
    Cell.objects.bulk_create(cells)
    return [
        (cell, design_cell, server_part)
        for cell, (design_cell, server_part) in zip(cells, planned, strict=True)
    ]


def _queue(
    campaign: Campaign, design: Design, cells: Sequence[tuple[Cell, DesignCell, Part]]
) -> None:
    """One random order for all; each server then takes its own runs from it."""
    frozen = [
        plans.freeze(
            campaign=campaign,
            server_part=server_part,
            cell=design_cell,
            design=design,
            cell_row=cell,
        )
        for cell, design_cell, server_part in cells
    ]
    kept_plans = plans.drop_needless_templates(frozen, campaign.repeats)
    models = [
        _model(campaign, cell, plan, server_part.server)
        for (cell, _design_cell, server_part), plan in zip(
            cells, kept_plans, strict=True
        )
    ]
    order = random_order.draw_rounds(len(cells), campaign.repeats, campaign.seed)
    plans.store(
        [
            NewRun(models[index], repeat, position)
            for position, (repeat, index) in enumerate(order, start=1)
        ]
    )


def _model(campaign: Campaign, cell: Cell, plan: RunPlan, server: Server) -> Run:
    """What the runs of a cell share."""
    return Run(
        campaign=campaign,
        cell=cell,
        plan=plan.as_json(),
        server=server,
        # As known now; the attempt that measures stores its own.
        hardware_id=server.hardware_id,
        environment_id=server.environment_id,
    )
