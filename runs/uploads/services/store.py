"""Stores uploaded runs: one transaction, with the same number of queries for any batch."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.cells.services import summaries
from runs.histories.services import changes
from runs.models import Project, Run
from runs.models.campaigns import Origin
from runs.queue.services import artifacts
from runs.seals.services import seals
from runs.shared.database import Statement, array, ask, copy, perform
from runs.shared.errors import Fault, Refused
from runs.uploads.services import campaigns, cells, same_run, uploaded_conditions, uploaded_metrics
from runs.uploads.services.campaigns import Known
from runs.uploads.services.cells import Placed
from runs.uploads.services.uploaded_conditions import Conditions
from runs.uploads.services.uploaded_run import GivenRun
from runs.wording import Wording

# Without this PostgreSQL takes a table of a thousand rows for one of five, and a list sorts them
# all before it shows a few, a hundred times the work. Autovacuum analyses a table within a minute
# or so, if it is on.
TABLES = (
    "runs_campaign",
    "runs_cell",
    "runs_cellsummary",
    "runs_change",
    "runs_environment",
    "runs_hardwareprofile",
    "runs_measurement",
    "runs_metric",
    "runs_revision",
    "runs_run",
    "runs_runcount",
    "runs_series",
    "runs_settingssnapshot",
)
NEW = """
SELECT relname FROM pg_class
WHERE oid = ANY(%(tables)s::regclass[] || ARRAY(
    SELECT inhrelid FROM pg_inherits WHERE inhparent = ANY(%(tables)s::regclass[])
)::regclass[]) AND reltuples < 0"""


def analyse_once_committed() -> None:
    """Have tables and partitions analysed that never were, when the transaction has ended.

    One query where all were. It takes no lock that an upload waits for, and if it fails the upload
    is stored all the same.
    """
    transaction.on_commit(_analyse, robust=True)


def _analyse() -> None:
    with connection.cursor() as cursor:
        cursor.execute(NEW, {"tables": list(TABLES)})
        if unanalysed := [name for (name,) in cursor.fetchall()]:
            cursor.execute(f"ANALYZE {', '.join(unanalysed)}")


# A run's columns. Those not named are null.
RUNS = (
    "id",
    "campaign_id",
    "cell_id",
    "repeat",
    "position",
    "origin",
    "state",
    "code",
    "message",
    "remedy",
    "attempt",
    "server_id",
    "hardware_id",
    "environment_id",
    "settings_id",
    "server_version",
    "tool_name",
    "tool_version",
    "quality",
    "wording",
    "external_id",
    "round",
    "labels",
    "queued_at",
    "started_at",
    "finished_at",
)
MEASUREMENTS = ("run_id", "metric_id", "value", "n", "statistic")
SERIES = ("run_id", "name", "unit", "start", "interval", "values")
# An upload of more runs may be the first large one of some tables.
MANY = 50
STATES = {
    "finished": Run.State.FINISHED,
    "failed": Run.State.FAILED,
    # Its figures are stored but not used elsewhere: they cover less than was asked for.
    "partial": Run.State.FAILED,
}


def store_rows(
    runs: Sequence[GivenRun],
    *,
    ids: Sequence[int],
    placed: Sequence[Placed],
    conditions: Sequence[Conditions],
    metrics: Mapping[str, int],
    then: Sequence[Statement],
) -> None:
    """Store runs, their numbers and series, and execute the statements that need them there.

    Raises IntegrityError for an external id that exists already.
    """
    now = timezone.now()
    run_rows = [
        (key, *_run(run, cell_place, condition, now))
        for run, key, cell_place, condition in zip(runs, ids, placed, conditions, strict=True)
    ]
    numbers = [
        (key, metrics[measurement.metric], measurement.value, measurement.n, measurement.statistic)
        for run, key in zip(runs, ids, strict=True)
        for measurement in run.measurements
    ]
    series = [
        (
            key,
            measurement.name,
            measurement.unit,
            measurement.start,
            measurement.interval,
            array(measurement.values),
        )
        for run, key in zip(runs, ids, strict=True)
        for measurement in run.series
    ]
    copy("runs_run", RUNS, run_rows)
    if numbers:
        copy("runs_measurement", MEASUREMENTS, numbers)
    if series:
        copy("runs_series", SERIES, series)
    perform(then)


def _run(
    run: GivenRun, cell_place: Placed, condition: Conditions, now: datetime
) -> tuple[Any, ...]:
    return (
        cell_place.campaign_id,
        cell_place.cell_id,
        cell_place.repeat,
        # Only `started_at` gives the order of execution.
        0,
        Origin.UPLOADED.value,
        STATES[run.status].value,
        run.code,
        run.message,
        "",
        1,
        condition.server_id,
        condition.hardware_id,
        condition.environment_id,
        condition.settings_id,
        run.server_version,
        run.tool_name,
        run.tool_version,
        json.dumps([dict(note) for note in run.notes]) if run.notes else "[]",
        json.dumps(run.wording) if run.wording else "{}",
        run.external_id,
        run.round,
        json.dumps(dict(run.labels)) if run.labels else "{}",
        now,
        run.started_at,
        run.finished_at,
    )


EXTERNAL_ID = "run_once_an_external_id"


@dataclass(frozen=True)
class StoredRun:
    """The outcome for a run."""

    id: int
    campaign: str
    state: str
    code: str
    message: str
    wording: Wording
    repeat: int
    is_again: bool = False


def store(*, runs: Sequence[GivenRun], project: Project) -> list[StoredRun]:
    """Store these runs, all or none; a run like an earlier one is a repeat and never replaces it.

    One whose text was stored before is that run: see `same_run`.

    Raises Refused: `contradicts` if something stored differs (a metric's unit, a campaign's
    scenario), `conflict` for an external id that the campaign has already.
    """
    for is_last in (False, True):
        try:
            with transaction.atomic():
                return _store(runs, project)
        except IntegrityError as error:
            # Somebody else stored the external id after our check: now we see it.
            if EXTERNAL_ID not in str(error) or is_last:
                raise
    raise AssertionError("it returns, or raises")


def _store(runs: Sequence[GivenRun], project: Project) -> list[StoredRun]:
    faults: list[Fault] = []
    runs = [campaigns.addressed(run, project) for run in runs]
    answers = ask(_questions(runs, project))
    if names := campaigns.own_names(runs, answers["cells"], project):
        return _store([campaigns.named(run, names) for run in runs], project)
    if shas := uploaded_conditions.spelled(runs, answers.get("revisions", []), project, faults):
        return _store([_spelled(run, shas) for run in runs], project)
    if faults:
        raise Refused("contradicts", faults)
    runs = same_run.with_external_ids(runs)
    if runs_stored_before := same_run.stored_before(runs, project):
        return _with_those(runs, runs_stored_before, project)
    known_campaigns = campaigns.resolve(runs, answers["cells"], project, faults)
    run_conditions = uploaded_conditions.resolve(runs, answers, faults)
    metric_ids, runs = uploaded_metrics.resolve(runs, answers["metrics"], project, faults)
    if faults:
        raise Refused("contradicts", faults)
    _refuse_known_external_ids(runs, known_campaigns)
    placed = cells.place(runs, answers["cells"], known_campaigns, run_conditions)
    ids = [key for (key,) in answers["ids"]]
    finished = {
        (cell_place.campaign_id, cell_place.cell_id)
        for run, cell_place in zip(runs, placed, strict=True)
        if run.status == "finished" and run.measurements
    }
    carried = [summaries.carrying(run_ids=ids), changes.noting(cells=finished)] if finished else []
    to_seal = _sealing(runs, ids)
    store_rows(
        runs,
        ids=ids,
        placed=placed,
        conditions=run_conditions,
        metrics=metric_ids,
        then=[*carried, *to_seal],
    )
    _keep_files(runs, ids)
    _once_committed(finished, is_sealed=bool(to_seal), number=len(runs))
    return [
        StoredRun(
            key,
            run.campaign,
            STATES[run.status],
            run.code,
            run.message,
            run.wording,
            cell_place.repeat,
        )
        for run, key, cell_place in zip(runs, ids, placed, strict=True)
    ]


def _with_those(
    runs: Sequence[GivenRun], runs_stored_before: Mapping[tuple[str, str], Run], project: Project
) -> list[StoredRun]:
    keys = [(run.campaign, run.external_id) for run in runs]
    new_runs = [run for run, key in zip(runs, keys, strict=True) if key not in runs_stored_before]
    newly_stored = iter(_store(new_runs, project) if new_runs else ())
    return [
        _stored_before(runs_stored_before[key]) if key in runs_stored_before else next(newly_stored)
        for key in keys
    ]


def _stored_before(run: Run) -> StoredRun:
    return StoredRun(
        run.pk,
        run.campaign.slug,
        run.state,
        run.code,
        run.message,
        run.wording,
        run.repeat,
        is_again=True,
    )


def _questions(runs: Sequence[GivenRun], project: Project) -> dict[str, Statement]:
    """All that is asked of the database before anything is decided."""
    return {
        # First: who waits here for another upload of a new commit sees below what it has made.
        **uploaded_conditions.questions(runs, project),
        "metrics": uploaded_metrics.question(runs, project),
        "cells": cells.question(runs),
        "ids": cells.numbering(runs),
    }


def _spelled(run: GivenRun, shas: Mapping[str, str]) -> GivenRun:
    if run.revision is None or run.revision.sha not in shas:
        return run
    return replace(run, revision=replace(run.revision, sha=shas[run.revision.sha]))


def _once_committed(finished: Set[tuple[int, int]], *, is_sealed: bool, number: int) -> None:
    changes.find_once_committed(campaign_ids={campaign for campaign, _cell in finished})
    if is_sealed:
        seals.seal_once_committed()
    if number > MANY:
        analyse_once_committed()


def _sealing(runs: Sequence[GivenRun], ids: Sequence[int]) -> list[Statement]:
    figures = {
        key: {
            f"{measurement.metric}:{measurement.statistic}": (measurement.value, measurement.n)
            for measurement in run.measurements
        }
        for run, key in zip(runs, ids, strict=True)
        if run.status == "finished"
    }
    return [seals.requesting(runs=figures, figures=figures)] if figures else []


def _refuse_known_external_ids(
    runs: Sequence[GivenRun], known_campaigns: Mapping[str, Known]
) -> None:
    named_runs = [run for run in runs if run.external_id]
    if not named_runs:
        return
    places = Counter((run.campaign, run.external_id) for run in named_runs)
    stored = Run.objects.filter(
        campaign__in=[known_campaigns[run.campaign].pk for run in named_runs],
        external_id__in=[run.external_id for run in named_runs],
    )
    places.update(stored.order_by().values_list("campaign__slug", "external_id"))
    faults = [_taken(run) for run in named_runs if places[run.campaign, run.external_id] > 1]
    if faults:
        raise Refused("conflict", faults)


def _taken(run: GivenRun) -> Fault:
    message = _("The campaign %(campaign)s has a run with the external id “%(id)s” already.")
    names = {"campaign": run.campaign, "id": run.external_id}
    return Fault(f"{run.at}/external_id", "external_id_taken", message % names)


def _keep_files(runs: Sequence[GivenRun], ids: Sequence[int]) -> None:
    files = [(key, file) for run, key in zip(runs, ids, strict=True) for file in run.files]
    for _file, error in artifacts.store_all(files):
        raise error
