"""Stores uploaded runs: ask once, decide, write, tell; in one transaction, all runs or none."""

from collections.abc import Sequence

from django.db import IntegrityError, transaction
from psycopg.errors import UniqueViolation

from runs.models import Project
from runs.shared.errors import Refused
from runs.uploads.services import notices, question, writing
from runs.uploads.services.decision import Refusal, decide
from runs.uploads.services.known import StoredRun
from runs.uploads.services.uploaded_run import GivenRun
from runs.uploads.services.writing import Overtaken

# Each time another upload has committed a row that was asked for before.
MOST_ATTEMPTS = 5


def store(*, runs: Sequence[GivenRun], project: Project) -> list[StoredRun]:
    """Store these runs, all or none; a run like an earlier one is a repeat and never replaces it.

    One whose text was stored before is that run: see `GivenRun.text_digest`. The number of
    statements is the same for any number of runs.

    Raises Refused: `contradicts` if something stored differs (a metric's unit, a campaign's
    scenario), `conflict` for an external id that the campaign has already.
    """
    for attempt in range(1, MOST_ATTEMPTS + 1):
        try:
            with transaction.atomic():
                return _store(runs, project)
        except (IntegrityError, Overtaken) as error:
            # Somebody else stored it after our question: now we see it.
            is_seen_now = isinstance(error, Overtaken) or isinstance(
                error.__cause__, UniqueViolation
            )
            if not is_seen_now or attempt == MOST_ATTEMPTS:
                raise
    raise AssertionError("it returns, or raises")


def _store(runs: Sequence[GivenRun], project: Project) -> list[StoredRun]:
    known = question.ask(runs, project)
    decision = decide(known)
    if isinstance(decision, Refusal):
        raise Refused(decision.kind, decision.faults)
    written = writing.write(decision)
    notices.tell(written.new_runs, written.campaigns)
    return written.outcomes
