"""What a BenchLab has measured as a table: of pandas, of polars, or a list of dicts.

from benchlab_pair import frame
frame("https://benchlab.example/campaigns/nightly/history/?metric=tps")
"""

from __future__ import annotations

import importlib
import re
import urllib.parse
from collections.abc import Iterator
from typing import Any

# By its own place: a notebook imports it from the package that was installed.
from .reads import API, Instance, ReadError, token_for

# Pages that people copy the address of, and where the API has their figures.
PAGES = (
    (re.compile(r"/campaigns/([\w-]+)/history/"), "history/"),
    (re.compile(r"/campaigns/([\w-]+)/"), "measurements/"),
)
ROWS = 100_000
PAGE_SIZE = 1000
KINDS = ("pandas", "polars")


def frame(url: str, *, token: str = "", kind: str = "", most: int = ROWS) -> Any:
    """The rows at an address: a read of the API, a campaign's page, or that of its history.

    `kind` is pandas, polars or rows; else the first of these that is installed. A token is that of
    BENCHLAB_TOKEN where the address is of BENCHLAB_URL. Nested names are joined: `levels.clients`.
    Raises ReadError where there is no answer, or more than `most` rows.
    """
    rows = read_rows(url, token=token, most=most)
    if kind == "rows":
        return rows
    if kind and kind not in KINDS:
        raise ReadError(f"kind is pandas, polars or rows, not {kind!r}")
    for name in [kind] if kind else KINDS:
        module = _installed(name)
        if module is not None:
            return module.DataFrame(_even(rows))
        if kind:
            raise ReadError(f"{kind} is not installed")
    return rows


def read_rows(url: str, *, token: str = "", most: int = ROWS) -> list[dict[str, Any]]:
    """The same as a list of dicts. Raises ReadError."""
    instance = Instance(url, token=token or token_for(url))
    rows: list[dict[str, Any]] = []
    address: str | None = _api_address(instance, url)
    while address:
        answer = instance.read(address)
        rows += [_flat(row) for row in _rows_of(answer)]
        if len(rows) > most:
            raise ReadError(
                f"There are more than {most} rows: filter, or raise `most`."
            )
        following = _next(instance, answer)
        if following == address:
            raise ReadError("The next page is the same page.")
        address = following
    return rows


def _next(instance: Instance, answer: Any) -> str | None:
    """The page that follows, at this instance: a proxy may not know its own address."""
    following = answer.get("next") if isinstance(answer, dict) else None
    if not following:
        return None
    parts = urllib.parse.urlsplit(following)
    return instance.address(f"{parts.path}?{parts.query}")


def _api_address(instance: Instance, url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    query = dict(urllib.parse.parse_qsl(parts.query))
    for pattern, name in PAGES:
        match = pattern.fullmatch(parts.path)
        if match and name == "history/":
            levels = urllib.parse.parse_qs(parts.query).get("level", [])
            asked = {"campaign": match[1], "metric": query.get("metric", "")}
            return instance.address(API + name, {**asked, "level": levels})
        if match:
            asked = {"campaign": match[1], "metric": query.get("metric", "")}
            return instance.address(API + name, {**asked, "page_size": PAGE_SIZE})
    if not parts.path.startswith(API):
        raise ReadError(
            f"{parts.path} is no read of the API, no campaign and no history"
        )
    return url


def _rows_of(answer: Any) -> Iterator[dict[str, Any]]:
    """Lists have `results`, comparisons `rows`, histories `series` with points."""
    if isinstance(answer, list):
        yield from answer
    elif "results" in answer:
        yield from answer["results"]
    elif "series" in answer and "campaign" in answer:
        campaign_members = {
            name: answer[name] for name in ("campaign", "metric", "unit")
        }
        for series in answer["series"]:
            for point in series["points"]:
                yield {**campaign_members, "levels": series["levels"], **point}
    elif "rows" in answer:
        yield from answer["rows"]
    else:
        yield answer


def _flat(row: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Dicts within become columns; lists stay as they are."""
    columns: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            columns.update(_flat(value, f"{before}{name}."))
        else:
            columns[f"{before}{name}"] = value
    return columns


def _even(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """By column, with None where a row has none: both libraries take that."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
