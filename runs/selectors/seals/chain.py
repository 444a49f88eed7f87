"""The form of a chain's entries: what is hashed, and what is signed. No query."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from runs.models import Seal


def of_run(run_id: int) -> list[Seal]:
    """What the chain says about a run, the newest first; empty while it waits. One query."""
    entries = Seal.objects.filter(run=run_id).select_related("project").order_by("-number")
    return list(entries.defer("content"))


# A prefix for what is signed, so that our signature can never be taken for one of something else.
DOMAIN = b"benchlab seal 1\n"
# The hash before the first entry of a chain.
BEGINNING = bytes(32)


def canonical(value: Any) -> str:
    """JSON in the canonical form in which it is hashed."""
    return json.dumps(
        value,
        ensure_ascii=False,
        sort_keys=True,
        separators=(",", ":"),
        allow_nan=False,
        default=_moment,
    )


def entry_hash(*, previous: bytes, **entry: Any) -> bytes:
    """SHA-256 of an entry (project, number, kind, run, at, reason, content) and the hash before."""
    return hashlib.sha256(canonical({**entry, "previous": bytes(previous).hex()}).encode()).digest()


def is_signed(*, digest: bytes, signature: bytes | memoryview, key: bytes | memoryview) -> bool:
    """Whether the owner of this public key signed the entry with this hash."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes(key)).verify(
            bytes(signature), DOMAIN + bytes(digest)
        )
    except (InvalidSignature, ValueError):
        return False
    return True


def digest_of(value: Any) -> str:
    """SHA-256 of the canonical form, in hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def changed_parts(sealed: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """How a run differs now from its sealed content, in words."""
    parts = sorted(
        name
        for name in (sealed.keys() | found.keys()) - {"figures"}
        if sealed.get(name) != found.get(name)
    )
    was, now = sealed.get("figures", {}), found.get("figures", {})
    figures = [
        f"{name} is {_shown(now.get(name))}, sealed as {_shown(was.get(name))}"
        for name in sorted(was.keys() | now.keys())
        if was.get(name) != now.get(name)
    ]
    return [*figures, *parts]


def _shown(figure: Any) -> str:
    return "not there" if figure is None else str(figure[0])


def _moment(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no form in a seal")
