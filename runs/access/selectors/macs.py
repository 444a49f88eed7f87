"""Marks of rows that BenchLab itself wrote: HMACs by a key that is not in the database.

Whoever writes to the database cannot make one. The key is derived from BENCHLAB_ENCRYPTION_KEY,
which web, control, workers and commands all have: its first one marks, each of them is accepted.
A worker on a joined host marks by that host's key, which is accepted for what workers write.
"""

import hmac
import json
from functools import cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from runs.models import WorkerHost

# What a mark is for: a row of one kind cannot pass for one of another.
REQUEST, UPDATE, AUDIT = "seal request", "update", "audit entry"
BY_WORKERS = frozenset({REQUEST, AUDIT})


def mark(purpose: str, *content: Any) -> str:
    """The mark of a row: 64 hexadecimal digits; empty without a key, which no row then has."""
    keys = _keys(settings.ENCRYPTION_KEY)
    return _mac(keys[0], purpose, content) if keys else ""


def is_marked(mac: str, purpose: str, *content: Any, also: str = "") -> bool:
    """Whether BenchLab wrote this content. `also` are keys accepted besides those of settings."""
    keys_text = f"{settings.ENCRYPTION_KEY},{also}"
    if _is_by(_keys(keys_text), mac, purpose, content):
        return True
    if not mac or purpose not in BY_WORKERS or settings.WORKER_HOST:
        return False
    return _is_by(_keys_of_hosts(keys_text), mac, purpose, content)


def _is_by(
    keys: tuple[bytes, ...], mac: str, purpose: str, content: tuple[Any, ...]
) -> bool:
    mac_bytes = mac.encode(errors="replace")
    return any(
        hmac.compare_digest(mac_bytes, _mac(key, purpose, content).encode())
        for key in keys
    )


def _keys_of_hosts(keys_text: str) -> tuple[bytes, ...]:
    """Of all hosts that have joined, also of those that have left since. One query."""
    joined = WorkerHost.objects.exclude(key_encrypted=None).order_by("pk")
    encrypted_keys = joined.values_list("key_encrypted", flat=True)
    host_keys = [_opened(keys_text, bytes(key or b"")) for key in encrypted_keys]
    return _keys(",".join(host_keys))


@cache
def _opened(keys_text: str, encrypted: bytes) -> str:
    """A host's key; empty where none of these keys opens it."""
    keys = [Fernet(key.strip()) for key in keys_text.split(",") if key.strip()]
    try:
        return MultiFernet(keys).decrypt(encrypted).decode()
    except InvalidToken:
        return ""


def _mac(key: bytes, purpose: str, content: tuple[Any, ...]) -> str:
    text = json.dumps(
        [purpose, *content], ensure_ascii=True, sort_keys=True, allow_nan=False
    )
    return hmac.digest(key, text.encode(), "sha256").hex()


@cache
def _keys(keys_text: str) -> tuple[bytes, ...]:
    return tuple(_derived(key.strip()) for key in keys_text.split(",") if key.strip())


def _derived(key: str) -> bytes:
    derivation = HKDF(hashes.SHA256(), length=32, salt=None, info=b"benchlab marks 1")
    return derivation.derive(key.encode())
