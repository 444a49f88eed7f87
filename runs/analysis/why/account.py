"""What a run recorded of where its time went (`runs.execution.evidence.accounting`), read."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

FORM = 1
BACKEND, WORKER = "client backend", "parallel worker"
# A backend that was seen for less is not of the load: BenchLab's own questions are as short.
SAMPLE_SECONDS = 0.2
Moved = Mapping[str, Mapping[str, Mapping[str, float]]]


@dataclass(frozen=True)
class Queued:
    """Sampled seconds on a processor and in its queue of `number` processes, seen for `seconds`."""

    run: float = 0.0
    wait: float = 0.0
    number: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Load:
    """What the design and the tool say about a run's load.

    `reconnects`, `is_paced`, `has_pooler` and `is_elsewhere` (the load comes from another machine)
    say where the parts of its time cannot be told apart.
    """

    clients: int
    tps: float
    transactions: float | None = None
    reconnects: bool = False
    is_paced: bool = False
    has_pooler: bool = False
    is_elsewhere: bool = False
    round: int | None = None


@dataclass(frozen=True, kw_only=True)
class Account(Load):
    """One run: transactions at `clients`, and who used processors; None is unknown.

    `server` and `client` are seconds of processor time during the load;
    `backends`, `workers`, `others` and `threads` what was sampled of the server's processes and of
    the load's threads, whose parts cannot be told apart with several `clients_a_thread`. `duration`
    is that of the load, in seconds. `objects` are what the database has, by kind and name, with
    their definition; `views` those of which counters were read; `planning_ms` is the time to plan
    all statements once, `plans_missing` the code of why there are none. `has_nested`: `plans` has
    those of statements within functions.
    """

    transactions: float
    server: float | None = None
    client: float | None = None
    backends: Queued | None = None
    workers: Queued = Queued()
    others: Queued = Queued()
    threads: Queued | None = None
    clients_a_thread: float = 1.0
    duration: float = 0.0
    counters: Moved = field(default_factory=dict)
    configuration: Mapping[str, str] = field(default_factory=dict)
    built: str = ""
    jit: bool | None = None
    relations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    plans: Sequence[Mapping[str, Any]] = ()
    objects: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    views: frozenset[str] = frozenset()
    planning_ms: float | None = None
    plans_missing: str = ""
    has_nested: bool = False

    @property
    def is_parallel(self) -> bool:
        """Whether workers were seen, or a plan has some: they may live too short to be seen."""
        return self.workers.run > 0 or any(
            node.get("Workers Planned") for plan in self.plans for node in nodes(plan)
        )

    @property
    def seconds(self) -> float:
        """The mean time of a transaction, as a client sees it."""
        return self.clients / self.tps


def nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The nodes of a plan, in any order."""
    waiting_nodes = [plan.get("Plan", {})]
    while waiting_nodes:
        node = waiting_nodes.pop()
        yield node
        waiting_nodes += node.get("Plans", ())


def read(document: Mapping[str, Any], load: Load, machine: str) -> Account | None:
    """The account of a run, of which `machine` is the database's.

    None if its document is of another form, or the load has no rate. Raises KeyError, TypeError,
    ValueError for one that was changed.
    """
    if document.get("form") != FORM or not load.tps > 0 or load.clients < 1:
        return None
    used = document.get("usage", {}).get(machine, {})
    seconds = float(used.get("seconds") or 0)
    transactions = load.transactions or load.tps * seconds
    spans = [(float(begin), float(end)) for begin, end in document.get("spans", ())]
    processes = [
        process
        for process in document.get("processes", ())
        if _is_within(process, spans)
    ]
    servers = [process for process in processes if process["kind"] == "server"]
    threads = [process for process in processes if process["kind"] == "load"]
    if not transactions > 0:
        return None
    return Account(
        **vars(load) | {"transactions": transactions},
        server=used.get("servers"),
        client=None if load.is_elsewhere else used.get("generator"),
        backends=_sum(process for process in servers if process["title"] == BACKEND)
        if servers
        else None,
        workers=_sum(process for process in servers if process["title"] == WORKER),
        others=_sum(
            process for process in servers if process["title"] not in {BACKEND, WORKER}
        ),
        threads=_sum(threads) if threads else None,
        clients_a_thread=load.clients / (len(threads) or load.clients),
        duration=math.fsum(end - begin for begin, end in spans),
        counters=document.get("counters", {}),
        configuration=document.get("configuration", {}),
        built=str(document.get("built", "")),
        jit=document.get("jit"),
        relations=document.get("relations", {}),
        plans=document.get("plans", ()),
        objects=document.get("objects", {}),
        views=frozenset(document.get("views", ())),
        planning_ms=document.get("planning_ms"),
        plans_missing=str(document.get("plans_missing", "")),
        has_nested=bool(document.get("has_nested")),
    )


def _is_within(
    process: Mapping[str, Any], spans: Sequence[tuple[float, float]]
) -> bool:
    """Whether it lived during the load; sessions that end right before or after it are others."""
    first_second, last_second = float(process["first"]), float(process["last"])
    longest = max(
        (min(last_second, end) - max(first_second, begin) for begin, end in spans),
        default=0.0,
    )
    return longest > max(SAMPLE_SECONDS, (last_second - first_second) / 2)


def _sum(processes: Iterable[Mapping[str, Any]]) -> Queued:
    process_list = list(processes)
    return Queued(
        math.fsum(process["run"] for process in process_list),
        math.fsum(process["wait"] for process in process_list),
        len(process_list),
        math.fsum(process["last"] - process["first"] for process in process_list),
    )
