"""What goes on in a worker process besides its tasks: signs of life, and control's duties.

A duty takes no message and no place among the tasks: held runs and a Redis that is away delay
neither supervision nor signs of life.
"""

import itertools
import logging
import threading
from collections.abc import Callable, Sequence

from django.conf import settings
from django.db import connection

from runs import celery_messages
from runs.campaigns.services import kept_verdicts
from runs.histories.services import changes, deliveries, mails, missing_uploads
from runs.loads.services import loads
from runs.operations.services import copies, hosts, partitions, signs, waiting
from runs.queue.services import artifacts, certificates, supervision
from runs.queue.services.supervision import held_here
from runs.seals.services import seals
from runs.servers.services import builds
from runs.shared import duties
from runs.shared.copies import is_held as is_a_held_copy
from runs.shared.duties import Duty

logger = logging.getLogger(__name__)


class Repeating(threading.Thread):
    """Does something at once and then at an interval, even if it fails; only while it is needed."""

    def __init__(
        self,
        name: str,
        seconds: float,
        act: Callable[[], object],
        needed: threading.Event | None = None,
    ) -> None:
        super().__init__(name=f"benchlab-{name}", daemon=True)
        self._seconds = seconds
        self._act = act
        self._needed = needed
        self._ended = threading.Event()

    def run(self) -> None:
        """Repeat until `end`."""
        while not self._ended.is_set():
            if self._needed:
                self._needed.wait()
            try:
                self._act()
            except Exception:
                logger.exception(
                    "%s failed; it is tried again in %s s", self.name, self._seconds
                )
                connection.close()
            self._ended.wait(self._seconds)
        connection.close()

    def end(self) -> None:
        """Begin no further time."""
        self._ended.set()
        if self._needed:
            self._needed.set()


class Background:
    """The threads of one worker process, by its queues."""

    def __init__(self, queues: Sequence[str]) -> None:
        self._threads: list[Repeating] = []
        if any(celery_messages.is_for_runs(queue) for queue in queues):
            self._threads += [
                Repeating("life", signs.SECONDS_BETWEEN, live),
                Repeating(
                    "pulse", settings.HEARTBEAT_SECONDS, held_here.beat, held_here.some
                ),
            ]
        if settings.CELERY_TASK_DEFAULT_QUEUE in queues:
            self._threads += [
                Repeating("supervise", settings.SUPERVISE_SECONDS, supervise),
                Repeating("watch", settings.WATCH_SECONDS, watch),
            ]

    def start(self) -> None:
        """Begin with all of it."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, and let nobody miss this worker."""
        for thread in self._threads:
            thread.end()
        for thread in self._threads:
            thread.join(timeout=5)
        signs.take_away(kind=signs.WORKER)
        signs.take_away(kind=signs.CONTROL)


def live() -> None:
    """Show that this worker is alive, and whether it may take runs."""
    signs.show(kind=signs.WORKER)
    hosts.look()


def supervise() -> None:
    """Notice lost runs, and wake workers. Two controls that both do it change nothing.

    Before that, whether this results database is a copy of another one.
    """
    copies.look()
    supervision.supervise()
    signs.show(kind=signs.CONTROL)


DUTIES = (
    Duty(kept_verdicts.look),
    Duty(builds.wake, is_outward=True),
    Duty(changes.wake),
    Duty(deliveries.wake, is_outward=True),
    Duty(mails.wake, is_outward=True),
    Duty(seals.wake),
    Duty(missing_uploads.look, is_outward=True, is_rare=True),
    Duty(deliveries.forget, is_rare=True),
    Duty(seals.request_missing, is_rare=True),
    Duty(certificates.judge_some, is_rare=True),
    Duty(changes.judge_some, is_rare=True),
    Duty(artifacts.send_waiting, is_rare=True),
    Duty(partitions.look_after, is_rare=True),
    Duty(loads.remove_expired, is_rare=True),
)
RARELY = 4
_turns = itertools.count()


def watch() -> None:
    """Take further what waits; and notice what stays away, and judge by newer rules.

    A duty that fails is logged and holds up no other. Mostly one query where nothing waits.
    """
    due = _due()
    if due:
        # Of a copy that has just been started nobody may have looked yet.
        copies.look()
    is_held = bool(due) and is_a_held_copy()
    for duty in due:
        if is_held and duty.is_outward:
            continue
        try:
            duty.act()
        except Exception:
            logger.exception(
                "%s failed; it is tried again in %s s",
                duty.name,
                settings.WATCH_SECONDS,
            )
            connection.close()


def _due() -> list[Duty]:
    is_any_waiting = waiting.is_any()
    is_turn_of_rare = next(_turns) % RARELY == 0
    return [
        duty
        for duty in (*DUTIES, *duties.ADDED)
        if (is_turn_of_rare if duty.is_rare else is_any_waiting)
    ]
