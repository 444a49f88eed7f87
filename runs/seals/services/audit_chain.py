"""The chain of the audit trail: a worker links its entries and signs each link."""

from itertools import islice

from django.db.models import QuerySet, Subquery
from django.db.models.functions import Coalesce

from runs.models import AuditEntry, AuditLink
from runs.seals.selectors import seals
from runs.seals.selectors.audit_chain import is_marked, link_hash, unlinked
from runs.seals.selectors.seals import AUDIT, BEGINNING
from runs.seals.services.seal_keys import Extended, Signer, heads

BATCH = 2_000


def waiting() -> QuerySet[AuditEntry]:
    """The entries after the last one that was linked."""
    last_entry = AuditLink.objects.order_by("-number").values("entry")[:1]
    return AuditEntry.objects.filter(pk__gt=Coalesce(Subquery(last_entry), 0))


def extend(signer: Signer, *, also: str = "") -> Extended | None:
    """Link the oldest entries that have no link; None if there are none to link.

    The chain begins with all entries of releases that had none. Later only those with BenchLab's
    mark are linked, each once; `verify` names the others. Call it while nobody else does.
    """
    last_link = AuditLink.objects.order_by("-number").first()
    is_begun = last_link is not None or AUDIT in heads()
    if not is_begun and seals.is_updating():
        return None
    number, digest = (
        (last_link.number, bytes(last_link.hash)) if last_link else (0, BEGINNING)
    )
    before = (number, digest.hex())
    links = []
    for entry in _authentic(also) if is_begun else unlinked():
        number += 1
        digest = link_hash(number, entry, digest)
        proof = {"hash": digest, "key": signer.public, "signature": signer.sign(digest)}
        links.append(AuditLink(number=number, entry=entry.pk, **proof))
    AuditLink.objects.bulk_create(links)
    return Extended(AUDIT, before, (number, digest.hex())) if links else None


def _authentic(also: str) -> list[AuditEntry]:
    marked = (
        audit_entry
        for audit_entry in unlinked().iterator()
        if is_marked(audit_entry, also=also)
    )
    entries = list(islice(marked, BATCH))
    copied = AuditEntry.objects.filter(
        mark__in=[audit_entry.mark for audit_entry in entries]
    )
    linked = copied.exclude(pk__in=unlinked().values("pk")).values_list(
        "mark", flat=True
    )
    known_marks, fresh = set(linked), []
    for audit_entry in entries:
        if audit_entry.mark not in known_marks:
            fresh.append(audit_entry)
        known_marks.add(audit_entry.mark)
    return fresh
