"""Rows of an import on their way into the database: collected, then written by COPY."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from django.db import connection
from psycopg import sql

# The order in which rows may refer to one another.
TABLES = (
    *("runs_cell", "runs_run", "runs_measurement", "runs_artifact", "runs_runevent"),
    *("runs_series", "runs_command", "runs_annotation", "runs_change"),
)
MOST_ROWS = 5000
MOST_VALUES = 500_000  # of series
IDS = 1000  # fetched at a time

Row = dict[str, Any]


class Waiting:
    """Rows that are not stored yet, by table."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = defaultdict(list)
        self.size = 0

    def add(self, table: str, row: Row) -> None:
        """Keep a row for the next `store`."""
        self.rows[table].append(row)
        self.size += 1 + len(row.get("values") or ()) * MOST_ROWS // MOST_VALUES

    @property
    def is_much(self) -> bool:
        """Whether enough rows are waiting to be stored."""
        return self.size >= MOST_ROWS

    def store(self) -> None:
        """Write everything to the database. Raises DataError and IntegrityError."""
        for table in TABLES:
            if rows := self.rows.get(table):
                _copy(table, rows)
        self.rows.clear()
        self.size = 0


def new_ids(table: str) -> Iterator[int]:
    """This many keys for new rows."""
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)",
                [table, IDS],
            )
            found = cursor.fetchall()
        yield from (key for (key,) in found)


def _copy(table: str, rows: list[Row]) -> None:
    names = list(rows[0])
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, names))
    )
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(statement) as copy,
    ):
        for row in rows:
            copy.write_row([_plain(name, row[name]) for name in names])


def _plain(name: str, value: Any) -> Any:
    if name == "values":  # the only array
        return "{" + ",".join("NULL" if each is None else repr(each) for each in value) + "}"
    return json.dumps(value) if name in JSON or isinstance(value, dict | list) else value


# JSON columns, where a null is a value too: those that are never null.
JSON = frozenset({"levels", "quality", "labels", "argv"})
