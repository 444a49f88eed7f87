"""Many faults at once, at random moments, on machines that share their campaigns.

`python -m benchmarks.faults --storm 60 --minutes 20` keeps runs waiting on three machines (single
servers, standbys on another one, load from another one), and injects that many faults by several
hands. At the end every run has ended once, with one result if it finished; a run that failed says
on its page what one of the faults has done to it; and nothing is left on any machine.
"""

import random
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks import own_queue, processes
from benchmarks.injections import OF_STORMS, Broken, Fault

HANDS = 5
LEAST_WAITING = 8
SECONDS_BETWEEN_LOOKS = 1.0
PATIENCE_SECONDS = 900.0
# What is felt for some time after a fault: a standby that has to be found again, say.
FELT = timedelta(seconds=45)
# What a fault does to others: to runs whose standby, or whose database, is on its machine.
TO_OTHERS = frozenset(
    (
        "standby_gone",
        "cluster_gone",
        "cluster_out_of_reach",
        "replication_differs",
        "standby_does_not_catch_up",
        "database_out_of_reach",
        "target_restarted",
    )
)
ON_MACHINES = frozenset(
    (
        "restart-target",
        "cut-connection",
        "freeze-sshd",
        "kill-pgbench",
        "kill-postgres",
        "fill-disk",
        "skew-clock",
        "other-shell",
        "max-startups",
    )
)


@dataclass(frozen=True)
class Hit:
    """A fault that hit, when, and on which server (None: the instance itself)."""

    fault: Fault
    at: datetime
    server_id: int | None


@dataclass
class Storm:
    """What was injected, and what came of it."""

    machines: Sequence[Broken]
    faults: Sequence[Fault]
    seed: int = 1
    hits: list[Hit] = field(default_factory=list)
    missed: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._instance = threading.Lock()
        self._of_machine = {each.server_id: threading.Lock() for each in self.machines}
        self._over = threading.Event()

    def rage(self, number: int, seconds: float) -> None:
        """Inject until that many have hit, or the time is over, while runs always wait."""
        until = time.monotonic() + seconds
        pause = HANDS * seconds / number
        hands = [
            threading.Thread(
                target=self._hand, args=(random.Random(f"{self.seed}/{hand}"), pause)
            )
            for hand in range(HANDS)
        ]
        with ExitStack() as stack:
            bases = [each.target.base for each in self.machines]
            counted = [stack.enter_context(processes.counted(base)) for base in bases]
            for hand in hands:
                hand.start()
            servers = [each.server_id for each in self.machines]
            campaigns = 0
            while time.monotonic() < until and len(self.hits) < number:
                if own_queue.waiting() < LEAST_WAITING:
                    own_queue.queue_together(servers, campaigns)
                    campaigns += 1
                time.sleep(SECONDS_BETWEEN_LOOKS)
            self._over.set()
            for hand in hands:
                hand.join()
            self._settle()
        self.wrong += [
            f"{name} was loaded twice" for each in counted for name in each.doubled
        ]
        self.wrong += self._harm()

    def _hand(self, chance: random.Random, pause: float) -> None:
        time.sleep(chance.uniform(0, pause))
        while not self._over.is_set():
            began = time.monotonic()
            self._strike(chance)
            rest = chance.uniform(0.5, 1.5) * pause - (time.monotonic() - began)
            self._over.wait(max(rest, 1.0))

    def _strike(self, chance: random.Random) -> None:
        """One fault, on one machine or on the instance; two never break the same thing at once."""
        fault, broken = chance.choice(self.faults), chance.choice(self.machines)
        is_local = fault.name in ON_MACHINES
        lock = self._of_machine[broken.server_id] if is_local else self._instance
        if fault.missing(broken) or not lock.acquire(timeout=5):
            return
        try:
            hit = fault.inject(broken, chance)
            if hit:
                server = broken.server_id if is_local else None
                self.hits.append(Hit(fault, datetime.now(UTC), server))
                time.sleep(2.0 if fault.mend else 0.0)
        except (OSError, ValueError) as gone:  # what another fault has just taken away
            print(f"    {fault.name}: {gone}", flush=True)
            hit = False
        finally:
            fault.mend(broken)
            lock.release()
        self.missed[fault.name] += not hit
        print(
            f"    {fault.name} {'hit' if hit else 'missed'} ({len(self.hits)})",
            flush=True,
        )

    def _settle(self) -> None:
        """Wait until every run has ended, and every server is clean."""
        until = time.monotonic() + PATIENCE_SECONDS
        servers = [each.server_id for each in self.machines]
        while time.monotonic() < until:
            if own_queue.is_over() and all(map(own_queue.is_idle, servers)):
                return
            time.sleep(SECONDS_BETWEEN_LOOKS)
        self.wrong.append(f"not over after {PATIENCE_SECONDS:.0f} s")

    def _harm(self) -> list[str]:
        return [
            *own_queue.outcome().wrong,
            *(said for each in own_queue.failed() for said in self._unexplained(*each)),
            *(said for each in self.machines for said in each.harm()),
        ]

    def _unexplained(self, run: Any, machines: Sequence[int]) -> list[str]:
        """A failed run whose code is of none of the faults that met it, or not on its page."""
        began, ended = run.started_at or run.queued_at, run.finished_at or run.queued_at
        felt = [
            each
            for each in self.hits
            if each.server_id in {None, *machines}
            and began - FELT < each.at < ended + FELT
        ]
        codes = frozenset[str]().union(*(each.fault.codes for each in felt))
        if any(each.server_id for each in felt):
            codes |= TO_OTHERS
        told = f"run {run.pk} failed by {run.code}"
        if run.code not in codes:
            return [
                f"{told}, after {[each.fault.name for each in felt]}: {run.message[:300]}"
            ]
        address = f"{self.machines[0].instance.url}/runs/{run.pk}/"
        with urllib.request.urlopen(address, timeout=30) as page:
            is_told = run.code in page.read().decode()
        return [] if is_told else [f"{told}, and its page does not say so"]

    def table(self) -> str:
        """What was injected and what came of it, as Markdown."""
        hits = Counter(each.fault.name for each in self.hits)
        lines = ["| fault | hit | missed |", "|---|--:|--:|"]
        names = [each.name for each in OF_STORMS if each.name in hits | self.missed]
        lines += [f"| {name} | {hits[name]} | {self.missed[name]} |" for name in names]
        seen = own_queue.outcome()
        told = ", ".join(
            f"{count} {state}" for state, count in sorted(seen.states.items())
        )
        said = ", ".join(
            f"`{code}` {count}" for code, count in sorted(seen.codes.items())
        )
        return "\n".join(
            [*lines, "", f"{len(self.hits)} faults; runs: {told}; failed: {said}"]
        )
