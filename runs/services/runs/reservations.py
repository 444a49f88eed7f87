"""Reservations: a run of several machines that has waited long is not passed over any more.

Such a run starts when all its machines are free at once, and other campaigns may keep each of them
busy forever. When it was the run's turn and it was passed over, an event records that. `PATIENCE`
after its campaign's first such event, a run that was passed over reserves its machines: no run that
is behind it in the queue's order (priority, then age) can start on any of them.

A run in progress is not interrupted, and runs ahead in the queue may still start. So nothing holds
up the first of all reserving runs, and runs cannot wait for each other in a circle. A run that
could not start even on free machines (paused, in maintenance, out of reach, clean-up failed, or
sharing a machine with a run that has lost its worker) reserves nothing. A clean-up that is soon
over makes no difference.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Exists, OuterRef
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from runs.models import Run, RunEvent, Server
from runs.selectors.runs.runs import machines_of, others_of
from runs.services.runs import runs

PATIENCE = timedelta(minutes=10)
PASSED_OVER = "passed_over"


@dataclass(frozen=True)
class Reservation:
    """A run that has waited long, its place in the queue (lower goes first), and its machines."""

    run_id: int
    place: tuple[int, int]
    machines: frozenset[int]

    def holds_up(self, place: tuple[int, int], machines: Iterable[int]) -> bool:
        """Whether a run at that place must not start on those machines now."""
        return self.place < place and not self.machines.isdisjoint(machines)


def place_of(run: Run) -> tuple[int, int]:
    """A run's place in the queue; lower goes first. Reads its campaign's priority."""
    return -run.campaign.priority, run.pk


def note(run: Run) -> None:
    """Record that it was a run's turn and that it was passed over; once per attempt."""
    noted = {"run": run, "attempt": run.attempt, "code": PASSED_OVER}
    if RunEvent.objects.filter(**noted).exists():
        return
    names = Server.objects.filter(pk__in=others_of(run)).values_list("name", flat=True)
    message = _("Its turn had come; it waits until it can have %(servers)s as well.")
    text = message % {"servers": ", ".join(names)}
    runs.record_event(run_id=run.pk, code=PASSED_OVER, message=text, attempt=run.attempt)


def standing(*, loaded: set[int]) -> list[Reservation]:
    """All reservations now. `loaded` are servers that a run without a worker may still use."""
    found = [
        Reservation(run.pk, place_of(run), frozenset(machines_of(run)))
        for run in _passed_over_for_long()
    ]
    usable = _usable({machine for each in found for machine in each.machines}) - loaded
    return [each for each in found if each.machines <= usable]


def _passed_over_for_long() -> Sequence[Run]:
    noted = RunEvent.objects.filter(code=PASSED_OVER)
    own = noted.filter(run=OuterRef("pk"), attempt=OuterRef("attempt"))
    waiting = Run.objects.filter(Exists(own), state=Run.State.QUEUED, campaign__paused_at=None)
    old = noted.filter(run__campaign=OuterRef("campaign"), at__lt=Now() - PATIENCE)
    return list(waiting.filter(Exists(old)).select_related("campaign"))


def _usable(server_ids: set[int]) -> set[int]:
    ready = Server.objects.filter(pk__in=server_ids, state=Server.State.READY)
    return {each.pk for each in ready if not each.is_maintained and not each.was_swept_in_vain}
