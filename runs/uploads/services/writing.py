"""Writes what was decided of an upload. Rows are locked in one order everywhere, as said below."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.utils import timezone
from django.utils.translation import gettext as _

from runs.cells.selectors import versions
from runs.cells.services import summaries
from runs.models import (
    Campaign,
    Environment,
    HardwareProfile,
    Metric,
    Revision,
    RevisionRef,
    Run,
    Scenario,
    SettingsSnapshot,
)
from runs.models.campaigns import Origin
from runs.queue.services import artifacts
from runs.shared.database import Statement, array, copy, perform
from runs.shared.errors import Fault, Refused
from runs.uploads.services import factors
from runs.uploads.services.decision import Decision, NewCampaign, NewCell, NewRun
from runs.uploads.services.known import StoredRun
from runs.uploads.services.metrics import NewMetric
from runs.uploads.services.question import AT_KEY
from runs.uploads.services.uploaded_run import GivenProfile

STATES = {
    "finished": Run.State.FINISHED,
    "failed": Run.State.FAILED,
    # Its figures are stored but not used elsewhere: they cover less than was asked for.
    "partial": Run.State.FAILED,
}
# The cells of campaigns and keys.
WANTED = (
    "FROM unnest(%s::bigint[], %s::text[]) AS wanted (campaign, key)"
    f" JOIN {AT_KEY.format(campaign='wanted.campaign')}"
    " ON cell.campaign_id = wanted.campaign AND cell.key = wanted.key"
)

# The key of a campaign and the key text of a cell.
CellPlace = tuple[int, str]


class Overtaken(Exception):
    """Another upload has created one of the rows first, and otherwise: ask and decide again."""


class RunRow(NamedTuple):
    """The columns of a new run. Those not named are null."""

    id: int
    campaign_id: int
    cell_id: int
    repeat: int
    position: int
    origin: str
    state: str
    code: str
    message: str
    remedy: str
    attempt: int
    server_id: int | None
    hardware_id: int | None
    environment_id: int | None
    settings_id: int | None
    server_version: str
    tool_name: str
    tool_version: str
    quality: str
    wording: str
    external_id: str
    round: int | None
    labels: str
    queued_at: datetime
    started_at: datetime
    finished_at: datetime | None


class MeasurementRow(NamedTuple):
    """The columns of a number."""

    run_id: int
    metric_id: int
    value: float
    n: int
    statistic: str


class SeriesRow(NamedTuple):
    """The columns of a series."""

    run_id: int
    name: str
    unit: str
    start: float
    interval: float
    values: str


class CellRow(NamedTuple):
    """The columns of a new cell; `place` is its number among the new cells of its campaign."""

    campaign_id: int
    key: str
    series_key: str
    levels: str
    workload: str
    revision_id: int | None
    version: str
    version_num: int | None
    place: int


@dataclass(frozen=True)
class Conditions:
    """The keys of conditions in the database, by slug or fingerprint."""

    hardware: Mapping[str, int]
    environments: Mapping[str, int]
    settings: Mapping[str, int]


@dataclass(frozen=True)
class RunPlace:
    """Where a run belongs."""

    campaign_id: int
    cell_id: int
    repeat: int


@dataclass(frozen=True)
class Written:
    """What was written: the outcome for each run of the upload, and the cells with new figures."""

    new_runs: Sequence[NewRun]
    outcomes: list[StoredRun]
    # Pairs of campaign and cell.
    cells: frozenset[tuple[int, int]]


def write(decision: Decision) -> Written:
    """Write all rows of an upload but those of queues. Call it in a transaction.

    In this order, which is that of locks: campaigns, conditions, metrics, levels of campaigns, new
    cells, cells that were there, runs, summaries. Who creates a row that another upload is about to
    commit waits for that, so rows of a table are created in the order of their names.

    Raises Overtaken; IntegrityError for an external id that exists already; Refused for a level
    that the campaign writes in another way.
    """
    known = decision.known
    if not decision.runs:
        return Written((), list(known.stored_before.values()), frozenset())
    campaign_ids = {slug: campaign.pk for slug, campaign in known.campaigns.items()}
    campaign_ids |= _create_campaigns(decision.campaigns)
    conditions = Conditions(
        hardware={**known.hardware, **_create_profiles(HardwareProfile, decision.hardware)},
        environments={**known.environments, **_create_profiles(Environment, decision.environments)},
        settings={**known.settings, **_create_settings(decision.settings)},
    )
    _complete_revisions(decision)
    metric_ids = {name: metric.pk for name, metric in known.metrics.items()}
    metric_ids |= _create_metrics(decision.metrics, decision)
    places = _place(decision, campaign_ids)
    _copy_runs(decision.runs, places, conditions)
    _copy_figures(decision.runs, metric_ids)
    outcomes = _outcomes(decision, places)
    cells = frozenset(
        (place.campaign_id, place.cell_id)
        for new_run, place in zip(decision.runs, places, strict=True)
        if new_run.run.status == "finished" and new_run.run.measurements
    )
    if cells:
        perform([summaries.carrying(run_ids=[new_run.id for new_run in decision.runs])])
    files = [(new_run.id, file) for new_run in decision.runs for file in new_run.run.files]
    for _file, error in artifacts.store_all(files):
        raise error
    return Written(decision.runs, outcomes, cells)


def _outcomes(decision: Decision, places: Sequence[RunPlace]) -> list[StoredRun]:
    """New runs and those that were stored before, in the order of the upload."""
    outcomes = [
        StoredRun(
            id=new_run.id,
            campaign=new_run.run.campaign,
            state=STATES[new_run.run.status],
            code=new_run.run.code,
            message=new_run.run.message,
            wording=new_run.run.wording,
            repeat=place.repeat,
        )
        for new_run, place in zip(decision.runs, places, strict=True)
    ]
    for position, stored_run in sorted(decision.known.stored_before.items()):
        outcomes.insert(position, stored_run)
    return outcomes


# Rows that are stored once. Each that is new may have come from another upload since it was asked
# for: what was created is read again.


def _create_campaigns(campaigns: Sequence[NewCampaign]) -> dict[str, int]:
    """Keys by slug. A scenario that is unknown is created: it has only data, and cannot be run."""
    if not campaigns:
        return {}
    scenario_slugs = {campaign.scenario for campaign in campaigns}
    Scenario.objects.bulk_create(
        [Scenario(slug=slug, title=slug) for slug in sorted(scenario_slugs)], ignore_conflicts=True
    )
    scenarios = Scenario.objects.in_bulk(scenario_slugs, field_name="slug")
    Campaign.objects.bulk_create(
        [
            Campaign(
                slug=campaign.slug,
                uploaded_as=campaign.uploaded_as,
                title=campaign.title,
                project_id=campaign.project_id,
                origin=campaign.origin,
                # Uploaded runs have already ended: the campaign waits for nothing.
                state=Campaign.State.FINISHED,
                scenario=scenarios[campaign.scenario],
                configuration_id=campaign.configuration_id,
                repeats=1,
            )
            for campaign in campaigns
        ],
        ignore_conflicts=True,
    )
    stored_campaigns = Campaign.objects.in_bulk(
        [campaign.slug for campaign in campaigns], field_name="slug"
    )
    for campaign in campaigns:
        stored = stored_campaigns[campaign.slug]
        is_alike = (
            stored.origin == campaign.origin
            and stored.project_id == campaign.project_id
            and stored.scenario_id == scenarios[campaign.scenario].pk
            and stored.configuration_id == campaign.configuration_id
        )
        if not is_alike:
            raise Overtaken
    return {slug: stored.pk for slug, stored in stored_campaigns.items()}


def _create_profiles(
    model: type[HardwareProfile] | type[Environment], profiles: Mapping[str, GivenProfile]
) -> dict[str, int]:
    """Keys by fingerprint."""
    if not profiles:
        return {}
    rows = [
        model(fingerprint=fingerprint, **profile.fields)
        for fingerprint, profile in sorted(profiles.items())
    ]
    model.objects.bulk_create(rows, ignore_conflicts=True)  # type: ignore[arg-type]
    stored_profiles = model.objects.filter(fingerprint__in=profiles).order_by()
    return dict(stored_profiles.values_list("fingerprint", "pk"))


def _create_settings(snapshots: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Keys by fingerprint."""
    if not snapshots:
        return {}
    SettingsSnapshot.objects.bulk_create(
        [
            SettingsSnapshot(content_hash=content_hash, settings=settings)
            for content_hash, settings in sorted(snapshots.items())
        ],
        ignore_conflicts=True,
    )
    stored_snapshots = SettingsSnapshot.objects.filter(content_hash__in=snapshots).order_by()
    return dict(stored_snapshots.values_list("content_hash", "pk"))


def _complete_revisions(decision: Decision) -> None:
    for update in decision.revision_updates:
        Revision.objects.filter(pk=update.pk).update(**update.columns)
    if decision.refs:
        RevisionRef.objects.bulk_create(
            [RevisionRef(revision_id=ref.revision_id, ref=ref.ref) for ref in decision.refs],
            ignore_conflicts=True,
        )


def _create_metrics(metrics: Sequence[NewMetric], decision: Decision) -> dict[str, int]:
    """Keys by name."""
    if not metrics:
        return {}
    project = decision.known.project
    Metric.objects.bulk_create(
        [
            Metric(
                name=metric.name,
                project=project,
                unit=metric.unit,
                direction=metric.direction,
                title=metric.title,
            )
            for metric in metrics
        ],
        ignore_conflicts=True,
    )
    names = [metric.name for metric in metrics]
    stored_metrics = {
        stored.name: stored for stored in Metric.objects.filter(project=project, name__in=names)
    }
    for metric in metrics:
        stored = stored_metrics[metric.name]
        if (stored.unit, stored.direction) != (metric.unit, metric.direction):
            raise Overtaken
    return {name: stored.pk for name, stored in stored_metrics.items()}


# Cells, and the numbers of repeats.


def _place(decision: Decision, campaign_ids: Mapping[str, int]) -> list[RunPlace]:
    """The cell and repeat of each run.

    Locks the cells that were there until the transaction ends: two uploads at once must not assign
    the same number, so each cell is locked before its repeats are read; always in the same order,
    to avoid deadlocks. For the same reason new cells are created before any lock. They need none:
    nobody else sees them yet.
    """
    _note_levels([cell for cell in decision.cells if not cell.has_known_levels], campaign_ids)
    cell_ids = _create_cells(decision.cells, campaign_ids)
    places = [(campaign_ids[new_run.place[0]], new_run.place[1]) for new_run in decision.runs]
    locked_cells, repeats = _lock_cells(sorted(set(places) - cell_ids.keys()))
    cell_ids |= locked_cells
    run_places = []
    for campaign_id, key in places:
        cell_id = cell_ids[campaign_id, key]
        repeats[cell_id] += 1
        run_places.append(RunPlace(campaign_id, cell_id, repeats[cell_id]))
    return run_places


def _note_levels(cells: Sequence[NewCell], campaign_ids: Mapping[str, int]) -> None:
    """Add levels that are new to the factors of their campaigns, one upload at a time for each."""
    if not cells:
        return
    keys = {campaign_ids[cell.place[0]] for cell in cells}
    locked_campaigns = (
        Campaign.objects.filter(pk__in=sorted(keys))
        .order_by("pk")
        .only("slug", "factors")
        .select_for_update(no_key=True)
    )
    campaign_of = {campaign.slug: campaign for campaign in locked_campaigns}
    changed_slugs = set()
    for cell in cells:
        slug = cell.place[0]
        _refuse_twins(campaign_of[slug].factors, cell)
        if factors.note(campaign_of[slug].factors, cell.levels):
            changed_slugs.add(slug)
    for slug in changed_slugs:
        campaign_of[slug].save(update_fields=["factors"])


def _refuse_twins(campaign_factors: Mapping[str, Any], cell: NewCell) -> None:
    """Raise Refused for a level that is there in another way of writing."""
    for name, level in cell.levels.items():
        twin = factors.twin_of(level, campaign_factors.get(name, ()))
        if twin is not None:
            message = _("The level is %(given)s here, and %(known)s in the campaign.")
            words = {"given": json.dumps(level), "known": json.dumps(twin)}
            fault = Fault(f"{cell.at}/levels/{name}", "level_twice", message % words)
            raise Refused("contradicts", [fault])


def _create_cells(
    cells: Sequence[NewCell], campaign_ids: Mapping[str, int]
) -> dict[CellPlace, int]:
    """Cells created in the order of their keys, but those that another upload has created since.

    Nothing of the campaign is locked, so cells made at the same time can have the same ordinal.
    """
    if not cells:
        return {}
    numbers = Counter[str]()
    rows = []
    for cell in cells:
        slug, key = cell.place
        numbers[slug] += 1
        version = str(cell.levels.get("version", ""))
        rows.append(
            CellRow(
                campaign_id=campaign_ids[slug],
                key=key,
                series_key=cell.series_key,
                levels=json.dumps(dict(cell.levels)),
                workload=json.dumps(dict(cell.workload)),
                revision_id=cell.revision_id,
                version=version,
                version_num=versions.number(version),
                place=numbers[slug],
            )
        )
    rows.sort(key=lambda row: (row.campaign_id, row.key))
    creation = Statement(
        "INSERT INTO runs_cell (campaign_id, key, series_key, levels, workload, revision_id,"
        " version, version_num, ordinal)"
        " SELECT campaign, key, series, levels, workload, revision, version, number,"
        " place + coalesce((SELECT max(ordinal) FROM runs_cell WHERE campaign_id = campaign), 0)"
        " FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::jsonb[], %s::jsonb[],"
        " %s::bigint[], %s::text[], %s::integer[], %s::integer[])"
        " AS made (campaign, key, series, levels, workload, revision, version, number, place)"
        " ON CONFLICT (campaign_id, key) DO NOTHING RETURNING campaign_id, key, id",
        tuple(map(list, zip(*rows, strict=True))),
    )
    (created_rows,) = perform([creation])
    return {(campaign_id, key): cell_id for campaign_id, key, cell_id in created_rows}


def _lock_cells(places: Sequence[CellPlace]) -> tuple[dict[CellPlace, int], Counter[int]]:
    """Cells that were there, and the number of the last repeat of each."""
    if not places:
        return {}, Counter()
    columns = [list(column) for column in zip(*places, strict=True)]
    locked_rows, repeat_rows = perform(
        [
            Statement(
                "SELECT campaign_id, key, id FROM runs_cell"  # noqa: S608 -- our names
                f" WHERE id = ANY(ARRAY(SELECT cell.id {WANTED})) ORDER BY id FOR NO KEY UPDATE",
                (*columns,),
            ),
            # A statement of its own: it must see what was committed during the wait for the lock.
            Statement(
                "SELECT cell.id, (SELECT repeat FROM runs_run WHERE cell_id = cell.id"  # noqa: S608
                f" ORDER BY repeat DESC LIMIT 1) {WANTED}",
                (*columns,),
            ),
        ]
    )
    cells = {(campaign_id, key): cell_id for campaign_id, key, cell_id in locked_rows}
    return cells, Counter({cell_id: repeat or 0 for cell_id, repeat in repeat_rows})


# Runs, their figures and files.


def _copy_runs(
    new_runs: Sequence[NewRun], places: Sequence[RunPlace], conditions: Conditions
) -> None:
    now = timezone.now()
    rows = (
        _run_row(new_run, place, conditions, now)
        for new_run, place in zip(new_runs, places, strict=True)
    )
    copy("runs_run", RunRow._fields, rows)


def _run_row(new_run: NewRun, place: RunPlace, conditions: Conditions, now: datetime) -> RunRow:
    run, server = new_run.run, new_run.server
    hardware_id = conditions.hardware.get(run.hardware.identity) if run.hardware else None
    environment_id = (
        conditions.environments.get(run.environment.identity) if run.environment else None
    )
    return RunRow(
        id=new_run.id,
        campaign_id=place.campaign_id,
        cell_id=place.cell_id,
        repeat=place.repeat,
        # Only `started_at` gives the order of execution.
        position=0,
        origin=Origin.UPLOADED.value,
        state=STATES[run.status].value,
        code=run.code,
        message=run.message,
        remedy="",
        attempt=1,
        server_id=server.pk if server else None,
        hardware_id=hardware_id or (server.hardware_id if server else None),
        environment_id=environment_id or (server.environment_id if server else None),
        settings_id=conditions.settings.get(run.settings_hash),
        server_version=run.server_version,
        tool_name=run.tool_name,
        tool_version=run.tool_version,
        quality=json.dumps([dict(note) for note in run.notes]) if run.notes else "[]",
        wording=json.dumps(run.wording) if run.wording else "{}",
        external_id=run.external_id,
        round=run.round,
        labels=json.dumps(dict(run.labels)) if run.labels else "{}",
        queued_at=now,
        started_at=run.started_at,
        finished_at=run.finished_at,
    )


def _copy_figures(new_runs: Sequence[NewRun], metric_ids: Mapping[str, int]) -> None:
    if any(new_run.run.measurements for new_run in new_runs):
        # Made one after the other: thousands at once are work for the garbage collector.
        measurement_rows = (
            MeasurementRow(
                new_run.id,
                metric_ids[measurement.metric],
                measurement.value,
                measurement.n,
                measurement.statistic,
            )
            for new_run in new_runs
            for measurement in new_run.run.measurements
        )
        copy("runs_measurement", MeasurementRow._fields, measurement_rows)
    series_rows = [
        SeriesRow(
            run_id=new_run.id,
            name=series.name,
            unit=series.unit,
            start=series.start,
            interval=series.interval,
            values=array(series.values),
        )
        for new_run in new_runs
        for series in new_run.run.series
    ]
    if series_rows:
        copy("runs_series", SeriesRow._fields, series_rows)
