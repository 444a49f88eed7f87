"""Whether any request grows with the database: SQL statements and buffers read, at two sizes.

Each address that answers GET is asked with each of its documented filters (`addresses`), in a
database that grows from one size to the next (`database`, `axes`). Each statement is then explained
with its buffers, which are the same on a busy machine. Answers that a process keeps are made again
for each address. `test_cost` has a small form of it, where an address without an entry fails, and
`python -m benchmarks.cost` a larger one, an axis at a time.

Who asks is anonymous; for what only people may see, it is an administrator.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import resolve

from runs.access.selectors.permission_table import GRANTS, Role
from runs.compare.selectors.judge.judging import Judge
from runs.shared import caching
from tests.domain.cost.addresses import (
    BEHIND,
    COUNTS,
    JUDGED_BY_CONTROL,
    NOWHERE,
    UNDRAWN,
    WHOLE,
    WHOLE_ON,
    WHOLE_STATEMENTS,
    addresses,
)
from tests.rights import ADDRESSES

MOST_GROWTH = 1.2
READERS = ("anonymous", "member", "administrator")
ADMINISTRATOR = READERS[-1]
# A member of a private project without results, who sees the same as everybody.
ALIKE = "alike"
# What such a reader, or an administrator, may cost more than everybody: the person, the session
# and the memberships are read besides.
MOST_OF_A_PERSON = 1.5
# Of a table with so few pages (half a megabyte) PostgreSQL reads all, because that is cheaper than
# to search in an index. One that grows beyond is not read whole any more, or counts.
SMALL_TABLE = 64
# A statement that reads so few may have another plan on another machine, or after an autovacuum:
# these plans cost PostgreSQL the same. Growth shows where ten times the rows need more than that.
FEW_BUFFERS = SMALL_TABLE // 2
# Rows that a list shows may begin in one page and end in the next, in each of its tables, and an
# index has a page for where all rows of a table page are visible.
SLACK = 10
SLACK_BYTES = 3_000
# The rows of a page, whose campaigns, cells and servers may be looked up where all were read.
ROWS_SEARCHED = 40
TENFOLD, MOST_FURTHER = 10, 3

_DECLARED = re.compile(r'^DECLARE "[^"]*"[A-Z ]* CURSOR [A-Z ]*FOR ')
# Texts, numbers and lists of them, which are others in another database.
_VALUE = re.compile(r"'(?:[^']|'')*'|\b\d+(?:\.\d+)?\b")
_VALUES = re.compile(r"\?(?:, \?)+|\(\?\)(?:, \(\?\))+")
# What is read at most, here less: a small database would never reach it.
MOST: Mapping[str, int] = {
    "runs.archive.selectors.archive.MOST_LOOKED_AT": 4,
    "runs.archive.selectors.version_line.MOST_LOOKED_AT": 20,
    "runs.shared.api.pagination.KeysetPagination.page_size": 10,
    "runs.cells.selectors.metrics.NEWEST_CELLS": 20,
    "runs.cells.selectors.noise.NEWEST_CELLS": 10,
    "runs.cells.selectors.noise.NEWEST_RUNS": 30,
    "runs.compare.selectors.address.candidates.MOST_CELLS": 100,
    "runs.compare.selectors.address.candidates.MOST_LOOKED_AT": 16,
    "runs.compare.selectors.judge.known_noise.NOISE_CELLS": 10,
    "runs.histories.selectors.causes.MOST_CHANGES": 10,
    "runs.histories.selectors.histories.WINDOW": 10,
    "runs.operations.selectors.prometheus.MOST_ROWS": 100,
    "runs.servers.selectors.hardware.MOST_COUNTED": 20,
    # Between a campaign of 40 cells and one of 400.
    "runs.campaigns.services.kept_verdicts.MOST_RUNS": 500,
    "runs.campaigns.views.campaigns.PAGE_SIZE": 10,
    "runs.histories.views.changes.ROWS": 10,
    "runs.shared.pages.PAGE_SIZE": 10,
}


@dataclass(frozen=True)
class Cost:
    """What a request asked of PostgreSQL.

    `searches`: how often it went down an index; `found`: the rows of these. `small`: how many of
    the buffers are those of small tables that were read whole. `rows`: those of the answers.
    `verdicts`: how many pairs of cells the application judged. `each`: of a request, the same by
    the text of its statements without their values.
    """

    statements: int
    buffers: int
    searches: int = 0
    found: int = 0
    small: int = 0
    rows: int = 0
    bytes: int = 0
    verdicts: int = 0
    each: Mapping[str, "Cost"] = field(default_factory=dict, repr=False)

    def __add__(self, other: "Cost") -> "Cost":
        """What two statements read."""
        counts = ("statements", "buffers", "searches", "found", "small", "rows")
        return Cost(*(getattr(self, count) + getattr(other, count) for count in counts))

    def grown(
        self, larger: "Cost", *, times: float = 1, least: int = FEW_BUFFERS
    ) -> list[str]:
        """What costs more than it may, where `times` as much of what the request answers is there.

        Statements that read at most `least` buffers may have another plan.

        One statement may not read what the others leave over: each is compared by itself, and those
        that are not asked in both databases together.
        """
        both = self.each.keys() & larger.each.keys()
        others = (
            sum((of[text] for text in of.keys() - both), start=Cost(0, 0))
            for of in (self.each, larger.each)
        )
        pairs = [("others", *others)]
        pairs += [(text, self.each[text], larger.each[text]) for text in sorted(both)]
        faults = [
            f"{' '.join(text.split())[:300]}: {before} -> {found}"
            for text, before, found in pairs
            if found.buffers > max(least, before._most(found, _times_of(text, times)))
        ]
        most = MOST_GROWTH * times * self.verdicts + SLACK
        if larger.statements > self.statements or larger.verdicts > most:
            faults.append(f"{self} -> {larger}")
        return faults

    def _most(self, larger: "Cost", times: float) -> float:
        """How many buffers the same statements may read.

        An index of ten times as many rows has at most one more level, so each search may read one
        more buffer, and where it finds another row first, that one as well. Where small tables were
        read whole, the larger ones may be searched for each row, as may what belongs to each row of
        the answer, which may lie in a page of its own. What finds no more rows has another plan.
        What searches many times as often grows.
        """
        number = max(self.statements, larger.statements)
        rows = times * self.rows
        searched = 3 * larger.found
        if larger.found > MOST_GROWTH * times * self.found:
            searched = (3 if self.small or not self.statements else 2) * min(
                larger.found if self.small else larger.searches,
                2 * times * self.searches
                + 4 * self.small
                + rows
                + ROWS_SEARCHED * number,
            )
        most = MOST_GROWTH * times * self.buffers + rows + SLACK * number
        return most + searched + larger.small


def _times_of(text: str, times: float) -> float:
    """How many times as much a statement may read."""
    return max(times, TENFOLD if any(part in text for part in WHOLE_STATEMENTS) else 1)


def measure(
    known: Mapping[str, object], only: Sequence[str] = (), reader: str = ""
) -> dict[str, Cost]:
    """The cost of each address, or of a few; `known` says what they name.

    As one of READERS, without what that one may not see; or as anybody, and as an administrator
    where somebody has to be logged in.
    """
    clients, plans = _clients(), dict[str, dict[str, Any]]()
    found = {}
    with _keeping_nothing():
        for address in only or addresses():
            asked = address.format(**known)
            is_for_all = is_open(asked)
            name = reader or (READERS[0] if is_for_all else ADMINISTRATOR)
            if name == READERS[0] and not is_for_all:
                continue
            cost = _cost(clients[name], asked, plans)
            if cost is not None:
                found[address] = cost
    return found


@contextmanager
def _keeping_nothing() -> Iterator[None]:
    """Every answer is made anew, and its versions are looked at as if it could be kept."""
    with mock.patch.object(caching, "answer", lambda _key, _version, make: make()):
        yield


@contextmanager
def short_lists() -> Iterator[None]:
    """As MOST says, so that the lists of a small database are full."""
    with ExitStack() as stack:
        for name, most in MOST.items():
            stack.enter_context(mock.patch(name, most))
        yield


@contextmanager
def _verdicts() -> Iterator[list[object]]:
    """The pairs of cells that are judged meanwhile."""
    judged: list[object] = []
    judge = Judge.judge

    def recorded(self: Judge, pairs: Sequence[Any], *given: Any, **named: Any) -> Any:
        judged.extend(pairs)
        return judge(self, pairs, *given, **named)

    with mock.patch.object(Judge, "judge", recorded):
        yield judged


def _clients() -> dict[str, Any]:
    """A browser of each reader."""
    clients = {name: Client() for name in (*READERS, ALIKE)}
    people = (("member", "member"), (ADMINISTRATOR, "cost"), (ALIKE, ALIKE))
    for name, username in people:
        if user := User.objects.filter(username=username).first():
            clients[name].force_login(user)
    return clients


def is_open(address: str) -> bool:
    """Whether anybody may ask for it."""
    rules = ADDRESSES[resolve(address.partition("?")[0]).view_name]
    return GRANTS[rules["GET"]].role == Role.ANYBODY


def _cost(client: Any, address: str, plans: dict[str, dict[str, Any]]) -> Cost | None:
    """What it costs, or nothing where the reader may not see it. `plans` are those made before."""
    connection.queries_log.clear()
    with CaptureQueriesContext(connection) as captured, _verdicts() as judged:
        response = client.get(address)
        size = 0 if response.streaming else len(response.content)
        if response.streaming:
            for _chunk in response.streaming_content:
                pass
    if response.status_code in {401, 403}:
        return None
    is_missing = response.status_code == 404 and any(
        part in address for part in (NOWHERE, *UNDRAWN)
    )
    if response.status_code not in {200, 302} and not is_missing:
        raise SystemExit(
            f"{address}: {response.status_code} {response.content[:300]!r}"
        )
    asked = [query["sql"] for query in captured.captured_queries]
    reads = [
        sql
        for sql in map(_read, asked)
        if sql.lstrip("( \n").startswith(("SELECT", "WITH"))
    ]
    each: dict[str, Cost] = defaultdict(lambda: Cost(0, 0))
    for sql in reads:
        if sql not in plans:
            plans[sql] = _plan(sql)
        plan = plans[sql]
        counts = (count(plan) for count in (_buffers, _searches, _found, _small))
        # A statement without its values.
        each[_VALUES.sub("?", _VALUE.sub("?", sql))] += Cost(
            1, *counts, round(plan["Actual Rows"])
        )
    total = sum(each.values(), start=Cost(0, 0))
    return replace(
        total, statements=len(asked), bytes=size, verdicts=len(judged), each=dict(each)
    )


def _read(sql: str) -> str:
    """What a statement reads: that of a cursor, where it declares one."""
    return _DECLARED.sub("", sql)


def buffers(sql: str) -> int:
    """How many buffers a statement reads, from the cache or not. Executes it."""
    return _buffers(_plan(sql))


def _plan(sql: str) -> dict[str, Any]:
    with connection.cursor() as cursor:
        told = f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {sql}"
        cursor.execute(told.replace("%", "%%"), ())
        (found,) = cursor.fetchone()
    plan: dict[str, Any] = (json.loads(found) if isinstance(found, str) else found)[0][
        "Plan"
    ]
    return plan


def _buffers(plan: Mapping[str, Any]) -> int:
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def _searches(plan: Mapping[str, Any]) -> int:
    """By PostgreSQL's own count, which it gives since version 18."""
    return int(plan.get("Index Searches", 0)) + sum(
        map(_searches, plan.get("Plans", ()))
    )


def _found(plan: Mapping[str, Any]) -> int:
    """The rows of its index scans, shown or not, or how often they searched."""
    rows = 0.0
    if "Index Name" in plan:
        rows = plan["Actual Loops"] * (
            plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
        )
    own = max(round(rows), plan.get("Index Searches", 0))
    return int(own) + sum(map(_found, plan.get("Plans", ())))


def _small(plan: Mapping[str, Any]) -> int:
    below = plan.get("Plans", ())
    own = _buffers(plan) - sum(map(_buffers, below))
    is_small = (
        plan["Node Type"] == "Seq Scan" and own <= SMALL_TABLE * plan["Actual Loops"]
    )
    return (own if is_small else 0) + sum(map(_small, below))


def grown(
    small: Mapping[str, Cost],
    large: Mapping[str, Cost],
    *,
    times: float,
    least: int = FEW_BUFFERS,
) -> list[str]:
    """What costs more than it may in a database that has so many times as many runs."""
    found = {
        address: cost.grown(large[address], times=_times(address, times), least=least)
        for address, cost in small.items()
    }
    return [
        f"{address}: {'; '.join(faults)}" for address, faults in found.items() if faults
    ]


def _times(address: str, times: float) -> float:
    """How many times as much it may read."""
    return times if address in (*WHOLE, *COUNTS, *BEHIND) else 1


def dearer(anybody: Mapping[str, Cost], person: Mapping[str, Cost]) -> list[str]:
    """What a person's request reads more of than it may; addresses that both may ask for."""
    return [
        f"{address}: {cost} -> {person[address]}"
        for address, cost in anybody.items()
        if address in person
        and person[address].buffers > MOST_OF_A_PERSON * cost.buffers + SLACK
    ]


def grown_by(
    axis: str, small: Mapping[str, Cost], large: Mapping[str, Cost]
) -> list[str]:
    """What costs more than it may, or says more, where one axis has ten times as much."""
    faults = []
    for address, cost in small.items():
        found, is_whole = large[address], address in WHOLE_ON.get(axis, ())
        times = TENFOLD if is_whole else _times(address, TENFOLD)
        is_longer = found.bytes > MOST_GROWTH * times * cost.bytes + SLACK_BYTES
        # What a page shows only of what is large it asks for once more.
        further = MOST_FURTHER if is_whole else 0
        more = replace(cost, statements=cost.statements + further).grown(
            found, times=times
        )
        if address in JUDGED_BY_CONTROL and found.verdicts > cost.verdicts:
            more.append(f"{found.verdicts} verdicts")
        if is_longer or more:
            faults.append(
                f"{address}: {found.bytes} bytes of {cost.bytes}; {'; '.join(more)}"
            )
    return faults
