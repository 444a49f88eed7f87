"""An export of a project, a batch of lines after the other: `{"lines": base64, "is_last": ...}`.

Its lines are read by the strict reader of `script/benchlab-verify`, its chain is verified, and its
files are unpacked to see whether they have their digest.
"""

import hashlib
import zlib
from argparse import Namespace
from base64 import b64decode
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from runs.export_reader import (
    END,
    FILE,
    UNREADABLE,
    ExportReader,
    Unreadable,
    Verification,
)
from runs.reading.limits import OF_A_PROJECT
from runs.reading.readers import KindReader, Request

STEP = 2**20
# The end of a compressed file gives its size up to here; a small file must not take hours.
MOST_UNPACKED = 2**32 - 1


@dataclass(frozen=True)
class Line:
    """A line of an export; a file's part is one that has been looked at."""

    number: int
    kind: str
    row: dict[str, Any]


@dataclass(frozen=True)
class LineFault:
    """What is wrong with a line: a code, and the names in its message."""

    number: int
    code: str
    names: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Proof:
    """What the chain of an export proves: of so many runs, with these keys; or what is wrong."""

    runs: int
    keys: list[str]
    faults: list[str]


@dataclass(frozen=True)
class Batch:
    """Lines up to the first that is at fault. The proof comes with the last line of the file."""

    lines: list[Line]
    fault: LineFault | None
    proof: Proof | None


class _Export:
    """An export of which some lines have been read."""

    def __init__(self) -> None:
        self._lines = ExportReader()
        options = Namespace(key=set(), entry={}, head=[], allow_unsealed=False)
        self._verification = Verification(options)
        self._gave_up = ""
        self._file: _File | None = None

    def read(self, request: Request) -> Batch:
        lines: list[Line] = []
        fault = proof = None
        try:
            for line in BytesIO(b64decode(request["lines"]["base64"])):
                kind, row = self._lines.take(line)
                if kind != END:
                    # The values of a line, its taker looks at first.
                    lines.append(Line(self._lines.number, kind, row))
                    self._look_at(kind, row)
            if request["is_last"]:
                self._lines.finish()
                proof = self._proof()
        except Unreadable as error:
            names = {name: _plain(value) for name, value in error.names.items()}
            fault = LineFault(error.number, error.code, names)
        return Batch(lines, fault, proof)

    def _look_at(self, kind: str, row: dict[str, Any]) -> None:
        self._verify(kind, row)
        if kind == FILE:
            self._unpack(row)

    def _verify(self, kind: str, row: dict[str, Any]) -> None:
        if self._gave_up:
            return
        try:
            self._verification.take(kind, row)
        except UNREADABLE as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._gave_up = f"{type(error).__name__}: {error}"[:500].replace("\0", "")

    def _proof(self) -> Proof:
        if not self._gave_up:
            try:
                self._verification.finish()
            except UNREADABLE as error:
                self._give_up(error)
        if self._gave_up:
            return Proof(0, [], [self._gave_up])
        chain = self._verification
        return Proof(chain.runs, list(chain.keys), chain.faults)

    def _unpack(self, row: dict[str, Any]) -> None:
        """A part of a file. A value of another type is the fault of who stores it."""
        if not isinstance(row["gzip"], str):
            return
        if self._file is None:
            self._file = _File()
        try:
            self._file.add(b64decode(row["gzip"], validate=True))
        except ValueError:
            return
        if row["last"]:
            if self._file.digest() != row["sha256"]:
                raise Unreadable(self._lines.number, "content_differs")
            self._file = None


class _File:
    """A packed file, unpacked piece by piece: a small one can be a huge one."""

    def __init__(self) -> None:
        self._unpacking = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self._sha256, self._size, self._is_whole = hashlib.sha256(), 0, True

    def add(self, packed: bytes) -> None:
        try:
            while packed and self._is_whole:
                unpacked = self._unpacking.decompress(packed, STEP)
                self._sha256.update(unpacked)
                self._size += len(unpacked)
                self._is_whole = (
                    self._size <= MOST_UNPACKED and not self._unpacking.unused_data
                )
                packed = self._unpacking.unconsumed_tail
        except zlib.error:
            self._is_whole = False

    def digest(self) -> str:
        """The digest of the content; empty for a file that is incomplete or too large."""
        self._sha256.update(self._unpacking.flush())
        return (
            self._sha256.hexdigest() if self._unpacking.eof and self._is_whole else ""
        )


def _plain(value: object) -> Any:
    return value if isinstance(value, int) else str(value)


READER = KindReader(lambda: _Export().read, Batch, limits=OF_A_PROJECT)
