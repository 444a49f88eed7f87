"""The file of a backup: a zip of tables, artifacts and keys, encrypted as a whole.

Tables are the text of PostgreSQL's COPY, which every version reads. `encrypted_files` authenticates
each byte, so a file that was cut off or changed is known. The digests in the manifest say besides
whether the disk gave back what was written to it.
"""

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from cryptography.exceptions import InvalidTag
from cryptography.fernet import Fernet, InvalidToken
from django.utils.translation import gettext as _

from runs.operations.services.encrypted_files import (
    CHUNK_BYTES,
    EncryptedReader,
    EncryptedWriter,
    NotEncrypted,
    WrongPassphrase,
    plain_key,
)
from runs.shared.errors import ServiceError

SUFFIX = ".backup"
FORMAT = 2
MANIFEST, KEYS = "manifest.json", "keys.json"
# The format of 0.2 and before: a plain zip whose keys alone were encrypted.
PLAIN = 1


class BackupWriter:
    """Writes a backup under another name, which is the right one when it is complete."""

    def __init__(self, path: Path, passphrase: str) -> None:
        self._path, self._draft = path, path.with_suffix(".part")
        self._passphrase = passphrase
        self.digests: dict[str, str] = {}

    def __enter__(self) -> "BackupWriter":
        self._draft.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        # Nobody else can open it, whatever the umask, from its first byte on.
        self._file = os.fdopen(os.open(self._draft, flags, 0o600), "wb", buffering=0)
        self._encrypted = EncryptedWriter(self._file, self._passphrase)
        self._zip = zipfile.ZipFile(self._encrypted, "w", allowZip64=True)
        return self

    def add(
        self, name: str, pieces: Iterator[bytes], *, is_packed: bool = False
    ) -> None:
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
        manifest_fields = {**manifest, "format": FORMAT, "digests": self.digests}
        self._zip.writestr(MANIFEST, json.dumps(manifest_fields, indent=1))
        self._zip.close()
        self._encrypted.finish()
        os.fsync(self._file.fileno())
        self._file.close()
        self._draft.replace(self._path)

    def __exit__(self, kind: type[BaseException] | None, *_details: object) -> None:
        if kind is not None:
            # Closing would write the directory, perhaps to a full disk.
            self._zip.fp = None
            self._file.close()
            self._draft.unlink(missing_ok=True)


class BackupReader:
    """A backup that is there. Raises ServiceError `backup_unreadable`, `wrong_passphrase`.

    `trusts_plain` also takes a backup of 0.2 or before, which anybody may have changed.
    """

    def __init__(
        self, path: Path, passphrase: str, *, trusts_plain: bool = False
    ) -> None:
        try:
            self._file = _opened(path, passphrase, trusts_plain=trusts_plain)
            self._zip = zipfile.ZipFile(self._file)
            self.manifest: dict[str, Any] = json.loads(self._zip.read(MANIFEST))
            self.secrets: dict[str, Any] = json.loads(self._zip.read(KEYS))
        except FileNotFoundError:
            raise _unreadable(_("%(path)s is not there.") % {"path": path}) from None
        except (OSError, KeyError, ValueError, InvalidTag, zipfile.BadZipFile) as error:
            message = _("%(path)s is no backup, or was cut off or changed.") % {
                "path": path
            }
            raise _unreadable(message) from error
        is_plain = isinstance(self._file, Path)
        if self.manifest.get("format") != (PLAIN if is_plain else FORMAT):
            raise _unreadable(
                _("This backup is of a format that this version does not know.")
            )
        if is_plain:
            self.secrets = _secrets_of_plain(self.secrets, passphrase)

    def close(self) -> None:
        """Read no more of it."""
        self._zip.close()
        if not isinstance(self._file, Path):
            self._file.close()

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
                raise _unreadable(
                    _("%(name)s is not what was written.") % {"name": name}
                )

    def pieces(self, name: str) -> Iterator[bytes]:
        """The content of a member."""
        try:
            with self._zip.open(name) as member:
                while piece := member.read(CHUNK_BYTES):
                    yield piece
        except (zipfile.BadZipFile, EOFError, OSError, ValueError, InvalidTag) as error:
            message = _("%(name)s is not what was written.") % {"name": name}
            raise _unreadable(message) from error

    def list_members(self, folder: str) -> list[str]:
        """The names of members in a folder."""
        return sorted(
            name for name in self.manifest["digests"] if name.startswith(f"{folder}/")
        )

    def size(self, name: str) -> int:
        """Bytes of a member as stored in the backup; for artifacts these are the ones on disk."""
        return self._zip.getinfo(name).compress_size


def _opened(path: Path, passphrase: str, *, trusts_plain: bool) -> IO[bytes] | Path:
    try:
        # A zip's reader expects all bytes that it asks for, across chunks.
        return io.BufferedReader(EncryptedReader(path, passphrase))
    except WrongPassphrase:
        raise _wrong_passphrase() from None
    except NotEncrypted:
        if not zipfile.is_zipfile(path):
            raise
    if not trusts_plain:
        message = _(
            "%(path)s is a plain backup of 0.2 or before: anybody may have changed it."
        )
        message %= {"path": path}
        remedy = _("If you know that nobody did, restore it with --trust-plain.")
        raise ServiceError("backup_not_authentic", message, remedy=remedy)
    return path


def _secrets_of_plain(stored: dict[str, str], passphrase: str) -> dict[str, Any]:
    try:
        key = plain_key(passphrase, bytes.fromhex(stored["salt"]))
        secrets_read: dict[str, Any] = json.loads(
            Fernet(key).decrypt(stored["encrypted"])
        )
    except (InvalidToken, KeyError, ValueError) as error:
        raise _wrong_passphrase() from error
    return secrets_read


def _wrong_passphrase() -> ServiceError:
    message = _("The passphrase does not fit this backup.")
    remedy = _("Give the one that BENCHLAB_BACKUP_PASSPHRASE was when it was made.")
    return ServiceError("wrong_passphrase", message, remedy=remedy)


def _unreadable(message: str) -> ServiceError:
    remedy = _("Take another backup, or copy this one again.")
    return ServiceError("backup_unreadable", message, remedy=remedy)
