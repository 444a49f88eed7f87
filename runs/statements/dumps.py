"""A dump that was uploaded, of any format: told by its beginning, and read part by part."""

import codecs
import re
import zlib
from dataclasses import dataclass
from typing import Literal

from runs.statements.archives import MAGIC, Archive, ArchiveReader, too_large
from runs.statements.data_script import DataReader, DataRefused
from runs.statements.needs import Need
from runs.tools import packed_files
from runs.wording import gettext_noop as _

Format = Literal["plain", "custom", "tar"]
# What shows the format: the header of a tar archive.
_BEGINNING = 512
_TAR_MARK = slice(257, 262)
# So much is unpacked of a part before more is asked for.
STEP = 2 * 2**20
_ENCODING = re.compile(rb"^SET client_encoding (?:=|TO) '([\w-]{1,30})';", re.MULTILINE)
_ENCODINGS = {
    "BIG5": "big5",
    "EUC_CN": "gb2312",
    "EUC_JP": "euc_jp",
    "EUC_KR": "euc_kr",
    "GBK": "gbk",
    "KOI8R": "koi8_r",
    "LATIN1": "latin-1",
    "LATIN2": "iso8859_2",
    "LATIN9": "iso8859_15",
    "SJIS": "shift_jis",
    "WIN1250": "cp1250",
    "WIN1251": "cp1251",
    "WIN1252": "cp1252",
}
_NAMED_BEFORE = 64 * 1024


@dataclass(frozen=True)
class Dump:
    """What a dump has. Of an archive `list_text` is what `pg_restore -L` takes.

    `left_out` is by kinds, `roles` are those that own something or have rights, `needs` what older
    versions of PostgreSQL do not have. `program` is the version of pg_dump, empty if it is plain.
    """

    format: Format
    list_text: str
    tables: int
    objects: int
    extensions: tuple[str, ...]
    left_out: tuple[str, ...]
    roles: tuple[str, ...]
    needs: tuple[Need, ...]
    program: str = ""


@dataclass(frozen=True)
class DumpPart:
    """What a part has given: SQL for psql where the dump is plain, and at the end what it has.

    `is_done` says that all of the part was read; else it goes on without a further part.
    """

    script: str
    is_done: bool
    dump: Dump | None


class DumpReader:
    """Reads one dump; `most_bytes` are those that it may unpack to."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._beginning = b""
        self._reader: _Archive | _Plain | None = None

    def take(self, content: bytes, *, is_last: bool) -> DumpPart:
        """Read the next part. Raises DataRefused, NotSql."""
        if self._reader is None:
            self._beginning += content
            if len(self._beginning) < _BEGINNING and not is_last:
                return DumpPart("", True, None)
            content, self._beginning = self._beginning, b""
            self._reader = self._told(content)
        return self._reader.take(content, is_last=is_last)

    def _told(self, content: bytes) -> "_Archive | _Plain":
        form = packed_files.form_of(content)
        if form not in {"", "gzip"}:
            raise DataRefused(
                "packed",
                _("It is packed as %(form)s: unpack it, or pack it by gzip."),
                form=form,
            )
        if content.startswith(MAGIC) or content[_TAR_MARK] == b"ustar":
            return _Archive(self._most_bytes)
        return _Plain(self._most_bytes, is_packed=form == "gzip")


class _Archive:
    """A dump in custom or tar format, which pg_restore reads as it is."""

    def __init__(self, most_bytes: int) -> None:
        self._reader = ArchiveReader(most_bytes)

    def take(self, content: bytes, *, is_last: bool) -> DumpPart:
        """See `DumpReader.take`."""
        self._reader.take(content, is_last=is_last)
        dump = _read_archive(self._reader.archive()) if is_last else None
        return DumpPart("", True, dump)


def _read_archive(archive: Archive) -> Dump:
    return Dump(
        format="custom" if archive.format == "custom" else "tar",
        list_text=archive.list_text,
        tables=archive.tables,
        objects=len(archive.entries) - archive.tables,
        extensions=archive.extensions,
        left_out=archive.left_out,
        roles=archive.roles,
        needs=archive.needs,
        program=archive.program,
    )


class _Plain:
    """A dump as SQL, which becomes a script for psql; it may be packed by gzip."""

    def __init__(self, most_bytes: int, *, is_packed: bool) -> None:
        self._most_bytes = self._bytes_left = most_bytes
        self._unpacker = zlib.decompressobj(wbits=31) if is_packed else None
        self._packed = b""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._reader = DataReader()

    def take(self, content: bytes, *, is_last: bool) -> DumpPart:
        """See `DumpReader.take`."""
        unpacked, is_done = self._unpack(content)
        is_end = is_last and is_done
        if is_end and self._unpacker is not None and not self._unpacker.eof:
            raise DataRefused("cut", _("The dump is cut: it ends before its last row."))
        self._bytes_left -= len(unpacked)
        if self._bytes_left < 0:
            raise too_large(self._most_bytes)
        script = self._reader.take(self._text(unpacked, is_end=is_end), is_last=is_end)
        return DumpPart(script, is_done, self._dump() if is_end else None)

    def _unpack(self, content: bytes) -> tuple[bytes, bool]:
        """The next bytes, and whether they are all that there are."""
        if self._unpacker is None:
            return content, True
        try:
            unpacked = self._unpacker.decompress(self._packed + content, STEP)
        except zlib.error as error:
            raise DataRefused("damaged", _("It cannot be unpacked by gzip.")) from error
        self._packed = self._unpacker.unconsumed_tail
        if self._decoder is None and unpacked.startswith(MAGIC):
            raise DataRefused(
                "packed_archive",
                _(
                    "It is a dump in custom format, packed by gzip once more: unpack it."
                ),
            )
        is_done = self._unpacker.eof or (not self._packed and len(unpacked) < STEP)
        return unpacked, is_done

    def _text(self, content: bytes, *, is_end: bool) -> str:
        if self._decoder is None:
            named = _ENCODING.search(content[:_NAMED_BEFORE])
            encoding = _ENCODINGS.get(named[1].decode() if named else "", "utf-8-sig")
            self._decoder = codecs.getincrementaldecoder(encoding)()
        try:
            return self._decoder.decode(content, final=is_end)
        except UnicodeDecodeError as error:
            raise DataRefused(
                "not_text",
                _("It is no dump: neither SQL, nor an archive of pg_dump -Fc or -Ft."),
            ) from error

    def _dump(self) -> Dump:
        script = self._reader.script()
        return Dump(
            format="plain",
            list_text="",
            tables=script.tables,
            objects=script.statements,
            extensions=script.extensions,
            left_out=script.left_out,
            roles=script.roles,
            needs=script.needs,
        )
