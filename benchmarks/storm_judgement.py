"""What must be true after a storm, asked of the results database and of what was seen of processes.

Import it when Django is set up for the instance.
"""

import itertools
import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.utils import timezone

from benchmarks.own_queue import STORM, asked, blamed
from benchmarks.processes import Loads, Span
from runs.models import Campaign, Run, RunEvent, Server
from runs.queue.selectors.runs import machines_of

SECONDS_BETWEEN_LOOKS = 0.5
S, C = Run.State, Campaign.State
# Two clocks of this machine are compared: the moment at which a statement was made.
SLACK = timedelta(milliseconds=20)
# A claim takes all runs of a round in one transaction.
ONE_CLAIM = timedelta(seconds=2)


@dataclass
class Blame:
    """That a server could not be used, for one reason, from when until when."""

    server_id: int
    code: str
    began: datetime
    ended: datetime | None = None


@dataclass
class Blames:
    """Which servers could not be used: looked at all the time until the end of the block."""

    blames: list[Blame] = field(default_factory=list)

    def __enter__(self) -> "Blames":
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        current: dict[int, Blame] = {}
        while not self._over.is_set():
            now, codes = timezone.now(), blamed()
            for server_id, blame in list(current.items()):
                if codes.get(server_id) != blame.code:
                    current.pop(server_id).ended = now
            for server_id in codes.keys() - current.keys():
                current[server_id] = Blame(server_id, codes[server_id], now)
                self.blames.append(current[server_id])
            self._over.wait(SECONDS_BETWEEN_LOOKS)


@dataclass(frozen=True)
class Stay:
    """A run's time on its machines, from its claim until it had ended or waited again.

    Runs of one `turn`, a campaign's round in slices, have them together if one claim took them;
    None: it is alone.
    """

    run_id: int
    machines: frozenset[int]
    began: datetime
    ended: datetime
    turn: tuple[int, int] | None = None

    def is_in_turn_with(self, other: "Stay") -> bool:
        """Whether one claim has taken both for a round in slices."""
        is_one_claim = abs(self.began - other.began) < ONE_CLAIM
        return self.turn is not None and self.turn == other.turn and is_one_claim


def overlapping_loads(loads: Sequence[Loads]) -> list[str]:
    """Loads that were put on one machine at one time, by the processes that were seen."""
    spans = sorted(
        (span for each in loads for span in each.spans), key=lambda span: span.first
    )
    return [
        f"the loads of {one.attempt} and {other.attempt} overlap on one machine"
        for one, other in _overlapping(spans)
    ]


def _overlapping(spans: Sequence[Span]) -> Iterator[tuple[Span, Span]]:
    for one, other in itertools.combinations(spans, 2):
        if one.overlaps(other):
            yield one, other


def overlapping_stays(machine_of: Mapping[int, int]) -> list[str]:
    """Runs that had one machine at one time, by their records; machines by each server's id."""
    stays = asked(lambda: list(_stays(machine_of)))
    return [
        f"runs {one.run_id} and {other.run_id} had one machine at one time"
        for one, other in itertools.combinations(stays, 2)
        if one.run_id != other.run_id
        and not one.is_in_turn_with(other)
        and one.machines & other.machines
        and one.began + SLACK < other.ended
        and other.began + SLACK < one.ended
    ]


def _stays(machine_of: Mapping[int, int]) -> Iterator[Stay]:
    executed = Run.objects.filter(origin="executed").select_related("campaign")
    for run in executed.order_by("pk"):
        in_turn = run.campaign.slice_seconds is not None
        turn = (run.campaign_id, run.repeat) if in_turn else None
        machines = frozenset(machine_of[server] for server in machines_of(run))
        began = None
        for at, state in run.events.exclude(to_state="").values_list("at", "to_state"):
            is_over = state in {*Run.ENDED, S.QUEUED}
            if began is None and state == S.CLAIMED:
                began = at
            elif began is not None and is_over:
                yield Stay(run.pk, machines, began, at, turn)
                began = None


def inconsistent_campaigns() -> list[str]:
    """Campaigns whose state is not the one that follows from those of their runs."""

    def look() -> list[str]:
        return [
            f"campaign {campaign.pk} is {campaign.state} with {dict(states)}"
            for campaign in Campaign.objects.filter(runs__origin="executed").distinct()
            if campaign.state != _state_of(campaign, states := _states(campaign))
        ]

    return asked(look)


def _states(campaign: Campaign) -> Counter[str]:
    return Counter(campaign.runs.values_list("state", flat=True))


def _state_of(campaign: Campaign, states: Counter[str]) -> str:
    """When all of them have ended."""
    if campaign.cancelled_at is not None and states[S.CANCELLED]:
        return C.CANCELLED
    if states.keys() == {S.CANCELLED}:
        return C.CANCELLED
    is_complete = states.keys() <= {S.FINISHED, S.WITHDRAWN, S.CANCELLED}
    return C.FINISHED if is_complete else C.INCOMPLETE


def wrongly_cancelled() -> list[str]:
    """Runs that were cancelled though nobody asked for it, or that began after it was asked for."""
    return asked(lambda: [*_cancelled_by_nobody(), *_begun_though_cancelled()])


def _cancelled_by_nobody() -> Iterator[str]:
    for run in Run.objects.filter(origin="executed", state=S.CANCELLED).defer("plan"):
        names = (f"{STORM}run {run.pk}", f"{STORM}campaign {run.campaign_id}")
        messages = run.events.filter(code__in=("cancelled", "cancel_requested"))
        words = list(messages.values_list("message", flat=True))
        # "run 1" is the beginning of "run 12".
        if not any(f"Cancelled by {name}." in word for name in names for word in words):
            yield f"run {run.pk} was cancelled, and nobody had asked for it: {words}"


def _begun_though_cancelled() -> Iterator[str]:
    for request in RunEvent.objects.filter(code="cancel_requested"):
        begun = RunEvent.objects.filter(
            run=request.run_id, pk__gt=request.pk, to_state__in=(S.QUEUED, S.FINISHED)
        )
        if after := begun.filter(to_state=S.QUEUED).first():
            yield f"run {request.run_id} waited again after its cancel: {after.code}"


def still_held() -> list[str]:
    """Servers that cannot be used at the end, when all faults are gone."""
    rows = Server.objects.exclude(state=Server.State.READY).exclude(host_key="")
    names = asked(lambda: list(rows.values_list("name", "problem_code", "problem")))
    return [f"{name} is still held by {code}: {text}" for name, code, text in names]


def wrong_machines(groups: Sequence[Collection[int]]) -> list[str]:
    """Registrations of one machine that are not known as such, or of several that are."""

    def look() -> list[str]:
        rows = Server.objects.filter(pk__in=itertools.chain(*groups))
        machine_of = dict(rows.values_list("pk", "machine"))
        servers_of = defaultdict(set)
        for server_id, machine in machine_of.items():
            servers_of[machine or f"alone {server_id}"].add(server_id)
        return [
            f"servers {sorted(group)} are one machine: {machine_of}"
            for group in groups
            if set(group) not in servers_of.values()
        ]

    return asked(look)
