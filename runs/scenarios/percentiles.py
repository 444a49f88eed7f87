"""Percentiles of latency: pgbench logs a sample of its transactions, counted on its machine."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from runs.execution.asyncio_tasks import together
from runs.execution.bench import Bench
from runs.execution.nodes import Node
from runs.scenarios.metrics import LATENCY_PERCENTILES
from runs.tools import pgbench
from runs.tools.pgbench import histogram, versions
from runs.tools.pgbench.histogram import Histogram
from runs.wording import gettext_noop as _
from runs.wording import wording_of

# The maximum number of logged lines of all machines: counted in about half a second, 90 MB.
MOST_LINES = 2_000_000
LINE_BYTES = 45
# The highest number of transactions a second to expect, which is unknown before the run: of one
# client, and of all.
FASTEST_CLIENT_TPS = 10_000
FASTEST_TPS = 100_000
# A sample may by chance fall this far short of its share of the transactions, but not more.
STANDARD_DEVIATIONS = 6


@dataclass(frozen=True)
class Logged:
    """The log of one machine: its place, and how many transactions ended there.

    `suffix` is the end of the names of the machine's steps and files. `log` is None if its pgbench
    could not log.
    """

    node: Node
    suffix: str
    log: pgbench.Log | None
    transactions: int


def share(clients: int, duration_s: int) -> float:
    """The share of transactions to log: all of them if they cannot be too many.

    From 20 s on, 51 transactions a second are enough for 1,000 lines: for a 99th percentile.
    """
    fastest = min(FASTEST_TPS, clients * FASTEST_CLIENT_TPS)
    return min(1.0, float(f"{MOST_LINES / (fastest * duration_s):.2g}"))


def log_bytes(duration_s: int) -> int:
    """The disk space that the logs of a run take at most."""
    return min(duration_s * FASTEST_TPS, MOST_LINES) * LINE_BYTES


def log(directory: str, share_logged: float, version_num: int) -> pgbench.Log | None:
    """The log that this pgbench can write in the folder: 9.2 can log everything or nothing."""
    if share_logged < 1 and version_num < versions.LOG_SAMPLING:
        return None
    return pgbench.Log(directory, share_logged)


async def add(bench: Bench, logs: Sequence[Logged]) -> None:
    """Count the logs of all machines and add the percentiles; the figures do not need them."""
    if any(logged.log is None for logged in logs):
        _missing(bench, _("pgbench 9.2 cannot log a sample of its transactions"))
        return
    histograms_read = await together(_counted(bench, logged) for logged in logs)
    histograms = [histogram for histogram in histograms_read if histogram is not None]
    if len(histograms) < len(logs):
        return
    latencies = histogram.together(histograms)
    for percent, metric in LATENCY_PERCENTILES.items():
        value = latencies.percentile_ms(float(percent))
        if value is not None:
            bench.measured(metric, value)
    _note_sample(bench, latencies, logs)


async def _counted(bench: Bench, logged: Logged) -> Histogram | None:
    if logged.log is None:
        return None
    name = f"count-latencies{logged.suffix}"
    command = histogram.count(logged.log)
    # A disk that is almost full must not cost the result: counting needs little space.
    step = await bench.step(name, command, check=False, floor_bytes=0, on=logged.node)
    bench.keep(f"latencies{logged.suffix}.txt", step.stdout)
    try:
        counted = histogram.read_histogram(step.stdout)
    except ValueError as problem:
        _missing(bench, str(problem))
        return None
    share_logged = logged.log.share
    expected = logged.transactions * share_logged
    by_chance = STANDARD_DEVIATIONS * math.sqrt(expected * (1 - share_logged))
    if step.exit_status != 0:
        output = step.stderr.strip()[-300:]
        text = _("%(name)s ended with exit status %(exit_status)s: %(said)s")
        _missing(bench, text, name=name, exit_status=step.exit_status, said=output)
    elif counted.transactions < expected - by_chance:
        _missing(
            bench,
            _("the log%(suffix)s holds %(found)s of about %(expected)s transactions"),
            suffix=logged.suffix,
            found=counted.transactions,
            expected=f"{expected:.0f}",
        )
    else:
        return counted
    return None


def _missing(bench: Bench, reason: str, **values: object) -> None:
    text = _("There are no percentiles of latency: %(reason)s.")
    bench.note(
        "percentiles_missing", text, level="info", reason=wording_of(reason, values)
    )


def _note_sample(bench: Bench, latencies: Histogram, logs: Sequence[Logged]) -> None:
    transactions = sum(logged.transactions for logged in logs)
    if any(logged.log and logged.log.share < 1 for logged in logs):
        bench.note(
            "latencies_sampled",
            _(
                "Percentiles of latency are those of %(number)s transactions, drawn by chance "
                "from %(all)s."
            ),
            level="info",
            number=latencies.transactions,
            all=transactions,
        )
