"""Dumps of loads: taken in parts, encrypted, read when they are whole, and kept or refused."""

from collections.abc import Iterator
from dataclasses import asdict
from math import ceil

from django.conf import settings
from django.db import transaction
from django.db.models import Sum
from django.utils.translation import gettext as _

from runs.access.services import audit
from runs.loads.services import results
from runs.models import Load, LoadPart
from runs.shared import reading
from runs.shared.errors import ServiceError
from runs.shared.reading import ForeignReader, NotUnderstood
from runs.statements import content
from runs.statements.content import LoadData
from runs.statements.dumps import Dump, DumpPart

# What one request brings. All parts but the last have it.
PART_BYTES = 4 * 2**20
# What a dump may unpack to, for each byte of the largest that may be uploaded.
UNPACKED = 10


def most_bytes() -> int:
    """Of one dump."""
    return int(settings.LOAD_DUMP_MB * 1_000_000)


def take(*, load: Load, number: int, size: int, part: bytes) -> bool:
    """Keep a part of a dump of `size` bytes; whether that was the last and the dump is kept.

    A part may come twice. Part 0 begins anew. Raises ServiceError.
    """
    _check(load, number=number, size=size, part=part)
    key = results.key_of(load)
    with transaction.atomic():
        locked = Load.objects.select_for_update().get(pk=load.pk)
        if number == 0:
            locked.parts.all().delete()
            _check_room(locked, size)
            Load.objects.filter(pk=load.pk).update(dump_bytes=size)
        elif locked.dump_bytes != size:
            raise _begin_anew()
        LoadPart.objects.update_or_create(
            load=locked,
            number=number,
            defaults={"content": content.sealed_part(key, part)},
        )
    if number < _count(size) - 1:
        return False
    if load.parts.count() != _count(size):
        raise _begin_anew()
    _keep(load, key, _count(size))
    return True


def list_parts(load: Load) -> list[int]:
    """The numbers of the parts that have come."""
    return list(load.parts.order_by("number").values_list("number", flat=True))


def _count(size: int) -> int:
    return ceil(size / PART_BYTES)


def _check(load: Load, *, number: int, size: int, part: bytes) -> None:
    if not results.opened(load).data.is_missing:
        message = _("This load has its data. Bring another load for another dump.")
        raise ServiceError("has_data", message, field="dump")
    if size > most_bytes():
        message = _(
            "The dump is larger than %(most)d MB, which is the limit here (BENCHLAB_LOAD_DUMP_MB). "
            "Put it on the server, and give its path."
        ) % {"most": most_bytes() // 1_000_000}
        raise ServiceError("dump_too_large", message, field="dump")
    is_last = number == _count(size) - 1
    expected = size - number * PART_BYTES if is_last else PART_BYTES
    if not part or not 0 <= number < _count(size) or len(part) != expected:
        raise _begin_anew()


def _check_room(load: Load, size: int) -> None:
    others = Load.objects.exclude(pk=load.pk).aggregate(all=Sum("dump_bytes"))["all"]
    if (others or 0) + size > settings.LOAD_DUMPS_MB * 1_000_000:
        message = _(
            "All dumps here would have more than %(most)d MB (BENCHLAB_LOAD_DUMPS_MB). Remove a "
            "load, or put the dump on the server and give its path."
        ) % {"most": int(settings.LOAD_DUMPS_MB)}
        raise ServiceError("no_room_for_dumps", message, field="dump")


def _begin_anew() -> ServiceError:
    message = _(
        "Parts of the dump are missing, or are of another file. Upload it again."
    )
    return ServiceError("parts_missing", message, field="dump")


def _keep(load: Load, key: str, count: int) -> None:
    """Read a dump that is whole; what cannot be restored goes, and is refused."""
    try:
        dump, first_part, parts = _read(load, key, count)
    except (NotUnderstood, ServiceError) as error:
        _forget(load)
        if isinstance(error, NotUnderstood):
            code, sentence = error.refusal.code, reading.sentence(error.refusal)
            raise ServiceError(code, sentence, field="dump") from error
        raise
    data = LoadData(
        "dump",
        extensions=dump.extensions,
        format=dump.format,
        first_part=first_part,
        parts=parts,
        list_text=dump.list_text,
        tables=dump.tables,
        objects=dump.objects,
        left_out=dump.left_out,
        roles=dump.roles,
        needs=dump.needs,
        program=dump.program,
    )
    _store(load, key, data)


@transaction.atomic
def _store(load: Load, key: str, data: LoadData) -> None:
    locked = Load.objects.select_for_update().get(pk=load.pk)
    last_part = data.first_part + data.parts
    if locked.parts.filter(number__lt=last_part).count() < data.parts:
        raise _begin_anew()
    locked.parts.exclude(number__range=(data.first_part, last_part - 1)).delete()
    stored = content.opened(key, bytes(locked.content))
    locked.content = content.sealed(key, {**stored, "data": asdict(data)})
    locked.save(update_fields=["content"])
    audit.record(
        "load_data_kept",
        f"load {load.slug}",
        project=load.project,
        after={"bytes": locked.dump_bytes},
    )


@transaction.atomic
def _forget(load: Load) -> None:
    load.parts.all().delete()
    Load.objects.filter(pk=load.pk).update(dump_bytes=0)


def _read(load: Load, key: str, count: int) -> tuple[Dump, int, int]:
    """What a dump has, and where its parts are: those that came, or a script for psql."""
    script = _Script(load, key, first_part=count)
    dump: Dump | None = None
    with reading.reader() as reader:
        for part in _answers(reader, load, key, count):
            script.add(part.script)
            dump = part.dump or dump
    if dump is None:
        raise _begin_anew()
    if dump.format == "plain":
        return dump, count, script.end()
    return dump, 0, count


def _answers(
    reader: ForeignReader, load: Load, key: str, count: int
) -> Iterator[DumpPart]:
    for number in range(count):
        part = LoadPart.objects.filter(load=load, number=number).first()
        if part is None:
            raise _begin_anew()
        rest = content.opened_part(key, bytes(part.content))
        is_done = False
        while not is_done:
            answer = reader.load_dump(
                rest, is_last=number == count - 1, most_bytes=UNPACKED * most_bytes()
            )
            yield answer
            rest, is_done = b"", answer.is_done


class _Script:
    """A script that is stored in parts, behind those of the dump that it is made of."""

    def __init__(self, load: Load, key: str, *, first_part: int) -> None:
        self._load, self._key = load, key
        self._first_part = self._next_part = first_part
        self._pending = b""
        load.parts.filter(number__gte=first_part).delete()

    def add(self, text: str) -> None:
        """Add what comes next."""
        self._pending += text.encode()
        while len(self._pending) >= PART_BYTES:
            self._write(self._pending[:PART_BYTES])
            self._pending = self._pending[PART_BYTES:]

    def end(self) -> int:
        """Store the rest; how many parts there are."""
        self._write(self._pending)
        return self._next_part - self._first_part

    def _write(self, part: bytes) -> None:
        LoadPart.objects.create(
            load=self._load,
            number=self._next_part,
            content=content.sealed_part(self._key, part),
        )
        self._next_part += 1


def require_versions(data: LoadData, majors: dict[int, str]) -> None:
    """Raise ServiceError where data need a newer version than one of those, by major version."""
    oldest = min(majors)
    missing = [need for need in data.needs if need.version > oldest]
    if not missing:
        return
    newest_need = max(missing, key=lambda need: need.version)
    message = _(
        "PostgreSQL %(version)s cannot have these data: %(where)s needs %(construct)s, which came "
        "with %(needed)d."
    ) % {
        "version": majors[oldest],
        "where": newest_need.where,
        "construct": newest_need.construct,
        "needed": newest_need.version,
    }
    raise ServiceError("data_need_newer", message, field="installations")
