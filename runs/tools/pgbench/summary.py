"""The summary on standard output: what was run, the figures, then scripts and statements.

The lines and their versions (source: the tool's own output, 9.2 to 18, and 19's source):
"tps" has two lines to 13 and one from 14; "latency" is missing to 9.3, has a colon to 9.5 and an
equals sign later; failures and tries come with 15; several scripts have weights from 9.6.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from runs.patterns import re
from runs.tools.pgbench.messages import COUNT, DECIMAL, PERCENTAGE, count, decimal
from runs.tools.pgbench.result import StatementResult

_HEADER = re.compile(
    r"(?: - )?statement latencies in milliseconds"
    rf"(?P<failures> and failures|, failures and retries)?(?:, file (?P<file>{COUNT}))?:"
)
_LATENCY, _COLUMN, _TEXT = (
    rf"\A\s+(?P<latency>{DECIMAL})",
    rf"\s+({COUNT})",
    r"(?:\s++(?P<text>.*))?",
)
_ROWS = {
    None: re.compile(_LATENCY + _TEXT),
    " and failures": re.compile(_LATENCY + _COLUMN + _TEXT),
    ", failures and retries": re.compile(_LATENCY + _COLUMN * 2 + _TEXT),
}


@dataclass
class StatementTable:
    """The rows read so far; `script` is the script that the next table belongs to."""

    script: int = 1
    rows: list[StatementResult] = field(default_factory=list)
    _row: re.Pattern[str] | None = None

    def take(self, line: str) -> bool:
        """Read a line, and say whether it was one of a table."""
        if header := _HEADER.fullmatch(line):
            self._row = _ROWS[header["failures"]]
            self.script = count(header["file"]) or self.script
            return True
        row = self._row.fullmatch(line) if self._row else None
        if row is None:
            self._row = None
            return False
        counts = [int(text) for text in row.groups()[1:-1]]
        self.rows.append(
            StatementResult(
                script=self.script,
                text=(row["text"] or "").rstrip(),
                latency_ms=decimal(row["latency"]),
                failures=counts[0] if counts else None,
                retries=counts[1] if len(counts) > 1 else None,
            )
        )
        return True


_VERSION = r"[0-9]{1,3}(?:\.[0-9]{1,3}){0,2}(?:(?:devel|alpha|beta|rc)[0-9]{0,3})?"
_SETTINGS = (
    rf"pgbench \((?P<tool>{_VERSION})(?: \([^()]*\))?(?:, server (?P<server>{_VERSION})\b.*)?\)",
    r"transaction type: (?P<transaction_type>.+)",
    rf"scaling factor: (?P<scale>{COUNT})",
    r"partition method: (?P<partition_method>\w+)",
    rf"partitions: (?P<partitions>{COUNT})",
    r"query mode: (?P<query_mode>\w+)",
    rf"number of clients: (?P<clients>{COUNT})",
    rf"number of threads: (?P<threads>{COUNT})",
    rf"maximum number of tries: (?P<maximum_tries>{COUNT})",
    rf"duration: (?P<duration>{COUNT}) s",
    rf"number of transactions per client: (?P<per_client>{COUNT})",
)
_COUNTED = (
    rf"number of failed transactions: (?P<failed>{COUNT}) {PERCENTAGE}",
    rf"number of serialization failures: (?P<serialization>{COUNT}) {PERCENTAGE}",
    rf"number of deadlock failures: (?P<deadlock>{COUNT}) {PERCENTAGE}",
    rf"number of other failures: (?P<other>{COUNT}) {PERCENTAGE}",
    rf"number of transactions retried: (?P<retried>{COUNT}) {PERCENTAGE}",
    rf"total number of retries: (?P<retries>{COUNT})",
    rf"number of transactions skipped: (?P<skipped>{COUNT}) {PERCENTAGE}",
)
# to 8.1: "number of processed transactions", and no blank before the bracket of tps
_PROCESSED = (
    r"number of (?:transactions actually processed|processed transactions): "
    rf"(?P<processed>{COUNT})"
)
_LATE = rf"(?P<late>{COUNT})(?P<of_executed>/{COUNT})? {PERCENTAGE}"
_AVERAGE = rf"latency average(?P<equals>:| =) (?P<average>{DECIMAL}) ms"
_FIGURES = (
    rf"{_PROCESSED}(?:/(?P<requested>{COUNT}))?",
    rf"number of transactions above the (?P<limit>{DECIMAL}) ms latency limit: {_LATE}",
    rf"{_AVERAGE}(?: \(including failures\))?",
    rf"latency stddev(?::| =) (?P<stddev>{DECIMAL}) ms",
    rf"rate limit schedule lag: avg (?P<lag>{DECIMAL}) \(max (?P<maximum_lag>{DECIMAL})\) ms",
    rf"initial connection time = (?P<initial>{DECIMAL}) ms",
    rf"average connection time = (?P<reconnection>{DECIMAL}) ms",
    rf"tps = (?P<including>{DECIMAL}) ?\(including connections establishing\)",
    rf"tps = (?P<excluding>{DECIMAL}) ?\(excluding connections establishing\)",
    rf"tps = (?P<without_initial>{DECIMAL}) \(without initial connection time\)",
    rf"tps = (?P<reconnecting>{DECIMAL}) \(including reconnection times\)",
)
_SHARE = rf"{DECIMAL}% of total"
_SCRIPT = (
    rf"weight: (?P<weight>{COUNT}) \(targets {_SHARE}\)",
    rf"(?P<transactions>{COUNT}) transactions \({_SHARE}(?:, tps = (?P<tps>{DECIMAL}))?\)",
    rf"{_PROCESSED} \(tps = (?P<processed_tps>{DECIMAL})\)",
    rf"latency average = (?P<average>{DECIMAL}) ms",
    rf"latency stddev = (?P<stddev>{DECIMAL}) ms",
)
_WHOLE_RUN_LINES = tuple(
    re.compile(text) for text in (*_SETTINGS, *_COUNTED, *_FIGURES)
)
_SCRIPT_LINES = tuple(re.compile(" - " + text) for text in (*_SCRIPT, *_COUNTED))
_SCRIPT_HEADER = re.compile(rf"SQL script (?P<number>{COUNT}): (?P<name>.*)")

# A last line without its newline may have been cut; these end in a way that no cut one does.
_ENDS_WHOLE = re.compile(
    rf"\A(?: - )?(?:tps|latency \w+|{COUNT} transactions)\b.*(?: ms|\))"
)

Values = dict[str, Optional[str]]


@dataclass
class ScriptLines:
    """The values printed for one script of several."""

    number: int
    name: str
    values: Values = field(default_factory=dict)


@dataclass
class Summary:
    """Standard output, read line by line.

    `repeated` says that a line came twice (two outputs in one), `cut_line` is a last line that
    may not be whole, and `other_lines` are the lines that belong to no summary.
    """

    values: Values = field(default_factory=dict)
    scripts: list[ScriptLines] = field(default_factory=list)
    table: StatementTable = field(default_factory=StatementTable)
    repeated: bool = False
    cut_line: str | None = None
    other_lines: list[str] = field(default_factory=list)

    @property
    def counts_skipped_as_processed(self) -> bool | None:
        """Whether the tool is a 9.6 or 10 under `-R -L`, which does; None if that is not known.

        Those two print late transactions without the number that they are part of, and the
        average latency with an equals sign.
        """
        if "late" not in self.values or "equals" not in self.values:
            return None
        return self.values["of_executed"] is None and self.values["equals"] == " ="

    @property
    def spreads_lag_over_skipped(self) -> bool:
        """Whether the tool is a 9.6 to 14, which divides the lag by skipped transactions too."""
        return self.values.get("equals") == " =" and "failed" not in self.values


def read_summary(stdout: str) -> Summary:
    """Read standard output."""
    summary = Summary()
    *lines, last_line = stdout.split("\n")
    for line in lines:
        _read_line(line.removesuffix("\r"), summary)
    if _ENDS_WHOLE.fullmatch(last_line):
        _read_line(last_line, summary)
    elif last_line.strip():
        summary.cut_line = last_line
    return summary


def _read_line(line: str, summary: Summary) -> None:
    if not line.strip() or line == "script statistics:" or summary.table.take(line):
        return
    if header := _SCRIPT_HEADER.fullmatch(line):
        summary.scripts.append(ScriptLines(int(header["number"]), header["name"]))
        summary.table.script = int(header["number"])
        return
    values = _match(_WHOLE_RUN_LINES, line)
    if values is not None:
        _keep(values, summary.values, summary)
        return
    values = _match(_SCRIPT_LINES, line) if summary.scripts else None
    if values is not None:
        _keep(values, summary.scripts[-1].values, summary)
    else:
        summary.other_lines.append(line)


def _match(patterns: tuple[re.Pattern[str], ...], line: str) -> Values | None:
    for pattern in patterns:
        if match := pattern.fullmatch(line):
            return match.groupdict()
    return None


def _keep(new_values: Values, values: Values, summary: Summary) -> None:
    summary.repeated |= not values.keys().isdisjoint(new_values)
    values.update(new_values)
