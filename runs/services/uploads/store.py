"""Storing uploaded runs: one transaction, and as many queries for a thousand runs as for one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.models import Campaign, Project, Run
from runs.services import artifacts, changes, summaries
from runs.services.errors import Fault, Refused
from runs.services.uploads import campaigns, cells, conditions, metrics, rows
from runs.services.uploads.given import GivenRun

EXTERNAL_ID = "run_once_an_external_id"


@dataclass(frozen=True)
class StoredRun:
    """What became of a run."""

    id: int
    campaign: str
    state: str
    code: str
    message: str
    repeat: int


def store(*, runs: Sequence[GivenRun], project: Project) -> list[StoredRun]:
    """Store these runs, all or none; a run like another is its repeat, and never overwrites it.

    Raises Refused: `contradicts` where something stored says otherwise (a metric's unit, a
    campaign's scenario), `conflict` for an external id that the campaign has already.
    """
    try:
        with transaction.atomic():
            return _store(runs, project)
    except IntegrityError as error:
        # Somebody else stored the external id after we had looked.
        if EXTERNAL_ID not in str(error):
            raise
        raise Refused("conflict", [_taken(run) for run in runs if run.external_id]) from error


def _store(runs: Sequence[GivenRun], project: Project) -> list[StoredRun]:
    faults: list[Fault] = []
    known = campaigns.resolve(runs, project, faults)
    under = conditions.resolve(runs, project, faults)
    metric_ids = metrics.resolve(runs, faults)
    if faults:
        raise Refused("contradicts", faults)
    _refuse_known_external_ids(runs, known)
    placed = cells.place(runs, known, under)
    ids = rows.new_ids(len(runs))
    rows.copy_runs(
        runs,
        ids=ids,
        campaign_ids=[known[run.campaign].pk for run in runs],
        placed=placed,
        conditions=under,
        now=timezone.now(),
    )
    rows.copy_measurements(runs, ids=ids, metrics=metric_ids)
    rows.copy_series(runs, ids=ids)
    _keep_files(runs, ids)
    finished = {
        (known[run.campaign].pk, where.cell_id)
        for run, where in zip(runs, placed, strict=True)
        if _counts(run)
    }
    summaries.refresh_all(cell_ids=sorted(cell for _campaign, cell in finished))
    changes.note(cells=finished)
    return [
        StoredRun(key, run.campaign, rows.STATES[run.status], run.code, run.message, where.repeat)
        for run, key, where in zip(runs, ids, placed, strict=True)
    ]


def _counts(run: GivenRun) -> bool:
    return run.status == "finished" and bool(run.measurements)


def _refuse_known_external_ids(runs: Sequence[GivenRun], known: dict[str, Campaign]) -> None:
    named = [run for run in runs if run.external_id]
    if not named:
        return
    places = Counter((run.campaign, run.external_id) for run in named)
    stored = Run.objects.filter(
        campaign__in=[known[run.campaign].pk for run in named],
        external_id__in=[run.external_id for run in named],
    )
    places.update(stored.order_by().values_list("campaign__slug", "external_id"))
    faults = [_taken(run) for run in named if places[run.campaign, run.external_id] > 1]
    if faults:
        raise Refused("conflict", faults)


def _taken(run: GivenRun) -> Fault:
    message = _("The campaign %(campaign)s has a run with the external id “%(id)s” already.")
    names = {"campaign": run.campaign, "id": run.external_id}
    return Fault(f"{run.at}/external_id", "external_id_taken", message % names)


def _keep_files(runs: Sequence[GivenRun], ids: Sequence[int]) -> None:
    for run, key in zip(runs, ids, strict=True):
        for file in run.files:
            artifacts.store(run=Run(pk=key), data=file)
