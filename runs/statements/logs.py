"""PostgreSQL's logs: csvlog, jsonlog and stderr with any log_line_prefix, as executed statements.

What a message says is found by the words of each language (`log_words`), not by their order.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from runs import foreign_json
from runs.statements import log_words

# Columns of csvlog: the session, the severity, the message and its detail.
_SESSION = 5
_SEVERITY = 11
_MESSAGE = 13
_DETAIL = 14
LEAST_CSV_COLUMNS = 23
LONGEST_FIELD = 10_000_000
_STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


@dataclass(frozen=True)
class Execution:
    """A statement that was executed: where the log has it, in which session, and how long it took.

    `values` are those of its parameters; None where the log has none. `is_cut` says that
    log_parameter_max_length has cut one of them.
    """

    line: int
    session: str
    text: str
    duration_ms: float | None = None
    values: Mapping[int, str | None] | None = None
    is_cut: bool = False


@dataclass
class _Event:
    """A message of the log, and its detail."""

    line: int
    session: str
    message: str
    detail: str = ""


def _any_of(words: Iterable[str]) -> str:
    by_length = sorted(words, key=len, reverse=True)
    return "|".join(re.escape(word) for word in by_length)


_DURATION = re.compile(
    rf"(?:{_any_of(log_words.DURATION)})\s*+:?\s*+(?P<ms>\d++[.,]\d++)\s*+[^\s,\d]++,?\s*+(?P<rest>.*)",
    re.DOTALL | re.IGNORECASE,
)
_STATEMENT = re.compile(
    rf"(?:{_any_of(log_words.STATEMENT)})\s*+:\s?(?P<sql>.*)", re.DOTALL | re.IGNORECASE
)
_FETCH = re.compile(rf"(?:{_any_of(log_words.FETCH)})", re.IGNORECASE)
_EXECUTE = re.compile(
    rf"(?:{_any_of(log_words.EXECUTE)})\s*+[^\s:]*+\s*+:\s?(?P<sql>.*)",
    re.DOTALL | re.IGNORECASE,
)
_PARAMETERS = re.compile(
    rf"(?:{_any_of(log_words.PARAMETERS)})\s*+:\s*+(?P<values>.*)",
    re.DOTALL | re.IGNORECASE,
)
_VALUE = re.compile(r"\$(\d+) = (?:NULL|'([^']*(?:''[^']*)*)')(?:, |\s*$)")
_CUT = "..."
# auto_explain. Its words are not translated, but for "duration" and "plan".
_QUERY_TEXT = re.compile(
    r'(?:"Query Text"|Query Text|<Query-Text>):?\s*', re.IGNORECASE
)
_QUERY_VALUES = re.compile(r'"?Query Parameters"?: ', re.IGNORECASE)
_NODE = re.compile(r"\(cost=\d|\(actual |^\s*Plan:|^\s*\"Plan\":")
_PLAN = re.compile(r"[^:\n]{1,20}:\s*\n")


def from_csv(text: str) -> Iterator[Execution]:
    """The statements of a csvlog."""
    return _executions(_csv_events(text))


def from_json(text: str) -> Iterator[Execution]:
    """The statements of a jsonlog."""
    return _executions(_json_events(text))


def from_stderr(text: str, prefix: str = "") -> Iterator[Execution]:
    """The statements of a log with prefixes, as `log_line_prefix` has them; empty if unknown."""
    return _executions(stderr_events(text, prefix))


def is_csv_row(columns: Sequence[str]) -> bool:
    """Whether a row is one of csvlog."""
    return len(columns) >= LEAST_CSV_COLUMNS and _STAMP.match(columns[0]) is not None


def _csv_events(text: str) -> Iterator[_Event]:
    csv.field_size_limit(LONGEST_FIELD)
    rows = csv.reader(io.StringIO(text, newline=""))
    line = 1
    for row in rows:
        if is_csv_row(row) and row[_SEVERITY] in log_words.LOG:
            yield _Event(line, row[_SESSION], row[_MESSAGE], row[_DETAIL])
        line = rows.line_num + 1


def _json_events(text: str) -> Iterator[_Event]:
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            entry = foreign_json.loads(line)
        except ValueError:
            continue
        if (
            not isinstance(entry, dict)
            or entry.get("error_severity") not in log_words.LOG
        ):
            continue
        session = entry.get("session_id") or entry.get("pid") or ""
        message, detail = entry.get("message"), entry.get("detail")
        if isinstance(message, str):
            yield _Event(
                number, str(session), message, detail if isinstance(detail, str) else ""
            )


_SEVERITIES = _any_of(log_words.LOG)
_DETAILS = _any_of(log_words.DETAIL)
_OTHERS = "|".join(
    sorted(
        (word.replace(" ", r"\ ") for word in log_words.OTHER), key=len, reverse=True
    )
)
# The severity and two spaces: what comes before it is the prefix, and after it the message.
_SEVERITY_OF_LINE = re.compile(
    rf"(?:(?P<log>{_SEVERITIES})|(?P<detail>{_DETAILS})|(?P<other>{_OTHERS}))\s?:\s\s"
)
LONGEST_PREFIX = 400
_PID = re.compile(
    r"\[(\d+)(?:-\d+)?\]|\b([0-9a-f]{8}\.[0-9a-f]+)\b|pid[=:]\s?(\d+)|\((\d+)\)"
)
_NUMBER = re.compile(r"(?<![\d.:-])\d{2,8}(?![\d.:-])")
# What a session's escapes of log_line_prefix look like in the log; any other is passed over.
_ESCAPES = {
    "p": r"\d+",
    "c": r"[0-9a-f]+\.[0-9a-f]+",
    "m": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \S+",
    "t": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+",
    "s": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+",
    "n": r"\d+\.\d+",
    "l": r"\d+",
    "x": r"\d+",
    "Q": r"-?\d+",
    "v": r"\d*/?\d*",
    "P": r"\d*",
    "e": r"\w{5}",
}
_ESCAPE = re.compile(r"%(-?\d+)?([a-zA-Z%])")


def stderr_events(text: str, prefix: str) -> Iterator[_Event]:
    """The messages of severity LOG, in any language; `prefix` as for `from_stderr`."""
    session_of = _Sessions(prefix)
    current: _Event | None = None
    is_detail = False
    for number, raw_line in enumerate(text.split("\n"), start=1):
        line = raw_line.rstrip("\r")
        is_new = not line.startswith("\t")
        match = _SEVERITY_OF_LINE.search(line, 0, LONGEST_PREFIX) if is_new else None
        if match is None:
            if current is not None:
                _continue(current, line.removeprefix("\t"), is_detail=is_detail)
        elif match["log"]:
            if current is not None:
                yield current
            current = _Event(
                number, session_of(line[: match.start()]), line[match.end() :]
            )
            is_detail = False
        elif match["detail"] and current is not None:
            is_detail = True
            current.detail = line[match.end() :]
        else:
            if current is not None:
                yield current
            current = None
    if current is not None:
        yield current


def _continue(event: _Event, line: str, *, is_detail: bool) -> None:
    if is_detail:
        event.detail += f"\n{line}"
    else:
        event.message += f"\n{line}"


class _Sessions:
    """The session of a line by its prefix: the process number, or the session's own."""

    def __init__(self, prefix: str) -> None:
        self._pattern = _pattern_of(prefix) if prefix else None

    def __call__(self, prefix: str) -> str:
        if self._pattern is not None:
            match = self._pattern.match(prefix)
            if match is not None:
                return next((text for text in match.groups() if text), "")
        match = _PID.search(prefix)
        if match is not None:
            return next(text for text in match.groups() if text)
        number = _NUMBER.search(prefix)
        return number[0] if number else ""


def _pattern_of(prefix: str) -> re.Pattern[str] | None:
    parts = []
    place = 0
    has_session = False
    for escape in _ESCAPE.finditer(prefix):
        parts.append(re.escape(prefix[place : escape.start()]))
        letter = escape[2]
        pattern = _ESCAPES.get(letter, r".{0,100}?")
        is_session = letter in {"c", "p"} and not has_session
        has_session = has_session or is_session
        if letter == "%":
            pattern = "%"
        elif letter == "q":
            pattern = ""
        elif is_session:
            pattern = f"({pattern})"
        parts.append(rf"\s*{pattern}\s*" if escape[1] else pattern)
        place = escape.end()
    return re.compile("".join(parts)) if has_session else None


def _executions(events: Iterable[_Event]) -> Iterator[Execution]:
    """What was executed; a duration in a line of its own belongs to the session's last statement.

    With log_statement a statement comes when it begins, and its duration, if logged, when it ends.
    auto_explain logs a statement before its duration is: the same statement is not counted twice.
    """
    waiting: dict[str, Execution] = {}
    planned: dict[str, Execution] = {}
    for event in events:
        session = event.session
        duration = _DURATION.match(event.message)
        if duration is None:
            begun = _read_kind(event, event.message, None)
            if begun is not None:
                yield from _taken(session, waiting, planned)
                waiting[session] = begun
            continue
        milliseconds = float(duration["ms"].replace(",", "."))
        rest = duration["rest"]
        if not rest.strip():
            planned.pop(session, None)
            if before := waiting.pop(session, None):
                yield _timed(before, milliseconds)
            continue
        ended = _read_kind(event, rest, milliseconds)
        if ended is None:
            continue
        if _PLAN.match(rest):
            yield from _taken(session, {}, planned)
            planned[session] = ended
            continue
        if session in planned and planned[session].text.strip(
            " ;\n"
        ) == ended.text.strip(" ;\n"):
            del planned[session]
        yield from _taken(session, waiting, planned)
        yield ended
    yield from waiting.values()
    yield from planned.values()


def _taken(session: str, *places: dict[str, Execution]) -> Iterator[Execution]:
    """What a session has executed before, where it waits."""
    for place in places:
        if session in place:
            yield place.pop(session)


def _timed(execution: Execution, milliseconds: float) -> Execution:
    return Execution(
        execution.line,
        execution.session,
        execution.text,
        milliseconds,
        execution.values,
        execution.is_cut,
    )


def _read_kind(
    event: _Event, rest: str, milliseconds: float | None
) -> Execution | None:
    """A statement, an execution of a prepared one, or a plan; None for parse, bind and the like."""
    if _FETCH.match(rest):
        return None
    if match := _STATEMENT.match(rest):
        return Execution(event.line, event.session, match["sql"], milliseconds)
    if match := _EXECUTE.match(rest):
        values, is_cut = _values(event.detail)
        return Execution(
            event.line, event.session, match["sql"], milliseconds, values, is_cut
        )
    if milliseconds is not None and _PLAN.match(rest):
        return _read_plan(event, rest, milliseconds)
    return None


def _values(detail: str) -> tuple[Mapping[int, str | None], bool]:
    match = _PARAMETERS.match(detail)
    if match is None:
        return {}, False
    values: dict[int, str | None] = {}
    is_cut = False
    for value in _VALUE.finditer(match["values"]):
        text = value[2]
        values[int(value[1])] = None if text is None else text.replace("''", "'")
        is_cut = is_cut or (text is not None and text.endswith(_CUT))
    return values, is_cut


def _read_plan(event: _Event, rest: str, milliseconds: float) -> Execution | None:
    """A statement that auto_explain has logged with its plan, as text or JSON."""
    body = rest.partition("\n")[2]
    if body.lstrip().startswith("{"):
        return _read_json_plan(event, body, milliseconds)
    lines: list[str] = []
    values: Mapping[int, str | None] | None = None
    is_cut = False
    for line in body.split("\n"):
        if not lines:
            match = _QUERY_TEXT.match(line.lstrip())
            if match is None:
                return None
            lines.append(line.lstrip()[match.end() :])
            continue
        if match := _QUERY_VALUES.match(line.lstrip()):
            values, is_cut = _values(f"parameters: {line.lstrip()[match.end() :]}")
            break
        if _NODE.search(line):
            break
        lines.append(line)
    text = "\n".join(lines).strip()
    if not text:
        return None
    return Execution(event.line, event.session, text, milliseconds, values, is_cut)


def _read_json_plan(event: _Event, body: str, milliseconds: float) -> Execution | None:
    try:
        plan = foreign_json.loads(body)
    except ValueError:
        return None
    text = plan.get("Query Text") if isinstance(plan, dict) else None
    if not isinstance(text, str):
        return None
    stored = plan.get("Query Parameters")
    values: Mapping[int, str | None] | None = None
    is_cut = False
    if isinstance(stored, str):
        values, is_cut = _values(f"parameters: {stored}")
    return Execution(event.line, event.session, text, milliseconds, values, is_cut)
