"""Stores uploaded runs: one transaction, with the same number of queries for any batch."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from runs.models import Project, Run
from runs.services.campaigns import summaries
from runs.services.changes import changes
from runs.services.errors import Fault, Refused
from runs.services.runs import artifacts
from runs.services.seals import sealing
from runs.services.statements import FEW, Statement, ask
from runs.services.uploads import campaigns, cells, conditions, metrics, rows
from runs.services.uploads.campaigns import Known
from runs.services.uploads.uploaded_run import GivenRun

EXTERNAL_ID = "run_once_an_external_id"


@dataclass(frozen=True)
class StoredRun:
    """The outcome for a run."""

    id: int
    campaign: str
    state: str
    code: str
    message: str
    repeat: int


def store(*, runs: Sequence[GivenRun], project: Project) -> list[StoredRun]:
    """Store these runs, all or none; a run like an earlier one is a repeat and never replaces it.

    Raises Refused: `contradicts` if something stored differs (a metric's unit, a campaign's
    scenario), `conflict` for an external id that the campaign has already.
    """
    try:
        with transaction.atomic():
            return _store(runs, project)
    except IntegrityError as error:
        # Somebody else stored the external id after our check.
        if EXTERNAL_ID not in str(error):
            raise
        raise Refused("conflict", [_taken(run) for run in runs if run.external_id]) from error


def _store(runs: Sequence[GivenRun], project: Project) -> list[StoredRun]:
    faults: list[Fault] = []
    found = ask(
        {
            # First: who waits here for another upload of a new commit sees below what it has made.
            **conditions.questions(runs, project),
            "metrics": metrics.question(runs),
            "cells": cells.question(runs),
            "ids": cells.numbering(runs),
        },
        keeps_plans=len(runs) <= FEW,
    )
    known = campaigns.resolve(runs, found["cells"], project, faults)
    under = conditions.resolve(runs, found, project, faults)
    metric_ids = metrics.resolve(runs, found["metrics"], faults)
    if faults:
        raise Refused("contradicts", faults)
    _refuse_known_external_ids(runs, known)
    placed = cells.place(runs, found["cells"], known, under)
    ids = [key for (key,) in found["ids"]]
    finished = {
        (known[run.campaign].pk, where.cell_id)
        for run, where in zip(runs, placed, strict=True)
        if _counts(run)
    }
    to_seal = _sealing(runs, ids)
    rows.store(
        runs,
        ids=ids,
        campaign_ids=[known[run.campaign].pk for run in runs],
        placed=placed,
        conditions=under,
        metrics=metric_ids,
        then=[*_consequences(finished), *to_seal],
        commits=not any(run.files for run in runs),
    )
    _keep_files(runs, ids)
    changes.find_once_committed(campaign_ids={campaign for campaign, _cell in finished})
    if to_seal:
        sealing.seal_once_committed()
    return [
        StoredRun(
            *(key, run.campaign, rows.STATES[run.status]),
            *(run.code, run.message, where.repeat),
        )
        for run, key, where in zip(runs, ids, placed, strict=True)
    ]


def _consequences(finished: Set[tuple[int, int]]) -> list[Statement]:
    """What to do after cells (campaign, cell) got new figures."""
    if not finished:
        return []
    return [
        summaries.refreshing(cell_ids=sorted(cell for _campaign, cell in finished)),
        changes.noting(cells=finished),
    ]


def _sealing(runs: Sequence[GivenRun], ids: Sequence[int]) -> list[Statement]:
    both = zip(runs, ids, strict=True)
    ended = [key for run, key in both if run.status == "finished"]
    return [sealing.requesting(runs=ended)] if ended else []


def _counts(run: GivenRun) -> bool:
    return run.status == "finished" and bool(run.measurements)


def _refuse_known_external_ids(runs: Sequence[GivenRun], known: Mapping[str, Known]) -> None:
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
    kept = [(key, file) for run, key in zip(runs, ids, strict=True) for file in run.files]
    for _file, error in artifacts.store_all(kept):
        raise error
