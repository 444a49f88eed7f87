"""Comparing: comparisons that a person has saved, and answers that CI jobs were given."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from runs.analysis.inference import RULES
from runs.compare.selectors.address.state import CompareState
from runs.compare.selectors.judge import gate, gate_answers
from runs.compare.selectors.judge.gate import Criteria, SideVerdict
from runs.compare.selectors.judge.gate_answers import EarlierAnswer
from runs.models import GateAnswer, SavedComparison
from runs.shared import slugs
from runs.shared.errors import ServiceError


@transaction.atomic
def save_comparison(
    *, state: CompareState, title: str, note: str, user: User
) -> SavedComparison:
    """Store a state under a title. Raises ServiceError without a title or without series."""
    title, note = (text.replace("\0", "").strip() for text in (title, note))
    if not title:
        message = _("The comparison has no title.")
        remedy = _("Give it a title that others can find it by.")
        raise ServiceError("title_missing", message, remedy=remedy, field="title")
    if not state.series:
        message, remedy = (
            _("Nothing is compared yet."),
            _("Add at least one series before saving."),
        )
        raise ServiceError("no_series", message, remedy=remedy)
    comparison = SavedComparison(
        title=title[:200], note=note, query=state.query, created_by=user
    )
    return slugs.store(comparison, called=title, otherwise="comparison")


def answered(
    side_verdict: SideVerdict, criteria: Criteria, *, is_job: bool
) -> list[EarlierAnswer]:
    """What was told to this question otherwise before; keeps the answer that a job is given now.

    An answer by the same words and the same runs is kept once. Three queries at most.
    """
    if side_verdict.head.revision is None:
        return []
    before = gate_answers.given(side_verdict, criteria)
    if not before and not is_job:
        return []
    runs = gate_answers.runs_of(side_verdict)
    last_answer = before[0] if before else None
    is_kept = (
        last_answer
        and last_answer.runs == runs
        and gate_answers.is_as_today(last_answer, side_verdict)
    )
    if is_job and not is_kept:
        criteria_members, fingerprint = gate_answers.question(side_verdict, criteria)
        GateAnswer.objects.create(
            campaign=side_verdict.head.campaign,
            head=side_verdict.head.revision,
            base=side_verdict.base.text[:300],
            base_revision=side_verdict.base.revision,
            asked=criteria_members,
            fingerprint=fingerprint,
            overall=side_verdict.overall,
            table=gate.as_json(side_verdict),
            runs=runs,
            rules=RULES,
        )
    return gate_answers.otherwise(before, side_verdict, runs)
