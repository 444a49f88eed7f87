"""What pgbench says on standard error: progress, clients that died, errors, and chatter."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from runs.tools.pgbench.progress import take_progress
from runs.tools.pgbench.result import ProgressPoint

_ABORTED = re.compile(r"client ([0-9]{1,9})(?: script [0-9]{1,9})? aborted\b.*", re.IGNORECASE)
_RUN_ABORTED = re.compile(r"Run was aborted")
_CONNECTION = re.compile(
    r"connection to (?:database|server) |could not connect to server"
    r"|could not create connection|could not translate host name|(?:bad|invalid) socket:",
    re.IGNORECASE,
)
_ERROR = re.compile(r"^(?:pgbench: )?(?:error|fatal): |^(?:ERROR|FATAL|PANIC): {2}", re.IGNORECASE)

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
    r"|^Process [0-9]+ waits for "
    r"|^\s",
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
        said = self.progress or self.aborts or self.connection_failures or self.errors
        return bool(said or self.run_aborted or self.chatter_lines)


def read_messages(lines: Iterable[str]) -> Messages:
    """Sort the lines of standard error."""
    messages = Messages()
    for line in lines:
        points, rest = take_progress(line)
        messages.progress += points
        if rest.strip():
            _sort(rest, messages)
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
        messages.unknown_lines.append(line)
