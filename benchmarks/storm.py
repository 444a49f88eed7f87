"""Many faults at once, at random moments, on machines that share their campaigns.

`python -m benchmarks.faults --storm 60 --minutes 20` keeps runs waiting on three machines (single
servers, standbys on another one, load from another one), and injects that many faults by several
hands, each kind about as often as the others. At the end every run has ended once, with one result
if it finished; no two were measured on one machine at one time; a run that failed says on its page
what one of the faults has done to it; no server was blamed for what another fault did, and all can
be used again; only what somebody cancelled is cancelled; and nothing is left on any machine.
"""

import random
import threading
import time
import traceback
import urllib.request
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks import own_queue, processes, storm_judgement
from benchmarks.injections import Broken, Fault
from benchmarks.processes import Loads
from benchmarks.storm_judgement import Blame, Blames

HANDS = 5
# Of what is measured, one is drawn.
NUMBERS = 60
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


@dataclass
class Strike:
    """A fault from its begin until it was mended, on which machine (None: the instance itself)."""

    fault: Fault
    broken: Broken | None
    began: datetime
    ended: datetime
    is_hit: bool = False

    def is_felt(self, began: datetime, ended: datetime) -> bool:
        """Whether something of it may be seen in that time."""
        return self.began - FELT < ended and began < self.ended + FELT

    def concerns(self, server_ids: Sequence[int]) -> bool:
        """Whether it broke one of these servers, or what all of them need."""
        return self.broken is None or not self.broken.server_ids.isdisjoint(server_ids)


@dataclass
class Storm:
    """What was injected, and what came of it."""

    machines: Sequence[Broken]
    faults: Sequence[Fault]
    seed: int = 1
    strikes: list[Strike] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        places: list[str | int] = [
            "services",
            *(each.server_id for each in self.machines),
        ]
        self._lock_of = {place: threading.Lock() for place in places}
        self._over = threading.Event()
        self._deck: list[Fault] = []
        self._dealing = threading.Lock()
        self._blames = Blames()
        self._spans = 0

    @property
    def hits(self) -> int:
        """How many faults have hit."""
        return sum(strike.is_hit for strike in self.strikes)

    def rage(self, number: int, seconds: float) -> None:
        """Inject until that many have hit, or the time is over, while runs always wait."""
        until = time.monotonic() + seconds
        pause, chance = HANDS * seconds / number, random.Random(self.seed)
        hands = [
            threading.Thread(
                target=self._hand, args=(random.Random(f"{self.seed}/{hand}"), pause)
            )
            for hand in range(HANDS)
        ]
        with ExitStack() as stack:
            stack.enter_context(self._blames)
            loads_of = {
                broken.server_id: [
                    stack.enter_context(processes.counted(base))
                    for base in broken.target.bases
                ]
                for broken in self.machines
            }
            for hand in hands:
                hand.start()
            try:
                while time.monotonic() < until and self.hits < number:
                    self._keep_busy(chance)
                    time.sleep(SECONDS_BETWEEN_LOOKS)
            finally:
                self._over.set()
                for hand in hands:
                    hand.join()
            self._settle()
        self._judge(list(loads_of.values()))

    def _keep_busy(self, chance: random.Random) -> None:
        """Each machine has runs that wait, of which some need another one as well."""
        for machine in self.machines:
            other = chance.choice(machine.neighbours)
            number = chance.randrange(NUMBERS)
            own_queue.keep_waiting(machine.server_id, other.server_id, number)

    def _hand(self, chance: random.Random, pause: float) -> None:
        self._over.wait(chance.uniform(0, pause))
        while not self._over.is_set():
            began = time.monotonic()
            if not self._strike(chance):
                self._over.wait(SECONDS_BETWEEN_LOOKS)
                continue
            rest = chance.uniform(0.5, 1.5) * pause - (time.monotonic() - began)
            self._over.wait(max(rest, SECONDS_BETWEEN_LOOKS))

    def _strike(self, chance: random.Random) -> bool:
        """One fault, on one machine or on the instance; two never break the same thing at once.

        Returns whether what it breaks was free for it.
        """
        fault = self._next_fault(chance)
        possible = [each for each in self.machines if not fault.missing(each)]
        for broken in chance.sample(possible, len(possible)):
            if fault.place == "queue":
                self._inject(fault, broken, chance)
                return True
            is_local = fault.place == "machine"
            lock = self._lock_of[broken.server_id if is_local else "services"]
            if lock.acquire(blocking=False):
                try:
                    self._inject(fault, broken, chance)
                finally:
                    lock.release()
                return True
        with self._dealing:
            self._deck.insert(0, fault)
        return False

    def _next_fault(self, chance: random.Random) -> Fault:
        """Each kind once, in a random order, and then all of them again."""
        with self._dealing:
            if not self._deck:
                self._deck = chance.sample(self.faults, len(self.faults))
            return self._deck.pop()

    def _inject(self, fault: Fault, broken: Broken, chance: random.Random) -> None:
        now = datetime.now(UTC)
        far = now + timedelta(days=1)
        strike = Strike(fault, broken if fault.place == "machine" else None, now, far)
        self.strikes.append(strike)
        try:
            strike.is_hit = fault.inject(broken, chance)
            time.sleep(2.0 if strike.is_hit else 0.0)
        except (Exception, SystemExit):  # noqa: BLE001 - what another fault has just taken away
            print(f"    {fault.name}: {traceback.format_exc(limit=-3)}", flush=True)
        finally:
            self._mend(fault, broken)
            strike.ended = datetime.now(UTC)
        told = f"{fault.name} {'hit' if strike.is_hit else 'missed'} ({self.hits})"
        seconds = (strike.ended - strike.began).total_seconds()
        print(f"    {now:%H:%M:%S} {seconds:.0f} s {told}", flush=True)

    def _mend(self, fault: Fault, broken: Broken) -> None:
        try:
            fault.mend(broken)
        except Exception:  # noqa: BLE001 - reported, and the storm goes on
            self.wrong.append(f"{fault.name} not mended: {traceback.format_exc()}")

    def _settle(self) -> None:
        """Wait until every run has ended, and every server is clean and can be used."""
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            servers = [key for each in self.machines for key in each.server_ids]
            if (
                own_queue.is_over()
                and all(map(own_queue.is_idle, servers))
                and not own_queue.blamed()
            ):
                return
            time.sleep(SECONDS_BETWEEN_LOOKS)
        self.wrong.append(f"not over after {PATIENCE_SECONDS:.0f} s")

    def _judge(self, loads: Sequence[Sequence[Loads]]) -> None:
        groups = [each.server_ids for each in self.machines]
        machine_of = {
            server_id: number
            for number, group in enumerate(groups)
            for server_id in group
        }
        held = storm_judgement.still_held()
        own_queue.inspect(list(machine_of))
        self._spans = sum(len(each.spans) for bases in loads for each in bases)
        doubled = [
            f"{name} was loaded twice"
            for bases in loads
            for each in bases
            for name in each.doubled
        ]
        self.wrong += [
            *doubled,
            *(
                said
                for bases in loads
                for said in storm_judgement.overlapping_loads(bases)
            ),
            *storm_judgement.overlapping_stays(machine_of),
            *storm_judgement.inconsistent_campaigns(),
            *storm_judgement.wrongly_cancelled(),
            *held,
            *storm_judgement.wrong_machines(groups),
            *(said for blame in self._blames.blames for said in self._falsely(blame)),
            *own_queue.outcome().wrong,
            *(said for each in own_queue.failed() for said in self._unexplained(*each)),
            *(said for each in self.machines for said in each.harm()),
        ]

    def _falsely(self, blame: Blame) -> list[str]:
        """A server that was held for what none of the faults of that time does to it."""
        felt = [
            each
            for each in self.strikes
            if each.concerns([blame.server_id])
            and each.is_felt(blame.began, blame.began)
        ]
        if any(blame.code in each.fault.blames for each in felt):
            return []
        names = [each.fault.name for each in felt]
        told = f"server {blame.server_id} was held by {blame.code} at {blame.began:%H:%M:%S}"
        return [f"{told}, after {names}"]

    def _unexplained(self, run: Any, machines: Sequence[int]) -> list[str]:
        """A failed run whose code is of none of the faults that met it, or not on its page."""
        began, ended = run.started_at or run.queued_at, run.finished_at or run.queued_at
        felt = [
            each
            for each in self.strikes
            if each.concerns(machines) and each.is_felt(began, ended)
        ]
        codes = frozenset[str]().union(*(each.fault.codes for each in felt))
        if any(each.broken for each in felt):
            codes |= TO_OTHERS
        if codes and run.campaign.slice_seconds:
            codes |= {"slice_incomplete"}
        told = f"run {run.pk} failed by {run.code}"
        if run.code not in codes:
            names = [each.fault.name for each in felt]
            return [f"{told}, after {names}: {run.message[:300]}"]
        address = f"{self.machines[0].instance.url}/runs/{run.pk}/"
        with urllib.request.urlopen(address, timeout=30) as page:
            is_told = run.code in page.read().decode()
        return [] if is_told else [f"{told}, and its page does not say so"]

    def table(self) -> str:
        """What was injected and what came of it, as Markdown."""
        hits = Counter(each.fault.name for each in self.strikes if each.is_hit)
        missed = Counter(each.fault.name for each in self.strikes if not each.is_hit)
        lines = ["| fault | hit | missed |", "|---|--:|--:|"]
        names = [each.name for each in self.faults if each.name in hits | missed]
        lines += [f"| {name} | {hits[name]} | {missed[name]} |" for name in names]
        seen = own_queue.outcome()
        states = ", ".join(
            f"{count} {state}" for state, count in sorted(seen.states.items())
        )
        codes = ", ".join(
            f"`{code}` {count}" for code, count in sorted(seen.codes.items())
        )
        blames = ", ".join(f"`{code}` {count}" for code, count in self._held().items())
        return "\n".join(
            [
                *lines,
                "",
                f"{self.hits} faults of {len(hits)} kinds; runs: {states}; failed: {codes}",
                f"{self._spans} loads seen; {seen.attempts} attempts; servers held: {blames}",
                f"longest held after its fault was mended: {self._longest_held():.0f} s",
            ]
        )

    def _held(self) -> Counter[str]:
        return Counter(blame.code for blame in self._blames.blames)

    def _longest_held(self) -> float:
        """Seconds from the end of the last fault that a server was held for until it went on."""
        seconds = [0.0]
        for blame in self._blames.blames:
            ends = [
                each.ended
                for each in self.strikes
                if each.concerns([blame.server_id])
                and blame.code in each.fault.blames
                and blame.ended
                and each.began < blame.ended
            ]
            if ends and blame.ended:
                seconds.append((blame.ended - max(ends)).total_seconds())
        return max(seconds)
