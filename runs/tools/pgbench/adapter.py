"""pgbench's raw output: the summary, progress, statements, and the logs of `-l`."""

import re
from dataclasses import dataclass

from runs.tools.adapter import Files, Reading, Reason, TakenFile, UnreadableOutput
from runs.tools.pgbench import measurements, workload
from runs.tools.pgbench.logs import LogReading, read_logs
from runs.tools.pgbench.parser import parse
from runs.tools.pgbench.result import PgbenchResult, Problem
from runs.tools.text import LONGEST_MESSAGE, shown, text_named
from runs.wording import gettext_noop as _

_OTHER_USE = re.compile(
    r"^(?:pgbench is a benchmarking tool for PostgreSQL|pgbench \(PostgreSQL\) \d"
    r"|dropping old tables|creating tables\.\.\.|generating data|vacuuming\.\.\.|vacuum\.\.\.$"
    r"|(?:set|creating) primary keys?\.\.\.|\d{1,12} (?:of \d{1,12} )?tuples .{0,40}done"
    r"|done in \d{1,9}\.\d{1,6} s \()",
    re.MULTILINE,
)
_NOT_LOGS = {"stdout", "raw", "stderr", "exit_status"}


@dataclass(frozen=True)
class PgbenchAdapter:
    """Reads pgbench 9.2 to 19. Files of other names than these are its logs, one a thread."""

    name: str = "pgbench"
    title: str = "pgbench"
    takes: tuple[TakenFile, ...] = (
        TakenFile("stdout", _("What pgbench printed; standard error may be mixed into it")),
        TakenFile("stderr", _("Standard error, which has the progress")),
        TakenFile("exit_status", _("The exit status, as a number")),
        TakenFile("log", _("Logs of -l, one file for each thread, under any names")),
    )

    def read(self, files: Files) -> Reading:
        """Read a run. Raises UnreadableOutput where nothing in it is pgbench's."""
        stdout = text_named(files, "stdout") or text_named(files, "raw")
        stderr = text_named(files, "stderr")
        result = parse(stdout, stderr, exit_status=_exit_status(files))
        logs = read_logs(_logs(files), result)
        if not logs.found and _is_other_use(result, f"{stdout}\n{stderr}"):
            raise UnreadableOutput(
                "not_a_run",
                "The output is that of pgbench -i, --help or --version, and of no benchmark.",
                "Send what pgbench printed while it measured.",
            )
        if not logs.found and any(item.code == "not_pgbench_output" for item in result.problems):
            raise UnreadableOutput(
                "not_pgbench_output",
                "Nothing in the output is pgbench's: no line of a result, no message of the tool.",
                'Send what pgbench printed as "stdout" (or "raw"), and its logs beside it.',
            )
        if logs.found and not stdout.strip():
            return _log_alone(result, logs)
        return _reading(result, logs)


def _reading(result: PgbenchResult, logs: LogReading) -> Reading:
    figures = () if result.status == "failed" else tuple(measurements.of_result(result))
    progress = measurements.progress_series(result.progress)
    names = {series.name for series in progress}
    return Reading(
        status="finished" if result.status == "complete" else result.status,
        tool_name="pgbench",
        tool_version=result.tool_version,
        server_version=result.server_version,
        reasons=tuple(_told(item) for item in result.problems if not item.note),
        notes=(
            *(_told(item) for item in result.problems if item.note),
            *logs.notes,
        ),
        measurements=figures + (logs.measurements if figures else ()),
        series=progress + tuple(series for series in logs.series if series.name not in names),
        levels=measurements.levels(result),
        labels=measurements.labels(result),
        workload=workload.of_result(result),
        unknown_lines=shown((*result.unknown_lines, *logs.unknown_lines)),
    )


def _is_other_use(result: PgbenchResult, text: str) -> bool:
    """Whether pgbench did something else than to measure: no figure, and words of that use."""
    return result.transaction_type is None and _OTHER_USE.search(text) is not None


def _log_alone(result: PgbenchResult, logs: LogReading) -> Reading:
    """Return what a log says without the summary: latencies, of nobody knows which run."""
    missing = "There is a log but no summary: how long the run was, and its tps, are not known."
    return Reading(
        status="partial",
        tool_name="pgbench",
        reasons=(
            Reason("no_summary", missing),
            *(
                _told(item)
                for item in result.problems
                if not item.note and item.code not in {"not_pgbench_output", "no_result"}
            ),
        ),
        notes=logs.notes,
        measurements=logs.measurements,
        series=measurements.progress_series(result.progress),
        unknown_lines=shown((*result.unknown_lines, *logs.unknown_lines)),
    )


def _told(problem: Problem) -> Reason:
    return Reason(problem.code, problem.message[:LONGEST_MESSAGE])


def _exit_status(files: Files) -> int | None:
    text = text_named(files, "exit_status").strip()
    negative, digits = text.startswith("-"), text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        return None
    return -int(digits) if negative else int(digits)


def _logs(files: Files) -> dict[str, bytes]:
    return {
        name: content.encode("utf-8", "replace") if isinstance(content, str) else content
        for name, content in files.items()
        if name not in _NOT_LOGS
    }


ADAPTER = PgbenchAdapter()
