"""Splits the cells of older uploads, stored before workloads separated cells.

The workload of an uploaded run: part of its cell wherever it differs from pgbench's default.

Runs with different scripts, query modes, rates, connections or tries are not repeats of each other.
The default that everybody means without saying it (one TPC-B script, simple protocol, kept
connections, no rate, one try) is not a level, so that it does not separate versions that print
less.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from django.db import transaction

from runs.models import Campaign, Cell, CellSummary, Measurement, Run, Seal
from runs.models.campaigns import Origin
from runs.services import seals
from runs.services.campaigns import summaries
from runs.services.uploads import cells
from runs.tools.pgbench import workload

USUAL: Mapping[str, frozenset[Any]] = {
    "script": frozenset({"tpcb-like"}),
    "query_mode": frozenset({"simple"}),
    "connection": frozenset({"kept"}),
    "rate": frozenset({0}),
    "max_tries": frozenset({0, 1}),
}
NAMES = frozenset(USUAL)


def with_workload(levels: Mapping[str, Any], workload: Mapping[str, Any]) -> dict[str, Any]:
    """The levels with whatever is unusual about the workload; levels that are given stay."""
    unusual = {
        name: value
        for name, value in workload.items()
        if name in USUAL and name not in levels and value not in USUAL[name]
    }
    return {**levels, **unusual}


Levels = dict[str, Any]
# The level that was once derived from what only some versions print.
_TRIES = "maximum_tries"
_LAG, _RECONNECTION = "schedule_lag_average", "connection_time_average"


def part(*, campaign: Campaign) -> int:
    """Split the cells of a campaign of uploads by workload; return how many runs were moved.

    A second call moves nothing. Runs whose output does not say their workload stay.
    """
    moved = 0
    if campaign.origin != Origin.UPLOADED:
        return moved
    for cell_id in campaign.cells.filter(workload={}).values_list("pk", flat=True):
        moved += _part_cell(cell_id)
    note_levels(campaign_id=campaign.pk)
    return moved


@transaction.atomic
def note_levels(*, campaign_id: int) -> None:
    """Add to a campaign's factors what its cells have: uploads do so for new levels only."""
    campaign = Campaign.objects.select_for_update(no_key=True).get(pk=campaign_id)
    listed = campaign.cells.order_by("ordinal", "pk").values_list("levels", flat=True)
    are_new = [cells.note(campaign.factors, levels) for levels in listed.iterator()]
    if any(are_new):
        campaign.save(update_fields=["factors"])


@transaction.atomic
def _part_cell(cell_id: int) -> int:
    cell = Cell.objects.select_for_update(no_key=True).get(pk=cell_id)
    groups: dict[str, list[Run]] = defaultdict(list)
    found: dict[str, Levels] = {}
    for run in cell.runs.order_by("repeat"):
        known = _workload(run, cell.levels)
        mark = json.dumps(known, sort_keys=True)
        groups[mark].append(run)
        found[mark] = known
    if not any(found.values()):
        return 0
    largest = max(groups, key=lambda mark: len(groups[mark]))
    moved = 0
    for mark, runs in groups.items():
        levels = with_workload(_without_tries(cell.levels), found[mark])
        target = _place(cell, levels, found[mark], may_change=mark == largest)
        if target.pk != cell.pk:
            moved += _move(runs, target)
    summaries.refresh(cell_id=cell.pk)
    return moved


def _workload(run: Run, levels: Mapping[str, Any]) -> Levels:
    """What the labels and figures of a pgbench run say about its load."""
    if not {"transaction_type", "query_mode"} & set(run.labels):
        return {}
    known = {"query_mode": run.labels.get("query_mode")}
    known["script"] = workload.script_named(run.labels.get("transaction_type", ""))
    metrics = set(Measurement.objects.filter(run=run).values_list("metric__name", flat=True))
    if metrics:
        known["rate"] = workload.LIMITED if _LAG in metrics else 0
    if _RECONNECTION in metrics:
        known["connection"] = workload.RECONNECTING
    known["max_tries"] = levels.get(_TRIES)
    return {name: value for name, value in known.items() if value is not None}


def _without_tries(levels: Mapping[str, Any]) -> Levels:
    return {name: level for name, level in levels.items() if name != _TRIES}


def _place(cell: Cell, levels: Levels, known: Levels, *, may_change: bool) -> Cell:
    """The cell of these levels: an existing one, this one changed, or a new one."""
    series_key = json.dumps(levels, sort_keys=True)
    key = f"{series_key}@{cell.revision.sha}" if cell.revision else series_key
    if key == cell.key:
        Cell.objects.filter(pk=cell.pk).update(workload=known)
        return cell
    there = Cell.objects.filter(campaign=cell.campaign_id, key=key).first()
    if there is not None:
        return there
    fields = {"levels": levels, "workload": known, "key": key, "series_key": series_key}
    if may_change:
        Cell.objects.filter(pk=cell.pk).update(**fields)
        return cell
    last = Cell.objects.filter(campaign=cell.campaign_id).order_by("-ordinal").first()
    return Cell.objects.create(
        campaign_id=cell.campaign_id,
        ordinal=(last.ordinal if last else 0) + 1,
        revision_id=cell.revision_id,
        version=cell.version,
        version_num=cell.version_num,
        **fields,
    )


def _move(runs: list[Run], target: Cell) -> int:
    last = target.runs.order_by("-repeat").values_list("repeat", flat=True).first() or 0
    for number, run in enumerate(runs, start=last + 1):
        Run.objects.filter(pk=run.pk).update(cell=target, repeat=number)
        if Seal.objects.filter(run=run.pk).exists():
            seals.request(run=run.pk, kind=Seal.Kind.AMENDED, reason="parted by its workload")
    CellSummary.objects.filter(cell=target).delete()
    summaries.refresh(cell_id=target.pk)
    return len(runs)
