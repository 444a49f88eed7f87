"""Rows by what they have in common, and rows that belong to others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


def group_by_key(pairs: Iterable[tuple[K, V]]) -> defaultdict[K, list[V]]:
    """The values of each key, in their order; none for any other key."""
    values_of: defaultdict[K, list[V]] = defaultdict(list)
    for key, value in pairs:
        values_of[key].append(value)
    return values_of


class Following:
    """Rows in the order of those that own them, whose keys they have as `owner`."""

    def __init__(self, rows: Iterator[dict[str, Any]], owner: str) -> None:
        self._rows, self._owner = rows, owner
        self._head = next(rows, None)

    def take_rows(self, key: int | None) -> Iterator[dict[str, Any]]:
        """The rows of this owner, without its key. Call it once for each, in their order."""
        while self._head is not None and self._head[self._owner] == key:
            row, self._head = self._head, next(self._rows, None)
            del row[self._owner]
            yield row
