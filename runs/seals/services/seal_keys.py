"""The key of the seals, and what is stored next to it, where the database cannot reach.

`BENCHLAB_SEAL_KEY` is the private key (Ed25519, PEM), created if missing. Trusted public keys are
next to it as `*.pub`, the present one and earlier ones; `heads.json` has the last entry of each
chain, `acknowledged.json` the entries that a person has looked at.
"""

import fcntl
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from django.conf import settings

from runs.seals.selectors.seals import DOMAIN

RAW = (serialization.Encoding.Raw, serialization.PublicFormat.Raw)
PEM = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
# What is stored of a chain.
Entries = list[dict[str, Any]]


class Signer:
    """Signs entries with the present key. Creating one raises OSError and ValueError."""

    def __init__(self) -> None:
        self._key = _private_key(Path(settings.SEAL_KEY))
        self.public = self._key.public_key().public_bytes(*RAW)

    def sign(self, digest: bytes, domain: bytes = DOMAIN) -> bytes:
        """The signature of an entry with this hash, or of a text of another domain."""
        return self._key.sign(domain + digest)


def trusted() -> frozenset[bytes]:
    """The public keys that entries may be signed with."""
    public_keys = set()
    for path in Path(settings.SEAL_KEY).parent.glob("*.pub"):
        key = serialization.load_pem_public_key(path.read_bytes())
        if isinstance(key, Ed25519PublicKey):
            public_keys.add(key.public_bytes(*RAW))
    return frozenset(public_keys)


def heads() -> dict[str, Entries]:
    """The last entries that were signed, by project: number and hash.

    More than one if a chain did not continue from its end: then entries were cut off before.
    """
    return _stored("heads")


@dataclass(frozen=True)
class Extended:
    """The ends of a chain before and now: number and hash."""

    project: str
    before: tuple[int, str]
    now: tuple[int, str]


def keep_head(chain: Extended) -> None:
    """Store the end of a chain."""

    def extend(ends: Entries) -> Entries:
        other_ends = [
            end for end in ends if (end["number"], end["hash"]) != chain.before
        ]
        return [*other_ends, {"number": chain.now[0], "hash": chain.now[1]}]

    _update("heads", chain.project, extend)


def acknowledged() -> dict[str, Entries]:
    """What persons with the key acknowledged, by project, with their signatures."""
    return _stored("acknowledged")


def keep_acknowledged(*, project: str, new_entries: Entries) -> None:
    """Store signed acknowledgements of entries of a chain."""
    _update(
        "acknowledged", project, lambda known_entries: [*known_entries, *new_entries]
    )


def _stored(name: str) -> dict[str, Entries]:
    path = _file(name)
    if not path.exists():
        return {}
    entries: dict[str, Entries] = json.loads(path.read_text())
    return entries


def _update(name: str, project: str, change: Callable[[Entries], Entries]) -> None:
    path = _file(name).with_name(f".{name}.lock")
    with path.open("w") as lock:
        _hand_over(path)
        fcntl.flock(lock, fcntl.LOCK_EX)
        known_entries = _stored(name)
        known_entries[project] = change(known_entries.get(project, []))
        _write(
            _file(name), json.dumps(known_entries, indent=1, sort_keys=True).encode()
        )


def _file(name: str) -> Path:
    return Path(settings.SEAL_KEY).with_name(f"{name}.json")


def _private_key(path: Path) -> Ed25519PrivateKey:
    if not path.exists():
        _make(path)
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{path} is no Ed25519 key")
    public = path.with_name(f"{key.public_key().public_bytes(*RAW).hex()[:16]}.pub")
    if not public.exists():
        _write(public, key.public_key().public_bytes(*PEM))
    return key


def _make(path: Path) -> None:
    """If several workers create one at the same time, the first one's stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    pem = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    temporary = _temporary(path, pem)
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def _write(path: Path, content: bytes) -> None:
    _temporary(path, content).replace(path)


def _temporary(path: Path, content: bytes) -> Path:
    """A file that only we can read, written to disk completely."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    _hand_over(Path(name))
    return Path(name)


def _hand_over(path: Path) -> None:
    """What root writes in a command by hand belongs to the services, like its folder."""
    if os.geteuid() == 0:
        owner = path.parent.stat()
        os.chown(path, owner.st_uid, owner.st_gid)
