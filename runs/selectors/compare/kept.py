"""Answers about campaigns, kept in this process until something that they are made of changes.

To judge hundreds of cells takes a hundred times longer than to look whether any of their rows has
another version. An answer about many campaigns is made of parts, one of each campaign: a run that
finishes changes the part of its own. What a reader may see is asked for before: keys have the
campaigns' own keys.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from django.db import connection, connections, router

from runs.models import Campaign, Run
from runs.models.campaigns import Origin

T = TypeVar("T")

# So many of the newest campaigns that have ended say how their machines scatter.
NOISE_CAMPAIGNS = 20
NEWEST = """
    SELECT id FROM runs_campaign
    WHERE origin = %(executed)s AND treatment = '{}' AND state <> ALL(%(live)s)
    ORDER BY id DESC LIMIT %(newest)s
"""

# PostgreSQL gives a row that is stored or changed the number of the transaction (xmin), and none
# twice: the sum over some rows stays only while all of them do. Only finished runs are judged.
# Summaries and measurements change in the transactions that change their runs; hardware and
# environments change in publications only, where they have a slug, and settings never. A server is
# looked at all the time: of it, only what answers show.
# The sum of xmin, of which PostgreSQL makes a number only as text: its distance to the transactions
# of now, less that of the first one, costs a third less. A transaction that got its number before
# another, and changes rows after it, may leave the same sum: so the numbers are mixed and added up
# as well. (`hashxid` would cost less, from PostgreSQL 18 on.)
_FIRST = "(SELECT age('3'::xid)::bigint)"
_VERSIONS = (
    f"count(*), count(*) * {_FIRST} - sum(age(row.xmin)), sum(hashint8({_FIRST} - age(row.xmin)))"
)


def _of_all(*tables: str) -> str:
    """Of all rows of small tables, of which any answer may be made."""
    asked = (f"SELECT '{each}', 0, {_VERSIONS} FROM runs_{each} row" for each in tables)  # noqa: S608
    return "\n    UNION ALL ".join(asked)


RUNS = "run"  # what the statement calls the finished runs of a campaign

# Added up table by table: rows that went through one GROUP BY of all took a quarter longer.
# Nothing is read of campaigns with one that is uploaded, whose history may be long.
_STAMP = f"""
WITH newest AS MATERIALIZED ({NEWEST}), asked AS MATERIALIZED (
    SELECT unnest(%(asked)s::bigint[]) AS id WHERE NOT EXISTS (
        SELECT FROM runs_campaign WHERE id = ANY(%(asked)s::bigint[]) AND origin = %(uploaded)s
    )
), printed AS MATERIALIZED (
    SELECT id, campaign_id, xmin FROM runs_publishedtable
    WHERE campaign_id = ANY(ARRAY(SELECT id FROM asked))
)
    SELECT 'campaign ' || origin AS of, id AS campaign, {_VERSIONS} FROM runs_campaign row
        WHERE id = ANY(ARRAY(SELECT id FROM asked)) GROUP BY origin, id
    UNION ALL SELECT 'cell', campaign_id, {_VERSIONS} FROM runs_cell row
        WHERE campaign_id = ANY(ARRAY(SELECT id FROM asked)) GROUP BY campaign_id
    UNION ALL SELECT 'run', campaign_id, {_VERSIONS} FROM runs_run row
        WHERE campaign_id = ANY(ARRAY(SELECT id FROM newest UNION ALL SELECT id FROM asked))
            AND state = %(finished)s GROUP BY campaign_id
    UNION ALL SELECT 'newest', id, 1, 0, 0 FROM newest
    UNION ALL SELECT 'table', campaign_id, {_VERSIONS} FROM printed row GROUP BY campaign_id
    UNION ALL SELECT 'figure', campaign_id, {_VERSIONS}
        FROM runs_printedfigure row JOIN printed ON printed.id = table_id GROUP BY campaign_id
    UNION ALL SELECT 'discrepancy', campaign_id, {_VERSIONS}
        FROM runs_discrepancy row JOIN printed ON printed.id = table_id GROUP BY campaign_id
    UNION ALL SELECT 'node', campaign_id, {_VERSIONS}
        FROM runs_publishednode row JOIN printed ON printed.id = table_id GROUP BY campaign_id
    UNION ALL {_of_all("source", "metric", "scenario", "topology", "topologynode")}
    UNION ALL {_of_all("configuration", "installation")}
    UNION ALL SELECT 'hardware', 0, {_VERSIONS} FROM runs_hardwareprofile row WHERE slug <> ''
    UNION ALL SELECT 'environment', 0, {_VERSIONS} FROM runs_environment row WHERE slug <> ''
    UNION ALL SELECT 'server', 0, count(*),
        sum(hashtextextended(concat_ws('/', id, slug, name), 0)), 0 FROM runs_server
"""  # noqa: S608 - NEWEST is a constant

# What the page of a campaign shows besides: of uploads their commits, and its configurations; what
# people wrote; and the runs that have not finished.
_PAGE = ("page 1: revision", "page 2: configuration", "page 3: annotation", "page 4: run")
_STAMP_OF_PAGE = f"""{_STAMP}
    UNION ALL SELECT '{_PAGE[0]}', %(page)s, {_VERSIONS} FROM runs_revision row
        WHERE id = ANY(ARRAY(SELECT DISTINCT revision_id FROM runs_cell
            WHERE campaign_id = %(page)s))
    UNION ALL SELECT '{_PAGE[1]}', %(page)s, {_VERSIONS} FROM runs_campaignconfiguration row
        WHERE campaign_id = %(page)s
    UNION ALL SELECT '{_PAGE[2]}', %(page)s, {_VERSIONS} FROM runs_annotation row
        WHERE campaign_id = %(page)s
    UNION ALL SELECT '{_PAGE[3]}', %(page)s, {_VERSIONS} FROM runs_run row
        WHERE campaign_id = %(page)s AND state = ANY(%(unfinished)s)
"""  # noqa: S608 - as above
_IN_ORDER = " ORDER BY of, campaign"


# What kind of rows, how many, and their versions: added up, and added up after they were mixed.
_Version = tuple[str, *tuple[int, ...]]


@dataclass(frozen=True)
class _Stamps:
    """Of each campaign, of what all share, and of the campaigns that say how machines scatter."""

    of: Mapping[int, tuple[_Version, ...]]
    executed: frozenset[int]
    shared: Hashable
    noise: Hashable

    def whole(self, campaigns: Sequence[int]) -> Hashable:
        """Of an answer about these; without any, of one about the noise. KeyError if unknown."""
        is_judged = not campaigns or not self.executed.isdisjoint(campaigns)
        return (
            tuple(self.of[each] for each in campaigns),
            self.shared,
            self.noise if is_judged else None,
        )

    def without_runs(self, campaigns: Sequence[int]) -> Hashable:
        """Of what no run of these changes that finishes. KeyError if unknown."""
        own = (tuple(row for row in self.of[each] if row[0] != RUNS) for each in campaigns)
        return (*own, self.shared)


# Of the answer that is being made: its parts ask PostgreSQL no more.
_now: ContextVar[_Stamps | None] = ContextVar("stamps", default=None)


@dataclass(frozen=True)
class OfPage:
    """The stamps of the parts of a campaign's page: of what no run changes, of what finished runs
    and notes say, and of everything."""

    still: Hashable
    judged: Hashable
    whole: Hashable


class Kept(Generic[T]):
    """The answers that were asked for last, at most so many. For all threads of a process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._answers: OrderedDict[Hashable, tuple[Hashable, T]] = OrderedDict()
        self._lock, self._making = threading.Lock(), threading.Lock()

    def get(self, key: Hashable, campaigns: Iterable[int], make: Callable[[], T]) -> T:
        """The answer about these campaigns, made again where anything about them has changed.

        `key` says the rest of the question. The answer is shared: nobody may change it. It is made
        each time for uploads, which come all the time and are compared with what came just before,
        and in a transaction, whose own changes have one number. One query where it is kept, none
        inside of another answer about these campaigns.
        """
        if connection.in_atomic_block:
            return make()
        asked = tuple(sorted(set(campaigns)))
        # Read before the answer is made: a change meanwhile makes the answer newer, not older.
        if (stamps := _stamps(asked)) is None:
            return make()

        def made() -> T:
            with _inside(stamps):
                return make()

        return self.under(stamps.whole(asked), (key, asked), made)

    def under(self, stamp: Hashable, key: Hashable, make: Callable[[], T]) -> T:
        """The answer under a stamp that was read before; it is made each time where that is None.

        `key` has the campaign's own. The answer is shared: nobody may change it.
        """
        if stamp is None:
            return make()
        # Who asks while another one makes an answer waits for it, and finds it.
        if (known := self._known(key, stamp)) is not None:
            return known[0]
        with self._making:
            if (known := self._known(key, stamp)) is not None:
                return known[0]
            made = make()
            self._keep(key, stamp, made)
        return made

    def each(
        self,
        key: Hashable,
        campaigns: Iterable[int],
        make: Callable[[Sequence[int]], Mapping[int, T]],
    ) -> dict[int, T]:
        """An answer about each campaign by itself. As get(): those that changed are made together.

        `make` must give each campaign what it would alone.
        """
        asked = tuple(sorted(set(campaigns)))
        if (stamps := _stamps(asked)) is None:
            return dict(make(asked))
        found = self._found(key, asked, stamps)
        if len(found) < len(asked):
            with self._making:
                found = self._found(key, asked, stamps)
                missing = [each for each in asked if each not in found]
                with _inside(stamps):
                    made = make(missing) if missing else {}
                for each in missing:
                    found[each] = made[each]
                    self._keep((key, (each,)), stamps.whole((each,)), made[each])
        return found

    def part(self, key: Hashable, campaigns: Iterable[int], make: Callable[[], T]) -> T:
        """A part of an answer about these campaigns that stays when a run of them finishes.

        `make` may read their cells, and what the runs had that `key` names, but not which there
        are. It is made each time outside of an answer that is kept.
        """
        asked, stamps = tuple(sorted(set(campaigns))), _now.get()
        if stamps is None or not asked or not stamps.of.keys() >= set(asked):
            return make()
        stamp = stamps.without_runs(asked)
        if (known := self._known((key, asked), stamp)) is not None:
            return known[0]
        made = make()
        self._keep((key, asked), stamp, made)
        return made

    def _found(self, key: Hashable, asked: Sequence[int], stamps: _Stamps) -> dict[int, T]:
        known = {each: self._known((key, (each,)), stamps.whole((each,))) for each in asked}
        return {each: found[0] for each, found in known.items() if found is not None}

    def _known(self, key: Hashable, stamp: Hashable) -> tuple[T] | None:
        with self._lock:
            known = self._answers.get(key)
            if known is None or known[0] != stamp:
                return None
            self._answers.move_to_end(key)
            return (known[1],)

    def _keep(self, key: Hashable, stamp: Hashable, made: T) -> None:
        with self._lock:
            self._answers[key] = (stamp, made)
            self._answers.move_to_end(key)
            while len(self._answers) > self._most:
                self._answers.popitem(last=False)


def is_known() -> bool:
    """Whether an answer is being made whose rows are known to be those of a moment."""
    return _now.get() is not None


def of_newest(newest: int = NOISE_CAMPAIGNS) -> dict[str, Any]:
    """The values that NEWEST asks for."""
    live = [each.value for each in Campaign.LIVE]
    return {"executed": Origin.EXECUTED.value, "live": live, "newest": newest}


@contextmanager
def at_once(campaigns: Iterable[int]) -> Iterator[None]:
    """Look once for changes of all of these campaigns, for several answers about some of them."""
    stamps = _stamps(tuple(sorted(set(campaigns))))
    if stamps is None:
        yield
    else:
        with _inside(stamps):
            yield


@contextmanager
def page(campaign: Campaign, *others: int) -> Iterator[OfPage | None]:
    """The stamps of the page of a campaign, and of the published ones that it shows. One query.

    Uploads have theirs too: an upload changes nothing of other campaigns. Inside of it answers
    about the campaign ask no more; parts of them are kept only while it is at work, since nobody
    will need those of one that has ended. None in a transaction, whose own changes have one number.
    """
    stamps = _stamps_of_page(campaign.pk, others)
    if stamps is None:
        yield None
        return
    asked, own = (campaign.pk, *others), stamps.of[campaign.pk]
    revisions, configurations, notes, runs = (row for row in own if row[0] in _PAGE)
    # As other answers about the campaign know it.
    known = replace(
        stamps, of={**stamps.of, campaign.pk: tuple(row for row in own if row[0] not in _PAGE)}
    )
    still = (known.without_runs(asked), revisions, configurations)
    judged = (known.whole(asked), revisions, configurations, notes)
    is_at_work = campaign.state in Campaign.LIVE and campaign.origin == Origin.EXECUTED
    with _inside(known if is_at_work else replace(known, of={})):
        yield OfPage(still, judged, (judged, runs))


@contextmanager
def _inside(stamps: _Stamps) -> Iterator[None]:
    token = _now.set(stamps)
    try:
        yield
    finally:
        _now.reset(token)


def _stamps(campaigns: Collection[int]) -> _Stamps | None:
    """Of all rows that answers about these campaigns are made of; any change makes it another.

    None where any is uploaded, and in a transaction. From the server that the request reads: a
    standby is never ahead of the primary.
    """
    if connection.in_atomic_block:
        return None
    known = _now.get()
    if known is not None and known.of.keys() >= set(campaigns):
        return known
    return _asked(_STAMP, campaigns, uploaded=Origin.UPLOADED.value)


def _stamps_of_page(campaign: int, others: Sequence[int]) -> _Stamps | None:
    """As _stamps, with the rows that only the page of this campaign shows, and for uploads."""
    if connection.in_atomic_block:
        return None
    unfinished = [each.value for each in Run.State if each != Run.State.FINISHED]
    return _asked(
        _STAMP_OF_PAGE, (campaign, *others), uploaded="", page=campaign, unfinished=unfinished
    )


def _asked(statement: str, campaigns: Collection[int], **more: Any) -> _Stamps | None:
    values: dict[str, Any] = of_newest() | {
        "finished": Run.State.FINISHED.value,
        "asked": list(campaigns),
    }
    with connections[router.db_for_read(Run)].cursor() as cursor:
        cursor.execute(statement + _IN_ORDER, values | more)
        found = cursor.fetchall()
    return _read(found, campaigns)


def _read(
    found: Iterable[tuple[str, int, int, int, int]], asked: Collection[int]
) -> _Stamps | None:
    of: dict[int, list[_Version]] = {campaign: [] for campaign in asked}
    known, executed, newest = set(), set(), set()
    shared, runs = [], {}
    for kind, campaign, *version in found:
        if kind == "newest":
            newest.add(campaign)
            continue
        if kind.startswith("campaign "):
            known.add(campaign)
            if kind.endswith(Origin.EXECUTED.value):
                executed.add(campaign)
        elif kind == RUNS:
            runs[campaign] = tuple(version)
        if not campaign:
            shared.append((kind, *version))
        elif campaign in of:
            of[campaign].append((kind, *version))
    if known != of.keys():
        return None
    noise = tuple((each, runs.get(each)) for each in sorted(newest))
    own = {campaign: tuple(each) for campaign, each in of.items()}
    return _Stamps(own, frozenset(executed), tuple(shared), noise)
