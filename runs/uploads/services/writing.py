"""Writes what was decided of an upload. Rows are locked in one order everywhere, as said below."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

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
from runs.shared.database import Statement, array, array_of_words, copy, perform_named
from runs.shared.errors import Fault, Refused
from runs.uploads.services import factors, notices
from runs.uploads.services.decision import (
    Decision,
    NewCampaign,
    NewCell,
    NewRevision,
    NewRun,
)
from runs.uploads.services.known import StoredRun
from runs.uploads.services.metrics import NewMetric
from runs.uploads.services.uploaded_run import GivenProfile

STATES = {
    "finished": Run.State.FINISHED,
    "failed": Run.State.FAILED,
    # Its figures are stored but not used elsewhere: they cover less than was asked for.
    "partial": Run.State.FAILED,
}
# Rows travel as one JSON document, so that a statement is the same for one and for thousands.
NEW_REVISIONS = """
INSERT INTO runs_revision (id, project_id, sha, ref, url, committed_at, parents, subject, author,
       merge_base, merge_base_at, created_at)
SELECT id, project_id, sha, ref, url, committed_at, parents, subject, author, merge_base,
       merge_base_at, now()
  FROM json_to_recordset(%s) AS new (
       id bigint, project_id bigint, sha text, ref text, url text, committed_at timestamptz,
       parents jsonb, subject text, author text, merge_base text, merge_base_at timestamptz)
"""
NEW_CELLS = """
INSERT INTO runs_cell (id, campaign_id, key, series_key, levels, workload, revision_id, version,
       version_num, ordinal)
SELECT id, campaign_id, key, series_key, levels, workload, revision_id, version, version_num,
       place + coalesce((SELECT max(ordinal) FROM runs_cell earlier
                          WHERE earlier.campaign_id = new.campaign_id), 0)
  FROM json_to_recordset(%s) AS new (
       id bigint, campaign_id bigint, key text, series_key text, levels jsonb, workload jsonb,
       revision_id bigint, version text, version_num integer, place integer)
"""
LOCKED_CELLS = "SELECT id FROM runs_cell WHERE id = ANY(%s::bigint[]) ORDER BY id FOR NO KEY UPDATE"
# Only `started_at` gives the order of execution: the position is always 0.
NEW_RUNS = """
INSERT INTO runs_run (id, campaign_id, cell_id, repeat, position, origin, state, code, message,
       remedy, attempt, server_id, hardware_id, environment_id, settings_id, server_version,
       tool_name, tool_version, quality, wording, external_id, round, labels, queued_at, started_at,
       finished_at)
SELECT id, campaign_id, cell_id,
       number + coalesce((SELECT repeat FROM runs_run earlier WHERE earlier.cell_id = new.cell_id
                           ORDER BY repeat DESC LIMIT 1), 0),
       0, origin, state, code, message, '', 1, server_id, hardware_id, environment_id,
       settings_id, server_version, tool_name, tool_version, quality, wording, external_id, round,
       labels, now(), started_at, finished_at
  FROM json_to_recordset(%s) AS new (
       id bigint, campaign_id bigint, cell_id bigint, number integer, origin text, state text,
       code text, message text, server_id bigint, hardware_id bigint, environment_id bigint,
       settings_id bigint, server_version text, tool_name text, tool_version text, quality jsonb,
       wording jsonb, external_id text, round integer, labels jsonb, started_at timestamptz,
       finished_at timestamptz)
RETURNING id, repeat
"""
NEW_FIGURES = """
INSERT INTO runs_measurement (run_id, metric_id, value, n, statistic)
SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::float8[], %s::integer[], %s::text[])
"""


class Overtaken(Exception):
    """Another upload has created one of the rows first, and otherwise: ask and decide again."""


class SeriesRow(NamedTuple):
    """The columns of a series."""

    run_id: int
    name: str
    unit: str
    start: float
    interval: float
    values: str


@dataclass(frozen=True)
class Conditions:
    """The keys of conditions in the database, by slug or fingerprint."""

    hardware: Mapping[str, int]
    environments: Mapping[str, int]
    settings: Mapping[str, int]


@dataclass(frozen=True)
class Written:
    """What was written: new runs, and the outcome for each run of the upload."""

    new_runs: Sequence[NewRun]
    outcomes: list[StoredRun]
    # With new figures.
    campaigns: frozenset[int]


def write(decision: Decision) -> Written:
    """Write all rows of an upload. Call it in a transaction.

    In this order, which is that of locks: campaigns, conditions, metrics, levels of campaigns, new
    commits, new cells, cells that were there, runs, summaries, queues. Who creates a row that
    another upload is about to commit waits for that, so rows of a table are created in the order of
    their names.

    Raises Overtaken; IntegrityError for what exists already, as an external id or a cell; Refused
    for a level that the campaign writes in another way.
    """
    known = decision.known
    if not decision.runs:
        return Written((), list(known.stored_before.values()), frozenset())
    campaign_ids = {slug: campaign.pk for slug, campaign in known.campaigns.items()}
    campaign_ids |= _create_campaigns(decision.campaigns)
    conditions = Conditions(
        hardware={
            **known.hardware,
            **_create_profiles(HardwareProfile, decision.hardware),
        },
        environments={
            **known.environments,
            **_create_profiles(Environment, decision.environments),
        },
        settings={**known.settings, **_create_settings(decision.settings)},
    )
    _complete_revisions(decision)
    metric_ids = {name: metric.pk for name, metric in known.metrics.items()}
    metric_ids |= _create_metrics(decision.metrics, decision)
    _note_levels(
        [cell for cell in decision.cells if not cell.has_known_levels], campaign_ids
    )
    statements = {}
    if decision.revisions:
        statements["revisions"] = _new_revisions(decision)
    if decision.cells:
        statements["cells"] = _new_cells(decision.cells, campaign_ids)
    # Two uploads at once must not give the same number of a repeat, so each cell is locked before
    # its repeats are read. New ones need no lock: nobody else sees them yet.
    locked_cells = {new_run.cell_id for new_run in decision.runs}
    locked_cells -= {cell.id for cell in decision.cells}
    if locked_cells:
        statements["locks"] = Statement(LOCKED_CELLS, (array(sorted(locked_cells)),))
    statements["runs"] = _new_runs(decision.runs, campaign_ids, conditions)
    if any(new_run.run.measurements for new_run in decision.runs):
        statements["figures"] = _new_figures(decision.runs, metric_ids)
    statements |= _summaries(decision, metric_ids)
    cells = frozenset(
        (campaign_ids[new_run.run.campaign], new_run.cell_id)
        for new_run in decision.runs
        if _is_summarised(new_run)
    )
    statements |= notices.waiting(decision.runs, cells)
    repeat_of: dict[int, int] = dict(perform_named(statements)["runs"])
    _copy_series(decision.runs)
    files = [
        (new_run.id, file) for new_run in decision.runs for file in new_run.run.files
    ]
    for _file, error in artifacts.store_all(files):
        raise error
    campaigns = frozenset(campaign_id for campaign_id, _cell_id in cells)
    return Written(decision.runs, _outcomes(decision, repeat_of), campaigns)


def _outcomes(decision: Decision, repeat_of: Mapping[int, int]) -> list[StoredRun]:
    """New runs and those that were stored before, in the order of the upload."""
    outcomes = [
        StoredRun(
            id=new_run.id,
            campaign=new_run.run.campaign,
            state=STATES[new_run.run.status],
            code=new_run.run.code,
            message=new_run.run.message,
            wording=new_run.run.wording,
            repeat=repeat_of[new_run.id],
        )
        for new_run in decision.runs
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
        [Scenario(slug=slug, title=slug) for slug in sorted(scenario_slugs)],
        ignore_conflicts=True,
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
    model: type[HardwareProfile] | type[Environment],
    profiles: Mapping[str, GivenProfile],
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
    stored_snapshots = SettingsSnapshot.objects.filter(
        content_hash__in=snapshots
    ).order_by()
    return dict(stored_snapshots.values_list("content_hash", "pk"))


def _complete_revisions(decision: Decision) -> None:
    """Add to known commits what was not known of them."""
    for update in decision.revision_updates:
        Revision.objects.filter(pk=update.pk).update(**update.columns)
    if decision.refs:
        RevisionRef.objects.bulk_create(
            [
                RevisionRef(revision_id=ref.revision_id, ref=ref.ref)
                for ref in decision.refs
            ],
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
        stored.name: stored
        for stored in Metric.objects.filter(project=project, name__in=names)
    }
    for metric in metrics:
        stored = stored_metrics[metric.name]
        if (stored.unit, stored.direction) != (metric.unit, metric.direction):
            raise Overtaken
    return {name: stored.pk for name, stored in stored_metrics.items()}


def _new_revisions(decision: Decision) -> Statement:
    rows = [_revision_row(new, decision.known.project.pk) for new in decision.revisions]
    return Statement(NEW_REVISIONS, (json.dumps(rows),))


def _revision_row(new: NewRevision, project_id: int) -> dict[str, Any]:
    revision, merge_base = new.revision, new.revision.merge_base
    return {
        "id": new.id,
        "project_id": project_id,
        "sha": revision.sha,
        "ref": revision.ref,
        "url": revision.url,
        "committed_at": _text_of(revision.committed_at),
        "parents": revision.parents,
        "subject": revision.subject,
        "author": revision.author,
        "merge_base": merge_base.sha if merge_base else "",
        "merge_base_at": _text_of(merge_base.committed_at) if merge_base else None,
    }


def _text_of(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


# Cells.


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


def _new_cells(cells: Sequence[NewCell], campaign_ids: Mapping[str, int]) -> Statement:
    """Creates cells in the order of their keys.

    Nothing of the campaign is locked, so cells made at the same time can have the same ordinal.
    """
    numbers = Counter[str]()
    rows = []
    for cell in cells:
        slug, key = cell.place
        numbers[slug] += 1
        version = str(cell.levels.get("version", ""))
        row = {
            "id": cell.id,
            "campaign_id": campaign_ids[slug],
            "key": key,
            "series_key": cell.series_key,
            "levels": cell.levels,
            "workload": cell.workload,
            "revision_id": cell.revision_id,
            "version": version,
            "version_num": versions.number(version),
            "place": numbers[slug],
        }
        rows.append(row)
    rows.sort(key=lambda row: (row["campaign_id"], row["key"]))
    return Statement(NEW_CELLS, (json.dumps(rows),))


# Runs, their figures and files.


def _new_runs(
    new_runs: Sequence[NewRun], campaign_ids: Mapping[str, int], conditions: Conditions
) -> Statement:
    """Creates runs, with the next numbers of repeats of their cells."""
    numbers = Counter[int]()
    rows = []
    for new_run in new_runs:
        numbers[new_run.cell_id] += 1
        campaign_id = campaign_ids[new_run.run.campaign]
        rows.append(
            _run_row(new_run, campaign_id, numbers[new_run.cell_id], conditions)
        )
    return Statement(NEW_RUNS, (json.dumps(rows),))


def _run_row(
    new_run: NewRun, campaign_id: int, number: int, conditions: Conditions
) -> dict[str, Any]:
    run, server = new_run.run, new_run.server
    hardware_id = (
        conditions.hardware.get(run.hardware.identity) if run.hardware else None
    )
    environment_id = (
        conditions.environments.get(run.environment.identity)
        if run.environment
        else None
    )
    return {
        "id": new_run.id,
        "origin": Origin.UPLOADED.value,
        "campaign_id": campaign_id,
        "cell_id": new_run.cell_id,
        "number": number,
        "state": STATES[run.status].value,
        "code": run.code,
        "message": run.message,
        "server_id": server.pk if server else None,
        "hardware_id": hardware_id or (server.hardware_id if server else None),
        "environment_id": environment_id or (server.environment_id if server else None),
        "settings_id": conditions.settings.get(run.settings_hash),
        "server_version": run.server_version,
        "tool_name": run.tool_name,
        "tool_version": run.tool_version,
        "quality": run.notes,
        "wording": run.wording,
        "external_id": run.external_id,
        "round": run.round,
        "labels": run.labels,
        "started_at": _text_of(run.started_at),
        "finished_at": _text_of(run.finished_at),
    }


def _new_figures(
    new_runs: Sequence[NewRun], metric_ids: Mapping[str, int]
) -> Statement:
    figures = [
        (new_run.id, measurement)
        for new_run in new_runs
        for measurement in new_run.run.measurements
    ]
    columns = (
        array(run_id for run_id, _measurement in figures),
        array(metric_ids[measurement.metric] for _run_id, measurement in figures),
        array(measurement.value for _run_id, measurement in figures),
        array(measurement.n for _run_id, measurement in figures),
        array_of_words(measurement.statistic for _run_id, measurement in figures),
    )
    return Statement(NEW_FIGURES, columns)


def _is_summarised(new_run: NewRun) -> bool:
    """Whether its cell has a summary to which the run belongs."""
    return new_run.run.status == "finished" and bool(new_run.run.measurements)


def _summaries(
    decision: Decision, metric_ids: Mapping[str, int]
) -> dict[str, Statement]:
    """Summarises new cells from what is at hand, and carries the summaries of others forward."""
    new_cells = {cell.id for cell in decision.cells}
    values: dict[tuple[int, int], list[float]] = defaultdict(list)
    carried_runs = []
    for new_run in decision.runs:
        if not _is_summarised(new_run):
            continue
        if new_run.cell_id not in new_cells:
            carried_runs.append(new_run.id)
            continue
        for measurement in new_run.run.measurements:
            values[new_run.cell_id, metric_ids[measurement.metric]].append(
                measurement.value
            )
    statements = {}
    if values:
        statements["new summaries"] = summaries.beginning(values=values)
    if carried_runs:
        statements["summaries"] = summaries.carrying(run_ids=carried_runs)
    return statements


def _copy_series(new_runs: Sequence[NewRun]) -> None:
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
