"""The files of an import: put together from their parts, and kept when their content is theirs."""

import base64
import hashlib
import tempfile
import zlib
from pathlib import Path
from typing import IO

from django.conf import settings
from django.utils.translation import gettext as _

from runs.selectors.exchange.exports import Row
from runs.services.exchange.reading import refused
from runs.services.runs import artifacts

STEP = 2**20


class Files:
    """One file at a time. `discard` removes what this import has added."""

    def __init__(self) -> None:
        self.digest = ""
        self.part: IO[bytes] | None = None
        self.added: list[Path] = []

    def add(self, number: int, row: Row) -> None:
        """Take a part. Raises Refused where the content is not what its name says."""
        if self.part is None:
            self.digest = row["sha256"]
            folder = Path(settings.ARTIFACTS_DIR)
            folder.mkdir(parents=True, exist_ok=True)
            self.part = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        if row["sha256"] != self.digest:
            raise refused(number, "broken_off", _("The file before this one has no last part."))
        self.part.write(base64.b64decode(row["gzip"], validate=True))
        if row["last"]:
            self._keep(number)

    def finish(self, number: int) -> None:
        """Refuse a file without its last part."""
        if self.part is not None:
            raise refused(number, "broken_off", _("The file before this one has no last part."))

    def discard(self) -> None:
        """Leave nothing of an import that was refused."""
        if self.part is not None:
            self.part.close()
            self.part = None
        for path in self.added:
            path.unlink(missing_ok=True)

    def _keep(self, number: int) -> None:
        content, self.part = self.part, None
        assert content is not None  # noqa: S101  # for the type checker
        with content:
            try:
                found = _sha256(content)
            except zlib.error:
                found = ""
            if found != self.digest:
                raise refused(number, "content_differs", _("The file's content is not its own."))
            path = artifacts.path_of(self.digest)
            if not path.exists():
                content.seek(0)
                artifacts.keep_packed(digest=self.digest, packed=content)
                self.added.append(path)


def _sha256(packed: IO[bytes]) -> str:
    """Of the content, which is never unpacked as a whole: a small file can be a huge one."""
    packed.seek(0)
    unpacking, found = zlib.decompressobj(16 + zlib.MAX_WBITS), hashlib.sha256()
    while step := packed.read(STEP):
        while step:
            found.update(unpacking.decompress(step, STEP))
            step = unpacking.unconsumed_tail
    found.update(unpacking.flush())
    return found.hexdigest() if unpacking.eof and not unpacking.unused_data else ""
