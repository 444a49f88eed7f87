"""Schedules: queueing a campaign again, at certain times or for each new installation."""

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.access.services import audit
from runs.campaigns.services import campaigns
from runs.campaigns.services.drafts import RULES, Draft
from runs.cells.selectors.series_cells import CONFIGURATION, SERVER, SIDE, VERSION
from runs.execution.machine.treatment import Treatment
from runs.models import Campaign, Configuration, Project, Schedule, ScheduleEvent, Server
from runs.scenarios import registry
from runs.schedules.services import servers as schedule_servers
from runs.servers.services import campaign_builds
from runs.shared.errors import ServiceError

EVERY_DAY = (1, 2, 3, 4, 5, 6, 7)


def next_time(schedule: Schedule, after: datetime) -> datetime:
    """The first time of a schedule after a moment, in UTC.

    A time that is skipped when the clocks go forward comes that much later; of a time that comes
    twice the first one counts.
    """
    zone = ZoneInfo(schedule.time_zone)
    day = after.astimezone(zone).date()
    while True:
        moment = datetime.combine(day, time(schedule.hour, schedule.minute), zone).astimezone(UTC)
        if moment > after and day.isoweekday() in schedule.weekdays:
            return moment
        day += timedelta(days=1)


def begin(schedule: Schedule) -> None:
    """Set the next time from now; does not save the row."""
    is_timed = schedule.kind == Schedule.Kind.TIMES
    schedule.next_at = next_time(schedule, timezone.now()) if is_timed else None


def check(weekdays: Sequence[int], hour: int, minute: int, time_zone: str) -> None:
    """Raise ServiceError `no_such_time` for a time that does not exist."""
    faults = {
        "weekdays": not weekdays or not set(weekdays) <= set(EVERY_DAY),
        "hour": not 0 <= hour <= 23,
        "minute": not 0 <= minute <= 59,
    }
    for field, is_wrong in faults.items():
        if is_wrong:
            message = _("That time does not exist.")
            remedy = _("Give weekdays, an hour and a minute.")
            raise ServiceError("no_such_time", message, remedy=remedy, field=field)
    if time_zone not in available_timezones():
        message = _("There is no such time zone.")
        remedy = _("Give one such as UTC or Asia/Tokyo.")
        raise ServiceError("no_such_time", message, remedy=remedy, field="time_zone")


MOST_IN_A_ROW = 5
QUEUED = "queued"
SKIPPED = "skipped"
PAUSED = "paused"
RESUMED = "resumed"
ERROR = "error"
_ENDS_A_ROW = {QUEUED, PAUSED, RESUMED}
LONGEST_REASON = 500


def pause_if_it_keeps_failing(schedule: Schedule) -> None:
    """Switch a schedule off after this many failures in a row, and say why."""
    tried = schedule.events.exclude(code=SKIPPED).order_by("-pk")
    newest = list(tried.values_list("code", flat=True)[:MOST_IN_A_ROW])
    if len(newest) < MOST_IN_A_ROW or _ENDS_A_ROW & set(newest):
        return
    schedule.enabled = False
    schedule.save(update_fields=["enabled"])
    message = _(
        "Paused, as it failed %(times)d times in a row. Fix what the last failures report, and "
        "switch it on again."
    ) % {"times": MOST_IN_A_ROW}
    ScheduleEvent.objects.create(schedule=schedule, code=PAUSED, message=message)


# The length of Campaign.title.
LONGEST_TITLE = 200
# The factors that belong neither to the scenario nor to the settings.
NOT_SETTINGS = {
    VERSION,
    SERVER,
    CONFIGURATION,
    SIDE,
    campaign_builds.BLOCK_SIZE,
    campaign_builds.BUILD,
}

logger = logging.getLogger(__name__)


@transaction.atomic
def create(
    *,
    title: str,
    campaign: Campaign,
    kind: str = Schedule.Kind.TIMES,
    weekdays: Sequence[int] = EVERY_DAY,
    hour: int = 0,
    minute: int = 0,
    time_zone: str = "UTC",
    by: User | None = None,
    may_prioritise: bool = True,
) -> Schedule:
    """Queue a campaign's design again automatically.

    A campaign that goes before others does so again only if whoever asks may decide that.

    Raises ServiceError `not_executed` for results that BenchLab did not measure, and
    `no_such_time` for a time of day, weekday or time zone that does not exist.
    """
    design, server = design_of(campaign), _first_server(campaign)
    check(weekdays, hour, minute, time_zone)
    if not may_prioritise:
        design["priority"] = min(design["priority"], 0)
    schedule = Schedule(
        title=title.strip() or campaign.title,
        server=server,
        kind=kind,
        draft=design,
        weekdays=sorted(set(weekdays)),
        hour=hour,
        minute=minute,
        time_zone=time_zone,
        created_by=by,
    )
    schedule.seen_installations = schedule_servers.present(schedule)
    begin(schedule)
    schedule.save()
    _record("schedule_made", schedule, after=_described(schedule))
    return schedule


@transaction.atomic
def edit(*, schedule: Schedule, **changes: Any) -> Schedule:
    """Change title, kind, weekdays, hour, minute or time zone; the others stay.

    Missed times are not made up for. Raises ServiceError `no_such_time`.
    """
    before = _described(schedule)
    for name, value in changes.items():
        setattr(schedule, name, value)
    check(schedule.weekdays, schedule.hour, schedule.minute, schedule.time_zone)
    schedule.weekdays = sorted(set(schedule.weekdays))
    if "kind" in changes:
        schedule.seen_installations = schedule_servers.present(schedule)
    begin(schedule)
    schedule.save()
    _record("schedule_changed", schedule, before=before, after=_described(schedule))
    return schedule


def _described(schedule: Schedule) -> dict[str, Any]:
    names = ("title", "kind", "weekdays", "hour", "minute", "time_zone", "enabled")
    return {name: getattr(schedule, name) for name in names}


def _record(action: str, schedule: Schedule, **changes: dict[str, Any]) -> None:
    project = audit.of_project(schedule.draft.get("project"))
    audit.record(action, schedule, project=project, **changes)


@transaction.atomic
def enable(*, schedule: Schedule, enabled: bool) -> Schedule:
    """Switch a schedule on or off. Times missed while it was off are not made up for."""
    before, schedule.enabled = schedule.enabled, enabled
    if enabled:
        schedule.seen_installations = schedule_servers.present(schedule)
        begin(schedule)
        # Failures before it was switched on again do not count any more.
        newest = schedule.events.order_by("-pk").first()
        if newest is not None and newest.code not in _ENDS_A_ROW - {PAUSED}:
            ScheduleEvent.objects.create(schedule=schedule, code=RESUMED)
    schedule.save()
    switched = {"before": {"enabled": before}, "after": {"enabled": enabled}}
    _record("schedule_switched", schedule, **switched)
    return schedule


def delete(*, schedule: Schedule) -> None:
    """Remove a schedule and its history; its campaigns stay."""
    _record("schedule_deleted", schedule, before=_described(schedule))
    schedule.delete()


def fire_due() -> None:
    """Fire every schedule whose time has come. Raises nothing: a fault becomes an event."""
    due = Schedule.objects.filter(enabled=True)
    for schedule_id in due.values_list("pk", flat=True):
        try:
            _fire_if_due(schedule_id, timezone.now())
        except Exception as error:
            logger.exception("schedule %s could not be fired", schedule_id)
            with contextlib.suppress(Exception):
                _give_up_this_time(schedule_id, error)


def _first_server(campaign: Campaign) -> Server:
    """The baseline of its servers. Raises ServiceError if BenchLab did not execute it."""
    first_run = campaign.runs.filter(plan__isnull=False, server__isnull=False).first()
    if first_run is None or first_run.server is None:
        raise ServiceError(
            "not_executed", _("Only a campaign that BenchLab executed can be queued again.")
        )
    baseline = Server.objects.filter(slug__in=campaign.factors.get(SERVER, ())[:1]).first()
    return baseline or first_run.server


def draft_of(campaign: Campaign) -> Draft:
    """A campaign's design with what is installed now, for a person to change and queue.

    Raises ServiceError as `create` does, and if a server or configuration was removed.
    """
    schedule = Schedule(server=_first_server(campaign), draft=design_of(campaign), time_zone="UTC")
    return replace(_draft(schedule, ()), title=campaign.title)


def design_of(campaign: Campaign) -> dict[str, Any]:
    """What a schedule stores of a campaign."""
    factors = campaign.factors
    own_factors = {factor.name for factor in registry.get(campaign.scenario.slug, factors).factors}
    measured = schedule_servers.measured(campaign)
    first_server, *more_servers = schedule_servers.in_order(campaign, measured)
    planned = campaign.runs.filter(plan__isnull=False).order_by("pk")
    on_first = planned.filter(server=first_server) if more_servers else planned
    plan = on_first.values_list("plan", flat=True).first() or {}
    tools = planned.order_by().values_list("plan__client_version_num", flat=True).distinct()
    return {
        "title": campaign.title,
        "project": campaign.project_id,
        "scenario": campaign.scenario.slug,
        "bindirs": measured.get(first_server, []),
        "more_servers": [[server_id, measured[server_id]] for server_id in more_servers],
        "levels": {
            name: factor_levels for name, factor_levels in factors.items() if name in own_factors
        },
        "settings": {
            name: factor_levels
            for name, factor_levels in factors.items()
            if name not in {*own_factors, *NOT_SETTINGS}
        },
        "parameters": campaign.parameters,
        "treatment": campaign.treatment,
        **{name: getattr(campaign, name) for name in (*RULES, "most_attempts", "most_repeats")},
        "configuration": campaign.configuration.slug if campaign.configuration else None,
        "configurations": factors.get(CONFIGURATION, []),
        "is_a_a": SIDE in factors,
        # If several servers each used their own newest pgbench, they do so again.
        "client": plan.get("client_bindir") if len(tools) < 2 else None,
        "generators": [generator["server_id"] for generator in plan.get("generators", ())],
        "cluster_servers": [machine["server_id"] for machine in plan.get("machines", ())],
    }


@transaction.atomic
def _fire_if_due(schedule_id: int, now: datetime) -> None:
    """Several missed times fire once, and so do two controls at the same time."""
    locked = Schedule.objects.select_for_update(skip_locked=True, of=("self",))
    schedule = locked.select_related("server").filter(pk=schedule_id, enabled=True).first()
    if schedule is None:
        return
    if schedule.kind == Schedule.Kind.INSTALLATION:
        _fire_for_new(schedule)
    elif schedule.next_at is not None and schedule.next_at <= now:
        schedule.next_at = next_time(schedule, now)
        schedule.save(update_fields=["next_at"])
        if _is_busy(schedule):
            message = _("The campaign before has not ended.")
            ScheduleEvent.objects.create(schedule=schedule, code="skipped", message=message)
        else:
            _fire(schedule, ())


@transaction.atomic
def _give_up_this_time(schedule_id: int, error: Exception) -> None:
    """Report whatever failed and rolled back the firing, and wait for the next time."""
    schedule = Schedule.objects.select_for_update().get(pk=schedule_id)
    begin(schedule)
    if schedule.kind == Schedule.Kind.INSTALLATION:
        schedule.seen_installations = schedule_servers.present(schedule)
    schedule.save()
    # Record an error of BenchLab itself; the log has it in full.
    reason = f"{type(error).__name__}: {error}"[:LONGEST_REASON]
    message = _("BenchLab could not queue the campaign: %(reason)s") % {"reason": reason}
    ScheduleEvent.objects.create(schedule=schedule, code=ERROR, message=message)
    pause_if_it_keeps_failing(schedule)


def _fire_for_new(schedule: Schedule) -> None:
    """Measure what was found since; wait for the previous campaign, and for servers away."""
    seen_installations = {tuple(installation) for installation in schedule.seen_installations}
    present = schedule_servers.present(schedule)
    new_installations = [
        installation for installation in present if tuple(installation) not in seen_installations
    ]
    if not new_installations:
        return
    if _is_busy(schedule) or not _is_at_hand(schedule):
        return
    schedule.seen_installations = present
    schedule.save(update_fields=["seen_installations"])
    _fire(schedule, new_installations)


def _fire(schedule: Schedule, new_installations: Sequence[Sequence[str]]) -> None:
    """Queue the campaign with what is new, or store the reason why it cannot be queued."""
    campaign, code, message = None, "queued", ""
    try:
        with transaction.atomic():
            campaign = campaigns.create(
                draft=_draft(schedule, new_installations),
                by=schedule.created_by,
                project=Project.objects.filter(pk=schedule.draft["project"]).first(),
            )
    except ServiceError as error:
        code, message = error.code, f"{error.message} {error.remedy}".strip()
    ScheduleEvent.objects.create(schedule=schedule, campaign=campaign, code=code, message=message)
    if campaign is None:
        pause_if_it_keeps_failing(schedule)


def _draft(schedule: Schedule, new_installations: Sequence[Sequence[str]]) -> Draft:
    stored = schedule.draft
    today = timezone.now().astimezone(ZoneInfo(schedule.time_zone)).strftime("%Y-%m-%d")
    configurations = _configurations(schedule)
    copied = (
        "scenario",
        "levels",
        "parameters",
        "repeats",
        "priority",
        "most_attempts",
        "wanted_half_width",
        "most_repeats",
        "is_a_a",
    )
    return Draft(
        title=_dated(stored["title"], today),
        server=schedule.server,
        installations=schedule_servers.installations(schedule, new_installations),
        more_servers=schedule_servers.further(schedule),
        configuration=next(iter(configurations), None),
        more_configurations=configurations[1:],
        settings=stored.get("settings", {}),
        remeasures=stored.get("remeasures", 1),
        leaves_out_doubtful=stored.get("leaves_out_doubtful", False),
        treatment=Treatment.of(stored.get("treatment")),
        # The same tool, so that the servers are compared; one that was removed cannot be used.
        client=schedule.server.installations.filter(
            removed_at=None, pgbench_version_num__isnull=False, bindir=stored.get("client")
        ).first(),
        generators=schedule_servers.generators(schedule),
        cluster_servers=schedule_servers.of_clusters(schedule),
        **{name: stored[name] for name in copied},
    )


def _configurations(schedule: Schedule) -> list[Configuration]:
    """The configurations that it measures, the baseline first; None is the built-in one.

    Raises ServiceError if one of several was removed.
    """
    stored = schedule.draft
    slugs = stored.get("configurations") or [stored.get("configuration")]
    configuration_of = {
        configuration.slug: configuration
        for configuration in Configuration.objects.filter(slug__in=slugs)
    }
    if len(slugs) > 1 and len(configuration_of) < len(slugs):
        message = _("A configuration of this campaign is not there any more.")
        remedy = _("Queue the campaign yourself, and make a new schedule from it.")
        raise ServiceError("configuration_missing", message, remedy=remedy)
    return [configuration_of[slug] for slug in slugs if slug in configuration_of]


def _dated(title: str, day: str) -> str:
    room = LONGEST_TITLE - len(day) - 1
    shortened = title if len(title) <= room else f"{title[: room - 1].rstrip()}…"
    return f"{shortened} {day}"


def _is_at_hand(schedule: Schedule) -> bool:
    """Whether every server that it measures on, or loads from, is ready.

    Also true for a problem that waiting does not solve: the firing then reports it.
    """
    try:
        servers = [schedule.server, *schedule_servers.further(schedule)]
        servers += schedule_servers.generators(schedule) + schedule_servers.of_clusters(schedule)
    except ServiceError:
        return True
    return all(server.state == Server.State.READY for server in servers)


def _is_busy(schedule: Schedule) -> bool:
    return schedule.events.filter(campaign__state__in=Campaign.LIVE).exists()
