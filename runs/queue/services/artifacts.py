"""Artifacts: compressed files, named by the hash of their content.

They are in the store of files (`file_store`), which is a folder or a bucket.
"""

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeVar, cast

from django.db import transaction
from django.db.models import Q

from benchlab.bucket import Stored, StoreError
from runs.access.services import audit
from runs.charts import flame_graph
from runs.execution.evidence.profiling import FOLDED
from runs.execution.reporter import ArtifactData
from runs.models import Artifact, Run
from runs.models.runs import DIGEST
from runs.queue.services import file_store

CHUNK_BYTES = 64 * 1024
CHUNK_ROWS = 1000
T = TypeVar("T")


def store_all(
    files: Iterable[tuple[int, ArtifactData]],
) -> list[tuple[ArtifactData, OSError]]:
    """Store files of runs, given by their keys, together; return those that cannot be kept.

    The same content is stored once. A statement for each thousand files.
    """
    latest = {
        (run, data.name): (data, hashlib.sha256(data.content).hexdigest())
        for run, data in files
    }
    failed = _keep({digest: data.content for data, digest in latest.values()})
    rows = [
        Artifact(
            run_id=run,
            name=name,
            media_type=data.media_type,
            size=len(data.content),
            sha256=digest,
        )
        for (run, name), (data, digest) in latest.items()
        if digest not in failed
    ]
    Artifact.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=("run", "name"),
        update_fields=("media_type", "size", "sha256"),
        batch_size=CHUNK_ROWS,
    )
    return [
        (data, failed[digest]) for data, digest in latest.values() if digest in failed
    ]


def _keep(contents: Mapping[str, bytes]) -> dict[str, OSError]:
    """Store each content that is not stored yet, and send it once that is committed."""
    failed: dict[str, OSError] = {}
    for digest, content in contents.items():
        try:
            if not _is_there(digest):
                file_store.write(key_of(digest), gzip.compress(content, mtime=0))
        except OSError as error:
            failed[digest] = error
        else:
            transaction.on_commit(partial(file_store.send_soon, key_of(digest)))
    return failed


def _is_there(digest: str) -> bool:
    """Whether the folder has it; it is young again then, and `prune` leaves it."""
    try:
        os.utime(path_of(digest))
    except FileNotFoundError:
        return False
    return True


def open_artifact(artifact: Artifact) -> BinaryIO:
    """The uncompressed content as a stream. Errors as of `open_packed`."""
    return cast(BinaryIO, _unpacked(open_packed(artifact.sha256)))


def _unpacked(packed: IO[bytes]) -> gzip.GzipFile:
    content = gzip.GzipFile(fileobj=packed, mode="rb")
    content.myfileobj = cast(Any, packed)  # closed with it
    return content


def open_packed(digest: str) -> IO[bytes]:
    """The compressed content with this SHA-256, wherever it is.

    Raises FileNotFoundError when it was pruned, StoreError when its bucket does not answer.
    """
    return file_store.opened(key_of(digest))


def opened(digests: Iterable[str]) -> Iterator[tuple[str, IO[bytes] | None]]:
    """The compressed contents one by one; None for what was pruned. Errors as of `open_packed`."""
    # A query that gives digests is not left open while files are read.
    for digest in chain.from_iterable(_batches(digests)):
        try:
            yield digest, file_store.opened(key_of(digest))
        except FileNotFoundError:
            yield digest, None


def missing(digests: Iterable[str]) -> set[str]:
    """Those whose content is nowhere. A look at each file. Raises StoreError."""
    return {digest for digest in digests if not file_store.exists(key_of(digest))}


def send_waiting() -> None:
    """Send what waits to the bucket, for some seconds: a duty of control."""
    file_store.send_all(filter(_digest_of, file_store.list_folder()))


def chunks(content: IO[bytes]) -> Iterator[bytes]:
    """A stream in pieces, closed after the last one.

    For a response: a web server that is given a file sends the bytes on disk, which are compressed.
    """
    with content:
        while piece := content.read(CHUNK_BYTES):
            yield piece


def key_of(digest: str) -> str:
    """Of a compressed content that is a file of its own, in the store of files.

    Raises ValueError for anything but 64 lower-case hexadecimal digits: it is part of a path.
    """
    if not DIGEST.fullmatch(digest):
        raise ValueError("not a SHA-256 of 64 lower-case hexadecimal digits")
    return f"{digest[:2]}/{digest}.gz"


def path_of(digest: str) -> Path:
    """The path of such a file, if it is in the folder. Errors as of `key_of`."""
    return file_store.path_of(key_of(digest))


@dataclass(frozen=True)
class Pruned:
    """How many files, and how many bytes they took on disk."""

    files: int
    size: int


def prune(
    *, before: datetime, keep: Sequence[str], is_rehearsal: bool = False
) -> Pruned:
    """Remove the content of older artifacts; their rows stay and show it.

    `keep` are slugs of campaigns and names of files. Content that an artifact of another run still
    needs stays, whatever its age. Content of that age that no artifact names any more, such as
    that of an earlier attempt, is removed as well. What was stored since then
    stays, or was there when it was stored again: a run that has not ended may need it.
    """
    is_kept = (
        Q(created_at__gte=before) | Q(name__in=keep) | Q(run__campaign__slug__in=keep)
    )
    files = size = 0
    try:
        for stored in _free(before, is_kept):
            if not is_rehearsal:
                stored.remove()
            files, size = files + 1, size + stored.size
    finally:
        # Also of a removal that was interrupted.
        if files and not is_rehearsal:
            details = {
                "older_than": before,
                "keep": keep,
                "removed": files,
                "bytes": size,
            }
            audit.record("old_removed", "files", after=details)
    return Pruned(files, size)


def _free(before: datetime, is_kept: Q) -> Iterator[Stored]:
    """The files that nothing needs any more. One statement for each thousand."""
    latest_time = before.timestamp()
    for chunk in _batches(_singles()):
        old_files = {
            digest: stored
            for digest, stored in chunk
            if stored.changed_at < latest_time
        }
        needed = Artifact.objects.filter(is_kept, sha256__in=old_files).values_list(
            "sha256", flat=True
        )
        for digest in old_files.keys() - set(needed):
            yield old_files[digest]


def _batches(rows: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(rows)
    while batch := list(islice(iterator, CHUNK_ROWS)):
        yield batch


def _digest_of(key: str) -> str:
    """Empty for what is nobody's of ours."""
    digest = key.rpartition("/")[2].removesuffix(".gz")
    return digest if DIGEST.fullmatch(digest) and key == key_of(digest) else ""


def _singles() -> Iterator[tuple[str, Stored]]:
    for stored in file_store.stored():
        if digest := _digest_of(stored.key):
            yield digest, stored


def changed() -> Iterator[str]:
    """The digests of stored files whose content has changed. Reads every file.

    Raises StoreError when the bucket does not answer.
    """
    for digest, stored in _singles():
        try:
            with _unpacked(file_store.opened(stored.key)) as content:
                content_digest = hashlib.file_digest(content, "sha256").hexdigest()
        except StoreError:
            raise
        except (OSError, EOFError, zlib.error):
            yield digest
            continue
        if content_digest != digest:
            yield digest


def adopt(*, digest: str, packed: Path) -> None:
    """Move a compressed file into the folder; the caller has checked the digest.

    It must be in its file system. A file that is there already stays.
    """
    path = path_of(digest)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        packed.rename(path)


NAME = "flame-graph.svg"


def drawn_flame_graph(
    run: Run, artifacts: Iterable[ArtifactData]
) -> Iterator[ArtifactData]:
    """The picture of the run's folded stacks, if it has any."""
    for data in artifacts:
        if data.name == FOLDED:
            levels = ", ".join(
                f"{name} {level}" for name, level in run.cell.levels.items()
            )
            title = f"Run {run.pk}: {levels}"
            folded = data.content.decode(errors="replace")
            try:
                picture = flame_graph.render(folded, title=title)
            except ValueError:
                continue
            yield ArtifactData(NAME, picture.encode(), "image/svg+xml")
