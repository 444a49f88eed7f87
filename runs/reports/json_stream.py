"""JSON that is written while its content is read, in the form of `json.dumps(..., indent=1)`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def document(head: Mapping[str, Any], **lists: Iterable[Iterable[str]]) -> Iterator[str]:
    """An object with the members of `head` and then these lists of texts of their elements."""
    yield from _object(head, lists, depth=0)
    yield "\n"


def element(head: Mapping[str, Any], **lists: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """An element of a document's list: an object that ends with lists of objects."""
    texts = {name: ([_text(row, depth=4)] for row in rows) for name, rows in lists.items()}
    yield from _object(head, texts, depth=2)


def _object(
    head: Mapping[str, Any], lists: Mapping[str, Iterable[Iterable[str]]], *, depth: int
) -> Iterator[str]:
    start = _text(head, depth=depth)
    yield start[: -len(_line(depth)) - 1] if head else "{"
    separator = "," if head else ""
    for name, elements in lists.items():
        yield f"{separator}{_line(depth + 1)}{json.dumps(name)}: "
        yield from _array(elements, depth=depth + 1)
        separator = ","
    yield f"{_line(depth)}}}"


def _array(elements: Iterable[Iterable[str]], *, depth: int) -> Iterator[str]:
    mark = "["
    for texts in elements:
        yield f"{mark}{_line(depth + 1)}"
        yield from texts
        mark = ","
    yield "[]" if mark == "[" else f"{_line(depth)}]"


def _text(content: Mapping[str, Any], *, depth: int) -> str:
    # A line break within a text is escaped, so that each one here begins a line of ours.
    return json.dumps(content, ensure_ascii=False, indent=1).replace("\n", _line(depth))


def _line(depth: int) -> str:
    return "\n" + " " * depth
