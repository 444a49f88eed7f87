"""Verdicts and their reasons in the reader's language: texts for the codes of the analysis."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from django.utils.translation import gettext, gettext_lazy, ngettext, pgettext
from django.utils.translation import gettext_lazy as _

from runs.analysis import inference, interval_words
from runs.analysis.inference import Inference
from runs.analysis.inference.verdicts import MORE, Direction, Verdict
from runs.analysis.number_words import percent
from runs.queue.selectors import certificate_words

# Written by `python -m benchmarks.verdicts --write`, with the tables of the docs.
RATES = Path(inference.__file__).parent / "error_rates.json"
TABLES = {
    "rounds": gettext_lazy("measured in rounds"),
    "jobs": gettext_lazy("jobs after jobs"),
    "few_jobs": gettext_lazy("few jobs"),
    "turns": gettext_lazy("both sides in one job"),
    "unlike": gettext_lazy("sides that are not alike"),
}


@dataclass(frozen=True)
class ErrorRow:
    """A place of the error table: the greatest `rate` of any wrong word in such a table.

    `rows` and `n` are those of the simulation, the nearest ones to the comparison's. Of few jobs
    the rate is measured, on public histories, and `n` counts the base's jobs.
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
        if self.table == "few_jobs":
            text = ngettext(
                "On public histories %(rate)s %% of comparisons of unchanged code with %(n)d job "
                "get a wrong verdict.",
                "On public histories %(rate)s %% of comparisons of unchanged code with %(n)d jobs "
                "get a wrong verdict.",
                self.n,
            )
            return text % words
        return (
            gettext(
                "In simulations (%(table)s, %(rows)s, n = %(n)d) at most %(rate)s %% of "
                "comparisons of equal sides get a wrong verdict."
            )
            % words
        )


def error_row(inferences: Sequence[Inference], n: int) -> ErrorRow | None:
    """The row for these answers of one metric, with at least `n` runs a side; None without any."""
    tested = [
        inference
        for inference in inferences
        if inference.low is not None and inference.log_error is not None
    ]
    if not tested:
        return None
    table = tested[0].error_table
    rate_rows = _rates()[table]
    if table == "few_jobs":
        n = min(inference.base_jobs or 1 for inference in tested)
    # The next larger table, else the largest; of it the next smaller number of runs, or the least.
    tables = {row["rows"] for row in rate_rows}
    rows = min(
        (table_size for table_size in tables if table_size >= len(inferences)),
        default=max(tables),
    )
    of_rows = [row for row in rate_rows if row["rows"] == rows]
    numbers = {row["n"] for row in of_rows}
    runs = max(
        (number_of_runs for number_of_runs in numbers if number_of_runs <= n),
        default=min(numbers),
    )
    chosen = next(row for row in of_rows if row["n"] == runs)
    return ErrorRow(table, rows, runs, chosen["rate"])


def rates_of(table: str) -> list[float]:
    """The greatest rates of any wrong word in comparisons of that table, of all its places."""
    return [row["rate"] for row in _rates()[table]]


@cache
def _rates() -> dict[str, list[dict[str, Any]]]:
    rates: dict[str, list[dict[str, Any]]] = json.loads(RATES.read_text())
    return rates


REASONS = {
    "hardware_differs": _("the hardware differs"),
    "environment_differs": _("the environment (operating system) differs"),
    "build_differs": _("the build of PostgreSQL differs"),
    "settings_differs": _("settings that nobody varied differ"),
    "workload_differs": _("what was measured differs"),
    "hardware_unknown": _("the hardware of a side is not known"),
    "environment_unknown": _("the environment of a side is not known"),
    "build_unknown": _("the build of a side is not known"),
    "settings_unknown": _("the settings of a side are not known"),
    "workload_unknown": _("what a side has measured is not known"),
    "not_positive": _("a value is not positive"),
    "not_measured": _("a side was not measured"),
    "machine_taken": _(
        "the machine was not free: most runs of a side are invalid; keep others off it, and measure"
        " again"
    ),
    "single_run": _("a side has a single run"),
    "repeats_unknown": _("number of runs not printed"),
    "suspicious": _("suspicious: run this job once more"),
    "all_alike": _("all lost alike: run the base again, then this job"),
    "spread_unknown": _("spread not printed"),
    "no_shared_rounds": _("their runs took no turns with each other"),
    "other_machines": _("runs of machines that measured one side alone are left out"),
    "other_jobs": _("runs of jobs that measured one side alone are left out"),
}
VERDICTS = {
    "faster": _("faster"),
    "slower": _("slower"),
    "different": _("different"),
    "same": _("the same"),
    "no_sign": _("no sign of a change"),
    "undecided": _("undecided"),
    "too_few_runs": _("too few runs"),
    "not_comparable": _("not comparable"),
}
HEADLINES = {
    "slower": _("Slower: at least one condition has lost."),
    "faster": _("Faster, and no condition is slower."),
    "different": _(
        "No regression; a metric of which neither end is better has changed."
    ),
    "same": _("The same: no condition differs by more than the minimum effect."),
    "no_sign": _("No sign of a loss; small ones cannot be seen yet."),
    "undecided": _("Undecided: the runs do not show yet whether a condition has lost."),
    "too_few_runs": _(
        "Undecided: a condition has too few runs; measure at least three a side."
    ),
    "not_comparable": _(
        "Not comparable: for a condition of the base there is no like figure; its row says why."
    ),
    "baseline_made": _("Baseline made: there is nothing yet to compare this with."),
}
# Reasons of publications: there may be runs enough, but how they scatter is not printed.
NOT_PRINTED = {"repeats_unknown", "spread_unknown"}
TAKEN = "machine_taken"


def verdict_word(inference: Inference) -> str:
    """The verdict for readers: "not tested" where only the publication lacks what one needs.

    Its code is too_few_runs all the same.
    """
    return (
        gettext("not tested")
        if lacks_print(inference)
        else str(VERDICTS[inference.verdict])
    )


def lacks_print(inference: Inference) -> bool:
    """Whether nothing is tested only because a publication does not print the spread."""
    return (
        inference.verdict == "too_few_runs"
        and bool(inference.reasons)
        and NOT_PRINTED.issuperset(inference.reasons)
    )


def size(inference: Inference) -> str:
    """How large the difference is, as an interval: "4.2 to 14 % slower". Empty without one."""
    if TAKEN in inference.reasons:
        return gettext("the machine was not free")
    if inference.verdict == "same" and inference.low is None:
        return gettext("none on either side")
    if lacks_print(inference) and inference.ratio:
        values = {"size": printed_size([inference.ratio], "neutral")}
        return gettext("%(size)s as printed") % values
    if inference.low is None:
        # For what was nothing on one side, and never on the other.
        some = gettext("from nothing to some"), gettext("from some to nothing")
        if not inference.is_proven:
            return ""
        return some[0] if inference.head_value else some[1]
    return interval_words.size(inference, gettext)


def printed_size(ratios: Sequence[float], direction: Direction) -> str:
    """From the least to the greatest ratio: "2.0 to 5.6 % slower"."""
    low, high = min(ratios), max(ratios)
    # The words of an interval that the ratios reach from end to end.
    verdict: Verdict = "different"
    if direction != "neutral" and not low < 1 < high:
        verdict = "faster" if (high > 1) == (direction == "higher") else "slower"
    if low == high == 1:
        return pgettext("a ratio of 1", "equal")
    ends = Inference(verdict, ratio=low, low=low, high=high)
    return size(replace(ends, verdict="undecided") if low < 1 < high else ends)


def size_of_all(inferences: Sequence[Inference]) -> str:
    """The size that holds for each of some answers with one verdict, from end to end.

    The intervals of a table hold together, so what encloses them holds for all of them. In place of
    one, why the machine allows none.
    """
    if TAKEN in inferences[0].reasons:
        return sentence([TAKEN])
    known_intervals = [
        (inference.low, inference.high)
        for inference in inferences
        if inference.low is not None
    ]
    if len(inferences) == 1 or not known_intervals:
        return size(inferences[0])
    highs = [high for _low, high in known_intervals if high is not None]
    high = max(highs) if len(highs) == len(known_intervals) else None
    return size(
        replace(
            inferences[0], low=min(low for low, _high in known_intervals), high=high
        )
    )


def size_of_each(inferences: Sequence[Inference]) -> str:
    """The same beside a verdict, which says of how many conditions it is."""
    text = size_of_all(inferences)
    if len(inferences) == 1 or not text or TAKEN in inferences[0].reasons:
        return text
    return gettext("%(size)s, in each of %(number)d conditions") % {
        "size": text,
        "number": len(inferences),
    }


def missing(inference: Inference) -> str:
    """What more rounds can say of an undecided row; else empty.

    "as these runs scatter, 20 more rounds can show 7 %": by their noise alone, as how many would
    decide depends on a truth that nobody knows.
    """
    if inference.verdict != "undecided" or inference.more_rounds is None:
        return ""
    if inference.more_shows is None:
        return gettext("no reasonable number of rounds would decide")
    words = {"rounds": MORE, "size": percent(inference.more_shows)}
    return (
        gettext("as these runs scatter, %(rounds)d more rounds can show %(size)s %%")
        % words
    )


def sentence(codes: Iterable[str]) -> str:
    """The reasons in one line."""
    return "; ".join(str(REASONS.get(code, code)) for code in codes)


def worded(found: Inference, sized_text: str) -> str:
    """A proven size that says by itself what it is: "faster, 1.99 to 2.03 times"."""
    word = verdict_word(found)
    if not sized_text or word in sized_text:
        return sized_text or word
    return gettext("%(verdict)s, %(size)s") % {"verdict": word, "size": sized_text}


def verdict(value: str | Inference) -> str:
    """A verdict in words: of an answer, or a stored one by its code."""
    return str(VERDICTS[value]) if isinstance(value, str) else verdict_word(value)


def sized(found: Inference) -> str:
    """The size of a difference as an interval, and doubts about it: 4.2 to 14 % slower.

    Of a publication that does not let one compute an interval: 2.2 % less as printed, and why.
    """
    parts = [size(found), sentence(found.reasons) if lacks_print(found) else ""]
    return " ".join(
        filter(
            None, ("; ".join(filter(None, parts)), certificate_words.mark(found.judged))
        )
    )
