"""Reads the output of EXPLAIN in each of its formats, of 9.2 to 19, as people paste it."""

import html
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from runs import enclosed, foreign_json
from runs.query_plans.cleaning import LOGGED, Line, lines_of
from runs.query_plans.node import MOST_CHARACTERS, Node, Plan, PlanUnreadableError
from runs.query_plans.structured import read_structured
from runs.query_plans.text_format import MOST_MARKED, read_text

_YAML_LINE = re.compile(
    r"\A( *+)(?:(-)(?: |\Z)|(\"[^\"]*+\"|[A-Za-z][^:]*+):(?: |\Z))?(.*)\Z"
)
# (column, "-" of an item or a name, value) of a line.
_Row = tuple[int, str, str]


def from_yaml(lines: list[str]) -> Any:
    """What EXPLAIN (FORMAT YAML) has printed: its values are numbers, words and JSON's strings."""
    rows = [row for line in lines if line.strip() for row in _rows(line)]
    document, end = _block(rows, 0, -1, 0)
    if end < len(rows):
        raise ValueError(f"{rows[end][1]}: {rows[end][2]}"[:80])
    return document


def _rows(line: str, begin: int = 0) -> Iterator[_Row]:
    """What a line says; an item with a name in it is two rows."""
    while (line_match := _YAML_LINE.match(line, 0)) and line_match[2]:
        column = begin + len(line_match[1])
        inner = _YAML_LINE.match(line_match[4])
        if inner is None or not (inner[2] or inner[3]):
            yield column, "-", line_match[4].strip()
            return
        yield column, "-", ""
        begin, line = column + 2, line_match[4]
    if line_match is None or not line_match[3]:
        raise ValueError(line.strip()[:80])
    yield begin + len(line_match[1]), line_match[3].strip('"'), line_match[4].strip()


def _block(rows: list[_Row], index: int, above: int, depth: int) -> tuple[Any, int]:
    """The list or group that begins there, and where it ends; None if there is none."""
    if depth > foreign_json.MOST_DEPTH:
        raise foreign_json.TooDeepError
    if index == len(rows) or rows[index][0] <= above:
        return None, index
    column, is_list = rows[index][0], rows[index][1] == "-"
    items: list[Any] = []
    members: dict[str, Any] = {}
    while (
        index < len(rows)
        and rows[index][0] == column
        and (rows[index][1] == "-") == is_list
    ):
        _column, name, text = rows[index]
        index += 1
        value: Any = _scalar(text)
        if not text:
            value, index = _block(rows, index, column, depth + 1)
        if is_list:
            items.append(value)
        else:
            members[name] = value
    return (items if is_list else members), index


def _scalar(text: str) -> Any:
    """A value as JSON has it, else the words themselves."""
    try:
        return foreign_json.loads(text)
    except foreign_json.TooDeepError:
        raise
    except ValueError:
        return text


# Old versions leave the slash of I/O in their names.
_XML_TAG = re.compile(r"<(/?)((?:I/)?[A-Za-z][\w-]{0,60}+)[^<>]{0,300}?(/?)>|([^<]++)")


def from_xml(text: str) -> Any:
    """What EXPLAIN (FORMAT XML) has printed. Its elements are values, lists or groups of those."""
    path: list[tuple[str, list[tuple[str, Any]], list[str]]] = [("", [], [])]
    for tag_match in _XML_TAG.finditer(text):
        closes = tag_match[1]
        name = tag_match[2]
        is_empty = tag_match[3]
        words = tag_match[4]
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
    document = dict(path[0][1]).get("explain")
    return document if isinstance(document, list) else [document]


_NAMES = {"One Time Filter": "One-Time Filter"}


def _element(name: str, members: list[tuple[str, Any]], texts: list[str]) -> Any:
    if not members:
        return html.unescape("".join(texts)).strip()
    if name == "explain" and "Plan" in dict(
        members
    ):  # auto_explain's has no Query around it
        return [dict(members)]
    of_list = {"Item", name.replace("-", " ").removesuffix("s")}
    if name == "explain" or {member_name for member_name, _value in members} <= of_list:
        return [value for _name, value in members]
    members_by_name: dict[str, Any] = {}
    for member_name, value in members:
        key = _NAMES.get(member_name, member_name.replace("I O ", "I/O "))
        members_by_name[key] = (
            [members_by_name[key], value] if key in members_by_name else value
        )
    return members_by_name


def add_times(root: Node) -> Node:
    """The same tree, whose nodes know their processes and what they ran for others."""
    root_with_processes = _add_processes(root, 1.0)
    return _add_inner(root_with_processes, _inner(root_with_processes))


def _subtract_jit(root: Node, jit_ms: float) -> Node:
    """The same tree, where compilation is not the time of the node in which it happened.

    That is printed nowhere. All of it happens at once, before the first row of a node: in the one
    with the most time of its own.
    """
    if not jit_ms:
        return root
    nodes = [node for _depth, node in root.walk()]
    compiling = max(nodes, key=lambda node: node.own_ms or 0.0)
    inner = {id(node): node.inner_ms for node in nodes}
    inner[id(compiling)] += min(jit_ms, compiling.own_ms or 0.0)
    return _add_inner(root, inner)


def _add_processes(node: Node, processes: float) -> Node:
    below = processes
    if node.is_gather and node.loops and node.children:
        below = max(1.0, (node.children[0].loops or 0) / node.loops)
    children = tuple(
        _add_processes(child, processes if child.is_init else below)
        for child in node.children
    )
    return replace(node, processes=processes, children=children)


def _inner(root: Node) -> dict[int, float]:
    """Milliseconds of CTEs and InitPlans by the `id` of the node that ran them."""
    readers = _Readers(root)
    inner: dict[int, float] = {}
    # Of a node what no CTE or InitPlan has taken: its own time is a sum over all its children.
    ms_free: dict[int, float] = {}
    for _depth, node in root.walk():
        for init in node.children:
            ms_left = init.elapsed_ms or 0.0
            if not init.is_init or not ms_left:
                continue
            for reader in readers.find_readers(node, init):
                if id(reader) not in ms_free:
                    ms_free[id(reader)] = reader.own_ms or 0.0
                ms_taken = min(ms_free[id(reader)], ms_left)
                ms_free[id(reader)] -= ms_taken
                inner[id(reader)] = inner.get(id(reader), 0.0) + ms_taken
                ms_left -= ms_taken
                if ms_left <= 0:
                    break
    return inner


# How a node's line names what an InitPlan computed: (InitPlan 1), $0.
_MARK = re.compile(r"\(InitPlan [^()]*\)|\$\d+")


class _Readers:
    """Which nodes of a plan read the result of which CTE and InitPlan: looked for once."""

    def __init__(self, root: Node) -> None:
        # Of each node its place in the printed order, and the place behind the last node below it.
        self._places: dict[int, tuple[int, int]] = {}
        # The places of the nodes that have a mark, or scan a CTE of a name.
        self._marked: dict[str, list[int]] = defaultdict(list)
        self._scanning: dict[str, list[int]] = defaultdict(list)
        self._nodes: list[Node] = []
        open_nodes: list[tuple[int, Node]] = []
        for depth, node in root.walk():
            while open_nodes and open_nodes[-1][0] >= depth:
                self._close(open_nodes.pop()[1])
            open_nodes.append((depth, node))
            self._places[id(node)] = (len(self._nodes), 0)
            self._note(node, len(self._nodes))
            self._nodes.append(node)
        while open_nodes:
            self._close(open_nodes.pop()[1])

    def _close(self, node: Node) -> None:
        place, _end = self._places[id(node)]
        self._places[id(node)] = (place, len(self._nodes))

    def _note(self, node: Node, place: int) -> None:
        if node.kind == "CTE Scan":
            self._scanning[node.on.partition(" ")[0]].append(place)
        marks = {mark for _name, value in node.details for mark in _MARK.findall(value)}
        for mark in marks:
            self._marked[mark].append(place)

    def find_readers(self, owner: Node, init: Node) -> Iterator[Node]:
        """The nodes that read its result, in printed order; at last the one it belongs to."""
        _word, _blank, name = init.role.partition(" ")
        if init.role.startswith("CTE "):
            yield from self._read_below(owner, init, self._scanning.get(name, []))
            return
        marks = [f"({init.role})", f"(InitPlan {name})"]
        if "(returns " in name:
            returned = name.partition("(returns ")[2].rstrip(")")
            marks = [parameter.strip() for parameter in returned.split(",")]
        places = {place for mark in marks for place in self._marked.get(mark, [])}
        yield from self._read_below(owner, init, sorted(places))
        yield owner

    def _read_below(self, owner: Node, init: Node, places: list[int]) -> Iterator[Node]:
        start, end = self._places[id(owner)]
        for place in places[bisect_left(places, start) : bisect_left(places, end)]:
            if self._nodes[place] is not init:
                yield self._nodes[place]


def _add_inner(node: Node, inner: dict[int, float]) -> Node:
    children = tuple(_add_inner(child, inner) for child in node.children)
    return replace(node, inner_ms=inner.get(id(node), 0.0), children=children)


# In larger texts nobody looks for a plan within something else.
MOST_ENCLOSED, MOST_LINES = 500_000, 5_000
_SEVERAL = "More than one plan is in this text. Paste one plan at a time."
_YAML = re.compile(r"\A\s*+(?:- )?Plan: *+\Z")
_XML = re.compile(r"\A\s*+<explain\b")
_JSON = re.compile(r"\A\s*+[\[{]\s*+(?:[\[{}\]\"]|\Z)")


def read(text: str) -> Plan:
    """The plan in a text: EXPLAIN's text, JSON, YAML or XML, with what may be around it.

    Raises PlanUnreadableError, which says what was found. Lines that are no part of a plan are
    named in `Plan.not_understood`.
    """
    if len(text) > MOST_CHARACTERS:
        raise PlanUnreadableError(
            f"A plan of {len(text):,} characters is too long to read."
        )
    if len(LOGGED.findall(text)) > 1:
        raise PlanUnreadableError(_SEVERAL)
    text = foreign_json.convert_literal(_join_breaks(enclosed.strip_quotes(text)))
    plan = _read(text)
    if not _is_whole(plan) or text.count("\\n") > text.count("\n"):
        plan = max((plan, *_inside(text)), key=_worth)
    if not isinstance(plan, Plan):
        raise plan
    plan = replace(plan, root=add_times(plan.root))
    return replace(plan, root=_subtract_jit(plan.root, plan.jit_ms))


def _join_breaks(text: str) -> str:
    """JSON that a terminal has broken at its edge, in the middle of words, in one line again."""
    if text.lstrip()[:1] not in {"[", "{"} or "\n" not in text.strip():
        return text
    joined = text.replace("\r", "").replace("\n", "")
    for candidate in (text, joined):
        try:
            foreign_json.loads(candidate)
        except ValueError:
            continue
        return candidate
    return text


def _read(text: str) -> Plan | PlanUnreadableError:
    try:
        if plan := _structured(text):
            logged = tuple(
                f"Duration: {log_match[1]} ms" for log_match in LOGGED.finditer(text)
            )
            return replace(plan, footer=(*logged, *plan.footer))
        return read_text(lines_of(text))
    except PlanUnreadableError as refused:
        return refused


def _inside(text: str) -> list[Plan | PlanUnreadableError]:
    """The plans in what may have been written around one: logs, documents, prefixes."""
    if len(text) > MOST_ENCLOSED or text.count("\n") > MOST_LINES:
        return []
    inner_texts = [inside for inside, _around in enclosed.whole(text)]
    plans = [_read(inside) for inside in inner_texts]
    several = zip(inner_texts, plans, strict=True)
    if (
        len(
            {
                str(plan)
                for inside, plan in several
                if "\n" in inside and _is_whole(plan)
            }
        )
        > 1
    ):
        return [PlanUnreadableError(_SEVERAL)]
    framed = [
        inner_text
        for outer in (text, *inner_texts)
        for inner_text, _around in enclosed.frames(outer)
    ]
    return plans + [_read(inside) for inside in framed]


def _is_whole(plan: Plan | PlanUnreadableError) -> bool:
    return isinstance(plan, Plan) and not plan.not_understood


def _worth(plan: Plan | PlanUnreadableError) -> tuple[int, int]:
    """How much was understood; of equals the text as it is comes first."""
    if not isinstance(plan, Plan):
        return 0, 0
    return len(plan.nodes()), -len(plan.not_understood)


def _parsed(parse: Callable[[], Any], form: str) -> Plan:
    try:
        return read_structured(parse())
    except PlanUnreadableError:
        raise
    except ValueError as error:
        raise PlanUnreadableError(f"This {form} cannot be read: {error}") from error


def _structured(text: str) -> Plan | None:
    """The plan of JSON, YAML or XML; None for a text of none of these."""
    lines = lines_of(text)
    for index, (_number, line) in enumerate(lines):
        begins = line.lstrip()[:1]
        if begins in {"[", "{"} and _JSON.match(line):
            return _json(lines[index:])
        if begins == "<" and _XML.match(line):
            xml = "\n".join(line for _number, line in lines[index:])
            return _parsed(partial(from_xml, xml), "XML")
        if _YAML.match(line):
            yaml_lines = [line for _number, line in lines[index:]]
            return _parsed(partial(from_yaml, yaml_lines), "YAML")
        if line.lstrip().startswith("->") or "(cost=" in line:
            break
    return None


def _json(lines: list[Line]) -> Plan:
    text = "\n".join(line for _number, line in lines)
    try:
        begin = len(text) - len(text.lstrip())
        document, end = foreign_json.first(text, begin)
    except ValueError as error:
        raise PlanUnreadableError(f"This JSON cannot be read: {error}") from error
    text_behind = text[end:].strip()
    if '"Plan"' in text_behind:
        raise PlanUnreadableError(_SEVERAL)
    plan = read_structured(document)
    last_line = text.count("\n", 0, end)
    marked = tuple(line for line in lines[last_line + 1 :] if text_behind)[:MOST_MARKED]
    return replace(plan, not_understood=marked)
