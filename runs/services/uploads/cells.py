"""The cells of uploaded runs, and the numbers of their repeats."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from runs.models import Campaign, Cell
from runs.selectors import versions
from runs.services.uploads.conditions import Conditions
from runs.services.uploads.given import GivenRun

Place = tuple[int, str]


@dataclass(frozen=True)
class Placed:
    """Where a run belongs."""

    cell_id: int
    repeat: int


def series_key(run: GivenRun) -> str:
    """The levels as text: what the points of one history have in common."""
    return json.dumps(dict(run.levels), sort_keys=True)


def key(run: GivenRun) -> str:
    """The cell's key: the levels, and the revision where the run has one."""
    return f"{series_key(run)}@{run.revision.sha}" if run.revision else series_key(run)


def place(
    runs: Sequence[GivenRun],
    campaigns: Mapping[str, Campaign],
    conditions: Sequence[Conditions],
) -> list[Placed]:
    """The cell and the repeat of each run. Locks the cells until the transaction ends.

    Two uploads at once must not give the same number: each cell is locked before its repeats are
    looked at, and always in the same order, so that none waits for another that waits for it.
    """
    places = [(campaigns[run.campaign].pk, key(run)) for run in runs]
    cells = _find(places)
    if any(each not in cells for each in places):
        _make(runs, places, campaigns, conditions)
        cells = _find(places)
    ids = sorted(set(cells.values()))
    repeats = _locked_repeats(ids)
    placed = []
    for each in places:
        repeats[cells[each]] += 1
        placed.append(Placed(cells[each], repeats[cells[each]]))
    return placed


def _find(places: Sequence[Place]) -> dict[Place, int]:
    wanted = set(places)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT cell.campaign_id, cell.key, cell.id FROM runs_cell cell"
            " JOIN unnest(%s::bigint[], %s::text[]) AS wanted (campaign_id, key)"
            " ON wanted.campaign_id = cell.campaign_id AND wanted.key = cell.key",
            [[campaign for campaign, _key in wanted], [text for _campaign, text in wanted]],
        )
        return {(campaign, text): cell for campaign, text, cell in cursor.fetchall()}


def _locked_repeats(ids: list[int]) -> Counter[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM runs_cell WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE", [ids]
        )
        # A statement of its own: it must see what was committed while the lock was waited for.
        cursor.execute(
            "SELECT id, (SELECT repeat FROM runs_run WHERE cell_id = id_of.id"
            " ORDER BY repeat DESC LIMIT 1) FROM unnest(%s::bigint[]) AS id_of (id)",
            [ids],
        )
        return Counter({cell: last or 0 for cell, last in cursor.fetchall()})


def _make(
    runs: Sequence[GivenRun],
    places: Sequence[Place],
    campaigns: Mapping[str, Campaign],
    conditions: Sequence[Conditions],
) -> None:
    """Make the cells that are missing, one upload at a time for each campaign."""
    ids = sorted({campaign for campaign, _key in places})
    locked = Campaign.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk")
    by_id = {campaign.pk: campaign for campaign in locked}
    known = _find(places)
    ordinals = _last_ordinals(ids)
    made: dict[Place, Cell] = {}
    for run, where, condition in zip(runs, places, conditions, strict=True):
        if where in known or where in made:
            continue
        ordinals[where[0]] += 1
        made[where] = _cell(run, by_id[where[0]], condition, ordinals[where[0]])
        _note_levels(by_id[where[0]], run.levels)
    Cell.objects.bulk_create(made.values())
    Campaign.objects.bulk_update(
        [by_id[campaign] for campaign in {campaign for campaign, _key in made}], ["factors"]
    )


def _last_ordinals(campaign_ids: Sequence[int]) -> Counter[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT campaign_id, max(ordinal) FROM runs_cell WHERE campaign_id = ANY(%s)"
            " GROUP BY campaign_id",
            [list(campaign_ids)],
        )
        return Counter(dict(cursor.fetchall()))


def _cell(run: GivenRun, campaign: Campaign, condition: Conditions, ordinal: int) -> Cell:
    version = str(run.levels.get("version", ""))
    return Cell(
        campaign=campaign,
        ordinal=ordinal,
        levels=dict(run.levels),
        key=key(run),
        series_key=series_key(run),
        revision_id=condition.revision_id,
        version=version,
        version_num=versions.number(version),
    )


def _note_levels(campaign: Campaign, levels: Mapping[str, Any]) -> None:
    """Add new levels to the campaign's factors: numbers in order, names as they come."""
    for name, level in levels.items():
        known = campaign.factors.setdefault(name, [])
        if level not in known:
            known.append(level)
            if all(isinstance(each, int | float) for each in known):
                known.sort()
