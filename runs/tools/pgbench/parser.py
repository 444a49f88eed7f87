"""pgbench's output, from 9.2 to 19beta1, into a `PgbenchResult`."""

from dataclasses import replace

from runs.tools.pgbench.corrections import correct
from runs.tools.pgbench.figures import figures, settings
from runs.tools.pgbench.messages import read_messages
from runs.tools.pgbench.progress import without_skipped
from runs.tools.pgbench.result import Expected, PgbenchResult
from runs.tools.pgbench.summary import read_summary
from runs.tools.pgbench.verdict import find_problems, status_of


def parse(
    stdout: str, stderr: str, *, exit_status: int | None, expected: Expected | None = None
) -> PgbenchResult:
    """Read the output of one benchmark run (not of `-i`).

    The streams are taken as the tool wrote them; standard error may also be mixed into standard
    output. `exit_status` is the tool's, a negative signal number, or None if nobody kept it.
    No text makes this raise: what is not a result gives status "failed" with the reason. The time
    taken grows with the length of the output, and no faster.
    """
    summary = read_summary(stdout)
    messages = read_messages([*summary.other_lines, *stderr.split("\n")])
    asked, measured = settings(summary.values), correct(figures(summary), summary)
    problems = find_problems(
        asked,
        measured,
        summary,
        messages,
        exit_status=exit_status,
        expected=expected or Expected(),
    )
    progress = tuple(messages.progress)
    if summary.counts_skipped_as_processed is not False:
        progress = without_skipped(
            progress,
            is_limited=measured.skipped is not None,
            # A summary with tps is complete, and has the skipped transactions if any could be.
            is_cut=measured.tps is None and "progress: " in stderr.rpartition("\n")[2],
        )
    unknown = messages.unknown_lines + ([summary.cut_line] if summary.cut_line else [])
    result = PgbenchResult(
        **vars(asked),
        **vars(measured),
        status=status_of(problems, measured, messages),
        problems=problems,
        progress=progress,
        unknown_lines=tuple(unknown),
    )
    return _only_what_holds(result)


def _only_what_holds(result: PgbenchResult) -> PgbenchResult:
    """Leave out the figures that the status takes the ground from."""
    if result.status == "failed":
        return result.without_figures()
    if result.status == "partial" and not result.latency_is_measured:
        # The tool divided the time of all the clients asked for, the dead ones among them.
        return replace(result, latency_average_ms=None)
    return result
