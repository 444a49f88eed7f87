"""The cells of uploaded runs, and the numbers of their repeats."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from runs.cells.selectors import versions
from runs.models import Campaign
from runs.shared.database import Rows, Statement, perform
from runs.shared.errors import Fault, Refused
from runs.uploads.services.campaigns import COLUMNS, TABLES, Known
from runs.uploads.services.uploaded_conditions import Conditions
from runs.uploads.services.uploaded_run import GivenRun

Place = tuple[int, str]
# The columns of a new cell.
Row = tuple[Any, ...]
# The cell of a campaign and a key, and one of its series: the first at or behind both in the order
# of the only index that has this order. With two equalities PostgreSQL takes any index that begins
# with the campaign, as long as it knows nothing of the table, and reads all of the campaign.
AT_KEY = (
    "LATERAL (SELECT id, campaign_id, key FROM runs_cell"
    " WHERE (campaign_id, key) >= ({campaign}, wanted.key)"
    " ORDER BY campaign_id, key LIMIT 1) AS cell"
)
ALIKE = (
    "(SELECT (alike.campaign_id, alike.series_key) = (campaign.id, wanted.series) FROM runs_cell"
    " alike WHERE (alike.campaign_id, alike.series_key) >= (campaign.id, wanted.series)"
    " ORDER BY alike.campaign_id, alike.series_key LIMIT 1) IS TRUE"
)
WANTED = (
    "FROM unnest(%s::bigint[], %s::text[]) AS wanted (campaign, key)"
    f" JOIN {AT_KEY.format(campaign='wanted.campaign')}"
    " ON cell.campaign_id = wanted.campaign AND cell.key = wanted.key"
)
NUMBER = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")


@dataclass(frozen=True)
class Placed:
    """Where a run belongs."""

    campaign_id: int
    cell_id: int
    repeat: int


class _KnownCell(NamedTuple):
    """What `question` says of a place: its cell, or whether there are others of its levels."""

    campaign: int
    key: str
    cell: int | None
    is_alike: bool


def question(runs: Sequence[GivenRun]) -> Statement:
    """The query for the cells of these runs, whose campaigns are known only by slug.

    Each row begins with what is asked of a campaign. Of a place without a cell, it tells whether
    the campaign has other cells of the same levels.
    """
    series_key_of = {(run.campaign, run.cell_key): run.series_key for run in runs}
    return Statement(
        f"SELECT {COLUMNS}, wanted.key, cell.id, cell.id IS NULL AND {ALIKE}"  # noqa: S608
        " FROM unnest(%s::text[], %s::text[], %s::text[]) AS wanted (slug, key, series)"
        f" JOIN ({TABLES}) ON campaign.slug = wanted.slug"
        f" LEFT JOIN {AT_KEY.format(campaign='campaign.id')}"
        " ON cell.campaign_id = campaign.id AND cell.key = wanted.key",
        (*map(list, zip(*series_key_of, strict=True)), list(series_key_of.values())),
    )


def numbering(runs: Sequence[GivenRun]) -> Statement:
    """Takes keys for these runs, so that what follows can use them before the runs are there."""
    sql = "SELECT nextval('runs_run_id_seq') FROM generate_series(1, %s::integer)"
    return Statement(sql, (len(runs),))


def place(
    runs: Sequence[GivenRun],
    rows: Rows,
    campaigns: Mapping[str, Known],
    conditions: Sequence[Conditions],
) -> list[Placed]:
    """The cell and repeat of each run; `rows` are the query's result.

    Locks the cells that were there until the transaction ends: two uploads at once must not assign
    the same number, so each cell is locked before its repeats are read; always in the same order,
    to avoid deadlocks. For the same reason new cells are created before any lock. They need none:
    nobody else sees them yet.
    """
    places = [(campaigns[run.campaign].pk, run.cell_key) for run in runs]
    new_rows: dict[Place, Row] = {}
    known_cells = [_KnownCell(row[1], *row[-3:]) for row in rows]
    stored_places = {(known.campaign, known.key) for known in known_cells if known.cell}
    if missing := set(places) - stored_places:
        places_alike = {(known.campaign, known.key) for known in known_cells if known.is_alike}
        unlike = missing - places_alike
        is_new = [cell_place in unlike for cell_place in places]
        _note_levels(
            compress(runs, is_new),
            sorted({cell_place[0] for cell_place in compress(places, is_new)}),
        )
        for run, place_of_run, condition in zip(runs, places, conditions, strict=True):
            if place_of_run in missing and place_of_run not in new_rows:
                new_rows[place_of_run] = _row(run, place_of_run, condition)
    cells = _made(new_rows)
    locked_cells, repeats = _locked(sorted(set(places) - cells.keys()))
    cells |= locked_cells
    placed = []
    for place_of_cell in places:
        repeats[cells[place_of_cell]] += 1
        placed.append(Placed(place_of_cell[0], cells[place_of_cell], repeats[cells[place_of_cell]]))
    return placed


def _locked(places: list[Place]) -> tuple[dict[Place, int], Counter[int]]:
    if not places:
        return {}, Counter()
    columns = [list(column) for column in zip(*places, strict=True)]
    locked, repeats = perform(
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
    cells = {(campaign, key): cell for campaign, key, cell in locked}
    return cells, Counter({cell: repeat or 0 for cell, repeat in repeats})


def _made(new_rows: Mapping[Place, Row]) -> dict[Place, int]:
    """Cells created in the order of their keys, but those that another upload has created since.

    Nothing of the campaign is locked, so cells made at the same time can have the same ordinal.
    """
    if not new_rows:
        return {}
    places = Counter[int]()
    numbered = {}
    for cell_place, row in new_rows.items():
        places[cell_place[0]] += 1
        numbered[cell_place] = (*row, places[cell_place[0]])
    columns = zip(*(row for _place, row in sorted(numbered.items())), strict=True)
    making = Statement(
        "INSERT INTO runs_cell (campaign_id, key, series_key, levels, workload, revision_id,"
        " version, version_num, ordinal)"
        " SELECT campaign, key, series, levels, workload, revision, version, number,"
        " place + coalesce((SELECT max(ordinal) FROM runs_cell WHERE campaign_id = campaign), 0)"
        " FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::jsonb[], %s::jsonb[],"
        " %s::bigint[], %s::text[], %s::integer[], %s::integer[])"
        " AS made (campaign, key, series, levels, workload, revision, version, number, place)"
        " ON CONFLICT (campaign_id, key) DO NOTHING RETURNING campaign_id, key, id",
        tuple(map(list, columns)),
    )
    (rows,) = perform([making])
    return {(campaign, key): cell for campaign, key, cell in rows}


def _row(run: GivenRun, cell_place: Place, condition: Conditions) -> Row:
    version = str(run.levels.get("version", ""))
    texts = (run.series_key, json.dumps(dict(run.levels)), json.dumps(dict(run.workload)))
    return (*cell_place, *texts, condition.revision_id, version, versions.number(version))


def _is_twin(stored_level: Any, new_level: Any) -> bool:
    """Whether two levels of different types read the same: "4" and 4, 4.0 and 4."""
    if type(stored_level) is type(new_level):
        return False
    texts = [
        level if isinstance(level, str) else json.dumps(level)
        for level in (stored_level, new_level)
    ]
    if texts[0] == texts[1]:
        return True
    numbers = [float(text) if NUMBER.fullmatch(text) else None for text in texts]
    return numbers[0] is not None and numbers[0] == numbers[1]


def _note_levels(runs: Iterable[GivenRun], campaign_ids: Sequence[int]) -> None:
    """Add levels that are new to the factors of their campaigns, one upload at a time for each."""
    if not campaign_ids:
        return
    campaigns_found = Campaign.objects.filter(pk__in=campaign_ids).order_by("pk")
    locked = campaigns_found.only("slug", "factors").select_for_update(no_key=True)
    by_slug = {campaign.slug: campaign for campaign in locked}
    changed = set()
    for run in runs:
        factors = by_slug[run.campaign].factors
        _refuse_twins(factors, run)
        if note(factors, run.levels):
            changed.add(run.campaign)
    for slug in changed:
        by_slug[slug].save(update_fields=["factors"])


def _refuse_twins(factors: Mapping[str, Any], run: GivenRun) -> None:
    """Raise Refused for a level that is there in another way of writing: "4" and 4 are one."""
    for name, level in run.levels.items():
        twin = next(
            (known_level for known_level in factors.get(name, ()) if _is_twin(known_level, level)),
            None,
        )
        if twin is not None:
            message = _("The level is %(given)s here, and %(known)s in the campaign.")
            sentence = message % {"given": json.dumps(level), "known": json.dumps(twin)}
            raise Refused(
                "contradicts", [Fault(f"{run.at}/levels/{name}", "level_twice", sentence)]
            )


def note(factors: dict[str, Any], levels: Mapping[str, Any]) -> bool:
    """Add levels to factors: numbers sorted, names in order of arrival; whether any is new."""
    is_new = False
    for name, level in levels.items():
        is_new |= name not in factors
        known_levels = factors.setdefault(name, [])
        if level not in known_levels:
            is_new = True
            known_levels.append(level)
            if all(isinstance(known_level, int | float) for known_level in known_levels):
                known_levels.sort()
    return is_new
