"""The files of an import: assembled from their parts, and stored if their content matches."""

import base64
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

from django.conf import settings
from django.utils.translation import gettext as _

from runs.exchange.services.reading import refused
from runs.models import Artifact, Project
from runs.queue.services import artifacts
from runs.seals.selectors.export_fields import Row


class Files:
    """One file at a time, collected in a folder of its own until the whole import is accepted.

    The store gets nothing before `place`: another run that stores the same content in the meantime
    must not rely on a file that a refused import removes. `discard` removes the folder.
    """

    def __init__(self) -> None:
        self.digest = ""
        self.part: IO[bytes] | None = None
        self.folder: Path | None = None

    def add(self, number: int, row: Row) -> None:
        """Take a part of a file whose content matches its name: the reader has unpacked it."""
        if self.part is None:
            self.digest = row["sha256"]
            self.part = self._gathered(self.digest).open("w+b")
        if row["sha256"] != self.digest:
            raise refused(
                number, "broken_off", _("The file before this one has no last part.")
            )
        self.part.write(base64.b64decode(row["gzip"], validate=True))
        if row["last"]:
            self._close()

    def finish(self, number: int) -> None:
        """Refuse a file without its last part."""
        if self.part is not None:
            raise refused(
                number, "broken_off", _("The file before this one has no last part.")
            )

    def check(self, number: int, project: Project, row: Row) -> None:
        """Refuse an artifact whose file is not the one imported, or not one of the project.

        A pruned file is neither stored nor in the import: only its name, size and digest are.
        """
        gathered = self._gathered(row["sha256"])
        if gathered.exists():
            is_its = _size(gathered) == row["size"]
        else:
            is_its = (
                artifacts.missing([row["sha256"]])
                or Artifact.objects.filter(
                    sha256=row["sha256"],
                    size=row["size"],
                    run__campaign__project=project,
                ).exists()
            )
        if not is_its:
            message = _("%(name)s is not the file of its SHA-256.") % {
                "name": row["name"]
            }
            raise refused(number, "file_differs", message)

    def place(self) -> None:
        """Move every file into the store: the last action before the import is committed."""
        for path in self.folder.iterdir() if self.folder else ():
            artifacts.adopt(digest=path.name, packed=path)

    def discard(self) -> None:
        """Remove everything that was collected."""
        if self.part is not None:
            self.part.close()
            self.part = None
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def _gathered(self, digest: str) -> Path:
        if self.folder is None:
            store = Path(settings.ARTIFACTS_DIR)
            store.mkdir(parents=True, exist_ok=True)
            self.folder = Path(tempfile.mkdtemp(prefix="import-", dir=store))
        return self.folder / digest

    def _close(self) -> None:
        content, self.part = self.part, None
        assert content is not None  # noqa: S101  # for the type checker
        with content:
            content.flush()
            os.fsync(content.fileno())


def _size(packed: Path) -> int:
    """The size of the content, from the last four bytes (RFC 1952)."""
    with packed.open("rb") as file:
        file.seek(-4, os.SEEK_END)
        return int.from_bytes(file.read(4), "little")
