"""The exit status that a CI job ends with."""

from runs.analysis.inference import Verdict

NO_REGRESSION = 0
REGRESSION = 1
NOT_DECIDED = 2
NOT_COMPARABLE = 3


def exit_code(verdict: Verdict) -> int:
    """0 no regression, 1 slower, 2 suspicious or undecided, 3 not comparable."""
    if verdict == "not_comparable":
        return NOT_COMPARABLE
    if verdict == "slower":
        return REGRESSION
    return NOT_DECIDED if verdict in ("undecided", "too_few_runs") else NO_REGRESSION
