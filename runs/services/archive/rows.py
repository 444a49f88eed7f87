"""Brings stored rows in step with wanted ones; rows that stay keep their primary key."""

from collections.abc import Hashable, Mapping
from typing import Any, TypeVar

from django.db.models import Model

K = TypeVar("K", bound=Hashable)
M = TypeVar("M", bound=Model)


def keep_in_step(
    model: type[M], found: Mapping[K, M], wanted: Mapping[K, Mapping[str, Any]]
) -> dict[K, M]:
    """Delete, update and insert until exactly the wanted rows are there, matched by identity.

    A constant number of queries for any number of rows. Call it in a transaction.
    """
    manager = model._default_manager
    gone = [row.pk for key, row in found.items() if key not in wanted]
    if gone:
        manager.filter(pk__in=gone).delete()
    new = {key: model(**fields) for key, fields in wanted.items() if key not in found}
    manager.bulk_create(new.values(), batch_size=2000)
    kept = {key: row for key, row in found.items() if key in wanted}
    changed = [row for key, row in kept.items() if _apply(row, wanted[key])]
    if changed:
        manager.bulk_update(changed, list(next(iter(wanted.values()))), batch_size=500)
    return {key: kept.get(key) or new[key] for key in wanted}


def _apply(row: Model, fields: Mapping[str, Any]) -> bool:
    """Set the fields; return whether any of them changed."""
    different = [name for name, value in fields.items() if getattr(row, name) != value]
    for name in different:
        setattr(row, name, fields[name])
    return bool(different)
