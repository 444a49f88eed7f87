"""Foreign files that grow in one of their own dimensions, made of a recorded one.

A text that is hostile to a pattern is one thing (`tests.patterns`); this is the other: many items
of a list, many equal names, many distinct ones, long names, deep nesting, many lines of one form,
many elements, many rows, many files. Each recorded file has as many structures as it has places.
"""

import copy
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from runs import foreign_json

# Deeper documents are refused before they are read.
DEEP = foreign_json.MOST_DEPTH - 50
MOST_FORMS = 8
SIZE_OF_LINES = 30_000
# Of numbers and texts in a document: of lists and objects all are tried.
MOST_LEAVES = 3
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Structure:
    """A dimension of a file: `grown(count)` is the file with that many of what the name says.

    `size` is how many bytes of it are read in little time and many enough to find a square: items
    of documents are read faster than lines, in which something is looked for.
    """

    name: str
    grown: Callable[[int], bytes]
    size: int = 60_000


def structures(content: bytes) -> Iterator[Structure]:
    """Every dimension of a file, by what it is."""
    text = content.decode("utf-8", "replace")
    begin = text.find("{") if text.startswith("window.") else 0
    try:
        document = json.loads(text[begin:])
    except ValueError:
        yield from (
            _of_elements(text) if text.lstrip().startswith("<?xml") else _of_lines(text)
        )
        return
    for structure in _of_document(document):
        yield Structure(
            structure.name,
            lambda count, grown=structure.grown: text[:begin].encode() + grown(count),
        )


def _of_document(document: Any) -> Iterator[Structure]:
    seen: set[tuple[Any, ...]] = set()
    leaves: Counter[type] = Counter()
    for path, value in _walk(document, ()):
        form = tuple("[]" if isinstance(step, int) else step for step in path)
        kind = str if isinstance(value, str) else float
        if form in seen:
            continue
        seen.add(form)
        if not isinstance(value, dict | list):
            leaves[kind] += 1
            if leaves[kind] > MOST_LEAVES:
                continue
        place = "/".join(map(str, form)) or "/"
        for name, replaced in _replacements(value):
            yield Structure(f"{name} of {place}", _growing(document, path, replaced))


def _growing(
    document: Any, path: tuple[Any, ...], replaced: Callable[[int], Any]
) -> Callable[[int], bytes]:
    return lambda count: json.dumps(_with(document, path, replaced(count))).encode()


def _replacements(value: Any) -> Iterator[tuple[str, Callable[[int], Any]]]:
    if isinstance(value, list) and value:
        first = value[0]
        yield "equal items", lambda count: [first] * count
        yield (
            "distinct items",
            lambda count: [_distinct(first, at) for at in range(count)],
        )
        yield (
            "empty items",
            lambda count: [type(first)()] * count if first is not None else value,
        )
    elif isinstance(value, dict) and value:
        name, member = next(iter(value.items()))
        yield (
            "members",
            lambda count: value | {f"{name}{at}": member for at in range(count)},
        )
        yield "long names", lambda count: value | {name * count: member}
    elif isinstance(value, str):
        yield "length", lambda count: (value or "a ") * count
    elif value is not None:
        yield "depth", _deep


def _deep(count: int) -> Any:
    nest: Any = []
    for _level in range(DEEP):
        nest = [nest]
    return [nest] * (count // DEEP + 1)


def _distinct(value: Any, number: int) -> Any:
    """The value with other names and numbers."""
    if isinstance(value, dict):
        return {name: _distinct(member, number) for name, member in value.items()}
    if isinstance(value, list):
        return [_distinct(item, number) for item in value]
    return (
        f"{value}{number}"
        if isinstance(value, str) and not value[:1].isdigit()
        else value
    )


def _walk(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    yield path, value
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _walk(member, (*path, name))
    elif isinstance(value, list):
        for place, item in enumerate(value[:2]):
            yield from _walk(item, (*path, place))


def _with(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(document)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return changed


def _of_lines(text: str) -> Iterator[Structure]:
    lines = text.split("\n")
    forms: dict[str, int] = {}
    for at, line in enumerate(lines):
        forms.setdefault(_DIGITS.sub("0", line), at)
    for form, at in list(forms.items())[:MOST_FORMS]:
        line = lines[at]

        def grown(
            count: int, at: int = at, *, line: str = line, is_distinct: bool
        ) -> bytes:
            further = [
                _other(line, number) if is_distinct else line for number in range(count)
            ]
            return "\n".join([*lines[: at + 1], *further, *lines[at + 1 :]]).encode()

        shown = form.strip()[:40] or "empty"
        for kind in ("equal", "distinct"):
            yield Structure(
                f"{kind} lines: {shown}",
                lambda n, g=grown, kind=kind: g(n, is_distinct=kind == "distinct"),
                SIZE_OF_LINES,
            )
        yield Structure(
            f"length: {shown}",
            lambda n, at=at, line=line: "\n".join(
                [*lines[:at], line + line[-8:] * n, *lines[at + 1 :]]
            ).encode(),
            SIZE_OF_LINES,
        )


def _other(line: str, number: int) -> str:
    """The line with another name in it, or another number where it has no name."""
    name = re.search(r"[A-Za-z_]{2,}", line)
    if name is None:
        return _DIGITS.sub(str(number), line, count=1)
    return f"{line[: name.end()]}{number}{line[name.end() :]}"


def _of_elements(text: str) -> Iterator[Structure]:
    root = ElementTree.fromstring(text)
    seen = set()
    for parent in root.iter():
        for place, child in enumerate(parent):
            form = (parent.tag, child.tag)
            if form in seen:
                continue
            seen.add(form)
            for kind in ("empty", "equal", "distinct"):
                yield Structure(
                    f"{kind} elements {parent.tag}/{child.tag}",
                    lambda count, form=form, kind=kind, place=place: _more_elements(
                        text, form, place, kind, count
                    ),
                )
    opened = f"<{root.tag}>"
    yield Structure(
        "depth", lambda count: (opened * count + f"</{root.tag}>" * count).encode()
    )


def _more_elements(
    text: str, form: tuple[str, str], place: int, kind: str, count: int
) -> bytes:
    root = ElementTree.fromstring(text)
    parent = next(
        element
        for element in root.iter(form[0])
        if any(child.tag == form[1] for child in element)
    )
    original = next(child for child in parent if child.tag == form[1])
    for number in range(count):
        element = (
            ElementTree.Element(form[1]) if kind == "empty" else copy.deepcopy(original)
        )
        if kind == "distinct":
            for inner in element.iter():
                if inner.text and not inner.text.strip()[:1].isdigit():
                    inner.text += str(number)
        parent.insert(place, element)
    return ElementTree.tostring(root)


def databases(file: Path) -> Iterator[tuple[str, Callable[[Path, int], None]]]:
    """Dimensions of an SQLite database: (name, what adds so many rows to a copy of it)."""
    with sqlite3.connect(file) as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master")]
    for table in tables:
        for is_distinct in (False, True):

            def add(
                path: Path, count: int, *, table: str = table, other: bool = is_distinct
            ):
                with sqlite3.connect(path) as database:
                    row = database.execute(f"SELECT * FROM {table}").fetchone()
                    marks = ", ".join("?" for _column in row)
                    rows = (
                        (f"{row[0]}{number}" if other else row[0], *row[1:])
                        for number in range(count)
                    )
                    database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)

            yield f"{'distinct' if is_distinct else 'equal'} rows of {table}", add
