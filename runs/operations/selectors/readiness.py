"""Whether BenchLab can serve and measure now, and which of its processes are silent."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.utils.translation import gettext as _

from benchlab import bucket, replica
from runs.operations.selectors import health_checks
from runs.operations.selectors.health_checks import FAILED, OK, UNKNOWN, Outcome

CHECKS: Sequence[Callable[[], Outcome]] = (
    health_checks.database,
    health_checks.pages,
    *([health_checks.replica] if replica.ALIAS in settings.DATABASES else ()),
    health_checks.redis,
    health_checks.workers,
    health_checks.control,
    health_checks.copy,
    health_checks.sites,
    health_checks.targets,
    health_checks.disk,
    *([health_checks.files] if bucket.is_set() else ()),
    health_checks.encryption_key,
    *([health_checks.backup] if settings.BACKUP_HOURS else ()),
)
PATIENCE_SECONDS = 4.0
STORES = frozenset({"database", "redis"})
KEPT_SECONDS = 2.0


@dataclass(frozen=True)
class Readiness:
    """The outcomes of all checks."""

    outcomes: tuple[Outcome, ...]

    @property
    def is_ready(self) -> bool:
        """No check has failed; a warning is no failure, and what is unknown has another cause."""
        return all(outcome.status != FAILED for outcome in self.outcomes)


class _Asked:
    """A check in a thread of its own: a hanging disk or server does not block the caller."""

    def __init__(self, check: Callable[[], Outcome]) -> None:
        self.name = check.__name__.replace("_", " ")
        self._check = check
        self._outcome: Outcome | None = None
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        try:
            self._outcome = self._check()
        except Exception as error:  # noqa: BLE001 -- a check that breaks has failed
            self._outcome = Outcome(self.name, FAILED, health_checks.one_line(error))

    @property
    def is_going_on(self) -> bool:
        return self._thread.is_alive()

    def outcome(self, seconds: float) -> Outcome:
        self._thread.join(max(0.0, seconds))
        if self._outcome is not None:
            return self._outcome
        text = _("No answer within %(seconds)d s.") % {"seconds": PATIENCE_SECONDS}
        # Silence says of a store that it is away, and of anything else only that it was not asked.
        return Outcome(self.name, FAILED if self.name in STORES else UNKNOWN, text)


def _asking(check: Callable[[], Outcome], asked_checks: dict[str, _Asked]) -> _Asked:
    """Start a check, unless it still hangs: threads do not pile up."""
    pending = asked_checks.get(check.__name__)
    if pending is None or not pending.is_going_on:
        pending = asked_checks[check.__name__] = _Asked(check)
    return pending


class _Kept:
    """The last answer of this process. One thread runs the checks; the others use its answer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until = 0.0
        self._last: Readiness | None = None
        self._asked: dict[str, _Asked] = {}

    def get(self) -> Readiness:
        last_readiness = self._last
        if last_readiness is not None and time.monotonic() < self._until:
            return last_readiness
        if not self._lock.acquire(blocking=last_readiness is None):
            assert last_readiness is not None  # noqa: S101 -- else the lock was waited for
            return last_readiness
        try:
            if self._last is None or time.monotonic() >= self._until:
                self._last = self._ask()
                self._until = time.monotonic() + KEPT_SECONDS
            return self._last
        finally:
            self._lock.release()

    def _ask(self) -> Readiness:
        asked_checks = [_asking(check, self._asked) for check in CHECKS]
        end = time.monotonic() + PATIENCE_SECONDS
        outcomes = [
            asked_check.outcome(end - time.monotonic()) for asked_check in asked_checks
        ]
        # Control shows no sign of life while it waits for the database: that is no second cause.
        if any(
            outcome.check == "database" and outcome.status == FAILED
            for outcome in outcomes
        ):
            outcomes = [
                health_checks.not_asked(outcome.check)
                if outcome.check == "control" and outcome.status == FAILED
                else outcome
                for outcome in outcomes
            ]
        return Readiness(tuple(outcomes))

    def fresh(self) -> Readiness:
        """Checked now."""
        self.forget()
        return self.get()

    def forget(self) -> None:
        self._last, self._until = None, 0.0


_kept = _Kept()
get = _kept.get
fresh = _kept.fresh
forget = _kept.forget


# Pages are asked for every 2 s by each reader, and a Redis that is away is waited for.
SILENCES_KEPT_SECONDS = 2.0

_kept_silences: dict[str, tuple[float, Sequence[Outcome]]] = {}
_asked_disk: dict[str, _Asked] = {}


def silences() -> Sequence[Outcome]:
    """What `/readyz` says of control, workers and the disk, where it is not good. Raises nothing.

    A disk that hangs holds no page, and only `/readyz` says so.
    """
    until, outcomes = _kept_silences.get("", (0.0, ()))
    if time.monotonic() >= until:
        disk = _asking(health_checks.disk, _asked_disk).outcome(0.2)
        outcomes = [
            outcome
            for outcome in (
                health_checks.copy(),
                health_checks.control(),
                health_checks.workers(),
            )
            if outcome.status != OK
        ]
        outcomes += [disk] if disk.status not in (OK, UNKNOWN) else []
        _kept_silences[""] = (time.monotonic() + SILENCES_KEPT_SECONDS, outcomes)
    return outcomes
