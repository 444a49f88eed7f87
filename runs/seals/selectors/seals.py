"""Seals: the form of a chain's entries, and whether what is sealed of a run has changed.

The parts correspond to the run's lines in an export (`docs/seals.md`), so an export can be checked
without a database.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.utils import timezone

from runs.access.selectors import macs
from runs.models import Instance, Seal


def entries_of(run_id: int) -> list[Seal]:
    """What the chain says about a run, the newest first; empty while it waits. One query."""
    entries = (
        Seal.objects.filter(run=run_id).select_related("project").order_by("-number")
    )
    return list(entries.defer("content"))


# A prefix for what is signed, so that our signature can never be taken for one of something else.
DOMAIN = b"benchlab seal 1\n"
HEAD = b"benchlab head 1\n"
# The hash before the first entry of a chain.
BEGINNING = bytes(32)


def _moment(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no form in a seal")


# Made once: json.dumps makes one for each call with options.
_ENCODER = json.JSONEncoder(
    ensure_ascii=False,
    sort_keys=True,
    separators=(",", ":"),
    allow_nan=False,
    default=_moment,
)


def canonical(value: Any) -> str:
    """JSON in the canonical form in which it is hashed."""
    return _ENCODER.encode(value)


def entry_hash(*, previous: bytes, **entry: Any) -> bytes:
    """SHA-256 of an entry (project, number, kind, run, at, reason, content) and the hash before."""
    return hashlib.sha256(
        canonical({**entry, "previous": bytes(previous).hex()}).encode()
    ).digest()


def is_signed(
    *,
    digest: bytes,
    signature: bytes | memoryview,
    key: bytes | memoryview,
    domain: bytes = DOMAIN,
) -> bool:
    """Whether the owner of this public key signed the entry with this hash, or a text."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes(key)).verify(
            bytes(signature), domain + bytes(digest)
        )
    except (InvalidSignature, ValueError):
        return False
    return True


def digest_of(value: Any) -> str:
    """SHA-256 of the canonical form, in hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


# Value and n by metric and statistic.
Figures = Mapping[str, Sequence[Any]]


def figures_digest(figures: Figures) -> str:
    """SHA-256 of a run's figures, by which a request to seal says what it is for."""
    return digest_of({name: [float(value), n] for name, (value, n) in figures.items()})


# An update's mark is worth nothing later: somebody may have copied it.
UPDATE_HOURS = 24


def is_updating() -> bool:
    """Whether services of the release before may still store what has no mark."""
    instance = Instance.objects.exclude(unsealed_since=None).first()
    if instance is None or instance.unsealed_since is None:
        return False
    since = instance.unsealed_since
    is_recent = timedelta(0) <= timezone.now() - since < timedelta(hours=UPDATE_HOURS)
    return is_recent and macs.is_marked(
        instance.unsealed_mark, macs.UPDATE, since.astimezone(UTC).isoformat()
    )


# The chain of the audit trail, in the place of a project's slug (`audit_chain`).
AUDIT = "@audit"
