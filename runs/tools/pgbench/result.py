"""What a pgbench run printed, as values. A figure that the tool did not print is None, never 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from runs.tools.adapter import Reason
from runs.wording import Marked, Wording, joined, wording_of
from runs.wording import gettext_noop as _

Status = Literal["complete", "partial", "failed"]


@dataclass(frozen=True, init=False)
class Problem(Reason):
    """One thing that is wrong with a run, or, as a `note`, leaves the figures good."""

    note: bool

    def __init__(
        self, code: str, text: Marked, /, *, note: bool = False, **values: object
    ) -> None:
        super().__init__(code, text, **values)
        vars(self).update(note=note)


@dataclass(frozen=True)
class Expected:
    """What the caller knows of the run: the duration and clients asked for, the wall time taken."""

    duration_s: float | None = None
    clients: int | None = None
    elapsed_s: float | None = None


@dataclass(frozen=True)
class ProgressPoint:
    """One line of `-P`: the interval that ends at `seconds`.

    `seconds` counts from the start of the run, or from the Unix epoch under
    `--progress-timestamp`. An interval without a transaction has no latency. `tps` is None where
    the tool mixed skipped transactions into it (9.6 and 10 with `-R -L`).
    """

    seconds: float
    tps: float | None
    latency_ms: float | None
    stddev_ms: float | None
    lag_ms: float | None = None
    failed: int | None = None
    skipped: int | None = None


@dataclass(frozen=True)
class Transactions:
    """What is counted and timed of a whole run, and of each of its scripts."""

    transactions_processed: int | None = None
    failed_transactions: int | None = None
    serialization_failures: int | None = None
    deadlock_failures: int | None = None
    other_failures: int | None = None
    retried: int | None = None
    retries: int | None = None
    skipped: int | None = None
    latency_average_ms: float | None = None
    latency_stddev_ms: float | None = None
    tps: float | None = None


@dataclass(frozen=True)
class ScriptResult(Transactions):
    """The statistics of one script of several (9.6 and later). `number` counts from 1."""

    number: int = 0
    name: str = ""
    weight: int | None = None


@dataclass(frozen=True)
class StatementResult:
    """One row of `-r`: the average of a command of script number `script`.

    The tool prints the first line of a command that spans several.
    """

    script: int
    text: str
    latency_ms: float | None
    failures: int | None = None
    retries: int | None = None


@dataclass(frozen=True)
class Settings:
    """What was run, as the tool repeats it; right even where the run failed.

    `server_version` is only printed where it differs from the tool's, so that it is the tool's
    otherwise; neither is printed before 14.
    """

    tool_version: str | None = None
    server_version: str | None = None
    transaction_type: str | None = None
    scale: int | None = None
    partition_method: str | None = None
    partitions: int | None = None
    query_mode: str | None = None
    clients: int | None = None
    threads: int | None = None
    maximum_tries: int | None = None
    duration_s: float | None = None
    transactions_per_client: int | None = None
    transactions_requested: int | None = None
    latency_limit_ms: float | None = None


@dataclass(frozen=True)
class Figures(Transactions):
    """What was measured.

    `tps` leaves the time to connect out, with one exception: under `-C` the tool counts
    reconnecting from 14 on, `reconnects` is then True, and the figure is not comparable with the
    one to 13 (if the output does not show `-C`, and `reconnects` is None).

    `latency_average_ms` is measured only if `latency_is_measured`; otherwise the tool computed it
    as duration x clients / transactions, which may include the time of failed ones.
    """

    late: int | None = None
    latency_is_measured: bool = False
    schedule_lag_average_ms: float | None = None
    schedule_lag_max_ms: float | None = None
    initial_connection_time_ms: float | None = None
    average_connection_time_ms: float | None = None
    tps_including_connections: float | None = None
    reconnects: bool | None = None
    scripts: tuple[ScriptResult, ...] = ()
    statements: tuple[StatementResult, ...] = ()


@dataclass(frozen=True)
class PgbenchResult(Figures, Settings):
    """A parsed run.

    complete: the figures are those of the run that was asked for. partial: the tool printed
    figures, but they cover less than was asked for (`problems` says what). failed: nothing to
    rely on, and no figure is given. `progress` stays in every case: it is what was seen.
    """

    status: Status = "failed"
    problems: tuple[Problem, ...] = ()
    progress: tuple[ProgressPoint, ...] = ()
    unknown_lines: tuple[str, ...] = ()

    @property
    def failure(self) -> Wording:
        """What is wrong with the run, in one."""
        wordings = [problem.wording for problem in self.problems if not problem.note]
        none = wording_of(_("pgbench gave no result."), {})
        return joined(wordings or [none], " · %(sentence)s")

    def clear_figures(self) -> PgbenchResult:
        """Return this result with every figure unknown."""
        return PgbenchResult(**{**vars(self), **vars(Figures())})
