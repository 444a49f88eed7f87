"""Artifacts: compressed files below ARTIFACTS_DIR, named by the hash of their content."""

import gzip
import hashlib
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, cast

from django.conf import settings
from django.db.models import Exists, OuterRef, Q

from runs.execution.reporter import ArtifactData
from runs.models import Artifact, Run
from runs.models.runs import DIGEST
from runs.services.access import audit

CHUNK_BYTES = 64 * 1024
CHUNK_ROWS = 1000


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
    return artifact


def open_artifact(artifact: Artifact) -> BinaryIO:
    """The uncompressed content as a stream. Raises FileNotFoundError when it was pruned."""
    return cast(BinaryIO, gzip.open(path_of(artifact.sha256), "rb"))


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
    wanted = Artifact.objects.filter(kept, sha256=OuterRef("sha256"))
    old = Artifact.objects.filter(~Exists(wanted)).order_by("sha256")
    digests = old.values_list("sha256", flat=True).distinct().iterator(chunk_size=CHUNK_ROWS)
    files = size = 0
    try:
        for path in chain(filter(Path.exists, map(path_of, digests)), _nameless(before)):
            bytes_ = path.stat().st_size
            if not is_rehearsal:
                path.unlink(missing_ok=True)
            files, size = files + 1, size + bytes_
    finally:
        # Also of a removal that was interrupted.
        if files and not is_rehearsal:
            told = {"older_than": before, "keep": keep, "removed": files, "bytes": size}
            audit.record("old_removed", "files", after=told)
    return Pruned(files, size)


def _nameless(before: datetime) -> Iterator[Path]:
    """Content older than `before` that no artifact refers to."""
    stored = Path(settings.ARTIFACTS_DIR).glob("??/*.gz")
    aged = (path for path in stored if path.stat().st_mtime < before.timestamp())
    while paths := {path.stem: path for path in islice(aged, CHUNK_ROWS)}:
        named = Artifact.objects.filter(sha256__in=paths).values_list("sha256", flat=True)
        yield from (paths[digest] for digest in paths.keys() - set(named))


def changed() -> Iterator[str]:
    """The digests of stored files whose content has changed. Reads every file."""
    for path in Path(settings.ARTIFACTS_DIR).glob("??/*.gz"):
        found = hashlib.sha256()
        try:
            with gzip.open(path, "rb") as content:
                while piece := content.read(CHUNK_BYTES):
                    found.update(piece)
        except (OSError, EOFError, zlib.error):
            yield path.stem
            continue
        if found.hexdigest() != path.stem:
            yield path.stem


def adopt(*, digest: str, packed: Path) -> None:
    """Move a compressed file into the store; the caller has checked the digest.

    It must be in the store's file system. A file that the store already has stays.
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
