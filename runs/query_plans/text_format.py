"""EXPLAIN's text format, of 9.2 to 19, also as reports print it.

The column of its arrow gives a node's place: it belongs to the last node before it whose arrow is
further left. The name of a sub-plan stands in the column of the children of the node that runs it.
Other lines belong to the node above them, however they are indented: printed plans have lost blanks
there, and have marks of their own in front.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from runs.query_plans.cleaning import LOGGED, Line, is_statement
from runs.query_plans.node import Node, Plan, PlanUnreadableError

# Levels of nodes.
MOST_DEPTH = 100
MOST_MARKED = 20

_MARKS = re.compile(r"[\s│|★*\d]*+")
_ROLE = re.compile(r"(?:SubPlan|InitPlan|CTE) (?!Scan\b)[^\s(].*")
_ARROW = re.compile(r"\A[ │|★*0-9]*+->")
_FIGURE = r"\d++(?:\.\d++)?"
_COST = re.compile(
    rf"\(cost=(?P<startup>{_FIGURE})\.\.(?P<total>{_FIGURE}) rows=(?P<rows>\d+) width=\d+\)"
)
_ACTUAL = re.compile(
    rf"\(actual (?:time=(?P<startup>{_FIGURE})\.\.(?P<total>{_FIGURE}) )?"
    rf"rows=(?P<rows>{_FIGURE}) loops=(?P<loops>\d+)\)"
)
_NEVER = "(never executed)"
_BEGINS_FIGURES = re.compile(r"\((?:cost=|actual |never executed)")
# What a mail program cannot have put at the beginning of a line but by breaking it.
_RESTS = re.compile(
    r"\A\(?(?:cost=|actual |time=|rows=|width=|loops=|never executed\))"
)
_TIMES = {
    "planning time": "planning_ms",
    "execution time": "execution_ms",
    "total runtime": "execution_ms",
    # Of postgres.ai.
    "- planning": "planning_ms",
    "- execution": "execution_ms",
}
_TIME = re.compile(
    r"\A(planning time|execution time|total runtime|- planning|- execution)\s*:"
    r"(?:\s*(\d++(?:[.,]\d++)?) (ms|s)\b)?",
    re.IGNORECASE,
)
_GROUP = re.compile(
    r"\A(Planning|JIT|Shared buffers|(?:Generated|Supplied) Plan Advice):\Z"
)
_FOOTER = re.compile(
    r"\A(?:Settings|Query Identifier|Query Text|Query Parameters|Serialization|Time): ?\S"
    r"|\ATrigger .{1,200}?: (?:time|calls)=\d|\A- I/O (?:read|write): \S"
)
_DETAIL = re.compile(
    r"\A[A-Z][A-Za-z/-]*+(?: [A-Za-z/-]++)*(?: \d++)?:(?=\s|\Z)"
    r"|\A(?:Foreign )?(?:Insert|Update|Delete|Merge) on \S"
)
_WORKER = re.compile(r"\A(Worker \d++): ?(.*)")
_KIND = re.compile(
    r"\A(?:Parallel |Async |Partial |Finalize )*(?:(?:Group|Hash|Mixed)?Aggregate"
    r"|Append|Bitmap(?:And|Or)"
    r"|(?:CTE|Custom|Foreign|Function|Seq|Sample|Subquery|Table Function|T[iI][dD]|Tid Range"
    r"|Bitmap (?:Heap|Index)|Values|WorkTable|Named Tuplestore|Index(?: Only)?) Scan"
    r"|Gather(?: Merge)?"
    r"|Group|Hash(?: \w+)*? Join|Hash|Incremental Sort|Insert|Update|Delete|Merge(?: Append)?"
    r"|Merge(?: \w+)*? Join|Limit|LockRows|Materialize|Memoize|Nested Loop(?: \w+ Join)?|ProjectSet"
    r"|Recursive Union|Result|(?:Hash)?SetOp \w+(?: All)?|Sort|Unique|WindowAgg)"
    r"(?: Backward)?(?: (?:on|using) \S.*| \([\w ]+\)(?: on \S.*)?)?\Z"
)
_QUOTED = re.compile(r'"([^"]*+(?:""[^"]*+)*)"')
_NO_NAME = re.compile(r"[|│;\\+]| {2}")
_WITH_ONE = frozenset(
    (
        "Hash",
        "Sort",
        "Incremental Sort",
        "Limit",
        "Materialize",
        "Memoize",
        "Gather",
        "Gather Merge",
        "Unique",
        "WindowAgg",
        "LockRows",
        "Bitmap Heap Scan",
        "Aggregate",
        "GroupAggregate",
        "HashAggregate",
        "Subquery Scan",
    )
)


@dataclass
class _Open:
    """A node whose children are still being read."""

    column: int
    node: Node
    details: list[tuple[str, str]] = field(default_factory=list)
    children: "list[_Open]" = field(default_factory=list)

    def closed(self) -> Node:
        children = tuple(child.closed() for child in self.children)
        return replace(self.node, details=tuple(self.details), children=children)


class _Reader:
    """The state between two lines."""

    def __init__(self) -> None:
        self.root: _Open | None = None
        self.path: list[_Open] = []
        self.role = self.group = self.worker = ""
        self.worker_column = 0
        self.footer: list[str] = []
        self.times: dict[str, float] = {}
        self.marked: list[Line] = []
        self.is_statement = False

    def take(self, number: int, line: str) -> None:
        text = line.strip()
        head = _ARROW.match(line)
        if head is not None and self._is_node(line[head.end() :].strip()):
            self._node(number, head.end() - 2, line[head.end() :].strip())
        elif self.root is None and _is_root(text):
            self._node(number, -1, text)
        elif (role := _role(line)) is not None and self.root is not None:
            self._close(role[0])
            self.role = role[1]
        elif time := _TIME.match(text):
            if time[2] is None:
                self.marked.append((number, text))
            else:
                factor = 1000 if time[3] == "s" else 1
                self.times[_TIMES[time[1].lower()]] = (
                    float(time[2].replace(",", ".")) * factor
                )
            self.group = ""
        elif _FOOTER.match(text):
            self.footer.append(text)
            self.group = ""
        elif group := _GROUP.match(text):
            self.group = group[1]
        elif self.group:
            self.footer.append(f"{self.group}: {text}")
        else:
            self._detail(number, line, text)

    def _is_node(self, text: str) -> bool:
        """Whether a node stands behind an arrow, and not an expression of the statement.

        Of other products and extensions it may be of any kind, once a plan has begun.
        """
        return _is_root(text) or (self.root is not None and text[:1].isupper())

    def _node(self, number: int, column: int, text: str) -> None:
        opened = _Open(column, _figured(text, self.role))
        self.role = self.worker = self.group = ""
        self._close(column)
        if self.root is None:
            self.root = opened
        elif not self.path:
            raise PlanUnreadableError(
                f"Line {number} has a node that is left of the first one: {text[:80]!r}"
            )
        else:
            self.path[-1].children.append(opened)
        self.path.append(opened)
        if _has_more_than_a_node(text):
            self.marked.append((number, text))

    def _close(self, column: int) -> None:
        """Leave the nodes that the one in this column is not below."""
        while self.path and self.path[-1].column >= column:
            self.path.pop()
        if len(self.path) >= MOST_DEPTH:
            raise PlanUnreadableError(f"This plan has more than {MOST_DEPTH} levels.")

    def _detail(self, number: int, line: str, text: str) -> None:
        if self.root is None:
            # The statement itself, above its plan, may go over many lines.
            self.is_statement = self.is_statement or is_statement(text)
            if logged := LOGGED.search(line):
                self.footer.append(f"Duration: {logged[1]} ms")
                return
            if not self.is_statement and not self._goes_on():
                self.marked.append((number, text))
            return
        if is_statement(text):
            return
        if _has_figures(text) and not _DETAIL.match(text):
            raise PlanUnreadableError(
                f"A second plan begins in line {number}. Paste one plan at a time."
            )
        if not _DETAIL.match(text) or _BEGINS_FIGURES.search(text):
            self.marked.append((number, text))
        self._add(line, text)

    def _goes_on(self) -> bool:
        """Whether it is a further line of the query in auto_explain's message."""
        return bool(self.footer and self.footer[-1].startswith("Query Text:"))

    def _add(self, line: str, text: str) -> None:
        if not self.path:
            raise PlanUnreadableError(
                f"The first node is right of what is below it: {text[:80]!r}"
            )
        details, column = self.path[-1].details, len(line) - len(line.lstrip())
        if worker := _WORKER.match(text):
            self.worker, self.worker_column = worker[1], column
            details.append((worker[1], worker[2].strip()))
        elif self.worker and column > self.worker_column:
            details.append((self.worker, text))
        else:
            self.worker = ""
            name, colon, value = text.partition(":")
            is_named = colon and _DETAIL.match(text)
            details.append((name, value.strip()) if is_named else ("", text))


_OTHERS = (
    # Its costs are one number.
    (
        "MySQL",
        re.compile(r"\A *+-> \S.{0,300}? \(cost=\d++(?:\.\d++)?(?:e[+-]?\d++)? rows="),
    ),
    ("CockroachDB", re.compile(r"\A\s*+(?:• \w|vectorized: \w)")),
    ("Oracle", re.compile(r"\A\s*+Plan hash value: \d")),
    ("SQLite", re.compile(r"\A\s*+[|`]--(?:SCAN|SEARCH|USE) ")),
    ("TiDB", re.compile(r"\A\s*+id\s++\|\s*+(?:estRows|count)\b")),
)
_FORMS = (  # of psql
    ("LaTeX", "begin{tabular"),
    ("LaTeX", "begin{longtable"),
    ("troff", ".TS"),
    ("AsciiDoc", "[options="),
)


def read_text(lines: list[Line]) -> Plan:
    """The plan. Raises PlanUnreadableError for a text without one, with two or half of one."""
    for product, pattern in _OTHERS:
        if any(pattern.match(line) for _number, line in lines):
            raise PlanUnreadableError(
                f"This is a plan of {product}, and not of PostgreSQL."
            )
    for form, begin in _FORMS:
        if any(line.lstrip(" \\").startswith(begin) for _number, line in lines):
            raise PlanUnreadableError(
                f"This is psql's {form}: print it by \\pset format aligned."
            )
    reader = _Reader()
    for number, line in _whole_lines(lines):
        reader.take(number, line)
    if reader.root is None:
        first_line = lines[0][1].strip() if lines else ""
        raise PlanUnreadableError(
            f"No node of a plan is in this text; it begins: {first_line[:80]!r}"
        )
    root = reader.root.closed()
    _refuse_half(root)
    marked = tuple(reader.marked[:MOST_MARKED])
    foot = tuple(reader.footer)
    is_logged = any(line.startswith(("Duration: ", "Query Text: ")) for line in foot)
    may_be_cut = (
        root.total_ms is not None
        and "execution_ms" not in reader.times
        and not is_logged
    )
    return Plan(
        root, footer=foot, not_understood=marked, may_be_cut=may_be_cut, **reader.times
    )


def _whole_lines(lines: list[Line]) -> Iterator[Line]:
    """Each line with its rest, where a mail program has broken it or a literal has a line break."""
    has_costs = any("(cost=" in line for _number, line in lines)
    width = max((len(line) for _number, line in lines), default=0)
    margin = min((len(line) - len(line.lstrip()) for _number, line in lines), default=0)
    last_line: Line | None = None
    piece = 0
    for number, line in lines:
        if last_line is not None and _is_rest(line, last_line[1], has_costs=has_costs):
            begins = _RESTS.match(line.lstrip()) and not last_line[1].endswith("(")
            is_indented = line[margin : margin + 1] == " "
            blank = " " if begins or piece < width or is_indented else ""
            last_line, piece = (
                (last_line[0], last_line[1] + blank + line.lstrip()),
                len(line),
            )
            continue
        if last_line is not None:
            yield last_line
        last_line, piece = (number, line), len(line)
    if last_line is not None:
        yield last_line


def _is_rest(line: str, last_line: str, *, has_costs: bool) -> bool:
    if _RESTS.match(line.lstrip()):
        return True
    text = line.strip()
    if (
        _has_open_literal(last_line)
        and _has_open_literal(text)
        and _DETAIL.match(last_line.strip())
    ):
        return True
    is_known = (
        _ARROW.match(line) or _DETAIL.match(text) or _role(line) or _FOOTER.match(text)
    )
    if is_known or _TIME.match(text) or _GROUP.match(text):
        return False
    is_node = _ARROW.match(last_line) is not None
    if (
        not is_node
        and not _is_root(last_line.strip())
        and not _DETAIL.match(last_line.strip())
    ):
        return False
    return _is_open(last_line) or (
        is_node and has_costs and not _BEGINS_FIGURES.search(last_line)
    )


def _is_open(line: str) -> bool:
    """Whether a bracket or a literal is not closed."""
    outside = "".join(line.split("'")[::2])
    return _has_open_literal(line) or outside.count("(") > outside.count(")")


def _has_open_literal(line: str) -> bool:
    """Whether one begins or ends in the middle."""
    return line.count("'") % 2 == 1


def _role(line: str) -> tuple[int, str] | None:
    """(column, name) of a sub-plan."""
    head = _MARKS.match(line)
    begin = head.end() if head else 0
    role_match = _ROLE.match(line, begin)
    return (
        (begin, role_match[0].strip())
        if role_match and not _has_figures(line)
        else None
    )


def _has_figures(text: str) -> bool:
    return bool(_COST.search(text) or _ACTUAL.search(text) or text.endswith(_NEVER))


def _has_more_than_a_node(text: str) -> bool:
    """Whether something of a node's name or figures is broken, or more stands behind them."""
    begin = _BEGINS_FIGURES.search(text)
    offset = begin.start() if begin else len(text)
    text_behind = (
        _ACTUAL.sub("", _COST.sub("", text[offset:], 1), 1).replace(_NEVER, "").strip()
    )
    return bool(text_behind or _NO_NAME.search(_QUOTED.sub("x", text[:offset].strip())))


def _is_root(text: str) -> bool:
    """A first node has no arrow: it has figures, or is one that PostgreSQL knows."""
    return (
        _has_figures(text)
        or bool(_BEGINS_FIGURES.search(text))
        or bool(_KIND.match(text))
    ) and (text[:1].isalpha())


def _figured(text: str, role: str) -> Node:
    cost, actual = _COST.search(text), _ACTUAL.search(text)
    begin = _BEGINS_FIGURES.search(text)
    kind, on, index = _named(text[: begin.start() if begin else len(text)].strip())
    loops = 0 if _NEVER in text else None
    return Node(
        kind=kind,
        on=on,
        index=index,
        role=role,
        total_cost=_number(cost, "total"),
        estimated_rows=_number(cost, "rows"),
        total_ms=_number(actual, "total"),
        rows=_number(actual, "rows"),
        loops=int(actual["loops"]) if actual else loops,
    )


def _number(match: re.Match[str] | None, name: str) -> float | None:
    return float(match[name]) if match and match[name] is not None else None


def _named(name: str) -> tuple[str, str, str]:
    """(kind, table, index) of "Index Scan using i on t a", "Hash Join" or "Seq Scan on t a"."""
    kind, using, text_behind = name.partition(" using ")
    if not using or " on " in kind:
        kind, _on, on = name.partition(" on ")
        index = ""
    else:
        closed = _QUOTED.match(text_behind)
        index = closed[0] if closed else text_behind.partition(" ")[0]
        on = text_behind[len(index) :].removeprefix(" on ")
    on, index = _bare(on), _bare(index)
    return (kind, "", on) if kind == "Bitmap Index Scan" else (kind, on, index)


def _bare(name: str) -> str:
    """Without the quotes of identifiers, as the other formats have the name."""
    return _QUOTED.sub(lambda match: match[1].replace('""', '"'), name)


def _refuse_half(root: Node) -> None:
    """Refuse a plan that ends before its last nodes, as one that was cut off."""
    for _depth, node in root.walk():
        below = sum(not child.role for child in node.children)
        needed = (
            2
            if node.kind.endswith(" Join") or node.kind.startswith("Nested Loop")
            else 0
        )
        needed = needed or node.kind.removeprefix("Parallel ") in _WITH_ONE
        if below < needed:
            raise PlanUnreadableError(
                f"This plan is cut off: {node.name} has {below} of {int(needed)} nodes below it."
            )
