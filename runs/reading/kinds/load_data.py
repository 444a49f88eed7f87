"""SQL that makes the data of a load: `{"text": ...}`."""

from runs.reading.readers import Request, stateless
from runs.statements.data_script import DataRefused, DataScript, read
from runs.statements.tokens import NotSql


def _read(request: Request) -> DataScript:
    return read(request["text"])


READER = stateless(_read, DataScript, (DataRefused, NotSql))
