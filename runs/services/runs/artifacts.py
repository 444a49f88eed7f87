"""Artifacts: compressed files, named by the hash of their content.

They are stored below ARTIFACTS_DIR. Where BENCHLAB_ARTIFACTS names a bucket, what is in the folder
waits to be sent there: no run, upload or import waits for the bucket, or fails with it.
"""

import gzip
import hashlib
import logging
import os
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from benchlab import bucket
from runs.execution.reporter import ArtifactData
from runs.models import Artifact, Run
from runs.models.runs import DIGEST
from runs.services.access import audit

CHUNK_BYTES = 64 * 1024
CHUNK_ROWS = 1000
# A bucket that has failed is not asked again by whoever stores a file for so long.
PAUSE_SECONDS = 30.0
# For so long the duty of control sends what waits; the rest follows with its next turn.
SENDING_SECONDS = 10.0
logger = logging.getLogger(__name__)
_silent_until = 0.0


def store(*, run: Run, data: ArtifactData) -> Artifact:
    """Store a file of a run; the same content is stored once. Raises OSError if it cannot be."""
    digest = hashlib.sha256(data.content).hexdigest()
    path = path_of(digest)
    if not path.exists():
        _write(path, [gzip.compress(data.content, mtime=0)])
    artifact = Artifact(
        run=run, name=data.name, media_type=data.media_type, size=len(data.content), sha256=digest
    )
    Artifact.objects.bulk_create(
        [artifact],
        update_conflicts=True,
        unique_fields=("run", "name"),
        update_fields=("media_type", "size", "sha256"),
    )
    if bucket.is_set():
        transaction.on_commit(partial(_send_soon, path))
    return artifact


def open_artifact(artifact: Artifact) -> BinaryIO:
    """The uncompressed content as a stream.

    Raises FileNotFoundError when it was pruned, StoreError when its bucket does not answer.
    """
    return _unpacked(open_packed(artifact.sha256))


def _unpacked(packed: IO[bytes]) -> BinaryIO:
    content = gzip.GzipFile(fileobj=packed, mode="rb")
    content.myfileobj = cast(Any, packed)  # closed with it
    return cast(BinaryIO, content)


def open_packed(digest: str) -> IO[bytes]:
    """The compressed content with this SHA-256; errors as of `open_artifact`."""
    path = path_of(digest)
    try:
        return path.open("rb")
    except FileNotFoundError:
        if not bucket.is_set():
            raise
    return bucket.read(_key(path))


def is_stored(digest: str) -> bool:
    """Whether its content is here, or in the bucket. Raises StoreError."""
    path = path_of(digest)
    return path.exists() or (bucket.is_set() and bucket.exists(_key(path)))


def send_waiting() -> None:
    """Send what waits to the bucket, for some seconds: a duty of control."""
    if not bucket.is_set() or time.monotonic() < _silent_until:
        return
    until = time.monotonic() + SENDING_SECONDS
    for path in _in_folder():
        if not _sent(path) or time.monotonic() > until:
            return


def _send_soon(path: Path) -> None:
    """Send what was just stored, unless the bucket failed a moment ago."""
    if time.monotonic() >= _silent_until:
        _sent(path)


def _sent(path: Path) -> bool:
    """Whether a file was sent; it is in one of the two places at any moment."""
    global _silent_until  # noqa: PLW0603 -- of this process
    try:
        with path.open("rb") as packed:
            bucket.write(_key(path), packed)
        path.unlink(missing_ok=True)
    except FileNotFoundError:
        return True  # somebody else was quicker
    except OSError as error:
        _silent_until = time.monotonic() + PAUSE_SECONDS
        logger.warning("files wait in %s: %s", settings.ARTIFACTS_DIR, error)
        return False
    return True


def _key(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def chunks(content: BinaryIO) -> Iterator[bytes]:
    """A stream in pieces, closed after the last one.

    For a response: a web server that is given a file sends the bytes on disk, which are compressed.
    """
    with content:
        while piece := content.read(CHUNK_BYTES):
            yield piece


def path_of(digest: str) -> Path:
    """The path of the compressed content with this SHA-256, if it is stored.

    Raises ValueError for anything but 64 lower-case hexadecimal digits: it is part of a path.
    """
    if not DIGEST.fullmatch(digest):
        raise ValueError("not a SHA-256 of 64 lower-case hexadecimal digits")
    return Path(settings.ARTIFACTS_DIR) / digest[:2] / f"{digest}.gz"


@dataclass(frozen=True)
class Pruned:
    """How many files, and how many bytes they took on disk."""

    files: int
    size: int


def prune(*, before: datetime, keep: Sequence[str], is_rehearsal: bool = False) -> Pruned:
    """Remove the content of older artifacts; their rows stay and show it.

    `keep` are slugs of campaigns and names of files. Content that an artifact of another run still
    needs stays, whatever its age. Content of that age that no artifact names any more, such as
    that of an earlier attempt, is removed as well.
    """
    kept = Q(created_at__gte=before) | Q(name__in=keep) | Q(run__campaign__slug__in=keep)
    files = size = 0
    stored = _stored()
    try:
        while chunk := list(islice(stored, CHUNK_ROWS)):
            named = Artifact.objects.filter(sha256__in=[each.digest for each in chunk])
            needed = set(named.filter(kept).values_list("sha256", flat=True))
            known = set(named.values_list("sha256", flat=True))
            for each in chunk:
                is_old = each.digest in known or each.changed_at < before.timestamp()
                if each.digest in needed or not is_old:
                    continue
                if not is_rehearsal:
                    each.remove()
                files, size = files + 1, size + each.size
    finally:
        # Also of a removal that was interrupted.
        if files and not is_rehearsal:
            told = {"older_than": before, "keep": keep, "removed": files, "bytes": size}
            audit.record("old_removed", "files", after=told)
    return Pruned(files, size)


@dataclass(frozen=True)
class _Stored:
    """A compressed file, here or in the bucket: its bytes, and when it was stored."""

    digest: str
    size: int
    changed_at: float
    remove: Callable[[], None]


def _in_folder() -> Iterator[Path]:
    """Those below the folder that are named as ours are."""
    for path in Path(settings.ARTIFACTS_DIR).glob("??/*.gz"):
        if DIGEST.fullmatch(path.stem):
            yield path


def _stored() -> Iterator[_Stored]:
    """All of them. What else is in the bucket is nobody's of ours."""
    for path in _in_folder():
        try:
            told = path.stat()
        except FileNotFoundError:
            continue
        remove = partial(path.unlink, missing_ok=True)
        yield _Stored(path.stem, told.st_size, told.st_mtime, remove)
    for each in bucket.stored() if bucket.is_set() else ():
        digest = each.key.rpartition("/")[2].removesuffix(".gz")
        if DIGEST.fullmatch(digest) and each.key == _key(path_of(digest)):
            yield _Stored(digest, each.size, each.changed_at, partial(bucket.remove, each.key))


def changed() -> Iterator[str]:
    """The digests of stored files whose content has changed. Reads every file.

    Raises StoreError when the bucket does not answer.
    """
    for each in _stored():
        found = hashlib.sha256()
        try:
            with _unpacked(open_packed(each.digest)) as content:
                while piece := content.read(CHUNK_BYTES):
                    found.update(piece)
        except bucket.StoreError:
            raise
        except (OSError, EOFError, zlib.error):
            yield each.digest
            continue
        if found.hexdigest() != each.digest:
            yield each.digest


def adopt(*, digest: str, packed: Path) -> None:
    """Move a compressed file into the folder; the caller has checked the digest.

    It must be in its file system. A file that is there already stays.
    """
    path = path_of(digest)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        packed.rename(path)


def _write(path: Path, packed: Iterable[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # First under a temporary name: no reader, and no crash, meets a partial file.
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(packed)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).rename(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
