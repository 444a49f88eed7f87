"""A load: the statements and transactions that are run, how often they were, and what is left out.

`read` takes a text of any known kind. Statements of one kind (`tokens.fingerprint`) are one unit,
and what a session did from BEGIN to COMMIT stays together as one, too.
"""

import csv
import hashlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

from runs.statements import counters, drawing, logs
from runs.statements.counters import Counter
from runs.statements.drawing import Parameter
from runs.statements.logs import Execution
from runs.statements.tokens import (
    NotSql,
    Statement,
    fill_values,
    fingerprint,
    masked,
    one,
    shown,
    statements,
)
from runs.wording import gettext_noop as _
from runs.wording import wording_of

Format = Literal["csvlog", "jsonlog", "stderr", "pg_stat_statements", "sql"]
# Why a statement is not run.
Reason = Literal[
    "copy",
    "ddl",
    "utility",
    "session",
    "cursor",
    "prepared",
    "no_values",
    "cut_value",
    "not_sql",
    "temporary",
    "not_ended",
    "control",
]

MOST_UNITS = 1000
MOST_SAMPLES = 3
MOST_LEFT_OUT = 200
LONGEST_STATEMENT = 100_000
LONGEST_SHOWN = 4000
MOST_KEPT_CHARACTERS = 8_000_000
MOST_IN_TRANSACTION = 200

_RUNS = frozenset(
    {"select", "insert", "update", "delete", "merge", "with", "values", "table"}
)
_WRITES = frozenset({"insert", "update", "delete", "merge"})
_BEGINS = frozenset({"begin", "start"})
_ENDS = frozenset({"commit", "end"})
_UNDOES = frozenset({"rollback", "abort"})
_REASONS: Mapping[str, Reason] = {
    "copy": "copy",
    "create": "ddl",
    "alter": "ddl",
    "drop": "ddl",
    "truncate": "ddl",
    "comment": "ddl",
    "grant": "ddl",
    "revoke": "ddl",
    "reindex": "ddl",
    "refresh": "ddl",
    "import": "ddl",
    "security": "ddl",
    "reassign": "ddl",
    "set": "session",
    "reset": "session",
    "show": "session",
    "discard": "session",
    "listen": "session",
    "unlisten": "session",
    "notify": "session",
    "load": "session",
    "declare": "cursor",
    "fetch": "cursor",
    "close": "cursor",
    "move": "cursor",
    "prepare": "prepared",
    "execute": "prepared",
    "deallocate": "prepared",
    "savepoint": "control",
    "release": "control",
}


class NoStatements(ValueError):
    """A text in which nothing was found that can be run or named."""

    def __init__(self, text: str = _("No statement was found.")) -> None:
        self.code = "no_statements"
        self.wording = wording_of(text, {})
        self.remedy = wording_of(
            _(
                "Give a log with log_min_duration_statement = 0 (csvlog, jsonlog or stderr), "
                "pg_stat_statements as CSV, or SQL whose statements end by semicolons."
            ),
            {},
        )
        super().__init__(text)


@dataclass(frozen=True)
class Unit:
    """A statement, or a transaction, that is run and timed as one.

    `text` is without constants. `samples` are its statements with values, each as it was executed
    once. `milliseconds` are those of all calls, None if unknown. `line` is that of the first call.
    Where there were no values, `drawn` are the parameters for which some are drawn, and the one
    sample has them still.
    """

    number: int
    text: str
    line: int
    calls: int
    milliseconds: float | None
    is_transaction: bool
    writes: bool
    samples: tuple[tuple[str, ...], ...]
    drawn: tuple[Parameter, ...] = ()

    @property
    def drawn_from(self) -> tuple[str, ...]:
        """The columns from which its values are drawn."""
        return drawing.sources(self.drawn)


@dataclass(frozen=True)
class LeftOut:
    """A statement that is not run, without constants, and why; `line` is that of the first call."""

    text: str
    line: int
    calls: int
    reason: str


@dataclass(frozen=True)
class Load:
    """What was read. `cut_units` and `cut_calls` are beyond what a load may have."""

    format: str
    calls: int
    units: tuple[Unit, ...]
    left_out: tuple[LeftOut, ...]
    masked: int = 0
    cut_units: int = 0
    cut_calls: int = 0
    left_out_calls: int = 0
    has_weights: bool = False

    @property
    def milliseconds(self) -> float | None:
        """Of all calls of what is run; None if that of one is unknown."""
        times = [
            unit.milliseconds for unit in self.units if unit.milliseconds is not None
        ]
        return sum(times) if len(times) == len(self.units) else None


@dataclass(frozen=True)
class _Call:
    """One call of what is run as one."""

    line: int
    key: str
    shown: str
    texts: tuple[str, ...]
    milliseconds: float | None
    is_transaction: bool
    writes: bool
    times: int = 1
    drawn: tuple[Parameter, ...] = ()


@dataclass
class _Group:
    """The calls of one key."""

    line: int
    key: str
    shown: str
    is_transaction: bool
    writes: bool
    calls: int = 0
    milliseconds: float = 0.0
    is_timed: bool = True
    samples: dict[str, tuple[str, ...]] = field(default_factory=dict)
    drawn: tuple[Parameter, ...] = ()

    def add(self, call: _Call) -> None:
        self.calls += call.times
        if call.milliseconds is None:
            self.is_timed = False
        else:
            self.milliseconds += call.milliseconds
        if call.drawn:
            if not self.samples:
                self.samples[""], self.drawn = call.texts, call.drawn
            return
        if self.drawn:
            # What was executed comes before what is drawn.
            self.samples, self.drawn = {}, ()
        # Any few of all values that were given, whatever their order.
        digest = hashlib.sha256("\0".join(call.texts).encode()).hexdigest()
        self.samples[digest] = call.texts
        if len(self.samples) > MOST_SAMPLES:
            del self.samples[max(self.samples)]


def detect(text: str) -> Format:
    """What kind of text it is; SQL if it is none of the others."""
    head = text.lstrip()[:20_000]
    if _is_json(head):
        first_line = head.partition("\n")[0]
        return "jsonlog" if '"error_severity"' in first_line else "pg_stat_statements"
    lines = head.splitlines()
    if _is_csvlog(head):
        return "csvlog"
    if lines and counters.has_columns(
        lines[0].replace("\t", ",").replace('"', "").split(",")
    ):
        return "pg_stat_statements"
    columns = [line.split("|") for line in lines[:3]]
    if any(counters.has_columns(names) for names in columns) or _is_expanded(lines):
        return "pg_stat_statements"
    if any(True for _event in logs.stderr_events(head, "")):
        return "stderr"
    return "sql"


def _is_json(head: str) -> bool:
    """Whether it begins as an object, or a list of objects."""
    return head.lstrip().removeprefix("[").lstrip().startswith("{")


def _is_csvlog(head: str) -> bool:
    try:
        row = next(csv.reader(io.StringIO(head, newline="")), [])
    except csv.Error:
        return False
    return logs.is_csv_row(row)


def _is_expanded(lines: list[str]) -> bool:
    labels = {
        line.partition("|")[0].strip().lower() for line in lines[:120] if "|" in line
    }
    return bool(lines) and lines[0].startswith("-[") and counters.has_columns(labels)


def read(
    text: str, *, prefix: str = "", weights: str = "", masks: bool = False
) -> Load:
    """The load of a text. Raises NotSql, NoStatements.

    `prefix` is the log_line_prefix of a log of stderr, if known. `weights` are pg_stat_statements
    of the same server: they say how often each statement is called. `masks` has constants that
    look like secrets masked.
    """
    if "\0" in text or "\0" in weights:
        raise NoStatements(_("It has NUL bytes: it is no text."))
    form = detect(text)
    collected = _Collected(masks=masks)
    if form == "pg_stat_statements":
        for counter in _counters(text):
            collected.take_counter(counter)
    elif form == "sql":
        collected.take_script(text)
    else:
        readers: dict[str, Callable[[], Iterator[Execution]]] = {
            "csvlog": lambda: logs.from_csv(text),
            "jsonlog": lambda: logs.from_json(text),
            "stderr": lambda: logs.from_stderr(text, prefix),
        }
        collected.take_log(readers[form]())
    if weights.strip():
        collected.weigh(_counters(weights))
    if not collected.groups and not collected.left_out:
        raise NoStatements
    return collected.load(form)


def _counters(text: str) -> Iterable[Counter]:
    stripped = text.lstrip()
    if _is_json(stripped[:1000]):
        return counters.from_json(text)
    first_line = stripped.partition("\n")[0]
    names = first_line.replace("\t", ",").replace('"', "").split(",")
    if "|" not in first_line and counters.has_columns(names):
        return counters.from_csv(stripped)
    return counters.from_psql(text)


class _Collected:
    """What has been read so far, by fingerprint."""

    def __init__(self, *, masks: bool) -> None:
        self.groups: dict[str, _Group] = {}
        self.left_out: dict[tuple[str, str], LeftOut] = {}
        self._masks = masks
        self._masked = 0
        self._has_weights = False
        # Of the transactions that are open: what their sessions have done since BEGIN.
        self._open: dict[str, list[_Call]] = {}

    def take_log(self, executions: Iterable[Execution]) -> None:
        """Executions in the order of the log."""
        for execution in executions:
            statement = self._statement(execution.text, execution.line)
            if statement is not None:
                self._take(statement, execution)
        for session in list(self._open):
            # The log ends within it: what it did until then is what was seen.
            self._close(session)

    def take_script(self, text: str) -> None:
        """Statements of one session, each once."""
        # All are read first: a text with a fault in its last line is refused as a whole.
        for statement in list(statements(text)):
            self._take(statement, Execution(statement.line, "", statement.text))
        self._close("")

    def take_counter(self, counter: Counter) -> None:
        """A statement with its counters, which has no values."""
        statement = self._statement(counter.text, 0)
        if statement is None:
            return
        execution = Execution(0, "", counter.text, counter.total_ms, {})
        call = self._call(statement, execution, times=counter.calls)
        if call is not None:
            self._add(call)

    def weigh(self, rows: Iterable[Counter]) -> None:
        """Take the calls and times of statements from counters of the server."""
        by_key: dict[str, tuple[int, float]] = {}
        for row in rows:
            statement = self._statement(row.text, 0)
            if statement is None:
                continue
            calls, total_ms = by_key.get(fingerprint(statement), (0, 0.0))
            key = fingerprint(statement)
            by_key[key] = (calls + row.calls, total_ms + (row.total_ms or 0.0))
        for key, group in self.groups.items():
            if key in by_key and not group.is_transaction:
                group.calls, group.milliseconds = by_key[key]
                group.is_timed = True
                self._has_weights = True

    def load(self, form: Format) -> Load:
        """All of it, what takes most time first, else what is called most."""
        ordered = sorted(
            self.groups.values(),
            key=lambda group: (-group.milliseconds, -group.calls, group.line),
        )
        chosen: list[_Group] = []
        characters = 0
        for group in ordered:
            size = sum(
                len(text) for sample in group.samples.values() for text in sample
            )
            if len(chosen) < MOST_UNITS and characters + size <= MOST_KEPT_CHARACTERS:
                chosen.append(group)
                characters += size
        rest = (
            [group for group in ordered if group not in chosen]
            if chosen != ordered
            else []
        )
        left_out = sorted(
            self.left_out.values(), key=lambda row: (-row.calls, row.line)
        )
        calls = sum(group.calls for group in ordered)
        left_out_calls = sum(row.calls for row in left_out)
        return Load(
            format=form,
            calls=calls + left_out_calls,
            units=tuple(
                _unit(number, group) for number, group in enumerate(chosen, start=1)
            ),
            left_out=tuple(left_out[:MOST_LEFT_OUT]),
            masked=self._masked,
            cut_units=len(rest),
            cut_calls=sum(group.calls for group in rest),
            left_out_calls=left_out_calls,
            has_weights=self._has_weights,
        )

    def _statement(self, text: str, line: int) -> Statement | None:
        """The one statement of a text; one that is none is left out, and named."""
        if len(text) > LONGEST_STATEMENT or not _is_text(text):
            self._leave_out(_cut_values(text), line, "not_sql")
            return None
        try:
            statement = one(text)
        except NotSql:
            statement = None
            self._leave_out(_cut_values(text), line, "not_sql")
        else:
            if statement is None and text.strip():
                self._leave_out(_cut_values(text), line, "not_sql")
        return statement

    def _take(self, statement: Statement, execution: Execution) -> None:
        word, session = statement.first_word, execution.session
        if word in _BEGINS:
            self._open[session] = []
        elif word in _ENDS or (word in _UNDOES and "to" not in statement.words[:4]):
            self._close(session)
        elif word in {"rollback", "prepare"} and "transaction" in statement.words[:2]:
            self._leave_out_statement(statement, execution.line, "control")
        else:
            call = self._call(statement, execution)
            pending = self._open.get(session)
            if call is None:
                return
            if pending is None or len(pending) >= MOST_IN_TRANSACTION:
                self._add(call)
            else:
                pending.append(call)

    def _call(
        self, statement: Statement, execution: Execution, times: int = 1
    ) -> _Call | None:
        """What is run; None for what is left out."""
        key = fingerprint(statement)
        reason = _reason(statement, execution)
        drawn: tuple[Parameter, ...] = ()
        if reason == "no_values":
            statement = _numbered(statement)
            drawn = drawing.parameters(statement) or ()
        if reason and not drawn:
            self._leave_out_statement(statement, execution.line, reason, times)
            return None
        text = (
            statement.text if drawn else fill_values(statement, execution.values or {})
        )
        if self._masks:
            text, number = masked(_single(text))
            self._masked += number
        writes = bool(_WRITES.intersection(statement.words)) or _locks(statement)
        return _Call(
            line=execution.line,
            key=key,
            shown=shown(statement),
            texts=(text,),
            milliseconds=execution.duration_ms,
            is_transaction=False,
            writes=writes,
            times=times,
            drawn=drawn,
        )

    def _close(self, session: str) -> None:
        """End a transaction: one statement alone is what it is without BEGIN and COMMIT."""
        calls = self._open.pop(session, [])
        if len(calls) == 1:
            self._add(calls[0])
        elif calls:
            times = [call.milliseconds for call in calls]
            known_times = [time for time in times if time is not None]
            self._add(
                _Call(
                    line=calls[0].line,
                    key=";\n".join(call.key for call in calls),
                    shown=";\n".join(call.shown for call in calls),
                    texts=tuple(text for call in calls for text in call.texts),
                    milliseconds=sum(known_times)
                    if len(known_times) == len(times)
                    else None,
                    is_transaction=True,
                    writes=any(call.writes for call in calls),
                    drawn=tuple(
                        replace(parameter, statement=place)
                        for place, call in enumerate(calls)
                        for parameter in call.drawn
                    ),
                )
            )

    def _add(self, call: _Call) -> None:
        group = self.groups.get(call.key)
        if group is None:
            group = _Group(
                call.line, call.key, call.shown, call.is_transaction, call.writes
            )
            self.groups[call.key] = group
        group.add(call)

    def _leave_out_statement(
        self, statement: Statement, line: int, reason: str, times: int = 1
    ) -> None:
        key = fingerprint(statement)
        self._leave_out(shown(statement), line, reason, times=times, key=key)

    def _leave_out(
        self, text: str, line: int, reason: str, *, times: int = 1, key: str = ""
    ) -> None:
        """Name what is not run; `key` is that of its kind, its text if empty."""
        before = self.left_out.get((reason, key or text))
        if before is None:
            before = LeftOut(text[:LONGEST_SHOWN], line, 0, reason)
        self.left_out[reason, key or text] = replace(before, calls=before.calls + times)


def _single(text: str) -> Statement:
    statement = one(text)
    if statement is None:
        raise ValueError("values have made several statements of one")
    return statement


def _is_text(text: str) -> bool:
    """Whether it can be sent: a log of JSON may have halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _cut_values(text: str) -> str:
    """The beginning of a text that is no SQL, up to its first quote."""
    begin = re.split("['$]", text[:1000], maxsplit=1)[0][:200].strip()
    return begin.encode(errors="replace").decode()


def _locks(statement: Statement) -> bool:
    """SELECT ... FOR UPDATE and the like, and SELECT INTO."""
    words = statement.words
    pairs = set(pairwise(words))
    locks = {("for", "update"), ("for", "share"), ("for", "no"), ("for", "key")}
    return bool(pairs & locks)


def _reason(statement: Statement, execution: Execution) -> str:
    """Why a statement is not run; empty if it is."""
    word = statement.first_word
    if statement.has_backslash:
        return "not_sql"
    if word not in _RUNS:
        if word == "create" and {"temp", "temporary"} & set(statement.words[:4]):
            return "temporary"
        return _REASONS.get(word, "utility")
    if (
        word == "select"
        and "into" in statement.words
        and not _WRITES.intersection(statement.words)
    ):
        return "ddl"
    return _reason_of_values(statement, execution)


def _reason_of_values(statement: Statement, execution: Execution) -> str:
    needed = {
        int(token.text[1:]) for token in statement.tokens if token.kind == "parameter"
    }
    values = execution.values or {}
    if needed - values.keys():
        return "no_values"
    # Up to 9.6 pg_stat_statements wrote a question mark for a constant.
    if execution.line == 0 and _has_marks(statement):
        return "no_values"
    return "cut_value" if execution.is_cut else ""


def _numbered(statement: Statement) -> Statement:
    """A statement of before 10, in which a question mark stands for a constant, with parameters."""
    parts: list[str] = []
    number = 0
    for token in statement.tokens:
        if token.kind == "parameter":
            return statement
        is_mark = token.kind == "symbol" and token.text == "?"
        number += is_mark
        parts.append(f"${number}" if is_mark else token.text)
    return _single("".join(parts)) if number else statement


def _has_marks(statement: Statement) -> bool:
    return any(
        token.kind == "symbol" and "?" in token.text for token in statement.tokens
    )


def _unit(number: int, group: _Group) -> Unit:
    return Unit(
        number=number,
        text=group.shown[:LONGEST_SHOWN],
        line=group.line,
        calls=group.calls,
        milliseconds=group.milliseconds if group.is_timed else None,
        is_transaction=group.is_transaction,
        writes=group.writes,
        samples=tuple(group.samples[digest] for digest in sorted(group.samples)),
        drawn=group.drawn,
    )
