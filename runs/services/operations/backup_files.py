"""The file of a backup: a zip of tables, artifacts and keys, whose manifest has all digests.

The directory of a zip is at its end, so a file that was cut off is known at once. Tables are the
text of PostgreSQL's COPY, which every version reads; keys are encrypted under a passphrase.
"""

import base64
import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from django.utils.translation import gettext as _

from runs.services.errors import ServiceError

SUFFIX = ".backup"
FORMAT = 1
MANIFEST, KEYS = "manifest.json", "keys.json"
CHUNK_BYTES = 1024 * 1024
SALT_BYTES, KEY_BYTES = 16, 32
# What guessing a passphrase costs: 64 MB and a tenth of a second each.
COST = {"n": 2**16, "r": 8, "p": 1}


class Writer:
    """Writes a backup under another name, which is the right one when it is complete."""

    def __init__(self, path: Path) -> None:
        self._path, self._draft = path, path.with_suffix(".part")
        self.digests: dict[str, str] = {}

    def __enter__(self) -> "Writer":
        self._zip = zipfile.ZipFile(self._draft, "w", allowZip64=True)
        return self

    def add(self, name: str, pieces: Iterator[bytes], *, is_packed: bool = False) -> None:
        """A member of that name, compressed unless it is."""
        info = zipfile.ZipInfo(name)
        info.compress_type = zipfile.ZIP_STORED if is_packed else zipfile.ZIP_DEFLATED
        digest = hashlib.sha256()
        with self._zip.open(info, "w", force_zip64=True) as member:
            for piece in pieces:
                digest.update(piece)
                member.write(piece)
        self.digests[name] = digest.hexdigest()

    def finish(self, manifest: dict[str, Any]) -> None:
        """Add the manifest, and give the file its name."""
        told = {**manifest, "format": FORMAT, "digests": self.digests}
        self._zip.writestr(MANIFEST, json.dumps(told, indent=1))
        self._zip.close()
        with self._draft.open("rb") as file:
            os.fsync(file.fileno())
        self._draft.chmod(0o600)
        self._draft.replace(self._path)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            # Closing would write the directory, perhaps to a full disk.
            if self._zip.fp is not None:
                self._zip.fp.close()
                self._zip.fp = None
            self._draft.unlink(missing_ok=True)


class Reader:
    """A backup that is there. Raises ServiceError `backup_unreadable`."""

    def __init__(self, path: Path) -> None:
        try:
            self._zip = zipfile.ZipFile(path)
            self.manifest: dict[str, Any] = json.loads(self._zip.read(MANIFEST))
            self.keys: dict[str, str] = json.loads(self._zip.read(KEYS))
        except FileNotFoundError:
            raise _unreadable(_("%(path)s is not there.") % {"path": path}) from None
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            message = _("%(path)s is no backup, or was cut off.") % {"path": path}
            raise _unreadable(message) from error
        if self.manifest.get("format") != FORMAT:
            raise _unreadable(_("This backup is of a format that this version does not know."))

    def check(self) -> None:
        """Read everything once: whether each member has the digest that it was written with."""
        digests: dict[str, str] = self.manifest["digests"]
        if set(self._zip.namelist()) != {*digests, MANIFEST}:
            raise _unreadable(_("Members are missing."))
        for name, digest in digests.items():
            read = hashlib.sha256()
            for piece in self.pieces(name):
                read.update(piece)
            if read.hexdigest() != digest:
                raise _unreadable(_("%(name)s is not what was written.") % {"name": name})

    def pieces(self, name: str) -> Iterator[bytes]:
        """The content of a member."""
        try:
            with self._zip.open(name) as member:
                while piece := member.read(CHUNK_BYTES):
                    yield piece
        except (zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
            message = _("%(name)s is not what was written.") % {"name": name}
            raise _unreadable(message) from error

    def below(self, folder: str) -> list[str]:
        """The names of members in a folder."""
        return sorted(name for name in self.manifest["digests"] if name.startswith(f"{folder}/"))

    def size(self, name: str) -> int:
        """Bytes of a member as stored in the backup; for artifacts these are the ones on disk."""
        return self._zip.getinfo(name).compress_size


def sealed(secrets: dict[str, Any], passphrase: str) -> dict[str, str]:
    """Secrets under a passphrase."""
    salt = os.urandom(SALT_BYTES)
    encrypted = Fernet(_key(passphrase, salt)).encrypt(json.dumps(secrets).encode())
    return {"salt": salt.hex(), "encrypted": encrypted.decode()}


def opened(kept: dict[str, str], passphrase: str) -> dict[str, Any]:
    """The secrets. Raises ServiceError `wrong_passphrase`."""
    try:
        key = _key(passphrase, bytes.fromhex(kept["salt"]))
        found: dict[str, Any] = json.loads(Fernet(key).decrypt(kept["encrypted"]))
    except (InvalidToken, KeyError, ValueError) as error:
        raise ServiceError(
            "wrong_passphrase",
            _("The passphrase does not fit this backup."),
            remedy=_("Give the one that BENCHLAB_BACKUP_PASSPHRASE was when it was made."),
        ) from error
    return found


def _key(passphrase: str, salt: bytes) -> bytes:
    derived = Scrypt(salt=salt, length=KEY_BYTES, **COST).derive(passphrase.encode())
    return base64.urlsafe_b64encode(derived)


def _unreadable(message: str) -> ServiceError:
    remedy = _("Take another backup, or copy this one again.")
    return ServiceError("backup_unreadable", message, remedy=remedy)
