"""Observations: what is measured again each year, queueing an edition, and people's words on it."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from zoneinfo import ZoneInfo, available_timezones

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.access.services import audit
from runs.archive.selectors import version_line, version_line_rules
from runs.campaigns.services import campaigns, slicing
from runs.campaigns.services.campaign_limits import MOST_REPEATS, REPEATS
from runs.campaigns.services.drafts import Draft
from runs.campaigns.services.estimates import Estimate, estimate
from runs.models import (
    Campaign,
    Configuration,
    Edition,
    Installation,
    Observation,
    Project,
    Server,
)
from runs.models.observations import Releases
from runs.scenarios import registry
from runs.scenarios.definition import Level
from runs.servers.selectors import builds
from runs.servers.services.tools import installed
from runs.shared import slugs
from runs.shared.errors import ServiceError
from runs.shared.formats import duration

logger = logging.getLogger(__name__)


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
    with_nights = Observation.objects.exclude(night_from=None)
    for observation in with_nights:
        try:
            _keep(observation)
        except Exception:
            # Such as a time zone that is gone: the others have their nights all the same.
            logger.exception("the night of observation %d was not kept", observation.pk)


def _keep(observation: Observation) -> None:
    is_on = is_night(observation, timezone.now())
    live = Q(campaigns__state__in=Campaign.LIVE)
    for edition in observation.editions.filter(live).distinct():
        for campaign in edition.campaigns.filter(state__in=Campaign.LIVE):
            paused_at = campaign.paused_at
            if is_on and paused_at is not None and not is_night(observation, paused_at):
                campaigns.resume(campaign=campaign)
            elif not is_on and paused_at is None:
                campaigns.pause(campaign=campaign)


NOT_SLUGS = ("new",)
LEAST_ROUNDS = 2
SECONDS_AN_HOUR = 3600


@dataclass(frozen=True)
class Design:
    """What one scenario measures in each edition; with `slice_seconds` its cells take turns."""

    scenario: str
    levels: Mapping[str, Sequence[Level]]
    parameters: Mapping[str, int]
    repeats: int
    slice_seconds: int | None = None


@dataclass(frozen=True)
class Plan:
    """What a person asks for. `versions` are majors, empty for all that are installed.

    `hours`, if given, decides the repeats of each design in place of its own: as many as fit.
    `night` is (from, until). With `prefers_slices` the server decides whether cells take turns:
    they do where that shows more.
    """

    title: str
    server: Server
    designs: Sequence[Design]
    versions: Sequence[str] = ()
    releases: str = Releases.ALIKE
    anchor: str = ""
    configuration: Configuration | None = None
    hours: float | None = None
    night: tuple[time, time] | None = None
    time_zone: str = "UTC"
    prefers_slices: bool = False


def proposed(
    server: Server, *, seconds: int = version_line_rules.LEAST_SECONDS
) -> Plan:
    """Reading and updating, all that is installed, with runs of so many seconds."""
    title = _("Fixed-point observation on %(server)s") % {"server": server.name}
    designs = [
        Design(slug, {"clients": (1, 4)}, {"scale": 10, "duration": seconds}, REPEATS)
        for slug in (version_line.READ, version_line.UPDATE)
    ]
    return Plan(title, server, designs)


@transaction.atomic
def create(
    *, plan: Plan, by: User | None = None, project: Project | None = None
) -> Observation:
    """Store what is observed; nothing is queued yet. Raises what `planned` raises."""
    planned_observation = planned(plan)
    _check_zone(plan.time_zone)
    observation = Observation(
        title=plan.title.strip(),
        server=plan.server,
        project=project,
        designs=[vars(design) for design in planned_observation.designs],
        versions=list(plan.versions),
        releases=plan.releases,
        anchor=planned_observation.anchor,
        configuration=plan.configuration,
        night_from=plan.night[0] if plan.night else None,
        night_until=plan.night[1] if plan.night else None,
        time_zone=plan.time_zone,
        created_by=by,
    )
    slugs.store(
        observation,
        called=observation.title,
        otherwise="observation",
        project=project,
        taken=NOT_SLUGS,
    )
    audit.record(
        "observation_made",
        observation,
        after={"versions": plan.versions, "anchor": planned_observation.anchor},
    )
    return observation


def _check_zone(time_zone: str) -> None:
    """Raise ServiceError `no_such_time` for a time zone that does not exist (any more)."""
    if time_zone not in available_timezones():
        message, remedy = (
            _("There is no such time zone."),
            _("Give one such as Asia/Tokyo."),
        )
        raise ServiceError("no_such_time", message, remedy=remedy, field="time_zone")


@transaction.atomic
def begin(
    *,
    observation: Observation,
    label: str = "",
    by: User | None = None,
    remeasures: int = 1,
) -> Edition:
    """Queue an edition: a campaign of each design, over what is installed now.

    By day they begin paused where the observation has a night.
    Doubtful runs are measured again `remeasures` times. Raises ServiceError `edition_exists`,
    `no_such_time` for a time zone that is gone, and what `campaigns.queue` raises.
    """
    if observation.night_from is not None:
        _check_zone(observation.time_zone)
    name = label.strip() or str(timezone.localdate().year)
    edition, is_new = Edition.objects.get_or_create(observation=observation, label=name)
    if not is_new:
        message = _("There is an edition %(label)s already.") % {"label": name}
        remedy = _("Give the new one another name, such as “%(label)s, again”.") % {
            "label": name
        }
        raise ServiceError("edition_exists", message, remedy=remedy, field="label")
    is_on = is_night(observation, timezone.now())
    for draft in drafts(plan_of(observation), label=name):
        draft_asked = replace(draft, remeasures=remeasures)
        campaign = campaigns.create(
            draft=draft_asked, by=by, project=observation.project
        )
        edition.campaigns.add(campaign)
        if not is_on:
            # In this transaction, before a worker is woken; `keep` resumes it.
            campaigns.pause(campaign=campaign)
    audit.record("edition_begun", observation, after={"edition": name})
    return edition


def write(*, edition: Edition, **texts: str) -> Edition:
    """Keep what people write: `purpose`, `discussion`, `conclusion`, `history`, `licence`."""
    for name, text in texts.items():
        setattr(edition, name, text.strip())
    edition.save(update_fields=list(texts))
    audit.record(
        "edition_written",
        edition.observation,
        after={"edition": edition.label, **texts},
    )
    return edition


def planned(plan: Plan) -> Plan:
    """The plan with its anchor and its repeats. Two queries.

    Without an anchor given it is the newest version but one: next year it is still installed.
    Raises ServiceError `nothing_installed`, `no_scenario`, `anchor_missing`, or `budget_too_small`.
    """
    majors = majors_of(plan)
    if len(majors) < 2:
        message = _(
            "Two versions at least are needed, and the server has %(count)d of these."
        )
        remedy = _("Install others, or add their folders on the server's page.")
        raise ServiceError(
            "nothing_installed",
            message % {"count": len(majors)},
            remedy=remedy,
            field="versions",
        )
    if not plan.designs:
        raise ServiceError(
            "no_scenario", _("Choose what is observed."), field="scenarios"
        )
    anchor = plan.anchor or majors[-2]
    if anchor not in majors:
        message = _("The anchor %(version)s is not among the versions.") % {
            "version": anchor
        }
        remedy = _("Choose one of %(versions)s.") % {"versions": ", ".join(majors)}
        raise ServiceError("anchor_missing", message, remedy=remedy, field="anchor")
    chosen = replace(plan, anchor=anchor)
    if plan.prefers_slices:
        chosen = _prefer_turns(chosen)
    if plan.hours is None:
        return chosen
    rounds = rounds_within(chosen)
    return replace(
        chosen, designs=[replace(design, repeats=rounds) for design in plan.designs]
    )


def _prefer_turns(plan: Plan) -> Plan:
    preferred = [
        slicing.slice_if_preferred(draft).slice_seconds
        for draft in drafts(plan, label="")
    ]
    designs = [
        replace(design, slice_seconds=slice_seconds)
        for design, slice_seconds in zip(plan.designs, preferred, strict=True)
    ]
    return replace(plan, designs=designs)


def rounds_within(plan: Plan) -> int:
    """How many rounds of all designs fit into the hours. Raises ServiceError `budget_too_small`."""
    seconds_of_one, two = _seconds_of_rounds(plan, 1), _seconds_of_rounds(plan, 2)
    room = (plan.hours or 0) * SECONDS_AN_HOUR
    rounds = (
        min(MOST_REPEATS, int((room - seconds_of_one) / (two - seconds_of_one)) + 1)
        if two > seconds_of_one
        else MOST_REPEATS
    )
    if room < seconds_of_one or rounds < LEAST_ROUNDS:
        message = _("Two rounds take %(time)s, which is more than there is.")
        remedy = _("Allow more time, or measure fewer versions, levels or seconds.")
        message %= {"time": duration(two)}
        raise ServiceError("budget_too_small", message, remedy=remedy, field="hours")
    return rounds


def _seconds_of_rounds(plan: Plan, number: int) -> float:
    designs = [replace(design, repeats=number) for design in plan.designs]
    return sum(
        estimate.seconds
        for estimate in estimates(replace(plan, hours=None, designs=designs))
    )


def estimates(plan: Plan) -> list[Estimate]:
    """What each campaign of an edition takes, and what is wrong with it."""
    return [estimate(draft) for draft in drafts(plan, label="")]


def plan_of(observation: Observation) -> Plan:
    """The plan of an observation that is stored."""
    return Plan(
        title=observation.title,
        server=observation.server,
        designs=[Design(**design) for design in observation.designs],
        versions=observation.versions,
        releases=observation.releases,
        anchor=observation.anchor,
        configuration=observation.configuration,
    )


def drafts(plan: Plan, *, label: str) -> list[Draft]:
    """The draft of each design: all versions in each round, so that they share what disturbs it."""
    chosen = installations(plan)
    return [
        Draft(
            title=_("%(title)s %(edition)s: %(scenario)s")
            % {
                "title": plan.title,
                "edition": label,
                "scenario": _(registry.get(design.scenario).title),
            },
            scenario=design.scenario,
            server=plan.server,
            installations=chosen,
            levels=design.levels,
            parameters=design.parameters,
            repeats=design.repeats,
            configuration=plan.configuration,
            slice_seconds=design.slice_seconds,
        )
        for design in plan.designs
    ]


def installations(plan: Plan) -> list[Installation]:
    """Those of the versions that are observed, the oldest version first. One query.

    A version of which there is a slow build alone is measured only if it is asked for.
    """
    wanted_versions = set(plan.versions)
    return [
        installation
        for installation in _chosen(plan)
        if installation.major in wanted_versions or not builds.is_slow(installation)
    ]


def left_out(plan: Plan) -> str:
    """The versions that would be measured if their builds were not slow. One query."""
    slow = (
        []
        if plan.versions
        else [
            installation
            for installation in _chosen(plan)
            if builds.is_slow(installation)
        ]
    )
    if not slow:
        return ""
    slow_versions = "; ".join(
        f"PostgreSQL {installation.version} ({builds.words(installation)})"
        for installation in slow
    )
    text = _(
        "Not measured unless chosen, since figures of such builds say little: %(versions)s."
    )
    return text % {"versions": slow_versions}


def _chosen(plan: Plan) -> list[Installation]:
    present, wanted_versions = (
        installed([plan.server])[plan.server.pk],
        set(plan.versions),
    )
    of_versions = (
        installation
        for installation in present
        if not wanted_versions or installation.major in wanted_versions
    )
    return builds.chosen(of_versions, plan.releases)


def majors_of(plan: Plan) -> list[str]:
    """The major versions that an edition would measure, the oldest first. One query."""
    return list(
        dict.fromkeys(installation.major for installation in installations(plan))
    )


def offered(server: Server) -> list[str]:
    """The major versions that can be chosen on a server, the oldest first. One query."""
    return list(
        dict.fromkeys(
            installation.major for installation in _chosen(Plan("", server, ()))
        )
    )
