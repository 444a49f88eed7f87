"""Reservations: a run of several machines that has waited long is passed by nobody any more.

Such a run begins when all its machines are free at once, and each of them may be kept busy by other
campaigns for ever. That its turn has come and it was passed over is noted as an event. From
`PATIENCE` after its campaign's first such note on, a run that was passed over reserves its
machines: on none of them begins a run that comes after it in the order of the queue, which is that
of priority, then of age.

A run in progress is not interrupted, and what comes before in that order may still begin: so the
first of all that reserve is held up by none of them, and none waits for another in a circle. What
could not begin even on free machines (paused, maintained, out of reach, swept in vain, or beside a
run that has lost its worker) reserves nothing. A sweep that is soon over changes nothing about it.
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
    """A run that has waited long, its place in the order (less is sooner), and its machines."""

    run_id: int
    place: tuple[int, int]
    machines: frozenset[int]

    def holds_up(self, place: tuple[int, int], machines: Iterable[int]) -> bool:
        """Whether a run of that place may not begin on those machines now."""
        return self.place < place and not self.machines.isdisjoint(machines)


def place_of(run: Run) -> tuple[int, int]:
    """A run's place in the order of the queue; less is sooner. Reads its campaign's priority."""
    return -run.campaign.priority, run.pk


def note(run: Run) -> None:
    """Note that it was a run's turn and that it was passed over; once an attempt."""
    noted = {"run": run, "attempt": run.attempt, "code": PASSED_OVER}
    if RunEvent.objects.filter(**noted).exists():
        return
    names = Server.objects.filter(pk__in=others_of(run)).values_list("name", flat=True)
    message = _("Its turn had come; it waits until it can have %(servers)s as well.")
    text = message % {"servers": ", ".join(names)}
    runs.record_event(run_id=run.pk, code=PASSED_OVER, message=text, attempt=run.attempt)


def standing(*, loaded: set[int]) -> list[Reservation]:
    """All reservations now. `loaded` are servers on which a run that lost its worker may be."""
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
