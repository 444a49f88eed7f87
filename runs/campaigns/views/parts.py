"""Long tables of a campaign's page, a page at a time, and their addresses."""

import re
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import QueryDict

# The factor that the ratios are about, and the metric that chart and tables show.
BY, METRIC = "by", "metric"
# Each table's name in the address.
CELLS = "cells"
RATIOS = "ratios"
ORDER = "order"
TROUBLED_RUNS = "troubled"
SIZES = {RATIOS: 60, ORDER: 200, TROUBLED_RUNS: 20}


@dataclass(frozen=True)
class Part:
    """A page of a table with its neighbours' addresses; `name` is its part of the page, too."""

    name: str
    rows: list[Any]
    number: int
    total: int
    before: str = ""
    after: str = ""


def listed(rows: Any, name: str, query: QueryDict) -> Part:
    """The page of these rows that the address names, else the first."""
    return part(Paginator(rows, SIZES[name]).get_page(query.get(name)), name, query)


def part(page: "Page[Any]", name: str, query_given: QueryDict) -> Part:
    """A page that was cut already, with its neighbours; those of the other tables stay."""
    return Part(
        name=name,
        rows=list(page),
        number=page.number,
        total=page.paginator.num_pages,
        before=query(query_given, **{name: page.previous_page_number()})
        if page.has_previous()
        else "",
        after=query(query_given, **{name: page.next_page_number()})
        if page.has_next()
        else "",
    )


def select_ratio_query(query: QueryDict, number: int | None = None) -> QueryDict:
    """What the address says of the ratios: their page is the same whatever cells are shown."""
    changed_query = QueryDict(mutable=True)
    changed_query.update(
        {name: str(query[name]) for name in (BY, METRIC) if query.get(name)}
    )
    if (number or number_of(query)) > 1:
        changed_query[RATIOS] = str(number or number_of(query))
    return changed_query


def number_of(query: QueryDict) -> int:
    """Of the page of ratios that the address names."""
    text = str(query.get(RATIOS, ""))
    return int(text) if re.fullmatch("[0-9]{1,6}", text) else 1


def query(given_query: QueryDict, **changed: int | str) -> str:
    """The query string of the page of each table; empty where each is at its first."""
    pages = QueryDict(mutable=True)
    for name in (BY, METRIC, CELLS, *SIZES):
        if value := changed.get(name) or given_query.get(name):
            pages[name] = str(value)
    return f"?{pages.urlencode()}" if pages else ""
