"""What is removed when it is old, by kind: a rehearsal counts it, a removal is in the audit trail.

Nothing of a run that was sealed and nothing that was published is removed here: its rows are part
of the record. Only the content of its files is, whose names, sizes and hashes stay.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from benchlab.environment import RETAINED
from runs.access.services import audit
from runs.models import Command, Run, Seal, Series, Upload
from runs.models.campaigns import Origin
from runs.queue.services import artifacts

# A name, the rows, and the column by which they are removed.
_Rows: TypeAlias = tuple[str, QuerySet[Any], str]
# Of a transaction: it holds locks for a fraction of a second.
ROWS = 5000


@dataclass(frozen=True)
class Removed:
    """What went, or would: rows or files, and the bytes that files take on disk."""

    kind: str
    days: int
    number: int
    size: int = 0


def apply(
    days: Mapping[str, int], *, keep: Sequence[str] = (), is_rehearsal: bool = True
) -> list[Removed]:
    """Remove what is older than so many days, kind by kind, or only count it.

    `days` has kinds of `benchlab.environment.RETAINED`; a kind that it does not name stays.
    `keep` are slugs of campaigns and names of files, of which no file is removed. Reads all rows
    of a kind that are that old; removes them ROWS at a time.
    """
    return [
        _remove_kind(kind, days[kind], keep, is_rehearsal)
        for kind in RETAINED
        if kind in days
    ]


def _remove_kind(
    kind: str, days: int, keep: Sequence[str], is_rehearsal: bool
) -> Removed:
    before = timezone.now() - timedelta(days=days)
    if kind == "files":
        pruned = artifacts.prune(before=before, keep=keep, is_rehearsal=is_rehearsal)
        return Removed(kind, days, pruned.files, pruned.size)
    number = 0
    for name, rows, key in _ROWS[kind](before):
        number += rows.count() if is_rehearsal else _remove(kind, days, name, rows, key)
    return Removed(kind, days, number)


def _remove(kind: str, days: int, name: str, rows: QuerySet[Any], key: str) -> int:
    """Delete the rows in batches, each with its entry in the audit trail.

    `key` is the column that an index finds them by; all rows with a value of it go.
    """
    number = 0
    while True:
        with transaction.atomic():
            keys = set(rows.order_by(key).values_list(key, flat=True)[:ROWS])
            if not keys:
                return number
            gone, _by_model = rows.model._default_manager.filter(
                **{f"{key}__in": keys}
            ).delete()
            details = {"older_than_days": days, "removed": gone}
            audit.record("old_removed", f"{kind}: {name}", after=details)
        number += gone


def _failures(before: Any) -> list[_Rows]:
    """What runs that ended without success left: they are in no seal, and keep their events."""
    sealed = Seal.objects.filter(run=OuterRef("pk"))
    ended = Run.objects.filter(state__in=Run.UNSUCCESSFUL, finished_at__lt=before)
    runs = (
        ended.exclude(origin=Origin.PUBLISHED)
        .filter(~Exists(sealed))
        .order_by()
        .values("pk")
    )
    return [
        ("commands", Command.objects.filter(run__in=runs), "run_id"),
        ("series", Series.objects.filter(run__in=runs), "run_id"),
    ]


_ROWS: Mapping[str, Callable[[Any], list[_Rows]]] = {
    "failures": _failures,
    "uploads": lambda before: [
        ("answers", Upload.objects.filter(created_at__lt=before), "pk")
    ],
    "logins": lambda before: [
        ("sessions", Session.objects.filter(expire_date__lt=before), "pk")
    ],
}
