"""Answers about campaigns, kept in this process until something that they are made of changes.

To judge hundreds of cells takes a hundred times longer than to look whether any of their rows has
another version. What a reader may see is asked for before: keys have the campaigns' own keys.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any, Generic, TypeVar

from django.db import connection, connections, router

from runs.models import Run
from runs.models.campaigns import Origin
from runs.selectors.compare.known_noise import NOISE_CAMPAIGNS

T = TypeVar("T")

# PostgreSQL gives a row that is stored or changed the number of the transaction (xmin), and none
# twice: the sum over some rows stays only while all of them do. Summaries and measurements change
# in the transactions that change their runs; hardware and environments change in publications
# only, where they have a slug, and settings never.
_STAMP = """
WITH newest AS MATERIALIZED (
    SELECT id FROM runs_campaign WHERE origin = %(executed)s AND treatment = '{}'
    ORDER BY id DESC LIMIT %(noise)s
), campaign AS MATERIALIZED (
    SELECT id, xmin FROM runs_campaign
    WHERE id = ANY(ARRAY(SELECT id FROM newest) || %(asked)s::bigint[]) AND origin <> %(uploaded)s
), printed AS MATERIALIZED (
    SELECT id, xmin FROM runs_publishedtable WHERE campaign_id = ANY(%(asked)s::bigint[])
), version AS (
    SELECT 0 AS of, xmin FROM campaign WHERE id = ANY(%(asked)s::bigint[])
    UNION ALL SELECT 1, xmin FROM campaign
    UNION ALL SELECT 2, xmin FROM runs_cell
        WHERE campaign_id = ANY(ARRAY(SELECT id FROM campaign))
    UNION ALL SELECT 3, xmin FROM runs_run
        WHERE campaign_id = ANY(ARRAY(SELECT id FROM campaign))
    UNION ALL SELECT 4, xmin FROM printed
    UNION ALL SELECT 5, xmin FROM runs_printedfigure
        WHERE table_id = ANY(ARRAY(SELECT id FROM printed))
    UNION ALL SELECT 6, xmin FROM runs_discrepancy
        WHERE table_id = ANY(ARRAY(SELECT id FROM printed))
    UNION ALL SELECT 7, xmin FROM runs_publishednode
        WHERE table_id = ANY(ARRAY(SELECT id FROM printed))
    UNION ALL SELECT 8, xmin FROM runs_source
    UNION ALL SELECT 9, xmin FROM runs_metric
    UNION ALL SELECT 10, xmin FROM runs_scenario
    UNION ALL SELECT 11, xmin FROM runs_topology
    UNION ALL SELECT 12, xmin FROM runs_configuration
    UNION ALL SELECT 13, xmin FROM runs_installation
    UNION ALL SELECT 14, xmin FROM runs_server
    UNION ALL SELECT 15, xmin FROM runs_topologynode
    UNION ALL SELECT 16, xmin FROM runs_hardwareprofile WHERE slug <> ''
    UNION ALL SELECT 17, xmin FROM runs_environment WHERE slug <> ''
)
SELECT of, count(*), sum(xmin::text::bigint) FROM version GROUP BY of ORDER BY of
"""


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
        and in a transaction, whose own changes have one number. One query where it is kept.
        """
        if connection.in_atomic_block:
            return make()
        asked = tuple(sorted(set(campaigns)))
        # Read before the answer is made: a change meanwhile makes the answer newer, not older.
        stamp = _stamp(asked)
        if stamp is None:
            return make()
        # Who asks while another one makes an answer waits for it, and finds it.
        if (known := self._known((key, asked), stamp)) is not None:
            return known[0]
        with self._making:
            if (known := self._known((key, asked), stamp)) is not None:
                return known[0]
            made = make()
            with self._lock:
                self._answers[key, asked] = (stamp, made)
                self._answers.move_to_end((key, asked))
                while len(self._answers) > self._most:
                    self._answers.popitem(last=False)
        return made

    def _known(self, key: Hashable, stamp: Hashable) -> tuple[T] | None:
        with self._lock:
            known = self._answers.get(key)
            if known is None or known[0] != stamp:
                return None
            self._answers.move_to_end(key)
            return (known[1],)


def _stamp(campaigns: Collection[int]) -> Hashable:
    """Of all rows that answers about these campaigns are made of; any change makes it another.

    None where any is uploaded. From the server that the request reads: a standby is never ahead of
    the primary.
    """
    values: dict[str, Any] = {
        "executed": Origin.EXECUTED.value,
        "uploaded": Origin.UPLOADED.value,
        "noise": NOISE_CAMPAIGNS,
        "asked": list(campaigns),
    }
    with connections[router.db_for_read(Run)].cursor() as cursor:
        cursor.execute(_STAMP, values)
        found = tuple(cursor.fetchall())
    # The first row counts those that were asked for and are not uploaded.
    known = found[0][1] if found and found[0][0] == 0 else 0
    return found if known == len(campaigns) else None
