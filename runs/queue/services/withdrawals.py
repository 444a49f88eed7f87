"""Withdrawing runs: they stay visible, with the reason, but are not used in any result."""

from django.db import transaction
from django.utils.translation import gettext as _

from runs.histories.services import changes
from runs.models import Change, Run
from runs.models.campaigns import Origin
from runs.models.runs import CONTROL
from runs.queue.services import transitions
from runs.seals.services import seals
from runs.shared.database import perform
from runs.shared.errors import ServiceError

MOST_CHARACTERS = 500


@transaction.atomic
def withdraw(*, run: Run, reason: str) -> Run:
    """Withdraw a finished run: summaries, comparisons and histories no longer use it.

    The reason is shown with the run and stored in the chain. Raises ServiceError `not_finished`,
    `is_published`, `reason_missing`, `reason_invalid`.
    """
    reason = _checked(reason)
    if run.origin == Origin.PUBLISHED:
        message = _(
            "Figures of a publication are corrected in its data, not withdrawn."
        )
        raise ServiceError("is_published", message)
    _change(run, to=Run.State.WITHDRAWN, only_from=Run.State.FINISHED, reason=reason)
    alarms = Change.objects.filter(run=run.pk, kind=Change.Kind.ALARM)
    changes.refute(changes=alarms, reason=Change.Reason.WITHDRAWN)
    seals.request(run=run.pk, kind="withdrawn", reason=reason)
    return run


@transaction.atomic
def restore(*, run: Run, reason: str) -> Run:
    """Use a withdrawn run again. Raises the errors of `withdraw`, and `not_withdrawn`."""
    reason = _checked(reason)
    _change(run, to=Run.State.FINISHED, only_from=Run.State.WITHDRAWN, reason=reason)
    # The run's history keeps the reason; a run in use needs none.
    Run.objects.filter(pk=run.pk).update(code=Run.State.FINISHED, message="")
    run.refresh_from_db()
    seals.request(run=run.pk, kind="restored", reason=reason)
    return run


def _change(run: Run, *, to: str, only_from: str, reason: str) -> None:
    code = "withdrawn" if to == Run.State.WITHDRAWN else "restored"
    if not transitions.transition(
        run_id=run.pk, to=to, code=code, message=reason, only_from=only_from
    ):
        if to == Run.State.WITHDRAWN:
            raise ServiceError(
                "not_finished", _("Only a run that has finished can be withdrawn.")
            )
        raise ServiceError("not_withdrawn", _("This run is not withdrawn."))
    perform([changes.noting(cells={(run.campaign_id, run.cell_id)})])
    changes.find_once_committed(campaign_ids=[run.campaign_id])
    transitions.record_act(f"run_{code}", run, reason=reason)


def _checked(reason: str) -> str:
    reason = reason.strip()
    if not reason:
        raise ServiceError("reason_missing", _("A reason is required."), field="reason")
    if len(reason) > MOST_CHARACTERS or CONTROL.search(reason):
        message = _("A reason is one line of at most %(most)d characters.")
        message %= {"most": MOST_CHARACTERS}
        raise ServiceError("reason_invalid", message, field="reason")
    return reason
