"""Packs small files that are files of their own: those of older releases, imports and backups.

What a run or an upload stores is packed at once (`artifacts.store_all`). Files of a run are put
into a pack, read again from there, and only then removed. A crash leaves both, and a later try goes
on.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db import connection, transaction
from django.utils import timezone

from benchlab.bucket import ContentChanged
from runs.models import Artifact, Instance, PackedFile, Run
from runs.services.runs import artifacts, file_store, packs

# Of a turn of control; the rest follows with its next ones.
SECONDS = 2.0
# So many rows of artifacts are looked at together.
ROWS = 500
# The key of the advisory lock: one process packs at a time.
LOCK = 7_235_419_083
# A compressed file is not larger than its content by more.
MORE_BYTES = 1024
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Packed:
    """What was packed, or would be: runs, files, and their bytes before and after."""

    runs: int = 0
    files: int = 0
    before: int = 0
    after: int = 0

    def __add__(self, other: "Packed") -> "Packed":
        return Packed(
            self.runs + other.runs,
            self.files + other.files,
            self.before + other.before,
            self.after + other.after,
        )


def pack_some() -> None:
    """Pack files of some runs, for a few seconds at most: a duty of control.

    How far it came is kept; where nothing is left, it takes two statements.
    """
    if file_store.is_silent():
        return
    instance, _created = Instance.objects.get_or_create(pk=1)
    position, until = instance.packed_up_to, time.monotonic() + SECONDS
    is_time = True
    try:
        while is_time and (runs := _following(position)):
            after = runs[-1]
            for run in _ended(runs):
                pack(run)
                if time.monotonic() > until:
                    after, is_time = run, False
                    break
            # An import may have put it back meanwhile.
            here = Instance.objects.filter(pk=1, packed_up_to=position)
            if not here.update(packed_up_to=after):
                return
            position = after
    except OSError as error:
        logger.warning("files of runs are packed later: %s", error)


def begin_again_at(run_id: int) -> None:
    """Let control look at this run and all later ones, which have files of their own."""
    Instance.objects.filter(pk=1, packed_up_to__gte=run_id).update(packed_up_to=run_id - 1)


def pack_all(*, is_rehearsal: bool = False) -> Iterator[Packed]:
    """Pack the files of all runs, or only count them, one run after the other.

    Raises OSError when the disk is full or the bucket does not answer.
    """
    position = 0
    while runs := _following(position):
        for run in _ended(runs):
            yield _counted(run) if is_rehearsal else pack(run)
        position = runs[-1]


def take_up_nameless() -> Iterator[tuple[str, int]]:
    """Packs that this database does not know, and the number of files that it took from each.

    As where the database came back from a copy that is older than the files. Raises OSError.
    """
    for pack, stored in packs.nameless(timezone.now()):
        with file_store.opened(stored.key) as file:
            content = file.read()
        try:
            if number := packs.take_up(pack, content):
                yield stored.key, number
        except ContentChanged as error:
            logger.error("%s", error)


def _following(position: int) -> list[int]:
    """The next runs with artifacts, in the order of their keys; some may have nothing to pack."""
    # By the index of names, and not in the order in which runs are listed.
    rows = Artifact.objects.filter(run_id__gt=position).order_by("run_id", "name")
    return sorted(set(rows.values_list("run_id", flat=True)[:ROWS]))


def _ended(runs: Sequence[int]) -> list[int]:
    ended = Run.objects.filter(pk__in=runs, state__in=Run.ENDED)
    return sorted(ended.values_list("pk", flat=True))


def pack(run_id: int) -> Packed:
    """Pack the small files of a run that are none of a pack yet, and remove them where they were.

    Raises OSError, StoreError: then nothing is lost, and it can be tried again.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        small = _small(run_id)
        held = packs.hold(small)
        files = _read(each for each in small if each not in held)
        keys: list[str] = []
        if len(files) >= packs.LEAST_FILES:
            keys = packs.write(files, is_double=True)
    for key in keys:
        file_store.send_soon(key)
    _remove_doubles(small)
    if not keys:
        return Packed()
    sizes = [len(each) for each in files.values()]
    return Packed(1, len(files), sum(sizes), _after(sizes))


def _small(run_id: int) -> list[str]:
    rows = Artifact.objects.filter(run=run_id, size__lte=packs.MOST_BYTES)
    return sorted(set(rows.values_list("sha256", flat=True)))


def _after(sizes: Sequence[int]) -> int:
    return sum(sizes) + len(sizes) * packs.MEMBER_BYTES + packs.END_BYTES


def _read(digests: Iterable[str]) -> dict[str, bytes]:
    """The compressed contents that are there as files of their own, and are what they should be."""
    found = {}
    for digest in digests:
        try:
            with file_store.opened(artifacts.key_of(digest)) as file:
                content = file.read(packs.MOST_BYTES + MORE_BYTES)
        except FileNotFoundError:
            continue
        if packs.is_content_of(digest, content):
            found[digest] = content
        else:
            logger.error("%s has changed, and stays as it is", artifacts.key_of(digest))
    return found


def _remove_doubles(digests: Sequence[str]) -> None:
    """Remove files that are in a pack now, once they were read from where it stays."""
    raw = [bytes.fromhex(each) for each in digests]
    doubles = PackedFile.objects.filter(digest__in=raw, is_double=True)
    for pack in sorted(set(doubles.values_list("pack_id", flat=True))):
        if file_store.waits(packs.key_of(pack)):
            raise FileWaits(f"{packs.key_of(pack)} waits to be sent to the bucket")
        try:
            parts = packs.raw_parts(pack)
        except FileNotFoundError:
            parts = {}
        there = [digest for digest, part in parts.items() if packs.is_content_of(digest, part)]
        moved = sorted(set(digests) & set(there))
        for digest in moved:
            file_store.remove(artifacts.key_of(digest))
        doubles.filter(digest__in=[bytes.fromhex(each) for each in moved]).update(is_double=False)
        if doubles.filter(pack=pack).exists():
            logger.error("%s has changed: files stay beside it", packs.key_of(pack))


class FileWaits(OSError):
    """A pack is not in the bucket yet, so the files in it stay."""


def _counted(run_id: int) -> Packed:
    small = _small(run_id)
    held = set(packs.located(small))
    found = [file_store.size(artifacts.key_of(each)) for each in small if each not in held]
    sizes = [each for each in found if each is not None]
    if len(sizes) < packs.LEAST_FILES:
        return Packed()
    return Packed(1, len(sizes), sum(sizes), _after(sizes))
