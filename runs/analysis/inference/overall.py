"""The overall result of a table of answers: one word, and the exit status of a CI job."""

from collections.abc import Iterable

from runs.analysis.inference.verdicts import Verdict

PRECEDENCE: tuple[Verdict, ...] = (
    *("slower", "too_few_runs", "not_comparable", "undecided"),
    *("faster", "different", "same"),
)
NO_REGRESSION, REGRESSION, NOT_DECIDED, NOT_COMPARABLE = 0, 1, 2, 3


def overall(verdicts: Iterable[Verdict], further: Iterable[Verdict] = ()) -> Verdict:
    """The word for all of them: the worst. An empty table is not comparable.

    One slower row is a regression whatever the others say. Without one, an undecided row leaves the
    table undecided, since the regression may be right there. `further` are the rows of metrics that
    nobody asked about: they count if they are slower, and otherwise do not matter.
    """
    if "slower" in set(further):
        return "slower"
    found = set(verdicts)
    return next((verdict for verdict in PRECEDENCE if verdict in found), "not_comparable")


def exit_code(verdict: Verdict) -> int:
    """0 no regression, 1 slower, 2 undecided, 3 not comparable: the exit status for a job."""
    if verdict == "not_comparable":
        return NOT_COMPARABLE
    if verdict == "slower":
        return REGRESSION
    return NOT_DECIDED if verdict in ("undecided", "too_few_runs") else NO_REGRESSION
