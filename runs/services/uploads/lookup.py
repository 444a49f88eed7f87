"""Looks up keys of rows by one text column, in plain SQL, a few times per upload."""

from collections.abc import Iterable

from django.db import connection
from django.db.models import Model

from runs.services.statements import Statement


def keys(model: type[Model], column: str, values: Iterable[str]) -> Statement:
    """The query for text and key of the rows that have one of these values in `column`."""
    table = connection.ops.quote_name(model._meta.db_table)
    name = connection.ops.quote_name(column)
    # Plain SQL: the ORM takes longer to build this query than PostgreSQL to answer it.
    return Statement(
        f"SELECT {name}, id FROM {table} WHERE {name} = ANY(%s)",  # noqa: S608 -- our names
        (list(values),),
    )


def either(first: Statement, second: Statement) -> Statement:
    """The query for the rows of both."""
    return Statement(f"{first.sql} UNION ALL {second.sql}", (*first.parameters, *second.parameters))
