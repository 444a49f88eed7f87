"""The row of the error table that applies to a comparison, as simulated; see docs/statistics.md."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from runs.analysis import inference
from runs.analysis.inference import Inference

# Written by `python -m benchmarks.verdicts --write`, with the tables of the docs.
RATES = Path(inference.__file__).parent / "error_rates.json"
TABLES = {
    "rounds": gettext_lazy("measured in rounds"),
    "jobs": gettext_lazy("jobs after jobs"),
    "turns": gettext_lazy("both sides in one job"),
    "unlike": gettext_lazy("sides that are not alike"),
}
# Jobs of which so many degrees of freedom are known have more points than the least number.
MANY_POINTS = 12.0


@dataclass(frozen=True)
class ErrorRow:
    """A place of the error table: the greatest simulated `rate` of any wrong word in such a table.

    `rows` and `n` are those of the simulation, the nearest ones to the comparison's.
    """

    table: str
    rows: int
    n: int
    rate: float

    @property
    def text(self) -> str:
        """The row in a sentence."""
        words = {
            "table": TABLES[self.table],
            "rows": ngettext("%(number)d row", "%(number)d rows", self.rows)
            % {"number": self.rows},
            "n": self.n,
            "rate": f"{100 * self.rate:.1f}",
        }
        return (
            _(
                "In simulations (%(table)s, %(rows)s, n = %(n)d) at most %(rate)s %% of "
                "comparisons of equal sides get a wrong verdict."
            )
            % words
        )


def of(found: Sequence[Inference], n: int) -> ErrorRow | None:
    """The row for these answers of one metric, with at least `n` runs a side; None without any."""
    tested = [each for each in found if each.low is not None and each.log_error is not None]
    if not tested:
        return None
    table = tested[0].error_table
    known = _rates()[table]
    if table == "jobs":
        most = max(row["points"] for row in known)
        least = min(row["points"] for row in known)
        points = most if (tested[0].freedom or 0.0) >= MANY_POINTS else least
        known = [row for row in known if row["points"] == points]
    rows = _nearest([row["rows"] for row in known], len(found), at_least=True)
    of_rows = [row for row in known if row["rows"] == rows]
    runs = _nearest([row["n"] for row in of_rows], n, at_least=False)
    chosen = next(row for row in of_rows if row["n"] == runs)
    return ErrorRow(table, rows, runs, chosen["rate"])


@cache
def _rates() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(RATES.read_text())
    return found


def _nearest(offered: Sequence[int], wanted: int, *, at_least: bool) -> int:
    """The next larger one (else the next smaller one), or the largest (the smallest)."""
    several = sorted(set(offered))
    if at_least:
        return next((each for each in several if each >= wanted), several[-1])
    return next((each for each in reversed(several) if each <= wanted), several[0])
