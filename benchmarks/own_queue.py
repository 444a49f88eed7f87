"""The queue of a measurement's own instance. Import it when Django is set up for that instance."""

import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from django.db import InterfaceError, OperationalError, connection
from django.db.models.functions import Now

from runs.campaigns.services import campaigns, drafts
from runs.models import (
    Campaign,
    Command,
    Lease,
    Measurement,
    PreparedCluster,
    Run,
    Server,
)
from runs.queue.selectors.runs import machines_of
from runs.queue.services import transitions
from runs.scenarios import registry
from runs.servers.services import host_keys, servers
from runs.shared.errors import ServiceError

T = TypeVar("T")

SECONDS_BETWEEN_LOOKS, PATIENCE_SECONDS = 0.3, 120
# Who cancels, and how often a run at work.
STORM, AT_WORK = "storm: ", 0.6
JUST_NOW = timedelta(seconds=3)
# On each machine in a storm.
LEAST_WAITING = 2


def asked(question: Callable[[], T]) -> T:
    """Ask the results database, again while it is away."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return question()
        except (OperationalError, InterfaceError):
            connection.close()
            if time.monotonic() > until:
                raise
            time.sleep(SECONDS_BETWEEN_LOOKS)


def register(
    name: str, *, address: str = "127.0.0.1", must_be_ready: bool = True, **fields: Any
) -> int:
    """Register a server whose host key is known, and inspect it; its id."""
    server = servers.register(name=name, address=address, **fields)
    fingerprint = servers.fingerprint(server.offered_host_key)
    server = servers.inspect(
        server=host_keys.confirm(server=server, fingerprint=fingerprint)
    )
    if must_be_ready and server.state != Server.State.READY:
        raise SystemExit(f"the target is not ready: {server.problem}")
    return server.pk


def queue(
    title: str,
    server_id: int,
    *,
    repeats: int,
    duration: int = 2,
    rate: int = 0,
    remeasures: int = 1,
) -> int:
    """Queue short runs of one client; the campaign's id. Doubtful ones are measured again so often.

    With a rate (transactions a second) the load leaves the processors to others.
    """
    scenario = "fixed-point-read"
    levels: dict[str, Any] = {"clients": (1,)}
    parameters = {"duration": duration}
    if rate:
        scenario, parameters = "pgbench", parameters | {"rate": rate}
        levels |= {"script": ("select-only",), "scale": (1,)}
    else:
        parameters |= {"scale": 1}
    return asked(
        lambda: _create(
            title,
            scenario,
            server_id,
            levels,
            parameters,
            repeats,
            remeasures=remeasures,
        )
    ).pk


def queue_scripts(
    title: str,
    server_id: int,
    scripts: Sequence[str],
    *,
    clients: int,
    scale: int,
    duration: int,
    repeats: int,
    slice_seconds: int | None,
) -> int:
    """Queue pgbench with each of the scripts, such as `orders@3`; the campaign's id.

    Each run takes `duration` seconds, in slices unless `slice_seconds` is None.
    """
    levels = {"script": tuple(scripts), "scale": (scale,), "clients": (clients,)}
    campaign = _create(
        title,
        "pgbench",
        server_id,
        levels,
        {"duration": duration},
        repeats,
        remeasures=0,
        slice_seconds=slice_seconds,
    )
    return campaign.pk


def _create(
    title: str,
    scenario: str,
    server_id: int,
    levels: dict[str, Any],
    parameters: dict[str, Any],
    repeats: int,
    **further: Any,
) -> Campaign:
    """A campaign of PostgreSQL 18 on one server."""
    server = Server.objects.select_related("hardware").get(pk=server_id)
    present = server.installations.filter(removed_at=None)
    definition = registry.get(scenario)
    draft = drafts.Draft(
        title=title,
        scenario=scenario,
        server=server,
        installations=[each for each in present if each.major == "18"][:1],
        levels={each.name: each.default for each in definition.factors} | levels,
        parameters={each.name: each.default for each in definition.parameters}
        | parameters,
        repeats=repeats,
        **further,
    )
    return campaigns.create(draft=draft)


def holder(server_id: int) -> str:
    """Who has a server now, as HOST:PID; empty where nobody has."""
    lease = asked(lambda: Lease.objects.get(server_id=server_id))
    return lease.holder if lease.run_id else ""


@dataclass(frozen=True)
class Outcome:
    """The states of runs. `codes` are of those that did not finish, `wrong` must never be."""

    states: Counter[str]
    codes: Counter[str]
    attempts: int
    wrong: list[str]


def outcome(**of: object) -> Outcome:
    """Look at runs, such as those of a campaign, their measurements and their commands."""

    def found() -> Outcome:
        # The archive has others, which were not executed here.
        runs = list(Run.objects.filter(origin="executed", **of).defer("plan"))
        return Outcome(
            states=Counter(run.state for run in runs),
            codes=Counter(run.code for run in runs if run.state != Run.State.FINISHED),
            attempts=sum(run.attempt for run in runs),
            wrong=[said for run in runs for said in _wrong(run)],
        )

    return asked(found)


def is_idle(server_id: int) -> bool:
    """Whether nobody has the server, and neither a cluster nor a lost run waits for its removal."""
    held = Lease.objects.filter(server_id=server_id).exclude(run=None)
    kept = PreparedCluster.objects.filter(server_id=server_id, removed_at=None)
    # A clean-up that a fault has cut off is tried again after some time.
    unclean = Server.objects.filter(pk=server_id, needs_sweep=True)
    return asked(lambda: not (held.exists() or kept.exists() or unclean.exists()))


def _wrong(run: Run) -> list[str]:
    """What contradicts itself: a result too few or too many, one without the command of it.

    A load that was put on twice cannot be seen here: the results database keeps one command of a
    name. `loads` counts processes.
    """
    is_finished = run.state == Run.State.FINISHED
    results = Measurement.objects.filter(run=run, metric__name="tps").count()
    own_steps = Command.objects.filter(run=run, attempt=run.attempt)
    commands = own_steps.filter(step__regex=r"\A(pgbench|slice-)")
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
    for run in Run.objects.filter(
        campaign_id=campaign_id, state__in=Run.WITH_RESULT, attempt=1
    ):
        claimed = run.events.filter(code="claimed").values_list("at", flat=True)
        finished_at = run.events.get(to_state=Run.State.FINISHED).at
        steps = Command.objects.filter(run=run, finished_at__isnull=False)
        if len(claimed) == 1:
            spans = {
                step: (begin, end)
                for step, begin, end in steps.values_list(
                    "step", "started_at", "finished_at"
                )
                if begin and end
            }
            found.append((claimed[0], finished_at, spans))
    return found


# What storms measure: (scenario, levels, whether further clusters or the load are on another one,
# or whether its runs take turns in slices).
IN_TURN = "slice_seconds"
ALONE: Sequence[tuple[str, dict[str, Any], str]] = (
    ("fixed-point-read", {"clients": (1,)}, ""),
    (
        "pgbench",
        {"script": ("select-only",), "scale": (1,), "clients": (1, 2)},
        IN_TURN,
    ),
    ("fixed-point-update", {"clients": (1,)}, ""),
    ("fixed-point-update", {"clients": (1,), "arrangement": ("quorum",)}, ""),
)
TOGETHER: Sequence[tuple[str, dict[str, Any], str]] = (
    (
        "fixed-point-read",
        {"clients": (2,), "arrangement": ("sync", "async")},
        "cluster_servers",
    ),
    ("fixed-point-read", {"clients": (1,)}, "generators"),
)


def keep_waiting(first: int, other: int, number: int) -> None:
    """Queue some runs on a server: alone, and together with another one, where few of them wait.

    Those that need another machine wait for as long as that is held; the others do not.
    """
    for name, kinds in (("alone", ALONE), ("together", TOGETHER)):
        title = f"Storm, {name}"
        if waiting(server=first, campaign__title=title) >= LEAST_WAITING:
            continue
        scenario, levels, further = kinds[number % len(kinds)]
        try:
            asked(partial(_queue, title, scenario, levels, further, first, other))
        except ServiceError as refused:  # what a fault has just taken from one of them
            print(f"    not queued: {refused}", flush=True)


def _queue(
    title: str,
    scenario: str,
    levels: dict[str, Any],
    further: str,
    first: int,
    other: int,
) -> None:
    keys = (first, other) if further not in {"", IN_TURN} else (first,)
    both = Server.objects.select_related("hardware").filter(pk__in=keys)
    # One that is not ready waits until it is mended.
    if {each.state for each in both} == {Server.State.READY}:
        parameters, options, repeats = {"scale": 1, "duration": 3}, {}, 4
        if further == IN_TURN:
            parameters, options, repeats = {"duration": 4}, {IN_TURN: 1}, 2
        elif further:
            options = {further: [each for each in both if each.pk == other]}
        _create(
            title, scenario, first, levels, parameters, repeats, remeasures=0, **options
        )


def waiting(**of: object) -> int:
    """How many runs of this instance have not ended, such as those of a server."""
    return asked(Run.objects.filter(**of).exclude(state__in=Run.ENDED).count)


def failed() -> list[tuple[Run, Sequence[int]]]:
    """Those that ended without a result, each with the servers on which it was measured."""

    def found() -> list[tuple[Run, Sequence[int]]]:
        ended = (Run.State.FAILED, Run.State.ERRORED)
        runs = Run.objects.filter(origin="executed", state__in=ended)
        return [(run, machines_of(run)) for run in runs]

    return asked(found)


def cancel_run(chance: random.Random) -> bool:
    """Cancel one run, mostly one at work; whether there was any."""

    def cancel() -> bool:
        waiting_runs = list(Run.objects.exclude(state__in=Run.ENDED).defer("plan"))
        active = [run for run in waiting_runs if run.state in Run.ACTIVE]
        candidates = active if chance.random() < AT_WORK else waiting_runs
        if not candidates:
            return False
        run = chance.choice(candidates)
        transitions.cancel(run=run, by=f"{STORM}run {run.pk}")
        return True

    return _unless_ended(cancel)


def cancel_campaign(chance: random.Random) -> bool:
    """Cancel one campaign that goes on; whether there was any."""

    def cancel() -> bool:
        live = list(Campaign.objects.filter(state__in=Campaign.LIVE))
        if not live:
            return False
        campaign = chance.choice(live)
        campaigns.cancel(campaign=campaign, by=f"{STORM}campaign {campaign.pk}")
        return True

    return _unless_ended(cancel)


def _unless_ended(cancel: Callable[[], bool]) -> bool:
    try:
        return asked(cancel)
    except ServiceError:
        return False


def name_of(server_id: int) -> str:
    """A server's name."""
    return asked(lambda: Server.objects.get(pk=server_id).name)


def machine_id_of(server_id: int) -> str:
    """The machine-id that a server has shown last."""
    identity = asked(lambda: Server.objects.get(pk=server_id).identity)
    return str(identity.get("machine_id", ""))


def is_blamed(server_ids: Collection[int], codes: Collection[str]) -> bool:
    """Whether one of these servers was just found not to be usable for one of these reasons."""
    blamed = Server.objects.filter(
        pk__in=server_ids, problem_code__in=codes, checked_at__gt=Now() - JUST_NOW
    )
    return asked(blamed.exists)


def blamed() -> dict[int, str]:
    """The servers that cannot be used now, each with its code."""
    # Nobody has looked yet at one that has just been registered.
    rows = Server.objects.exclude(state=Server.State.READY).exclude(problem_code="")
    return asked(lambda: dict(rows.values_list("pk", "problem_code")))


def inspect(server_ids: Collection[int]) -> None:
    """Look at servers, as a person does who wants to know which machines they are."""
    for server_id in server_ids:
        server = asked(partial(Server.objects.get, pk=server_id))
        asked(partial(servers.inspect, server=server))


def finished() -> int:
    """How many runs have finished here."""
    runs = Run.objects.filter(origin="executed", state=Run.State.FINISHED)
    return asked(runs.count)


def is_over() -> bool:
    """Whether every run of this instance has ended."""
    return not waiting()
