"""Dumps in pg_dump's own formats, custom and tar: their contents, and whether they are whole.

After `ReadHead`, `ReadToc` and `_skipData` of PostgreSQL's pg_backup_archiver.c, pg_backup_custom.c
and pg_backup_tar.c, for archives of 9.0 (version 1.12) to 18 (1.16). A dump comes in parts.
"""

import zlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

from runs.statements import data_script
from runs.statements.data_script import (
    EXTENSIONS,
    MOST_NAMED,
    PASSED_OVER_EXTENSIONS,
    DataRefused,
)
from runs.statements.needs import Need, needs
from runs.statements.tokens import NotSql, statements
from runs.wording import gettext_noop as _

MAGIC = b"PGDMP"
OLDEST, NEWEST = (1, 12), (1, 16)
_CUSTOM, _TAR = 1, 3
# Of the list of contents: a database of 100,000 tables has less.
MOST_ENTRIES, MOST_LIST_BYTES = 1_000_000, 64_000_000
LONGEST_TEXT = 16_000_000
_DATA, _LARGE_OBJECTS = 1, 3
# A data entry of a custom archive that has none.
_NO_DATA = 3
_ALGORITHMS = {0: "none", 1: "gzip", 2: "lz4", 3: "zstd"}
_BLOCK = 512
_STEP = 2**20

# What an ordinary role cannot make, what the database has already, and what a load does without.
_LEFT_OUT = frozenset(
    {
        "ACL",
        "COMMENT",
        "DATABASE",
        "DATABASE PROPERTIES",
        "DEFAULT ACL",
        "EVENT TRIGGER",
        "EXTENSION",
        "FOREIGN DATA WRAPPER",
        "FOREIGN SERVER",
        "FOREIGN TABLE",
        "POLICY",
        "PUBLICATION",
        "PUBLICATION TABLE",
        "PUBLICATION TABLES IN SCHEMA",
        "ROW SECURITY",
        "SECURITY LABEL",
        "SERVER",
        "STATISTICS DATA",
        "SUBSCRIPTION",
        "SUBSCRIPTION TABLE",
        "USER MAPPING",
    }
)
# What everybody expects to be left out.
_UNNAMED = frozenset(
    {"COMMENT", "DATABASE", "DATABASE PROPERTIES", "EXTENSION", "SCHEMA"}
)
# Their settings are psql's own, and pg_restore's.
_SETTINGS = frozenset({"ENCODING", "STDSTRINGS", "SEARCHPATH"})
_FUNCTIONS = frozenset({"FUNCTION", "PROCEDURE", "PROCEDURAL LANGUAGE"})


@dataclass(frozen=True)
class Entry:
    """A line of the list of contents. `has_data` says that rows of it follow."""

    number: int
    kind: str
    name: str
    schema: str
    owner: str
    definition: str
    copy: str
    has_data: bool
    file: str = ""


@dataclass(frozen=True)
class Archive:
    """A dump of pg_dump's own formats; `entries` are what is restored of it.

    `server` and `program` are the versions that wrote it. `unpacked_bytes` are those of its rows;
    None where they are packed by lz4 or zstd, which are not unpacked here.
    """

    format: str
    entries: tuple[Entry, ...]
    extensions: tuple[str, ...]
    left_out: tuple[str, ...]
    roles: tuple[str, ...]
    needs: tuple[Need, ...]
    server: str
    program: str
    unpacked_bytes: int | None

    @property
    def list_text(self) -> str:
        """What `pg_restore -L` takes."""
        return "".join(f"{entry.number};\n" for entry in self.entries)

    @property
    def tables(self) -> int:
        """How many have rows."""
        return sum(entry.kind == "TABLE DATA" for entry in self.entries)


Steps = Generator[None, None, None]
Numbers = Generator[None, None, int]
Contents = Generator[None, None, bytes]


@dataclass
class ArchiveReader:
    """Reads an archive that comes in parts; `most_bytes` are those that its rows may unpack to."""

    most_bytes: int
    _buffer: bytearray = field(default_factory=bytearray)
    _place: int = 0
    _consumed: int = 0
    _is_last: bool = False
    _unpacked: int = 0
    _entries: list[Entry] = field(default_factory=list)
    _format: str = ""
    _version: tuple[int, int] = (0, 0)
    _integer_bytes: int = 4
    _offset_bytes: int = 8
    _algorithm: str = "none"
    _server: str = ""
    _program: str = ""
    _steps: Steps | None = None

    def take(self, content: bytes, *, is_last: bool) -> None:
        """Read the next part. Raises DataRefused."""
        self._buffer += content
        self._is_last = is_last
        if self._steps is None:
            self._steps = self._archive()
        try:
            next(self._steps)
        except StopIteration:
            # What stands behind the end is nothing of pg_restore's.
            self._steps = iter_nothing()

    def archive(self) -> Archive:
        """What it has. Raises DataRefused for what a load does not restore."""
        extensions = _extensions(self._entries)
        left_out: dict[str, None] = {}
        kept: list[Entry] = []
        for entry in self._entries:
            if entry.kind in _SETTINGS:
                continue
            if _is_left_out(entry):
                if entry.kind not in _UNNAMED:
                    left_out[entry.kind] = None
                continue
            _check(entry)
            kept.append(entry)
        if not kept:
            raise DataRefused(
                "no_data", _("Its list of contents has nothing to restore.")
            )
        owners = {entry.owner: None for entry in self._entries if entry.owner}
        return Archive(
            format=self._format,
            entries=tuple(kept),
            extensions=extensions,
            left_out=tuple(left_out),
            roles=tuple(owners)[:MOST_NAMED],
            needs=tuple(dict.fromkeys(_needs(kept)))[:MOST_NAMED],
            server=self._server,
            program=self._program,
            unpacked_bytes=None
            if self._algorithm in {"lz4", "zstd"}
            else self._unpacked,
        )

    def _archive(self) -> Steps:
        beginning = yield from self._peeked(len(MAGIC))
        if beginning == MAGIC:
            yield from self._custom()
        else:
            yield from self._tar()

    # The bytes

    def _peeked(self, count: int) -> Contents:
        while len(self._buffer) - self._place < count:
            if self._is_last:
                raise _cut()
            self._forget()
            yield
        return bytes(self._buffer[self._place : self._place + count])

    def _bytes(self, count: int) -> Contents:
        content = yield from self._peeked(count)
        self._place += count
        self._consumed += count
        if self._place > _STEP:
            self._forget()
        return content

    def _forget(self) -> None:
        del self._buffer[: self._place]
        self._place = 0

    def _skip(self, count: int, rows: "_Rows | None" = None) -> Steps:
        """Pass over bytes, which need not be there at once; `rows` takes them."""
        while count:
            there = min(count, len(self._buffer) - self._place)
            if not there:
                if self._is_last:
                    raise _cut()
                self._forget()
                yield
                continue
            if rows is not None:
                rows.take(bytes(self._buffer[self._place : self._place + there]))
            self._place += there
            self._consumed += there
            count -= there
        if self._place > _STEP:
            self._forget()

    def _byte(self) -> Numbers:
        content = yield from self._bytes(1)
        return content[0]

    def _integer(self) -> Numbers:
        content = yield from self._bytes(1 + self._integer_bytes)
        number = int.from_bytes(content[1:], "little")
        return -number if content[0] else number

    def _text(self) -> Generator[None, None, str | None]:
        length = yield from self._integer()
        if length < 0:
            return None
        if length > LONGEST_TEXT:
            raise _damaged()
        content = yield from self._bytes(length)
        return content.decode("utf-8", "replace")

    # The parts of an archive

    def _head(self) -> Numbers:
        """The head; the number of its format."""
        if (yield from self._bytes(len(MAGIC))) != MAGIC:
            raise _damaged()
        major, minor, _revision = yield from self._bytes(3)
        self._version = (major, minor)
        if not OLDEST <= self._version <= NEWEST:
            raise DataRefused(
                "archive_version",
                _(
                    "It is an archive of version %(version)s; those of pg_dump 9.0 to 18 are read "
                    "(%(oldest)s to %(newest)s)."
                ),
                version=f"{major}.{minor}",
                oldest="{}.{}".format(*OLDEST),
                newest="{}.{}".format(*NEWEST),
            )
        self._integer_bytes, self._offset_bytes, form = yield from self._bytes(3)
        if self._integer_bytes not in {2, 4, 8} or self._offset_bytes not in {4, 8}:
            raise _damaged()
        if self._version >= (1, 15):
            algorithm = yield from self._byte()
            if algorithm not in _ALGORITHMS:
                raise _damaged()
            self._algorithm = _ALGORITHMS[algorithm]
        else:
            level = yield from self._integer()
            self._algorithm = "gzip" if level else "none"
        for _part_of_time in range(7):
            yield from self._integer()
        yield from self._text()  # the database
        self._server = _version_of((yield from self._text()))
        self._program = _version_of((yield from self._text()))
        return form

    def _list(self) -> Steps:
        begin = self._consumed
        count = yield from self._integer()
        if not 0 < count <= MOST_ENTRIES:
            raise _damaged()
        for _number in range(count):
            entry = yield from self._entry()
            self._entries.append(entry)
            if self._consumed - begin > MOST_LIST_BYTES:
                raise DataRefused(
                    "list_too_large", _("Its list of contents has more than 64 MB.")
                )

    def _entry(self) -> Generator[None, None, Entry]:
        number = yield from self._integer()
        has_data = yield from self._integer()
        yield from self._text()  # the catalog's number
        yield from self._text()  # the object's number
        name = (yield from self._text()) or ""
        kind = (yield from self._text()) or ""
        yield from self._integer()  # the section
        definition = (yield from self._text()) or ""
        yield from self._text()  # what drops it
        copy = (yield from self._text()) or ""
        schema = (yield from self._text()) or ""
        yield from self._text()  # the tablespace
        if self._version >= (1, 14):
            yield from self._text()  # the access method
        if self._version >= (1, 16):
            yield from self._integer()  # the kind of relation
        owner = (yield from self._text()) or ""
        yield from self._text()  # whether it has OIDs
        while (yield from self._text()) is not None:
            continue  # what it depends on
        file = ""
        if self._format == "custom":
            state = yield from self._byte()
            yield from self._bytes(self._offset_bytes)
            has_data = int(bool(has_data) and state != _NO_DATA)
        else:
            file = (yield from self._text()) or ""
        return Entry(
            number, kind, name, schema, owner, definition, copy, bool(has_data), file
        )

    def _custom(self) -> Steps:
        self._format = "custom"
        form = yield from self._head()
        if form != _CUSTOM:
            raise _damaged()
        yield from self._list()
        missing = {entry.number for entry in self._entries if entry.has_data}
        while missing:
            kind = yield from self._byte()
            number = yield from self._integer()
            if number not in missing or kind not in {_DATA, _LARGE_OBJECTS}:
                raise _damaged()
            missing.remove(number)
            if kind == _DATA:
                yield from self._rows()
                continue
            while (yield from self._integer()):
                yield from self._rows()

    def _rows(self) -> Steps:
        rows = _Rows(self, is_packed=self._algorithm == "gzip")
        while length := (yield from self._integer()):
            if length < 0:
                raise _damaged()
            yield from self._skip(length, rows)
        rows.end()

    def _tar(self) -> Steps:
        self._format = "tar"
        missing: set[str] | None = None
        while True:
            header = yield from self._bytes(_BLOCK)
            if not header.strip(b"\0"):
                break
            name, size = _member(header)
            end = self._consumed + size
            if missing is None:
                if name != "toc.dat":
                    raise DataRefused(
                        "not_a_dump",
                        _(
                            "It is a tar archive, and none that pg_dump -Ft has written: it begins "
                            "with %(name)s."
                        ),
                        name=name[:100],
                    )
                if (yield from self._head()) != _TAR:
                    raise _damaged()
                yield from self._list()
                # Large objects have files of other names.
                missing = {
                    entry.file
                    for entry in self._entries
                    if entry.has_data and entry.kind != "BLOBS"
                }
                if self._consumed > end:
                    raise _damaged()
            elif name != "restore.sql":
                missing.discard(name)
                self.count(size)
            yield from self._skip(end - self._consumed)
            yield from self._skip(-size % _BLOCK)
        if missing is None or missing:
            raise _cut()

    def count(self, size: int) -> None:
        """Count bytes of rows. Raises DataRefused beyond those that there may be."""
        self._unpacked += size
        if self._unpacked > self.most_bytes:
            raise too_large(self.most_bytes)


def iter_nothing() -> Steps:
    """Steps that take whatever comes."""
    while True:
        yield


class _Rows:
    """The rows of a table, which are unpacked to be counted."""

    def __init__(self, reader: ArchiveReader, *, is_packed: bool) -> None:
        self._reader = reader
        self._unpacker = zlib.decompressobj() if is_packed else None

    def take(self, content: bytes) -> None:
        """Count what comes next."""
        if self._unpacker is None:
            self._reader.count(len(content))
            return
        try:
            while content:
                self._reader.count(len(self._unpacker.decompress(content, _STEP)))
                content = self._unpacker.unconsumed_tail
        except zlib.error as error:
            raise _damaged() from error

    def end(self) -> None:
        """The last of them was taken."""
        if self._unpacker is not None and not self._unpacker.eof:
            raise _cut()


def _member(header: bytes) -> tuple[str, int]:
    """The name and the size of a file in a tar archive."""
    name = header[:100].partition(b"\0")[0].decode("utf-8", "replace")
    digits = header[124:136]
    try:
        if digits[0] & 0x80:
            return name, int.from_bytes(digits[1:], "big")
        return name, int(digits.strip(b" \0") or b"0", 8)
    except ValueError as error:
        raise _damaged() from error


def _version_of(text: str | None) -> str:
    return (text or "").split(" ", 1)[0][:40]


def _cut() -> DataRefused:
    return DataRefused("cut", _("The dump is cut: it ends before its last row."))


def _damaged() -> DataRefused:
    return DataRefused(
        "damaged", _("The dump is damaged: its parts are not as pg_dump writes them.")
    )


def too_large(most_bytes: int) -> DataRefused:
    """The refusal of data that unpack to more than they may."""
    return DataRefused(
        "too_large",
        _("Unpacked it has more than %(megabytes)s MB."),
        megabytes=most_bytes // 1_000_000,
    )


def _extensions(entries: list[Entry]) -> tuple[str, ...]:
    names = [entry.name for entry in entries if entry.kind == "EXTENSION"]
    refused = sorted(set(names) - EXTENSIONS - PASSED_OVER_EXTENSIONS)
    if refused:
        raise DataRefused(
            "extension",
            _(
                "It needs extensions that are not made for a load: %(names)s. These are: "
                "%(known)s."
            ),
            names=", ".join(refused)[:300],
            known=", ".join(sorted(EXTENSIONS)),
        )
    return tuple(
        name
        for name in dict.fromkeys(names)
        if name not in PASSED_OVER_EXTENSIONS and name != "plpgsql"
    )


def _is_left_out(entry: Entry) -> bool:
    if entry.kind == "SCHEMA":
        return entry.name == "public"
    if entry.kind == "PROCEDURAL LANGUAGE":
        return entry.name in data_script.LANGUAGES
    return entry.kind in _LEFT_OUT


def _check(entry: Entry) -> None:
    """Refuse what could leave the database. Raises DataRefused."""
    if entry.copy and not _is_copy_from_stdin(entry.copy):
        raise DataRefused(
            "copy_from_file",
            _("%(name)s: COPY reads or writes a file or a program, which is not run."),
            name=entry.name[:100],
        )
    if entry.kind in _FUNCTIONS and (language := _refused_language(entry)):
        raise DataRefused(
            "language",
            _(
                "%(name)s: a function in the language %(language)s is not made for a load; SQL "
                "and PL/pgSQL are."
            ),
            name=entry.name[:100],
            language=language,
        )


def _refused_language(entry: Entry) -> str:
    if entry.kind == "PROCEDURAL LANGUAGE":
        return entry.name[:100]
    try:
        languages = map(data_script.refused_language, statements(entry.definition))
        return next(filter(None, languages), "")
    except NotSql:
        # PostgreSQL will refuse it, too.
        return ""


def _is_copy_from_stdin(text: str) -> bool:
    try:
        copies = list(statements(text))
    except NotSql:
        return False
    return len(copies) == 1 and {"from", "stdin"} <= set(copies[0].words)


def _needs(entries: list[Entry]) -> Iterator[Need]:
    for entry in entries:
        try:
            for statement in statements(entry.definition):
                yield from needs(statement)
        except NotSql:
            continue
