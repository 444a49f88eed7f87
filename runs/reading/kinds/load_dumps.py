"""A dump of a load, part after part: `{"part": base64, "is_last": ..., "most_bytes": ...}`."""

from base64 import b64decode

from runs.reading.limits import OF_A_DUMP
from runs.reading.readers import KindReader, Read, Request
from runs.statements.data_script import DataRefused
from runs.statements.dumps import DumpPart, DumpReader
from runs.statements.tokens import NotSql


def _begin() -> Read:
    readers: list[DumpReader] = []

    def read(request: Request) -> DumpPart:
        if not readers:
            readers.append(DumpReader(request["most_bytes"]))
        content = b64decode(request["part"]["base64"])
        return readers[0].take(content, is_last=request["is_last"])

    return read


READER = KindReader(_begin, DumpPart, (DataRefused, NotSql), limits=OF_A_DUMP)
