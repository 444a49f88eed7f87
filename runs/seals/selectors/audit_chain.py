"""The chain of the audit trail: the form of its links, and what was changed in the trail since.

A link is to an entry of the trail what a seal is to a run (`seals`): a worker adds
it once the entry is there, and signs it with the key outside the database.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from runs.access.selectors import macs
from runs.models import AuditEntry, AuditLink
from runs.seals.selectors import seals
from runs.seals.selectors.seals import AUDIT, BEGINNING
from runs.seals.selectors.verification import CHUNK, Finding


def link_hash(number: int, entry: AuditEntry, previous: bytes) -> bytes:
    """SHA-256 of an entry of the trail, its mark, its place and the hash before."""
    content = {"entry": entry.pk, "content": list(entry.marked), "mark": entry.mark}
    return seals.entry_hash(previous=previous, project=AUDIT, number=number, **content)


def unlinked() -> QuerySet[AuditEntry]:
    """Entries that are in no chain, the oldest first."""
    link = AuditLink.objects.filter(entry=OuterRef("pk"))
    return AuditEntry.objects.filter(~Exists(link)).order_by("pk")


def is_marked(entry: AuditEntry, *, also: str = "") -> bool:
    """Whether BenchLab wrote the entry."""
    return macs.is_marked(entry.mark, macs.AUDIT, *entry.marked, also=also)


def findings(
    *, trusted: Collection[bytes], ends: Sequence[Mapping[str, Any]]
) -> Iterator[Finding]:
    """Entries that are missing, changed, in another order, or not BenchLab's own."""
    number, previous = 0, BEGINNING
    awaited = {end["number"]: end["hash"] for end in ends}
    marks: dict[str, int] = {}
    rows = AuditLink.objects.order_by("number").iterator(CHUNK)
    while links := list(islice(rows, CHUNK)):
        entries = AuditEntry.objects.in_bulk([link.entry for link in links])
        for link in links:
            if link.number != number + 1:
                missing = f"Links {number + 1} to {link.number - 1} of the audit trail are missing."
                yield _finding("chain_gap", missing)
                previous = b""
            entry = entries.get(link.entry)
            yield from _link(link, entry, previous, trusted)
            if entry is not None and entry.mark:
                marks[entry.mark] = entry.pk
            number, previous = link.number, bytes(link.hash)
            if awaited.pop(number, previous.hex()) != previous.hex():
                yield _finding("chain_cut", _cut(number))
    for missing in sorted(awaited):
        yield _finding("chain_cut", _cut(missing))
    if number or not seals.is_updating():
        yield from _unlinked(marks, is_begun=bool(number or ends))


def _link(
    link: AuditLink,
    entry: AuditEntry | None,
    previous: bytes,
    trusted: Collection[bytes],
) -> Iterator[Finding]:
    if entry is None:
        yield _finding(
            "audit_missing", f"Entry {link.entry} of the audit trail is gone."
        )
    elif previous and link_hash(link.number, entry, previous) != bytes(link.hash):
        message = f"Entry {link.entry} of the audit trail ({entry}) has changed, or its place has."
        yield _finding("audit_changed", message)
    if bytes(link.key) not in trusted:
        message = f"Link {link.number} of the audit trail is signed with a key not trusted here."
        yield _finding("key_unknown", message)
    elif not seals.is_signed(
        digest=bytes(link.hash), signature=link.signature, key=link.key
    ):
        message = f"The signature of link {link.number} of the audit trail is wrong."
        yield _finding("signature_wrong", message)


def _unlinked(marks: Mapping[str, int], *, is_begun: bool) -> Iterator[Finding]:
    """Entries that wait for their link are no fault, if BenchLab wrote them, each once."""
    seen_marks = dict(marks)
    for entry in unlinked().iterator(CHUNK):
        if not entry.mark and not is_begun:
            continue  # of a release without the chain, which begins with them
        if not is_marked(entry) or entry.mark in seen_marks:
            message = f"Entry {entry.pk} of the audit trail ({entry}) was not written by BenchLab."
            yield _finding("audit_forged", message)
        seen_marks[entry.mark] = entry.pk


def _cut(number: int) -> str:
    return f"Link {number} of the audit trail was signed, and is gone or is another one now."


def _finding(code: str, message: str) -> Finding:
    return Finding(AUDIT, None, code, message)
