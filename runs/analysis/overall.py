"""What a table of comparisons says as a whole: one word, and the exit status of a CI job."""

from collections.abc import Iterable

from runs.analysis.comparison import Verdict

PRECEDENCE: tuple[Verdict, ...] = (
    *("slower", "too_few_runs", "not_comparable"),
    *("faster", "different", "no_evidence"),
)
NO_REGRESSION, REGRESSION, NOT_DECIDABLE = 0, 1, 2


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """The word for all of them: the gravest. Nothing at all is not comparable.

    One slower row is a regression whatever the others say; without one, a row that cannot be
    decided leaves the whole undecided, since the regression may be just there.
    """
    found = set(verdicts)
    return next((verdict for verdict in PRECEDENCE if verdict in found), "not_comparable")


def exit_code(verdict: Verdict) -> int:
    """0 no regression, 1 slower, 2 not decidable: what a job may end with."""
    if verdict == "slower":
        return REGRESSION
    return NOT_DECIDABLE if verdict in ("too_few_runs", "not_comparable") else NO_REGRESSION
