"""The long tables of a campaign's page, one page at a time, as the address says."""

from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import QueryDict

# Each table's name in the address.
CELLS, RATIOS, ORDER, TROUBLED = "cells", "ratios", "order", "troubled"
SIZES = {RATIOS: 60, ORDER: 200, TROUBLED: 20}


@dataclass(frozen=True)
class Part:
    """A page of a table, with the addresses of the one before and the one after it."""

    name: str
    rows: list[Any]
    number: int
    total: int
    before: str = ""
    after: str = ""

    @property
    def anchor(self) -> str:
        """The part of the page that the table is in."""
        return self.name


def listed(rows: Any, name: str, given: QueryDict) -> Part:
    """The page of these rows that the address names, else the first."""
    return part(Paginator(rows, SIZES[name]).get_page(given.get(name)), name, given)


def part(page: "Page[Any]", name: str, given: QueryDict) -> Part:
    """A page that was cut already, with its neighbours; those of the other tables stay."""
    return Part(
        name=name,
        rows=list(page),
        number=page.number,
        total=page.paginator.num_pages,
        before=query(given, **{name: page.previous_page_number()}) if page.has_previous() else "",
        after=query(given, **{name: page.next_page_number()}) if page.has_next() else "",
    )


def query(given: QueryDict, **changed: int) -> str:
    """The query string of the page of each table; empty where each is at its first."""
    pages = QueryDict(mutable=True)
    for name in (CELLS, *SIZES):
        if value := changed.get(name) or given.get(name):
            pages[name] = str(value)
    return f"?{pages.urlencode()}" if pages else ""
