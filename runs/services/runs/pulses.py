"""Signs of life of all runs that this worker holds, in one statement every few seconds.

500 held runs that each pulsed for themselves would need a processor and a half. A run asks for its
order in memory; one that no longer asks is let go of like that of a silent worker.
"""

import threading
import time
from dataclasses import dataclass

from django.conf import settings

from runs.execution.watch import Order
from runs.services.runs import leases
from runs.services.runs.leases import Claim

# As long as reports are written again for (`reporting.WAITS_SECONDS`), and then it is too late.
LONGEST_SILENCE = 260.0


@dataclass
class _Held:
    claim: Claim
    asked_at: float
    heard_at: float
    order: Order = "go_on"


class Pulses:
    """The runs that this process holds, and what was last heard of each."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, int], _Held] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, claim: Claim) -> None:
        """From now on signs of life are shown for a run."""
        now = time.monotonic()
        with self._lock:
            self._held[claim.run_id, claim.token] = _Held(claim, asked_at=now, heard_at=now)

    def let_go(self, claim: Claim) -> None:
        """The run has ended here."""
        with self._lock:
            self._held.pop((claim.run_id, claim.token), None)

    def order_for(self, claim: Claim) -> Order:
        """What the run is to do, as last heard. `detach` where nothing was heard for minutes."""
        held = self._held[claim.run_id, claim.token]
        held.asked_at = time.monotonic()
        if held.asked_at - held.heard_at > LONGEST_SILENCE:
            return "detach"
        return held.order

    def beat(self) -> None:
        """Show signs of life for all runs that still ask, and hear their orders.

        A lease that somebody has locked is left out: it is this worker itself, which stores
        something and shows a sign of life with that, or whoever gives the run up.
        """
        held = self._asking()
        if not held:
            return
        orders = leases.pulse([(each.claim.run_id, each.claim.token) for each in held])
        now = time.monotonic()
        for each in held:
            each.heard_at, each.order = now, orders[each.claim.run_id, each.claim.token]

    def _asking(self) -> list[_Held]:
        limit = time.monotonic() - settings.HEARTBEAT_TIMEOUT_SECONDS
        with self._lock:
            return [each for each in self._held.values() if each.asked_at >= limit]


held_here = Pulses()
