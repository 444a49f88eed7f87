"""Statements of a load: `{"text": ..., "prefix": ..., "weights": ..., "masks": false}`."""

from runs.reading.readers import Request, stateless
from runs.statements.load import Load, NoStatements, read
from runs.statements.tokens import NotSql


def _read(request: Request) -> Load:
    return read(
        request["text"],
        prefix=request["prefix"],
        weights=request["weights"],
        masks=request["masks"],
    )


READER = stateless(_read, Load, (NotSql, NoStatements))
