"""EXPLAIN's YAML and XML, as the values that its JSON has."""

import html
import re
from collections.abc import Iterator
from typing import Any

from runs import foreign_json

_YAML = re.compile(r"\A( *+)(?:(-)(?: |\Z)|(\"[^\"]*+\"|[A-Za-z][^:]*+):(?: |\Z))?(.*)\Z")
# (column, "-" of an item or a name, value) of a line.
_Row = tuple[int, str, str]


def from_yaml(lines: list[str]) -> Any:
    """What EXPLAIN (FORMAT YAML) has printed: its values are numbers, words and JSON's strings."""
    rows = [row for line in lines if line.strip() for row in _rows(line)]
    whole, at = _block(rows, 0, -1, 0)
    if at < len(rows):
        raise ValueError(f"{rows[at][1]}: {rows[at][2]}"[:80])
    return whole


def _rows(line: str, begin: int = 0) -> Iterator[_Row]:
    """What a line says; an item with a name in it is two rows."""
    while (found := _YAML.match(line, 0)) and found[2]:
        column = begin + len(found[1])
        inner = _YAML.match(found[4])
        if inner is None or not (inner[2] or inner[3]):
            yield column, "-", found[4].strip()
            return
        yield column, "-", ""
        begin, line = column + 2, found[4]
    if found is None or not found[3]:
        raise ValueError(line.strip()[:80])
    yield begin + len(found[1]), found[3].strip('"'), found[4].strip()


def _block(rows: list[_Row], at: int, above: int, depth: int) -> tuple[Any, int]:
    """The list or group that begins there, and where it ends; None if there is none."""
    if depth > foreign_json.MOST_DEPTH:
        raise foreign_json.TooDeepError
    if at == len(rows) or rows[at][0] <= above:
        return None, at
    column, is_list = rows[at][0], rows[at][1] == "-"
    items: list[Any] = []
    members: dict[str, Any] = {}
    while at < len(rows) and rows[at][0] == column and (rows[at][1] == "-") == is_list:
        _column, name, text = rows[at]
        at += 1
        value: Any = _scalar(text)
        if not text:
            value, at = _block(rows, at, column, depth + 1)
        if is_list:
            items.append(value)
        else:
            members[name] = value
    return (items if is_list else members), at


def _scalar(text: str) -> Any:
    """A value as JSON has it, else the words themselves."""
    try:
        return foreign_json.loads(text)
    except foreign_json.TooDeepError:
        raise
    except ValueError:
        return text


# Old versions leave the slash of I/O in their names.
_XML = re.compile(r"<(/?)((?:I/)?[A-Za-z][\w-]{0,60}+)[^<>]{0,300}?(/?)>|([^<]++)")


def from_xml(text: str) -> Any:
    """What EXPLAIN (FORMAT XML) has printed. Its elements are values, lists or groups of those."""
    path: list[tuple[str, list[tuple[str, Any]], list[str]]] = [("", [], [])]
    for found in _XML.finditer(text):
        closes, name, is_empty, words = found[1], found[2], found[3], found[4]
        if words is not None:
            path[-1][2].append(words)
            continue
        if not closes:
            path.append((name, [], []))
            if len(path) > foreign_json.MOST_DEPTH:
                raise foreign_json.TooDeepError
        if closes or is_empty:
            if len(path) < 2 or path[-1][0] != name:
                raise ValueError(f"<{closes}{name}> closes nothing")
            _name, members, texts = path.pop()
            path[-1][1].append((name.replace("-", " "), _element(name, members, texts)))
    if len(path) > 1:
        raise ValueError(f"<{path[-1][0]}> is not closed")
    whole = dict(path[0][1]).get("explain")
    return whole if isinstance(whole, list) else [whole]


_NAMES = {"One Time Filter": "One-Time Filter"}


def _element(name: str, members: list[tuple[str, Any]], texts: list[str]) -> Any:
    if not members:
        return html.unescape("".join(texts)).strip()
    if name == "explain" and "Plan" in dict(members):  # auto_explain's has no Query around it
        return [dict(members)]
    of_list = {"Item", name.replace("-", " ").removesuffix("s")}
    if name == "explain" or {each for each, _value in members} <= of_list:
        return [value for _name, value in members]
    found: dict[str, Any] = {}
    for given, value in members:
        key = _NAMES.get(given, given.replace("I O ", "I/O "))
        found[key] = [found[key], value] if key in found else value
    return found
