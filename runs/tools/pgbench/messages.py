"""What pgbench says on standard error: progress, clients that died, errors, and chatter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from runs.patterns import re
from runs.tools.pgbench.result import ProgressPoint

COUNT = "[0-9]{1,18}"

# C libraries print "not a number" differently: glibc, then two generations of Windows.
_NO_NUMBER = r"-?(?:nan(?:\(ind\))?|NaN|inf|1\.#[A-Z]{2,5}[0-9]{0,6})"

DECIMAL = rf"(?:-?[0-9]{{1,15}}\.[0-9]{{1,6}}|{_NO_NUMBER})"
THREE_PLACES = rf"(?:-?[0-9]{{1,15}}\.[0-9]{{3}}|{_NO_NUMBER})"
PERCENTAGE = rf"\({DECIMAL} ?%\)"


def count(text: str | None) -> int | None:
    """Read a whole number; None stays None."""
    return None if text is None else int(text)


def decimal(text: str | None) -> float | None:
    """Read a number; None for None and for anything but a finite number."""
    if text is None or "#" in text or "n" in text.lower():
        return None
    number = float(text)
    return number if math.isfinite(number) else None


# The fixed number of decimals shows whether a number is complete or was cut.
_LINE = re.compile(
    rf"progress: (?P<seconds>[0-9]{{1,15}}\.[0-9]{{1,3}}) s, "
    rf"(?P<tps>[0-9]{{1,15}}\.[0-9]) tps, "
    rf"lat (?P<latency>{THREE_PLACES}) ms stddev (?P<stddev>{THREE_PLACES})"
    rf"(?:, (?P<failed>{COUNT}) failed)?"
    rf"(?:, lag (?P<lag>{THREE_PLACES}) ms)?"
    rf"(?:, (?P<skipped>{COUNT}) skipped)?"
    rf"(?:, {COUNT} retried, {COUNT} retries)?"
)


def take_progress(line: str) -> tuple[list[ProgressPoint], str]:
    """Return the points in a line, and what is left of the line without them.

    Threads write to the same stream, so a line may have two reports, or an error next to one.
    """
    if "progress: " not in line:
        return [], line
    points = [_point(match) for match in _LINE.finditer(line)]
    return points, _LINE.sub("", line)


def _point(match: re.Match[str]) -> ProgressPoint:
    tps = float(match["tps"])
    latency = decimal(match["latency"])
    idle = tps == 0 and not latency
    return ProgressPoint(
        seconds=float(match["seconds"]),
        tps=tps,
        latency_ms=None if idle else latency,
        stddev_ms=None if idle else decimal(match["stddev"]),
        lag_ms=None if idle else decimal(match["lag"]),
        failed=count(match["failed"]),
        skipped=count(match["skipped"]),
    )


def drop_skipped(
    points: Sequence[ProgressPoint], *, is_limited: bool, is_cut: bool
) -> tuple[ProgressPoint, ...]:
    """Drop the figures of intervals in which the tool counted skipped transactions as done.

    They cannot be corrected: the interval is printed to a tenth of a second, and skipped
    transactions may outnumber real ones by ten to one. A point without the column was cut where
    others have it, where the summary says that there was a limit (`is_limited`), and perhaps
    where it is the last one and the text ends within its line (`is_cut`).
    """
    limited = is_limited or any(point.skipped is not None for point in points)
    last_point = points[-1] if points and is_cut else None
    return tuple(
        replace(point, tps=None, latency_ms=None, stddev_ms=None, lag_ms=None)
        if point.failed is None
        and (
            point.skipped
            or (point.skipped is None and (limited or point is last_point))
        )
        else point
        for point in points
    )


_ABORTED = re.compile(
    r"client ([0-9]{1,9})(?: script [0-9]{1,9})? aborted\b.*", re.IGNORECASE
)
_RUN_ABORTED = re.compile(r"Run was aborted")
_CONNECTION = re.compile(
    r"connection to (?:database|server) |could not connect to server"
    r"|could not create connection|could not translate host name|(?:bad|invalid) socket:",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"^(?:pgbench: )?(?:error|fatal): |^(?:ERROR|FATAL|PANIC): {2}"
    r"|^pgbench: (?:invalid|unrecognized|unknown) option",
    re.IGNORECASE,
)

# Before a run without -n pgbench vacuums its own tables, which an own script need not have.
_IGNORED = re.compile(
    r"^(?:pgbench: )?(?:detail: )?\(ignoring this error and continuing anyway\)",
    re.IGNORECASE,
)
# A further line of the server's message, or of the one of libpq that tries a host's next address.
_FURTHER = re.compile(
    r"^\s|^(?:DETAIL|HINT|CONTEXT|QUERY|STATEMENT|LOCATION|LINE \d{1,9}): "
)
_NEXT_ADDRESS = re.compile(
    r"^\s|^connection to server |^could not (?:connect to|translate)|^FATAL: {2}"
)
# What a script around pgbench runs while it waits for the server.
_OTHER_PROGRAM = re.compile(
    r"^(?:psql|pg_[a-z_]{2,20}|(?:create|drop)(?:db|user)|(?:vacuum|reindex|cluster)db"
    r"|initdb|postgres)(?:\.exe)?(?::| )"
    r"|^(?:[a-z][\w.]{0,80}\.)?[A-Z]\w{0,60}(?:Error|Exception): "
)

# Under --debug and --verbose-errors, a script's own text is in these lines: look no further.
_SCRIPT_TEXT = re.compile(
    r"^(?:pgbench: )?client [0-9]+ (?:executing|sending|receiving|got an error in command"
    r"|repeats the transaction|ends the failed transaction)\b"
)
_CHATTER = re.compile(
    r"^starting vacuum"
    r"|^end\.$"
    r"|^(?:pgbench: )?(?:warning|detail|hint): "
    r"|^(?:pgbench: )?scale option ignored"
    r"|^(?:pgbench: )?setting random seed"
    r"|^(?:pgbench: )?pghost: "
    r"|^(?:pgbench: )?Perhaps you need to do initialization"
    r"|^Try \"pgbench --help\""
    r"|^(?:DETAIL|HINT|CONTEXT|WARNING|NOTICE|LOG|INFO|QUERY|STATEMENT|LOCATION): "
    r"|^LINE [0-9]+: "
    r"|^Process [0-9]+ waits for ",
    re.IGNORECASE,
)


@dataclass
class Messages:
    """Standard error, sorted: each line is in one of these."""

    progress: list[ProgressPoint] = field(default_factory=list)
    aborted_clients: set[int] = field(default_factory=set)
    aborts: list[str] = field(default_factory=list)
    connection_failures: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    run_aborted: bool = False
    chatter_lines: int = 0
    unknown_lines: list[str] = field(default_factory=list)

    @property
    def recognised(self) -> bool:
        """Whether any line was one of pgbench's."""
        lines = self.progress or self.aborts or self.connection_failures or self.errors
        return bool(lines or self.run_aborted or self.chatter_lines)


def read_messages(lines: Iterable[str]) -> Messages:
    """Sort the lines of standard error."""
    messages = Messages()
    errors_before = 0  # the message that is being read
    is_foreign = False
    for line in lines:
        points, text_left = take_progress(line)
        messages.progress += points
        if not text_left.strip():
            continue
        if _IGNORED.search(text_left):
            messages.chatter_lines += 1 + len(messages.errors) - errors_before
            del messages.errors[errors_before:]
            continue
        if not _FURTHER.search(text_left):
            errors_before = len(messages.errors)
        is_foreign = bool(
            _OTHER_PROGRAM.search(text_left)
            or (is_foreign and _NEXT_ADDRESS.search(text_left))
        )
        if is_foreign:
            _keep_unknown(text_left, messages)
        else:
            _sort(text_left, messages)
    return messages


def _sort(line: str, messages: Messages) -> None:
    if _SCRIPT_TEXT.search(line):
        messages.chatter_lines += 1
    elif aborted := _ABORTED.search(line):
        messages.aborted_clients.add(int(aborted[1]))
        messages.aborts.append(aborted[0])
    elif _RUN_ABORTED.search(line):
        messages.run_aborted = True
    elif _CONNECTION.search(line):
        messages.connection_failures.append(line.strip())
    elif _ERROR.search(line):
        messages.errors.append(line.strip())
    elif _CHATTER.search(line):
        messages.chatter_lines += 1
    else:
        _keep_unknown(line, messages)


def _keep_unknown(line: str, messages: Messages) -> None:
    """One that begins with a blank is of a message of several lines, and alone nobody's."""
    if not line[:1].isspace():
        messages.unknown_lines.append(line)
