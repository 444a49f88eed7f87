"""Keys of rows by a text of theirs, in plain SQL: an upload asks a handful of times."""

from collections.abc import Iterable

from django.db import connection
from django.db.models import Model

from runs.services.statements import Statement


def keys(model: type[Model], column: str, values: Iterable[str]) -> Statement:
    """Asks for text and key of the rows that have one of these values in `column`."""
    table = connection.ops.quote_name(model._meta.db_table)
    name = connection.ops.quote_name(column)
    # Written out: the ORM takes longer to say this than PostgreSQL to answer it.
    return Statement(
        f"SELECT {name}, id FROM {table} WHERE {name} = ANY(%s)",  # noqa: S608 -- our names
        (list(values),),
    )


def either(first: Statement, second: Statement) -> Statement:
    """Asks for the rows of both."""
    return Statement(f"{first.sql} UNION ALL {second.sql}", (*first.parameters, *second.parameters))
