"""The cells of uploaded runs, and the numbers of their repeats."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.utils.translation import gettext as _

from runs.models import Campaign, Cell
from runs.selectors.archive import versions
from runs.services.errors import Fault, Refused
from runs.services.statements import Rows, Statement, perform
from runs.services.uploads.campaigns import Known
from runs.services.uploads.conditions import Conditions
from runs.services.uploads.uploaded_run import GivenRun

Place = tuple[int, str]
NUMBER = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")


@dataclass(frozen=True)
class Placed:
    """Where a run belongs."""

    run_id: int
    cell_id: int
    repeat: int


def question(runs: Sequence[GivenRun]) -> Statement:
    """The query for the cells of these runs, whose campaigns are known only by slug."""
    wanted = {(run.campaign, run.cell_key) for run in runs}
    return Statement(
        "SELECT cell.campaign_id, cell.key, cell.id FROM runs_cell cell"
        " JOIN runs_campaign campaign ON campaign.id = cell.campaign_id"
        " JOIN unnest(%s::text[], %s::text[]) AS wanted (slug, key)"
        " ON wanted.slug = campaign.slug AND wanted.key = cell.key",
        ([slug for slug, _key in wanted], [key for _slug, key in wanted]),
    )


def place(
    runs: Sequence[GivenRun],
    rows: Rows,
    campaigns: Mapping[str, Known],
    conditions: Sequence[Conditions],
) -> list[Placed]:
    """The cell, repeat and new key of each run; `rows` are the query's result.

    Locks the cells until the transaction ends. Two uploads at once must not assign the same number,
    so each cell is locked before its repeats are read; always in the same order, to avoid
    deadlocks. For the same reason new cells are created before any lock.
    """
    places = [(campaigns[run.campaign].pk, run.cell_key) for run in runs]
    cells = _by_place(rows)
    if any(each not in cells for each in places):
        _make(runs, places, conditions)
        cells = _by_place(perform([question(runs)])[0])
    repeats, ids = _locked(sorted(set(cells.values())), len(runs))
    placed = []
    for each, run_id in zip(places, ids, strict=True):
        repeats[cells[each]] += 1
        placed.append(Placed(run_id, cells[each], repeats[cells[each]]))
    return placed


def _by_place(rows: Rows) -> dict[Place, int]:
    return {(campaign, key): cell for campaign, key, cell in rows}


def _locked(cells: list[int], runs: int) -> tuple[Counter[int], list[int]]:
    """The last repeat of each cell, which is locked; and keys for this many new runs."""
    _locks, repeats, ids = perform(
        [
            Statement(
                "SELECT id FROM runs_cell WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE",
                (cells,),
            ),
            # A statement of its own: it must see what was committed during the wait for the lock.
            Statement(
                "SELECT id, (SELECT repeat FROM runs_run WHERE cell_id = id_of.id"
                " ORDER BY repeat DESC LIMIT 1) FROM unnest(%s::bigint[]) AS id_of (id)",
                (cells,),
            ),
            Statement(
                "SELECT nextval(pg_get_serial_sequence('runs_run', 'id'))"
                " FROM generate_series(1, %s)",
                (runs,),
            ),
        ]
    )
    return Counter({cell: last or 0 for cell, last in repeats}), [row[0] for row in ids]


def _make(
    runs: Sequence[GivenRun],
    places: Sequence[Place],
    conditions: Sequence[Conditions],
) -> None:
    """Create the missing cells, one upload at a time for each campaign."""
    ids = sorted({campaign for campaign, _key in places})
    locked = Campaign.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk")
    by_id = {campaign.pk: campaign for campaign in locked}
    known = _by_place(perform([question(runs)])[0])
    ordinals = _last_ordinals(ids)
    made: dict[Place, Cell] = {}
    for run, where, condition in zip(runs, places, conditions, strict=True):
        if where in known or where in made:
            continue
        ordinals[where[0]] += 1
        made[where] = _cell(run, by_id[where[0]], condition, ordinals[where[0]])
        _note_levels(by_id[where[0]], run)
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
        workload=dict(run.workload),
        key=run.cell_key,
        series_key=run.series_key,
        revision_id=condition.revision_id,
        version=version,
        version_num=versions.number(version),
    )


def _is_twin(one: Any, other: Any) -> bool:
    """Whether two levels of different types read the same: "4" and 4, 4.0 and 4."""
    if type(one) is type(other):
        return False
    texts = [each if isinstance(each, str) else json.dumps(each) for each in (one, other)]
    if texts[0] == texts[1]:
        return True
    numbers = [float(text) if NUMBER.fullmatch(text) else None for text in texts]
    return numbers[0] is not None and numbers[0] == numbers[1]


def _note_levels(campaign: Campaign, run: GivenRun) -> None:
    """Add new levels to the campaign's factors: numbers sorted, names in order of arrival.

    Raises Refused for one that is there in another way of writing: "4" and 4 are one level.
    """
    for name, level in run.levels.items():
        known = campaign.factors.setdefault(name, [])
        twin = next((each for each in known if _is_twin(each, level)), None)
        if twin is not None:
            message = _("The level is %(given)s here, and %(known)s in the campaign.")
            told = message % {"given": json.dumps(level), "known": json.dumps(twin)}
            raise Refused("contradicts", [Fault(f"{run.at}/levels/{name}", "level_twice", told)])
        if level not in known:
            known.append(level)
            if all(isinstance(each, int | float) for each in known):
                known.sort()
