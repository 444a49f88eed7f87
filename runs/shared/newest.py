"""The newest rows of each of several others, such as the last deliveries of webhooks."""

from typing import Any, TypeVar

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import BigIntegerField, Func, Model, OuterRef, QuerySet

M = TypeVar("M", bound=Model)


class _Unnest(Func):
    function = "unnest"
    set_returning = True
    output_field = BigIntegerField()


def take_newest(
    rows: QuerySet[M], owners: QuerySet[Any], *, foreign_key: str, number: int
) -> QuerySet[M]:
    """So many of the rows of each, the newest first; `foreign_key` is the rows' key of the others.

    For a Prefetch, in whose place a slice numbers all rows to show a few. An index by this key and
    the rows' own finds them.
    """
    own_rows = rows.model._default_manager.filter(
        **{foreign_key: OuterRef("pk")}
    ).order_by("-pk")
    keys = owners.order_by().annotate(
        newest=_Unnest(ArraySubquery(own_rows.values("pk")[:number]))
    )
    return rows.filter(pk__in=keys.values("newest")).order_by("-pk")
