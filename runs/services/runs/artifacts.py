"""Artifacts: compressed files, named by the hash of their content.

The small ones that are stored together are in a pack, which is one file; others are files of their
own. Both are in the store of files (`file_store`), which is a folder or a bucket.
"""

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from django.db import transaction
from django.db.models import Q

from benchlab.bucket import StoreError
from runs.charts import flame_graph
from runs.execution.profiling import FOLDED
from runs.execution.reporter import ArtifactData
from runs.models import Artifact, Run
from runs.models.runs import DIGEST
from runs.services.access import audit
from runs.services.runs import file_store, packs

CHUNK_BYTES = 64 * 1024
CHUNK_ROWS = 1000


def store(*, run: Run, data: ArtifactData) -> Artifact:
    """Store a file of a run; the same content is stored once. Raises OSError if it cannot be."""
    [artifact], failed = _store([(run.pk, data)])
    for error in failed.values():
        raise error
    return artifact


def store_all(files: Iterable[tuple[int, ArtifactData]]) -> list[tuple[ArtifactData, OSError]]:
    """Store files of runs, given by their keys, together; return those that cannot be kept.

    Small ones go into a pack: one file to write, and to wait for, in place of many. Four
    statements at most, whatever the number of files.
    """
    latest = {(run, data.name): data for run, data in files}
    given = [(run, data) for (run, _name), data in latest.items()]
    if not given:
        return []
    _made, failed = _store(given)
    named = [(data, _digest(data)) for _run, data in given] if failed else []
    return [(data, failed[digest]) for data, digest in named if digest in failed]


def _store(
    files: Sequence[tuple[int, ArtifactData]],
) -> tuple[list[Artifact], dict[str, OSError]]:
    """The rows of what was stored, and by digest what cannot be."""
    rows, contents = [], {}
    for run, data in files:
        digest = _digest(data)
        contents[digest] = data.content
        rows.append(
            Artifact(
                run_id=run,
                name=data.name,
                media_type=data.media_type,
                size=len(data.content),
                sha256=digest,
            )
        )
    failed = _keep(contents)
    kept = [each for each in rows if each.sha256 not in failed]
    Artifact.objects.bulk_create(
        kept,
        update_conflicts=True,
        unique_fields=("run", "name"),
        update_fields=("media_type", "size", "sha256"),
        batch_size=CHUNK_ROWS,
    )
    return kept or rows, failed


def _digest(data: ArtifactData) -> str:
    return hashlib.sha256(data.content).hexdigest()


def _keep(contents: Mapping[str, bytes]) -> dict[str, OSError]:
    """Store each content that is not stored yet, and send it once that is committed."""
    held = packs.hold(contents)
    new = [each for each in contents if each not in held and not path_of(each).exists()]
    small = [each for each in new if len(contents[each]) <= packs.MOST_BYTES]
    if len(small) < packs.LEAST_FILES:
        small = []
    failed: dict[str, OSError] = {}
    keys: list[str] = []
    try:
        keys += packs.write({each: _compressed(contents[each]) for each in small})
    except OSError as error:
        failed = dict.fromkeys(small, error)
    for digest in set(new) - set(small):
        try:
            file_store.write(key_of(digest), _compressed(contents[digest]))
            keys.append(key_of(digest))
        except OSError as error:
            failed[digest] = error
    for key in keys:
        transaction.on_commit(partial(file_store.send_soon, key))
    return failed


def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def open_artifact(artifact: Artifact) -> BinaryIO:
    """The uncompressed content as a stream. Errors as of `open_packed`."""
    return _unpacked(open_packed(artifact.sha256))


def _unpacked(packed: IO[bytes]) -> BinaryIO:
    content = gzip.GzipFile(fileobj=packed, mode="rb")
    content.myfileobj = cast(Any, packed)  # closed with it
    return cast(BinaryIO, content)


def open_packed(digest: str) -> IO[bytes]:
    """The compressed content with this SHA-256, wherever it is.

    Raises FileNotFoundError when it was pruned, StoreError when its bucket does not answer, and
    ContentChanged when its pack has another content.
    """
    [(_digest, content)] = opened([digest])
    if content is None:
        raise FileNotFoundError(digest)
    return content


def opened(digests: Iterable[str]) -> Iterator[tuple[str, IO[bytes] | None]]:
    """The compressed contents one by one; None for what was pruned. Errors as of `open_packed`.

    Two statements at most for each 1,000 of them.
    """
    for chunk in packs.batches(digests, CHUNK_ROWS):
        singles = {each for each in chunk if path_of(each).exists()}
        places = packs.located(set(chunk) - singles) if len(singles) < len(chunk) else {}
        now: dict[str, packs.Place] | None = None
        for digest in chunk:
            content = _opened(digest, places)
            if content is None:
                # It was moved a moment ago, or after the snapshot that the caller reads.
                now = packs.located_now(chunk) if now is None else now
                if now.get(digest) != places.get(digest):
                    content = _opened(digest, now)
            yield digest, content


def _opened(digest: str, places: Mapping[str, packs.Place]) -> IO[bytes] | None:
    path = path_of(digest)
    place = None if path.exists() else places.get(digest)
    try:
        if place is not None:
            return io.BytesIO(packs.read(digest, place))
    except FileNotFoundError:
        pass
    try:
        return file_store.opened(key_of(digest))
    except FileNotFoundError:
        return None


def missing(digests: Sequence[str]) -> set[str]:
    """Those whose content is nowhere. One statement, and a look at each file or pack.

    Raises StoreError.
    """
    away = {each for each in digests if not path_of(each).exists()}
    if not away:
        return away
    places = packs.located(away)
    there = {each.pack for each in places.values()}
    there = {each for each in there if file_store.exists(packs.key_of(each))}
    away -= {each for each, place in places.items() if place.pack in there}
    return {each for each in away if not file_store.exists(key_of(each))}


def is_stored(digest: str) -> bool:
    """Whether its content is here, or in the bucket. Raises StoreError."""
    return not missing([digest])


def send_waiting() -> None:
    """Send what waits to the bucket, for some seconds: a duty of control."""
    file_store.send_all(chain(_in_folder(), file_store.in_folder(file_store.PACKS)))


def chunks(content: BinaryIO) -> Iterator[bytes]:
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


def prune(*, before: datetime, keep: Sequence[str], is_rehearsal: bool = False) -> Pruned:
    """Remove the content of older artifacts; their rows stay and show it.

    `keep` are slugs of campaigns and names of files. Content that an artifact of another run still
    needs stays, whatever its age. Content of that age that no artifact names any more, such as
    that of an earlier attempt, is removed as well. A pack of which only a part goes is written
    again without it.
    """
    kept = Q(created_at__gte=before) | Q(name__in=keep) | Q(run__campaign__slug__in=keep)
    files = size = 0
    try:
        for freed in chain(
            _prune_singles(before, kept, is_rehearsal),
            packs.prune(before=before, kept=kept, is_rehearsal=is_rehearsal),
        ):
            files, size = files + freed.files, size + freed.size
    finally:
        # Also of a removal that was interrupted.
        if files and not is_rehearsal:
            told = {"older_than": before, "keep": keep, "removed": files, "bytes": size}
            audit.record("old_removed", "files", after=told)
    return Pruned(files, size)


def _prune_singles(before: datetime, kept: Q, is_rehearsal: bool) -> Iterator[packs.Freed]:
    for chunk in packs.batches(_singles(), CHUNK_ROWS):
        found = packs.needs([digest for digest, _stored in chunk], kept)
        for digest, stored in chunk:
            stored_at = datetime.fromtimestamp(stored.changed_at, UTC)
            if not found.is_free(digest, stored_at, before):
                continue
            if not is_rehearsal:
                stored.remove()
            yield packs.Freed(1, stored.size)


def _in_folder() -> Iterator[str]:
    """The keys of those in the folder that are named as ours are."""
    for key in file_store.in_folder(file_store.SINGLE_FILES):
        if _digest_of(key):
            yield key


def _digest_of(key: str) -> str:
    """Empty for what is nobody's of ours."""
    digest = key.rpartition("/")[2].removesuffix(".gz")
    return digest if DIGEST.fullmatch(digest) and key == key_of(digest) else ""


def _singles() -> Iterator[tuple[str, file_store.Stored]]:
    """All files of their own, with their digests."""
    for each in file_store.stored(file_store.SINGLE_FILES):
        if digest := _digest_of(each.key):
            yield digest, each


def changed() -> Iterator[str]:
    """The digests of stored files whose content has changed. Reads every file.

    Raises StoreError when the bucket does not answer.
    """
    for digest, stored in _singles():
        found = hashlib.sha256()
        try:
            with _unpacked(file_store.opened(stored.key)) as content:
                while piece := content.read(CHUNK_BYTES):
                    found.update(piece)
        except StoreError:
            raise
        except (OSError, EOFError, zlib.error):
            yield digest
            continue
        if found.hexdigest() != digest:
            yield digest
    yield from packs.changed()


def adopt(*, digest: str, packed: Path) -> None:
    """Move a compressed file into the folder; the caller has checked the digest.

    It must be in its file system. A file that is there already stays.
    """
    path = path_of(digest)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        packed.rename(path)


NAME = "flame-graph.svg"


def drawn_flame_graph(run: Run, artifacts: Iterable[ArtifactData]) -> Iterator[ArtifactData]:
    """The picture of the run's folded stacks, if it has any."""
    for data in artifacts:
        if data.name == FOLDED:
            levels = ", ".join(f"{name} {level}" for name, level in run.cell.levels.items())
            title = f"Run {run.pk}: {levels}"
            folded = data.content.decode(errors="replace")
            try:
                picture = flame_graph.render(folded, title=title)
            except ValueError:
                continue
            yield ArtifactData(NAME, picture.encode(), "image/svg+xml")
