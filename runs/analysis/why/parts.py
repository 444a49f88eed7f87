"""The time of a transaction in parts that add up to it, and how two sides differ in each.

T = clients x seconds / transactions = server on a processor + server in the queue for one + client
on a processor + client in the queue + blocked. Blocked is the rest: locks, disk, the wire. Times
on processors are what the kernel charges; queues are sampled, and scaled by the share of the
processor time that the samples have seen. For a moment client and server work at the same time,
after one has sent and before the other has read it: then the server's time counts, and the client's
is what is left of T. Wait events are no part of it: a process that was woken keeps its event while
it waits for a processor.
"""

import math
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from runs.analysis.trend import margin
from runs.analysis.why.account import Account, Queued

PARTS = ("server", "server_queue", "client", "client_queue", "blocked")
# What the kernel counts in, for each process that ends.
TICK_SECONDS = 0.01
FEW_TICKS = 20
# Spread of the rest of a single run around 0 where nothing can block, as a share of its time:
# measured on 92 runs that only used processors.
REST_ERROR = 0.036
CROWDED = 0.10
LEAST_EFFECT = 0.03
# Samples that have seen less, or "more", than this of the processor time say nothing of the queue.
SEEN = (0.6, 1.25)


@dataclass(frozen=True)
class Parts:
    """Seconds per transaction; None where a part cannot be told from `blocked`, which then has it.

    `cpu` is all processor time of the server, also that of processes that work beside the backends:
    `workers` (parallel) and `others` (checkpointer, WAL writer), and `overlap` the time for which
    the client worked at the same time. `server` is that of the backends. `errors` are standard
    errors. `limits` say by codes what cannot be split.
    """

    seconds: float
    cpu: float | None
    server: float | None
    server_queue: float | None
    client: float | None
    client_queue: float | None
    blocked: float
    workers: float = 0.0
    others: float = 0.0
    overlap: float = 0.0
    errors: Mapping[str, float] = None  # type: ignore[assignment]
    limits: tuple[str, ...] = ()
    round: int | None = None

    @property
    def unqueued(self) -> float:
        """The time without that in the queue, as far as it is known."""
        return self.seconds - (self.server_queue or 0.0) - (self.client_queue or 0.0)

    @property
    def queue_share(self) -> float:
        """The share of the time in the queue for a processor, as far as it is known."""
        return ((self.server_queue or 0.0) + (self.client_queue or 0.0)) / self.seconds


def split(account: Account) -> Parts:
    """The parts of one run."""
    n = account.transactions
    limits = list(_limits(account))
    cpu = None if account.server is None else account.server / n
    server, server_queue, scale = cpu, None, 1.0
    sampled = _backends(account)
    if sampled is not None and cpu is not None:
        backends, scale = sampled
        server, server_queue = backends.run * scale / n, backends.wait * scale / n
    elif account.backends is not None:
        limits.append("backends_unseen")
    client, client_queue, overlap = _fit_client_parts(
        account.seconds - (server or 0.0) - (server_queue or 0.0), *_client(account)
    )
    measured_parts = (server, server_queue, client, client_queue)
    if overlap > LEAST_EFFECT * account.seconds:
        limits.append("overlap")
    errors = {
        "server": TICK_SECONDS * math.sqrt(account.clients + 3) / n,
        "server_queue": abs(scale - 1) * (server_queue or 0.0),
        "client": TICK_SECONDS / n,
        "client_queue": 0.0,
        "blocked": REST_ERROR * account.seconds,
    }
    return Parts(
        seconds=account.seconds,
        cpu=cpu,
        server=server,
        server_queue=server_queue,
        client=client,
        client_queue=client_queue,
        blocked=account.seconds
        - math.fsum(
            part_seconds for part_seconds in measured_parts if part_seconds is not None
        ),
        workers=_workers(account, server),
        others=account.others.run / n,
        overlap=overlap,
        errors=errors,
        limits=tuple(limits),
        round=account.round,
    )


def _backends(account: Account) -> tuple[Queued, float] | None:
    """What was sampled of the backends, and the factor that makes it all of their time.

    Processes that go on have lost nothing; those that ended have lost what came after the last
    sample.
    """
    backends = account.backends
    if backends is None or account.server is None or account.reconnects:
        return None
    if account.is_parallel:
        # Workers live shorter than the sampling, and the session that they work for does not.
        scale = account.duration * backends.number / max(backends.seconds, 1e-9)
        return (backends, max(scale, 1.0)) if scale <= 1 / SEEN[0] else None
    sampled_seconds = backends.run
    charged = account.server - account.others.run
    if (
        sampled_seconds <= 0
        or not SEEN[0] <= sampled_seconds / max(charged, 1e-9) <= SEEN[1]
    ):
        return None
    return backends, charged / sampled_seconds


def _fit_client_parts(
    time_left: float, client: float | None, queue: float | None
) -> tuple[float | None, float | None, float]:
    """The client's parts, as far as the server leaves time for them, and the rest of them."""
    client_time = (client or 0.0) + (queue or 0.0)
    overlap = client_time - max(time_left, 0.0)
    if client is None or client_time <= 0 or overlap <= 0:
        return client, queue, 0.0
    share = 1 - overlap / client_time
    return client * share, None if queue is None else queue * share, overlap


def _workers(account: Account, server: float | None) -> float:
    """What the server was charged beside its sessions and the processes that are always there."""
    if server is None or account.server is None or not account.is_parallel:
        return 0.0
    return max(
        0.0, (account.server - account.others.run) / account.transactions - server
    )


def _client(account: Account) -> tuple[float | None, float | None]:
    if account.client is None:
        return None, None
    threads, n = account.threads, account.transactions
    if threads is None or threads.run <= 0:
        return account.client / n, None
    if account.client < FEW_TICKS * TICK_SECONDS:
        # Charged in ticks it would be nothing, or twice as much.
        return threads.run / n, threads.wait / n
    scale = account.client / threads.run
    if not SEEN[0] <= 1 / max(scale, 1e-9) <= SEEN[1]:
        return account.client / n, None
    return account.client / n, threads.wait * scale / n


def _limits(account: Account) -> list[str]:
    holds_by_code = {
        "no_usage": account.server is None,
        "no_queue": account.backends is None,
        "reconnects": account.reconnects,
        "paced": account.is_paced,
        "pooler": account.has_pooler,
        "client_elsewhere": account.is_elsewhere,
        "threads_shared": account.clients_a_thread > 1,
        "parallel": account.is_parallel,
    }
    return [code for code, holds in holds_by_code.items() if holds]


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval over rounds; no interval from a single round."""

    value: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def within(cls, value: float, width: float) -> "Estimate":
        """With an interval of this width on both sides."""
        return cls(value, value - width, value + width)

    @property
    def is_apart(self) -> bool:
        """Whether the interval excludes 0."""
        return (
            self.low is not None
            and self.high is not None
            and (self.low > 0 or self.high < 0)
        )


class PartRow(NamedTuple):
    """A part of the time on both sides."""

    name: str
    a: float
    b: float
    difference: Estimate
    is_moved: bool


@dataclass(frozen=True)
class Difference:
    """How the time of a transaction differs between two sides: `b` less `a`, by part.

    `a` and `b` are the mean parts of each side. `by_part` has the parts that all runs know, in
    seconds; `seconds` is the whole, `cpu` the server's processor time. `is_crowded`: the machine
    was not this experiment's alone, so `unqueued`, the time without the queue, and `cpu` are
    compared too. `queues` are the shares of the time in the queue, by side; None where no run
    knows it. `rounds` is the number of pairs, or of the smaller side where runs have no common
    rounds.
    """

    a: Parts
    b: Parts
    seconds: Estimate
    unqueued: Estimate
    cpu: Estimate | None
    by_part: Mapping[str, Estimate]
    rounds: int
    limits: tuple[str, ...]
    is_crowded: bool
    queues: tuple[float | None, float | None] = (None, None)

    @property
    def moved(self) -> tuple[str, ...]:
        """Parts that differ surely by more than 3 % of the time, the greatest first."""
        least = LEAST_EFFECT * self.a.seconds
        moved_names = [
            name
            for name, estimate in self.by_part.items()
            if abs(estimate.value) > least and (estimate.is_apart or self.rounds < 2)
        ]
        return tuple(
            sorted(moved_names, key=lambda name: -abs(self.by_part[name].value))
        )

    def rows(self) -> Iterator[PartRow]:
        """Each part, `seconds`, and `cpu` if it is known."""
        rows = {**self.by_part, "seconds": self.seconds, "cpu": self.cpu}
        for name, estimate in rows.items():
            if estimate is not None:
                moved = (
                    name in self.moved if name in self.by_part else estimate.is_apart
                )
                a, b = getattr(self.a, name), getattr(self.b, name)
                yield PartRow(name, a, b, estimate, moved)


def compare(a: Sequence[Parts], b: Sequence[Parts]) -> Difference:
    """The difference of two sides, by pairs of a round where both have the same rounds.

    What one of the runs does not know is in `blocked` of all of them: they are compared alike.
    """
    queues = _queue_share(a), _queue_share(b)
    least_queues = [
        statistics.median_high(run_parts.queue_share for run_parts in side)
        for side in (a, b)
    ]
    unknown = [
        name
        for name in PARTS
        if any(getattr(run_parts, name) is None for run_parts in (*a, *b))
    ]
    a, b = ([_fold(run_parts, unknown) for run_parts in side] for side in (a, b))
    means = _mean(a), _mean(b)
    has_cpu = all(run_parts.cpu is not None for run_parts in (*a, *b))
    limits = tuple(
        dict.fromkeys(code for run_parts in (*a, *b) for code in run_parts.limits)
    )
    return Difference(
        *means,
        seconds=_difference(a, b, "seconds"),
        unqueued=_difference(a, b, "unqueued"),
        cpu=_difference(a, b, "cpu") if has_cpu else None,
        by_part={
            name: _difference(a, b, name) for name in PARTS if name not in unknown
        },
        rounds=min(len(a), len(b)),
        limits=limits,
        is_crowded=max(*least_queues, *(share or 0.0 for share in queues)) > CROWDED,
        queues=queues,
    )


def _queue_share(parts_of_runs: Sequence[Parts]) -> float | None:
    """Of the runs that know how long the server waited for a processor."""
    shares = [
        run_parts.queue_share
        for run_parts in parts_of_runs
        if run_parts.server_queue is not None
    ]
    return statistics.median_high(shares) if shares else None


def _fold(run_parts: Parts, unknown: Collection[str]) -> Parts:
    """With these parts in `blocked`, as in the runs that cannot tell them from it."""
    known = {
        name: part_seconds
        for name in unknown
        if (part_seconds := getattr(run_parts, name)) is not None
    }
    changed = {
        **dict.fromkeys(known),
        "blocked": run_parts.blocked + math.fsum(known.values()),
    }
    return replace(run_parts, **changed)  # type: ignore[arg-type]


def _mean(parts_of_runs: Sequence[Parts]) -> Parts:
    def mean(name: str) -> float | None:
        values = [getattr(run_parts, name) for run_parts in parts_of_runs]
        return None if None in values else statistics.fmean(values)

    further_parts = ("workers", "others", "overlap")
    mean_by_name = {
        name: mean(name) for name in ("seconds", "cpu", *PARTS, *further_parts)
    }
    errors = {
        name: math.sqrt(
            math.fsum(run_parts.errors[name] ** 2 for run_parts in parts_of_runs)
        )
        / len(parts_of_runs)
        for name in PARTS
    }
    return replace(parts_of_runs[0], **mean_by_name, errors=errors, round=None)  # type: ignore[arg-type]


def _difference(a: Sequence[Parts], b: Sequence[Parts], name: str) -> Estimate:
    of_a = [(run_parts.round, float(getattr(run_parts, name))) for run_parts in a]
    of_b = [(run_parts.round, float(getattr(run_parts, name))) for run_parts in b]
    rounds_a, rounds_b = dict(of_a), dict(of_b)
    is_paired = None not in rounds_a and rounds_a.keys() == rounds_b.keys()
    if is_paired and len(rounds_a) == len(a) == len(b):
        return interval(
            [
                rounds_b[round_number] - rounds_a[round_number]
                for round_number in rounds_a
            ]
        )
    return two_means([value for _, value in of_a], [value for _, value in of_b])


def interval(values: Sequence[float]) -> Estimate:
    """The mean with its 95 % t interval."""
    return _estimate(statistics.fmean(values), values)


def two_means(a: Sequence[float], b: Sequence[float]) -> Estimate:
    """Welch's interval of the difference of two means."""
    return _estimate(statistics.fmean(b) - statistics.fmean(a), a, b)


def _estimate(value: float, *samples: Sequence[float]) -> Estimate:
    if min(map(len, samples)) < 2:
        return Estimate(value)
    of_means = [
        (statistics.variance(sample) / len(sample), len(sample) - 1)
        for sample in samples
    ]
    return Estimate.within(value, margin(of_means))
