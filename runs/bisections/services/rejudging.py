"""Verdicts of bisections that older rules judged are judged again."""

from django.db import transaction

from runs.analysis.inference import RULES
from runs.bisections.selectors import bisections
from runs.bisections.services.bisections import store
from runs.models import Bisection

# In one turn of control: each takes ten queries.
MOST = 100


@transaction.atomic
def judge_some() -> int:
    """Judge some of them, and return how many."""
    rows = Bisection.objects.filter(state=Bisection.State.FINISHED, rules__lt=RULES)
    outdated = list(
        rows.select_for_update(skip_locked=True).order_by("rules", "pk")[:MOST]
    )
    for bisection in outdated:
        for step in bisection.steps.filter(middle=None):
            store(step)
        steps = bisections.measured(bisection)
        bisection.verdict = steps[0].ends.overall if steps else ""
        last_step = steps[-1] if steps else None
        is_pair = (
            last_step is not None
            and last_step.step.middle is None
            and bisection.is_narrow
        )
        bisection.is_found = bool(
            is_pair and last_step and last_step.ends.overall == "slower"
        )
        bisection.rules = RULES
        bisection.save(update_fields=["verdict", "is_found", "rules"])
    return len(outdated)
