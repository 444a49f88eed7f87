"""Several statements in one message: the round trip costs more than most statements."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.db import connection

Rows = list[tuple[Any, ...]]


class Statement(NamedTuple):
    """SQL, and the values for its placeholders."""

    sql: str
    parameters: tuple[Any, ...] = ()


def perform(statements: Iterable[Statement]) -> list[Rows]:
    """Execute statements in order, and return the rows of each. Call it in a transaction.

    If one fails, all end. Each sees what was committed before it started itself, so one can wait
    for a lock, and the next one can read what the lock protects.
    """
    listed = list(statements)
    if not listed:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            ";\n".join(each.sql for each in listed),
            [value for each in listed for value in each.parameters],
        )
        found = [_rows(cursor)]
        while cursor.nextset():
            found.append(_rows(cursor))
        return found


def ask(questions: Mapping[str, Statement]) -> dict[str, Rows]:
    """Run queries in one message; the rows of each under its name."""
    return dict(zip(questions, perform(questions.values()), strict=True))


def _rows(cursor: Any) -> Rows:
    return cursor.fetchall() if cursor.description is not None else []
