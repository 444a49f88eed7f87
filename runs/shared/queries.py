"""Queries in PostgreSQL's own words, where a query set would say less or take longer."""

from typing import Any

from django.db import connection, connections, router
from django.db.models import Model


def rows(query: str, values: Any = None, *, of: type[Model] | None = None) -> list[Any]:
    """All rows of a query; with `of` from where that model is read, which may be a replica."""
    used = connections[router.db_for_read(of)] if of else connection
    with used.cursor() as cursor:
        cursor.execute(query, values)
        fetched: list[Any] = cursor.fetchall()
    return fetched
