"""What bisections add to subjects below: duties, rounds of their steps, and words in a comment."""

from collections.abc import Callable

from django.utils.translation import gettext as _

from runs.access.selectors.projects import Reader
from runs.bisections import comments
from runs.bisections.selectors import bisections as found_by
from runs.bisections.services import bisections, rejudging
from runs.campaigns.services.repeats import CONTINUATIONS, Continuation
from runs.compare.api.markdown import AFTERWORDS
from runs.compare.selectors.judge.gate import Criteria, SideVerdict
from runs.histories.services.changes import REJUDGING
from runs.models import Bisection, Campaign, Run
from runs.shared import duties
from runs.shared.duties import Duty

duties.ADDED.append(Duty(bisections.go_on, is_outward=True))
REJUDGING.join(rejudging.judge_some)


@CONTINUATIONS.join
def continuation(campaign: Campaign) -> Continuation | None:
    """A step needs a round while its verdict is undecided and its bisection goes on.

    Unless a run has failed, which ends the bisection.
    """
    step = found_by.step_of(campaign.pk)
    if step is None:
        return None
    is_going_on = step.step.bisection.state == Bisection.State.RUNNING
    is_complete = not campaign.runs.filter(state__in=Run.UNSUCCESSFUL).exists()
    is_needed = is_going_on and is_complete and step.is_open
    return Continuation(_("Added: the verdict is undecided.") if is_needed else "")


@AFTERWORDS.join
def afterword(
    verdict: SideVerdict, criteria: Criteria, to: Reader, address: Callable[[str], str]
) -> str:
    """What the newest bisection of this question says."""
    bisection = found_by.settling(
        verdict, metrics=list(criteria.metrics), ignore=criteria.ignore, to=to
    )
    return comments.settled(bisection, address) if bisection is not None else ""
