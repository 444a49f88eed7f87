"""The cells of uploaded runs, and the numbers of their repeats."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

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


def question(runs: Sequence[GivenRun]) -> Statement:
    """The query for the cells of these runs, whose campaigns are known only by slug.

    Each row begins with what is asked of a campaign. Of a place without a cell, it tells whether
    the campaign has other cells of the same levels.
    """
    wanted = {(run.campaign, run.cell_key): run.series_key for run in runs}
    return Statement(
        f"SELECT {COLUMNS}, wanted.key, cell.id, cell.id IS NULL AND {ALIKE}"  # noqa: S608
        " FROM unnest(%s::text[], %s::text[], %s::text[]) AS wanted (slug, key, series)"
        f" JOIN ({TABLES}) ON campaign.slug = wanted.slug"
        f" LEFT JOIN {AT_KEY.format(campaign='campaign.id')}"
        " ON cell.campaign_id = campaign.id AND cell.key = wanted.key",
        (*map(list, zip(*wanted, strict=True)), list(wanted.values())),
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
    made: dict[Place, Row] = {}
    keys = [(row[1], *row[-3:]) for row in rows]
    there = {(campaign, key) for campaign, key, cell, _alike in keys if cell}
    if missing := set(places) - there:
        alike = {(campaign, key) for campaign, key, _cell, is_alike in keys if is_alike}
        unlike = missing - alike
        new = [each in unlike for each in places]
        _note_levels(compress(runs, new), sorted({where[0] for where in compress(places, new)}))
        for run, where, what in zip(runs, places, conditions, strict=True):
            if where in missing and where not in made:
                made[where] = _row(run, where, what)
    cells = _made(made)
    found, repeats = _locked(sorted(set(places) - cells.keys()))
    cells |= found
    placed = []
    for each in places:
        repeats[cells[each]] += 1
        placed.append(Placed(each[0], cells[each], repeats[cells[each]]))
    return placed


def _locked(places: list[Place]) -> tuple[dict[Place, int], Counter[int]]:
    if not places:
        return {}, Counter()
    wanted = [list(each) for each in zip(*places, strict=True)]
    locked, repeats = perform(
        [
            Statement(
                "SELECT campaign_id, key, id FROM runs_cell"  # noqa: S608 -- our names
                f" WHERE id = ANY(ARRAY(SELECT cell.id {WANTED})) ORDER BY id FOR NO KEY UPDATE",
                (*wanted,),
            ),
            # A statement of its own: it must see what was committed during the wait for the lock.
            Statement(
                "SELECT cell.id, (SELECT repeat FROM runs_run WHERE cell_id = cell.id"  # noqa: S608
                f" ORDER BY repeat DESC LIMIT 1) {WANTED}",
                (*wanted,),
            ),
        ]
    )
    cells = {(campaign, key): cell for campaign, key, cell in locked}
    return cells, Counter({cell: repeat or 0 for cell, repeat in repeats})


def _made(new: Mapping[Place, Row]) -> dict[Place, int]:
    """Cells created in the order of their keys, but those that another upload has created since.

    Nothing of the campaign is locked, so cells made at the same time can have the same ordinal.
    """
    if not new:
        return {}
    places = Counter[int]()
    numbered = {}
    for where, row in new.items():
        places[where[0]] += 1
        numbered[where] = (*row, places[where[0]])
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


def _row(run: GivenRun, where: Place, condition: Conditions) -> Row:
    version = str(run.levels.get("version", ""))
    texts = (run.series_key, json.dumps(dict(run.levels)), json.dumps(dict(run.workload)))
    return (*where, *texts, condition.revision_id, version, versions.number(version))


def _is_twin(one: Any, other: Any) -> bool:
    """Whether two levels of different types read the same: "4" and 4, 4.0 and 4."""
    if type(one) is type(other):
        return False
    texts = [each if isinstance(each, str) else json.dumps(each) for each in (one, other)]
    if texts[0] == texts[1]:
        return True
    numbers = [float(text) if NUMBER.fullmatch(text) else None for text in texts]
    return numbers[0] is not None and numbers[0] == numbers[1]


def _note_levels(runs: Iterable[GivenRun], campaign_ids: Sequence[int]) -> None:
    """Add levels that are new to the factors of their campaigns, one upload at a time for each."""
    if not campaign_ids:
        return
    found = Campaign.objects.filter(pk__in=campaign_ids).order_by("pk")
    locked = found.only("slug", "factors").select_for_update(no_key=True)
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
        twin = next((each for each in factors.get(name, ()) if _is_twin(each, level)), None)
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
        known = factors.setdefault(name, [])
        if level not in known:
            is_new = True
            known.append(level)
            if all(isinstance(each, int | float) for each in known):
                known.sort()
    return is_new
