"""The queue of a measurement's own instance. Import it when Django is set up for that instance."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.db import InterfaceError, OperationalError, connection
from django.db.models import QuerySet

from runs.models import Campaign, Command, Lease, Measurement, PreparedCluster, Run, Server
from runs.scenarios import registry
from runs.selectors.runs import machines_of
from runs.services.campaigns import campaigns, drafts
from runs.services.servers import host_keys, servers

T = TypeVar("T")

SECONDS_BETWEEN_LOOKS = 0.3


def asked(question: Callable[[], T], *, seconds: float = 120) -> T:
    """Ask the results database, again while it is away."""
    until = time.monotonic() + seconds
    while True:
        try:
            return question()
        except (OperationalError, InterfaceError):
            connection.close()
            if time.monotonic() > until:
                raise
            time.sleep(SECONDS_BETWEEN_LOOKS)


def register(name: str, **fields: Any) -> int:
    """Register a server whose host key is known, and inspect it; its id."""
    server = servers.register(name=name, address="127.0.0.1", **fields)
    fingerprint = servers.fingerprint(server.offered_host_key)
    server = servers.inspect(server=host_keys.confirm(server=server, fingerprint=fingerprint))
    if server.state != Server.State.READY:
        raise SystemExit(f"the target is not ready: {server.problem}")
    return server.pk


def queue(
    title: str,
    server_id: int,
    *,
    repeats: int,
    duration: int,
    scenario: str = "fixed-point-read",
    scale: int = 1,
    clusters: int = 1,
    rate: int = 0,
) -> int:
    """Queue short runs of PostgreSQL 18; the campaign's id.

    With several clusters they are a primary, a synchronous standby and asynchronous ones. With a
    rate (transactions a second) the load reads so gently that it leaves the processors to others.
    """
    if rate:
        scenario = "pgbench"

    def create() -> Campaign:
        server = Server.objects.get(pk=server_id)
        present = server.installations.filter(removed_at=None)
        levels: dict[str, Any] = {"clients": (1,)}
        definition = registry.get("replication" if clusters > 1 else scenario)
        parameters = {each.name: each.default for each in definition.parameters}
        parameters |= {"scale": scale, "duration": duration}
        if rate:
            levels = {each.name: each.default for each in definition.factors}
            levels |= {"script": ("select-only",), "scale": (scale,), "clients": (1,)}
            parameters = {**parameters, "rate": rate}
            del parameters["scale"]
        if clusters > 1:
            levels = {"sync_standbys": (1,), "async_standbys": (clusters - 2,)}
            levels |= {"synchronous_commit": ("on",), "synchronous_by": ("all",)}
            parameters |= {"clients": 1, "standbys": 0}
        draft = drafts.Draft(
            title=title,
            scenario=definition.slug,
            server=server,
            installations=[each for each in present if each.major == "18"][:1],
            levels=levels,
            parameters=parameters,
            repeats=repeats,
        )
        return campaigns.create(draft=draft)

    return asked(create).pk


def holder(server_id: int) -> str:
    """Who has a server now, as HOST:PID; empty where nobody has."""
    lease = asked(lambda: Lease.objects.get(server_id=server_id))
    return lease.holder if lease.run_id else ""


@dataclass(frozen=True)
class Outcome:
    """The states of a campaign's runs. `codes` are of those that did not finish.

    `wrong` lists what must never be.
    """

    states: dict[str, int]
    codes: dict[str, int]
    attempts: int
    is_over: bool
    wrong: list[str]


def outcome(campaign_id: int, *, planned: int) -> Outcome:
    """Look at a campaign's runs, their measurements and their commands."""
    return asked(lambda: _outcome(campaign_id, planned))


def is_idle(server_id: int) -> bool:
    """Whether nobody has the server, and neither a cluster nor a lost run waits for its removal."""
    held = Lease.objects.filter(server_id=server_id).exclude(run=None)
    kept = PreparedCluster.objects.filter(server_id=server_id, removed_at=None)
    # A clean-up that a fault has cut off is tried again after some time.
    unclean = Server.objects.filter(pk=server_id, needs_sweep=True)
    return asked(lambda: not (held.exists() or kept.exists() or unclean.exists()))


def _outcome(campaign_id: int, planned: int) -> Outcome:
    runs = list(Run.objects.filter(campaign_id=campaign_id).defer("plan"))
    return Outcome(
        states=dict(Counter(run.state for run in runs)),
        codes=dict(Counter(run.code for run in runs if run.state != Run.State.FINISHED)),
        attempts=sum(run.attempt for run in runs),
        is_over=all(run.state in Run.ENDED for run in runs),
        wrong=[
            *([] if len(runs) == planned else [f"{len(runs)} runs instead of {planned}"]),
            *(said for run in runs for said in _wrong(run)),
        ],
    )


def _wrong(run: Run) -> list[str]:
    """What contradicts itself: a result too few or too many, one without the command of it.

    A load that was put on twice cannot be seen here: the results database keeps one command of a
    name. `loads` counts processes.
    """
    is_finished = run.state == Run.State.FINISHED
    results = Measurement.objects.filter(run=run, metric__name="tps").count()
    commands = Command.objects.filter(run=run, step__startswith="pgbench", attempt=run.attempt)
    found = []
    if results != int(is_finished):
        found.append(f"run {run.pk} ({run.state}) has {results} results")
    if is_finished and not commands.exists():
        found.append(f"run {run.pk} has no command of pgbench")
    return found


def times(
    campaign_id: int,
) -> list[tuple[datetime, datetime, dict[str, tuple[datetime, datetime]]]]:
    """Of each run that finished: when it was claimed, when it finished, and when its steps ran.

    Runs that began more than once are left out.
    """
    found = []
    for run in Run.objects.filter(campaign_id=campaign_id, state=Run.State.FINISHED, attempt=1):
        claimed = run.events.filter(code="claimed").values_list("at", flat=True)
        finished_at = run.events.get(to_state=Run.State.FINISHED).at
        steps = Command.objects.filter(run=run, finished_at__isnull=False)
        if len(claimed) == 1:
            spans = {
                step: (begin, end)
                for step, begin, end in steps.values_list("step", "started_at", "finished_at")
                if begin and end
            }
            found.append((claimed[0], finished_at, spans))
    return found


# What storms measure: (scenario, levels, whether further clusters or the load are on another one).
TOGETHER: Sequence[tuple[str, dict[str, Any], str]] = (
    ("fixed-point-read", {"clients": (1,)}, ""),
    ("fixed-point-read", {"clients": (2,), "arrangement": ("sync", "async")}, "cluster_servers"),
    ("fixed-point-update", {"clients": (1,)}, ""),
    ("fixed-point-read", {"clients": (1,)}, "generators"),
    ("fixed-point-update", {"clients": (1,), "arrangement": ("quorum",)}, ""),
)


def queue_together(servers: Sequence[int], number: int) -> None:
    """Queue the next of TOGETHER on the next of these servers; four runs or more."""
    scenario, levels, further = TOGETHER[number % len(TOGETHER)]
    ids = [servers[(number + place) % len(servers)] for place in range(2)]

    def create() -> None:
        first, other = (Server.objects.select_related("hardware").get(pk=each) for each in ids)
        if {first.state, other.state} != {Server.State.READY}:
            return  # it waits until it is mended
        present = first.installations.filter(removed_at=None)
        definition = registry.get(scenario)
        parameters = {each.name: each.default for each in definition.parameters}
        draft = drafts.Draft(
            title=f"Storm {number}",
            scenario=scenario,
            server=first,
            installations=[each for each in present if each.major == "18"][:1],
            levels=levels,
            parameters=parameters | {"scale": 1, "duration": 3},
            repeats=4,
            remeasures=0,
            **({further: [other]} if further else {}),
        )
        campaigns.create(draft=draft)

    asked(create)


def _own() -> QuerySet[Run]:
    """The runs that were executed here: the archive has others."""
    return Run.objects.filter(origin="executed")


def waiting() -> int:
    """How many runs of this instance have not ended."""
    return asked(Run.objects.exclude(state__in=Run.ENDED).count)


@dataclass(frozen=True)
class Failed:
    """A run that failed: when its last attempt was measured, on which servers, and why."""

    pk: int
    code: str
    message: str
    machines: Sequence[int]
    began: datetime
    ended: datetime


def failed() -> list[Failed]:
    """Those that ended without a result."""

    def found() -> list[Failed]:
        runs = _own().filter(state__in=(Run.State.FAILED, Run.State.ERRORED))
        return [
            Failed(
                run.pk, run.code, run.message, machines_of(run), run.started_at or run.queued_at,
                run.finished_at or run.queued_at,
            )
            for run in runs
        ]  # fmt: skip

    return asked(found)


def contradictions() -> list[str]:
    """What must never be, of all runs of this instance; see `_wrong`."""
    return asked(lambda: [said for run in _own().defer("plan") for said in _wrong(run)])


def counted() -> tuple[dict[str, int], dict[str, int]]:
    """How many runs there are by state, and of those that failed by code."""

    def found() -> tuple[dict[str, int], dict[str, int]]:
        runs = list(_own().values_list("state", "code"))
        codes = Counter(code for state, code in runs if state == Run.State.FAILED)
        return dict(Counter(state for state, _code in runs)), dict(codes)

    return asked(found)


def is_over() -> bool:
    """Whether every run of this instance has ended."""
    return not waiting()
