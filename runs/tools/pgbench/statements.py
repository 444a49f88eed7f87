"""The table of `-r`: one row for each command, its columns known from the header."""

import re
from dataclasses import dataclass, field

from runs.tools.pgbench.printed import COUNT, DECIMAL, count, decimal
from runs.tools.pgbench.result import StatementResult

_HEADER = re.compile(
    r"(?: - )?statement latencies in milliseconds"
    rf"(?P<failures> and failures|, failures and retries)?(?:, file (?P<file>{COUNT}))?:"
)
_LATENCY, _COLUMN, _TEXT = rf"\s+(?P<latency>{DECIMAL})", rf"\s+({COUNT})", r"(?:\s+(?P<text>.*))?"
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
