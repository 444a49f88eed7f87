"""Decides what of an upload is stored: faults and new rows follow from what is known alone."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from django.utils.translation import gettext as _

from runs.models.campaigns import Origin
from runs.shared import slugs
from runs.shared.errors import Fault
from runs.uploads.services import metrics
from runs.uploads.services.known import (
    Known,
    KnownCampaign,
    KnownRevision,
    KnownServer,
    Place,
)
from runs.uploads.services.metrics import NewMetric
from runs.uploads.services.uploaded_run import GivenProfile, GivenRevision, GivenRun


@dataclass(frozen=True, kw_only=True)
class NewCampaign:
    """A campaign that is named for the first time."""

    slug: str
    uploaded_as: str
    title: str
    scenario: str
    # Empty, without a key, where it has none.
    configuration: str
    configuration_id: int | None
    project_id: int
    origin: str = Origin.UPLOADED.value


@dataclass(frozen=True)
class NewCell:
    """A cell of a new place, with what its first run says of it; `at` is that run's.

    `has_known_levels` says that other cells of the campaign have its levels.
    """

    at: str
    id: int
    place: Place
    series_key: str
    levels: Mapping[str, Any]
    workload: Mapping[str, Any]
    revision_id: int | None
    has_known_levels: bool


@dataclass(frozen=True)
class NewRun:
    """A run under its key, with figures in the units of their metrics; its repeat is not known."""

    id: int
    run: GivenRun
    cell_id: int
    server: KnownServer | None


@dataclass(frozen=True)
class NewRevision:
    """A commit that is named for the first time, under its key."""

    id: int
    revision: GivenRevision


@dataclass(frozen=True)
class RevisionUpdate:
    """Columns of a commit that were empty; what is known stays."""

    pk: int
    columns: Mapping[str, Any]


@dataclass(frozen=True)
class FurtherRef:
    """A branch or tag of a commit that is known by another one: it can be on several."""

    revision_id: int
    ref: str


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What is to be written. Rows that are not here are those that `known` has."""

    known: Known
    campaigns: Sequence[NewCampaign]
    # By fingerprint.
    hardware: Mapping[str, GivenProfile]
    environments: Mapping[str, GivenProfile]
    settings: Mapping[str, Mapping[str, Any]]
    # In the order of their shas.
    revisions: Sequence[NewRevision]
    revision_updates: Sequence[RevisionUpdate]
    refs: Sequence[FurtherRef]
    metrics: Sequence[NewMetric]
    # In the order in which they are first named.
    cells: Sequence[NewCell]
    runs: Sequence[NewRun]


@dataclass(frozen=True)
class Refusal:
    """Why nothing of an upload is stored; see `runs.shared.errors.Refused`."""

    kind: Literal["contradicts", "conflict"]
    faults: Sequence[Fault]


def decide(known: Known) -> Decision | Refusal:
    """What is stored of an upload, or why it is refused. Asks nothing of the database.

    Refused is what `contradicts` something stored (a metric's unit, a campaign's scenario), or is
    in `conflict` with it: an external id that the campaign has already.
    """
    if known.ambiguous_shas:
        return Refusal("contradicts", list(_ambiguous(known)))
    faults: list[Fault] = []
    new_campaigns = _new_campaigns(known, faults)
    faults += _unknown_conditions(known)
    conflicts = list(_taken_external_ids(known))
    new_hardware = _new_profiles((run.hardware for run in known.runs), known.hardware)
    new_environments = _new_profiles(
        (run.environment for run in known.runs), known.environments
    )
    new_cells = _new_cells(known)
    revision_updates = list(_revision_updates(known))
    refs = _further_refs(known)
    figures = metrics.decide(known)
    faults += figures.faults
    if faults:
        return Refusal("contradicts", faults)
    if conflicts:
        return Refusal("conflict", conflicts)
    return Decision(
        known=known,
        campaigns=new_campaigns,
        hardware=new_hardware,
        environments=new_environments,
        settings={
            run.settings_hash: run.snapshot
            for run in known.runs
            if run.settings and run.settings_hash not in known.settings
        },
        revisions=_new_revisions(known),
        revision_updates=revision_updates,
        refs=refs,
        metrics=figures.new_metrics,
        cells=new_cells,
        runs=[
            NewRun(
                id=key,
                run=run,
                cell_id=known.cells[run.campaign, run.cell_key].pk,
                server=known.servers.get(run.server),
            )
            for key, run in zip(known.run_ids, figures.runs, strict=False)
        ],
    )


def _ambiguous(known: Known) -> Iterator[Fault]:
    for sha in sorted(known.ambiguous_shas):
        message = _("Several commits begin with %(sha)s: give it whole.") % {"sha": sha}
        for run in known.runs:
            if run.revision and run.revision.sha == sha:
                yield Fault(f"{run.at}/revision/sha", "ambiguous_revision", message)


# Campaigns: created when first named, never in another project.


def _new_campaigns(known: Known, faults: list[Fault]) -> list[NewCampaign]:
    """The campaigns that are not known, in the order of their slugs."""
    reserved_runs = [run for run in known.runs if _is_reserved(run, known)]
    if reserved_runs:
        message = _("Two hyphens in a row are for names of private projects: use one.")
        faults += [
            Fault(f"{run.at}/campaign", "campaign_name", message)
            for run in reserved_runs
        ]
        return []
    first_run_of = {
        run.campaign: run
        for run in reversed(known.runs)
        if run.campaign not in known.campaigns
    }
    new_campaigns = {}
    for slug, run in first_run_of.items():
        if not run.scenario:
            message = _("The campaign %(slug)s is new: name its scenario.") % {
                "slug": slug
            }
            faults.append(Fault(f"{run.at}/scenario", "required", message))
            continue
        configuration_id = known.configurations.get(run.configuration)
        new_campaigns[slug] = NewCampaign(
            slug=slug,
            uploaded_as=run.uploaded_as,
            title=run.campaign_title or run.uploaded_as or slug,
            scenario=run.scenario,
            configuration=run.configuration if configuration_id else "",
            configuration_id=configuration_id,
            project_id=known.project.pk,
        )
    campaigns: dict[str, KnownCampaign | NewCampaign] = {
        **known.campaigns,
        **new_campaigns,
    }
    for run in known.runs:
        if run.campaign in campaigns:
            faults += _contradictions(run, campaigns[run.campaign], known)
    return [new_campaigns[slug] for slug in sorted(new_campaigns)]


def _is_reserved(run: GivenRun, known: Known) -> bool:
    """Whether only a private project may have this slug, be it there or not."""
    if not known.project.is_public or slugs.OF not in run.campaign:
        return False
    campaign = known.campaigns.get(run.campaign)
    return campaign is None or campaign.project_id != known.project.pk


def _contradictions(
    run: GivenRun, campaign: KnownCampaign | NewCampaign, known: Known
) -> Iterator[Fault]:
    if campaign.origin != Origin.UPLOADED:
        message = _("The campaign %(slug)s was not uploaded: its results are its own.")
        sentence = message % {"slug": run.campaign}
        yield Fault(f"{run.at}/campaign", "campaign_not_uploaded", sentence)
    elif campaign.project_id != known.project.pk:
        message = _("The name %(slug)s is taken by a campaign of another project.")
        sentence = message % {"slug": run.campaign}
        yield Fault(f"{run.at}/campaign", "campaign_taken", sentence)
    elif run.scenario and run.scenario != campaign.scenario:
        message = _("The campaign is of the scenario %(known)s, not of %(given)s.")
        sentence = message % {"known": campaign.scenario, "given": run.scenario}
        yield Fault(f"{run.at}/scenario", "scenario_differs", sentence)
    if run.configuration and run.configuration != campaign.configuration:
        message = _("The campaign has the configuration %(known)s, not %(given)s.")
        sentence = message % {
            "known": campaign.configuration or "–",
            "given": run.configuration,
        }
        yield Fault(f"{run.at}/configuration", "configuration_differs", sentence)


# Conditions: each is stored once per content.


def _unknown_conditions(known: Known) -> Iterator[Fault]:
    """Servers, hardware and environments that are named by slug and not there."""
    for run in known.runs:
        if run.server and run.server not in known.servers:
            yield _unknown(run, "server", run.server)
    for run in known.runs:
        if (
            run.hardware
            and run.hardware.slug
            and run.hardware.slug not in known.hardware
        ):
            yield _unknown(run, "hardware", run.hardware.slug)
    for run in known.runs:
        environment = run.environment
        if (
            environment
            and environment.slug
            and environment.slug not in known.environments
        ):
            yield _unknown(run, "environment", environment.slug)


def _unknown(run: GivenRun, name: str, slug: str) -> Fault:
    message = _("There is no %(kind)s “%(slug)s”.") % {"kind": name, "slug": slug}
    return Fault(f"{run.at}/{name}", f"{name}_unknown", message)


def _new_profiles(
    profiles: Iterable[GivenProfile | None], key_of: Mapping[str, int]
) -> dict[str, GivenProfile]:
    return {
        profile.identity: profile
        for profile in profiles
        if profile and profile.fields and profile.identity not in key_of
    }


def _revisions(known: Known) -> dict[str, GivenRevision]:
    """What is said of each commit, by its sha; a later run says what the earlier ones left out."""
    revisions: dict[str, GivenRevision] = {}
    for run in known.runs:
        if (revision := run.revision) is not None:
            first = revisions.get(revision.sha, revision)
            revisions[revision.sha] = _filled(first, revision)
    return revisions


def _filled(first: GivenRevision, later: GivenRevision) -> GivenRevision:
    missing = {
        field.name: getattr(later, field.name)
        for field in fields(first)
        if not getattr(first, field.name)
    }
    return replace(first, **missing) if missing else first


def _new_revisions(known: Known) -> list[NewRevision]:
    return [
        NewRevision(known.revisions[sha].pk, revision)
        for sha, revision in sorted(_revisions(known).items())
        if known.revisions[sha].is_new
    ]


def _revision_updates(known: Known) -> Iterator[RevisionUpdate]:
    for sha, revision in _revisions(known).items():
        stored = known.revisions[sha]
        if stored.is_new:
            continue
        columns = _missing_columns(revision, stored)
        if columns:
            yield RevisionUpdate(stored.pk, columns)


def _missing_columns(revision: GivenRevision, stored: KnownRevision) -> dict[str, Any]:
    """What is said of a commit that was not known of it."""
    columns: dict[str, Any] = {}
    if revision.ref and not stored.ref:
        columns["ref"] = revision.ref
    if revision.url and not stored.has_url:
        columns["url"] = revision.url
    if revision.committed_at and not stored.has_date:
        columns["committed_at"] = revision.committed_at
    if revision.parents and not stored.has_parents:
        columns["parents"] = list(revision.parents)
    if revision.subject and not stored.has_subject:
        columns["subject"] = revision.subject
    if revision.author and not stored.has_author:
        columns["author"] = revision.author
    if revision.merge_base and not stored.has_merge_base:
        columns["merge_base"] = revision.merge_base.sha
        columns["merge_base_at"] = revision.merge_base.committed_at
    return columns


def _further_refs(known: Known) -> list[FurtherRef]:
    named_refs = {
        (run.revision.sha, run.revision.ref) for run in known.runs if run.revision
    }
    ref_of = {
        sha: revision.ref if known.revisions[sha].is_new else known.revisions[sha].ref
        for sha, revision in _revisions(known).items()
    }
    return [
        FurtherRef(known.revisions[sha].pk, ref)
        for sha, ref in sorted(named_refs)
        if ref and ref_of[sha] not in ("", ref)
    ]


# Places.


def _taken_external_ids(known: Known) -> Iterator[Fault]:
    named_runs = [run for run in known.runs if run.external_id]
    places = Counter((run.campaign, run.external_id) for run in named_runs)
    places.update(known.external_ids)
    for run in named_runs:
        if places[run.campaign, run.external_id] > 1:
            message = _(
                "The campaign %(campaign)s has a run with the external id “%(id)s” already."
            )
            names = {"campaign": run.campaign, "id": run.external_id}
            yield Fault(f"{run.at}/external_id", "external_id_taken", message % names)


def _new_cells(known: Known) -> list[NewCell]:
    """The cells of places that have none."""
    new_cells: dict[Place, NewCell] = {}
    for run in known.runs:
        place = (run.campaign, run.cell_key)
        cell = known.cells[place]
        if place in new_cells or not cell.is_new:
            continue
        new_cells[place] = NewCell(
            at=run.at,
            id=cell.pk,
            place=place,
            series_key=run.series_key,
            levels=run.levels,
            workload=run.workload,
            revision_id=known.revisions[run.revision.sha].pk if run.revision else None,
            has_known_levels=cell.has_levels,
        )
    return list(new_cells.values())
