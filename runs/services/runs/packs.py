"""Packs: many small files in one zip, so that the store has one file or object instead of them.

A pack is never changed: its members are stored without further compression and named by us, as in
`ab12….gz`, by the SHA-256 of their content. Any program for zip opens it. A table says where each
content is, so that reading one reads only its part.
"""

import hashlib
import io
import logging
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeVar
from uuid import UUID, uuid4

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from benchlab.bucket import ContentChanged
from runs.models import Artifact, Pack, PackedFile
from runs.models.runs import DIGEST
from runs.selectors.operations import checks
from runs.services.runs import file_store

# A larger content stays a file of its own, and so does one alone.
MOST_BYTES = 2**20
LEAST_FILES = 2
MOST_FILES, MOST_PACK_BYTES = 1000, 32 * 2**20
# What a zip needs for a member named by a digest, before and behind it, and at its end.
HEAD_BYTES = 30 + 64 + 3
MEMBER_BYTES = HEAD_BYTES + 46 + 64 + 3
END_BYTES = 22
# The oldest that a zip knows: the same files give the same pack.
EPOCH = (1980, 1, 1, 0, 0, 0)
# A pack without a row may belong to a transaction that has not ended.
YOUNG = timedelta(hours=1)
BELOW = "packs/"
T = TypeVar("T")
logger = logging.getLogger(__name__)
_KEY = re.compile(r"packs/[0-9a-f]{2}/([0-9a-f]{32})\.zip")
# Keeps the rows that a run relies on from being removed until its transaction has ended.
HOLD = """
SELECT digest FROM runs_packedfile WHERE digest = ANY(%s) ORDER BY digest FOR KEY SHARE"""
LOCATED = "SELECT digest, pack_id, start, length FROM runs_packedfile WHERE digest = ANY(%s)"


@dataclass(frozen=True)
class Place:
    """Where a compressed file is in a pack, in bytes."""

    pack: UUID
    start: int
    length: int


def key_of(pack: UUID) -> str:
    """Of the pack in the store of files."""
    return f"{BELOW}{pack.hex[:2]}/{pack.hex}.zip"


def pack_of(key: str) -> UUID | None:
    """The other way round; None for what is no pack of ours."""
    found = _KEY.fullmatch(key)
    return UUID(found[1]) if found and key == key_of(UUID(found[1])) else None


def batches(rows: Iterable[T], number: int) -> Iterator[list[T]]:
    """So many at a time."""
    each = iter(rows)
    while batch := list(islice(each, number)):
        yield batch


def hold(digests: Iterable[str]) -> set[str]:
    """Those that packs have, which they have at least until the caller's transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(HOLD, [_raw(digests)])
        return {bytes(digest).hex() for (digest,) in cursor.fetchall()}


def located(digests: Iterable[str]) -> dict[str, Place]:
    """Where packs have these. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(LOCATED, [_raw(digests)])
        return _places(cursor.fetchall())


def located_now(digests: Iterable[str]) -> dict[str, Place]:
    """The same for who reads an old snapshot: what was moved since is found, too."""
    if not connection.in_atomic_block:
        return located(digests)
    with checks.connected() as database:
        return _places(database.execute(LOCATED, [_raw(digests)]).fetchall())


def _raw(digests: Iterable[str]) -> list[bytes]:
    return [bytes.fromhex(each) for each in digests]


def _places(rows: Iterable[tuple[bytes, UUID, int, int]]) -> dict[str, Place]:
    return {bytes(digest).hex(): Place(pack, start, length) for digest, pack, start, length in rows}


def read(digest: str, place: Place) -> bytes:
    """The compressed content of a digest: only this part of the pack is read.

    Raises FileNotFoundError without the pack, ContentChanged for another content, StoreError.
    """
    key = key_of(place.pack)
    found = file_store.part(key, place.start, place.length)
    if not is_content_of(digest, found):
        told = f"{digest} in {key} is not what was stored: bring this pack back from a backup"
        logger.error(told)
        raise ContentChanged(told)
    return found


def is_content_of(digest: str, packed: bytes) -> bool:
    """Whether it is compressed content of at most MOST_BYTES with that SHA-256."""
    unpacking = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        content = unpacking.decompress(packed, MOST_BYTES + 1)
    except zlib.error:
        return False
    is_whole = unpacking.eof and not unpacking.unused_data and len(content) <= MOST_BYTES
    return is_whole and hashlib.sha256(content).hexdigest() == digest


def write(files: Mapping[str, bytes], *, is_double: bool = False) -> list[str]:
    """Put compressed files, by their digests, into packs; return the keys of these.

    Their rows are part of the caller's transaction: without it nothing refers to them. Where
    another one packs the same content at the same time, its place counts. Raises OSError.
    """
    keys = []
    # In one order everywhere: two transactions that store the same never wait for each other.
    for group in _groups(sorted(files.items())):
        pack = Pack(id=uuid4())
        keys.append(key_of(pack.id))
        content, places = zipped(pack.id, group)
        file_store.write(keys[-1], content)
        if is_double:  # others will be removed for it
            file_store.keep_name(keys[-1])
        pack.size = len(content)
        pack.save(force_insert=True)
        PackedFile.objects.bulk_create(
            [_row(digest, place, is_double=is_double) for digest, place in places.items()],
            ignore_conflicts=True,
        )
    return keys


def zipped(pack: UUID, files: Iterable[tuple[str, bytes]]) -> tuple[bytes, dict[str, Place]]:
    """The content of a pack, and where in it these files are."""
    places, made = {}, io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED, allowZip64=False) as archive:
        for digest, content in files:
            member = zipfile.ZipInfo(f"{digest}.gz", date_time=EPOCH)
            archive.writestr(member, content)
            places[digest] = Place(pack, member.header_offset + HEAD_BYTES, len(content))
    return made.getvalue(), places


def _groups(files: Iterable[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    group: list[tuple[str, bytes]] = []
    size = 0
    for digest, content in files:
        if group and (len(group) == MOST_FILES or size + len(content) > MOST_PACK_BYTES):
            yield group
            group, size = [], 0
        group.append((digest, content))
        size += len(content)
    if group:
        yield group


def _row(digest: str, place: Place, *, is_double: bool) -> PackedFile:
    return PackedFile(
        digest=bytes.fromhex(digest),
        pack_id=place.pack,
        start=place.start,
        length=place.length,
        is_double=is_double,
    )


def raw_parts(pack: UUID) -> dict[str, bytes]:
    """All compressed files of a pack, as they are there; reads it once, and checks nothing.

    Errors as of `file_store.opened`.
    """
    rows = PackedFile.objects.filter(pack=pack).values_list("digest", "start", "length")
    with file_store.opened(key_of(pack)) as file:
        content = file.read()
    return {bytes(digest).hex(): content[start : start + length] for digest, start, length in rows}


def changed() -> Iterator[str]:
    """The digests of files in packs whose content has changed or is lost. Reads every pack."""
    for pack in Pack.objects.order_by("pk").values_list("pk", flat=True).iterator():
        try:
            parts = raw_parts(pack)
        except FileNotFoundError:
            # Without rows it has been removed meanwhile.
            lost = PackedFile.objects.filter(pack=pack).values_list("digest", flat=True)
            yield from (bytes(each).hex() for each in lost)
            continue
        for digest, part in parts.items():
            if not is_content_of(digest, part):
                yield digest


@dataclass(frozen=True)
class Freed:
    """How many files went, or would, and the bytes that the store has less."""

    files: int
    size: int


@dataclass(frozen=True)
class Needs:
    """Which of some digests artifacts name at all, and which of them are to be kept."""

    known: set[str]
    needed: set[str]

    def is_free(self, digest: str, stored_at: datetime, before: datetime) -> bool:
        """Whether nothing needs a content; what nobody names is to be old itself."""
        return digest not in self.needed and (digest in self.known or stored_at < before)


def needs(digests: Sequence[str], kept: Q) -> Needs:
    """Of artifacts; `kept` says which of them keep their content. Two statements."""
    named = Artifact.objects.filter(sha256__in=digests)
    needed = set(named.filter(kept).values_list("sha256", flat=True))
    return Needs(set(named.values_list("sha256", flat=True)), needed)


def prune(*, before: datetime, kept: Q, is_rehearsal: bool) -> Iterator[Freed]:
    """Remove from packs what nothing needs: a pack of which a part stays is written again.

    Packs that no row names are removed when they are that old.
    """
    packs = Pack.objects.order_by("pk").iterator(100)
    for chunk in batches(packs, 100):
        rows: dict[UUID, list[PackedFile]] = {each.pk: [] for each in chunk}
        for row in PackedFile.objects.filter(pack__in=rows):
            rows[row.pack_id].append(row)
        found = needs([str(each) for of_pack in rows.values() for each in of_pack], kept)
        for pack in chunk:
            gone = _free(pack, rows[pack.pk], found, before)
            if rows[pack.pk] and not gone:
                continue
            if not rows[pack.pk] and pack.created_at >= before:
                continue
            if is_rehearsal:
                yield _freed(pack, rows[pack.pk], gone)
                continue
            try:
                yield _take_out(pack.pk, kept, before)
            except FileNotFoundError:
                logger.exception("%s is lost; manage.py verify --files tells", key_of(pack.pk))
    yield from _prune_nameless(before, is_rehearsal)


def _free(
    pack: Pack, rows: Iterable[PackedFile], found: Needs, before: datetime
) -> list[PackedFile]:
    return [each for each in rows if found.is_free(str(each), pack.created_at, before)]


def _freed(pack: Pack, rows: Sequence[PackedFile], gone: Sequence[PackedFile]) -> Freed:
    if len(gone) == len(rows):
        return Freed(len(gone), pack.size)
    return Freed(len(gone), sum(each.length + MEMBER_BYTES for each in gone))


def _take_out(pack_id: UUID, kept: Q, before: datetime) -> Freed:
    """Put what is still needed into a new pack, and remove this one once that is committed."""
    with transaction.atomic():
        pack = Pack.objects.select_for_update().filter(pk=pack_id).first()
        if pack is None:
            return Freed(0, 0)
        rows = list(PackedFile.objects.select_for_update().filter(pack=pack).order_by("digest"))
        # Looked at again: whoever relied on one of them has ended, or waits for us.
        gone = _free(pack, rows, needs([str(each) for each in rows], kept), before)
        if rows and not gone:
            return Freed(0, 0)
        made = _write_again(pack, [each for each in rows if each not in gone])
        PackedFile.objects.filter(pk__in=[each.pk for each in gone]).delete()
        pack.delete()
    file_store.remove(key_of(pack_id))
    if made:
        file_store.send_soon(key_of(made.pk))
    return Freed(len(gone), pack.size - (made.size if made else 0))


def _write_again(old: Pack, rows: Sequence[PackedFile]) -> Pack | None:
    """A new pack with these files of another one; None where there are none.

    A part that has changed is taken as it is: `changed` names it. Raises FileNotFoundError.
    """
    if not rows:
        return None
    parts, new = raw_parts(old.pk), Pack(id=uuid4())
    content, places = zipped(new.pk, ((str(each), parts[str(each)]) for each in rows))
    file_store.write(key_of(new.pk), content)
    file_store.keep_name(key_of(new.pk))
    new.size = len(content)
    new.save(force_insert=True)
    for row in rows:
        row.pack, row.start = new, places[str(row)].start
    PackedFile.objects.bulk_update(rows, ["pack", "start"])
    return new


def _prune_nameless(before: datetime, is_rehearsal: bool) -> Iterator[Freed]:
    for _pack, stored in nameless(before):
        if not is_rehearsal:
            stored.remove()
        yield Freed(1, stored.size)


def nameless(before: datetime) -> Iterator[tuple[UUID, file_store.Stored]]:
    """Packs that no row names, as after a transaction that was rolled back, and that are so old.

    Those of the last hour may belong to a transaction that goes on.
    """
    until = min(before, timezone.now() - YOUNG).timestamp()
    for chunk in batches(file_store.stored(file_store.PACKS, below=BELOW), 1000):
        found = ((pack_of(each.key), each) for each in chunk if each.changed_at < until)
        old = {pack: each for pack, each in found if pack is not None}
        known = set(Pack.objects.filter(pk__in=old).values_list("pk", flat=True))
        yield from ((pack, each) for pack, each in old.items() if pack not in known)


@transaction.atomic
def take_up(pack: UUID, content: bytes) -> int:
    """Read from a pack without a row what artifacts name and no other pack has; how many files.

    Each of them is checked, and may be a file of its own as well. Raises ContentChanged for what
    is no zip of ours.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {each.filename.removesuffix(".gz"): each for each in archive.infolist()}
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ContentChanged(f"{key_of(pack)} is no pack: {error}") from error
    digests = [each for each in members if DIGEST.fullmatch(each)]
    wanted = needs(digests, Q()).known - located(digests).keys()
    rows = []
    for digest in sorted(wanted):
        start = members[digest].header_offset + HEAD_BYTES
        length = members[digest].compress_size
        if is_content_of(digest, content[start : start + length]):
            rows.append(_row(digest, Place(pack, start, length), is_double=True))
    if rows:
        Pack.objects.create(id=pack, size=len(content))
        PackedFile.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)
