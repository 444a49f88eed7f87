"""Executing a claimed run: joins the engine with the results database."""

import logging
import threading
import traceback
from collections.abc import Mapping
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.db import connection, transaction
from django.utils.translation import gettext as _

from benchlab import logs
from runs.execution.director import Director
from runs.execution.errors import (
    Cancelled,
    CommandTimeout,
    Detached,
    EndNotSeen,
    HostKeyChanged,
    HostUnreachable,
    LoginRefused,
    ServerFault,
    TargetProblem,
    TargetRestarted,
    classify_worker_error,
)
from runs.execution.nodes import Place
from runs.execution.plan import RunPlan, UnreadablePlan
from runs.execution.ssh.hosts import Host
from runs.execution.ssh.reconnecting import Line
from runs.execution.steps.fence import LeaseLost
from runs.execution.turns import Turns
from runs.execution.watch import Order, clean_up_watched, execute_watched
from runs.models import Run, Server
from runs.queue.services import (
    attempts,
    leases,
    load_contents,
    plans,
    reporting,
    results,
    sweeping,
    transitions,
)
from runs.queue.services.leases import Claim
from runs.queue.services.supervision import held_here
from runs.scenarios import registry
from runs.servers.services import logins, servers
from runs.shared import database, worker_health
from runs.wording import gettext_noop

logger = logging.getLogger(__name__)

# Space is free again when the run that lacked it has what it needs.
DISK_CODES = frozenset(("disk_full", "disk_almost_full", "disk_too_small"))

# Set when this worker is asked to stop: it hands its runs over instead of waiting for them.
stopping = threading.Event()


def execute(claim: Claim) -> None:
    """Execute a claimed run to its end, whatever the result. Raises no error of the run itself.

    Each of those that are measured in turn with it has a thread of its own.
    """
    claims = (claim, *claim.led)
    turns = Turns([one_claim.run_id for one_claim in claims], _seed(claim))
    threads = [
        threading.Thread(
            target=_execute_led, args=(led_claim, turns), name=f"run {led_claim}"
        )
        for led_claim in claim.led
    ]
    # From now on all of them show signs of life.
    for led_claim in claim.led:
        held_here.hold(led_claim)
    for thread in threads:
        thread.start()
    try:
        _execute_held(claim, turns)
    finally:
        database.give_back()
        for thread in threads:
            thread.join()


def _seed(claim: Claim) -> str:
    """Of the order in each round: the same for a worker that takes the runs over."""
    if not claim.led:
        return ""
    run = Run.objects.select_related("campaign").only("repeat", "campaign__seed")
    seeded = run.get(pk=claim.run_id)
    return f"{seeded.campaign.seed}/{seeded.repeat}"


def _execute_led(claim: Claim, turns: Turns) -> None:
    try:
        _execute_held(claim, turns)
    finally:
        connection.close()


def _execute_held(claim: Claim, turns: Turns) -> None:
    held_here.hold(claim)
    try:
        with logs.bind_run(claim.run_id):
            _execute(claim, turns)
    finally:
        turns.leave(claim.run_id)
        held_here.let_go(claim)


def _execute(claim: Claim, turns: Turns) -> None:
    run = Run.objects.select_related("server__ssh_key", "campaign").get(pk=claim.run_id)
    try:
        if not attempts.has_lost_too_many_workers(run, claim):
            _conclude(run, claim, turns)
    except EndNotSeen as unseen:
        _enter(Run.State.LOST, run, claim, code="end_not_seen", message=str(unseen))
    except LeaseLost as lost:
        if leases.catch_up(
            claim=claim, seen_token=lost.token, server_id=lost.server_id
        ):
            logger.error(
                "it waits: a newer claim (%s, epoch %s) of its server is of another database",
                lost.token,
                lost.epoch,
            )
    except Detached:
        logger.info("run %s goes on elsewhere", run.pk)
    except UnreadablePlan as unreadable:
        problem = plans.other_version(unreadable)
        texts = {"message": problem.message, "remedy": problem.remedy}
        _enter(Run.State.ERRORED, run, claim, code=problem.code, **texts)
    except Exception:
        logger.exception("run %s ended in an error of BenchLab", run.pk)
        _enter(
            Run.State.ERRORED,
            run,
            claim,
            code="internal_error",
            message=traceback.format_exc(limit=-5).replace("\0", ""),
            remedy=_("This is a fault of BenchLab: please report it with this text."),
        )


def _enter(state: str, run: Run, claim: Claim, **event: Any) -> bool:
    is_entered = transitions.transition(
        run_id=run.pk, token=claim.token, to=state, **event
    )
    if is_entered and state not in Run.ACTIVE:
        logger.info("%s", _line_of_log(run, state, event))
    return is_entered


def _line_of_log(run: Run, state: str, event: Mapping[str, Any]) -> str:
    """Which run, where, and how it ended, in one line."""
    server = run.server.slug if run.server is not None else "no server"
    line = f"{run.campaign.slug} on {server}, attempt {run.attempt}: {state}"
    code = event.get("code", "")
    if code in {"", state}:
        return line
    return f"{line} ({code}): {str(event.get('message', ''))[:300]}".replace("\n", " ")


def _event_of(problem: TargetProblem) -> dict[str, Any]:
    return {
        name: getattr(problem, name)
        for name in ("code", "message", "wording", "remedy")
    }


def _conclude(run: Run, claim: Claim, turns: Turns) -> None:
    try:
        director = _director(run, claim, turns)
    except TargetProblem as problem:
        _hand_back(run, claim, problem)
        return
    # The previous worker may have stored the result and died before it could clean up.
    is_stored = claim.taken_over and run.measurements.exists()
    database.give_back()
    try:
        _work(director, claim, is_stored)
    except Cancelled:
        stopped = TargetProblem(
            gettext_noop("Stopped on the server."), code="cancelled"
        )
        _end(run, claim, director, Run.State.CANCELLED, stopped)
    except (HostUnreachable, HostKeyChanged, LoginRefused) as problem:
        _hand_back(run, claim, problem)
    except TargetRestarted as problem:
        # Whether it is started again, as its remedy says, is decided only now.
        event = _event_of(problem) | {"remedy": ""}
        attempts.start_again(run_id=run.pk, token=claim.token, **event)
    except ServerFault as fault:
        at_fault = Server.objects.filter(pk=fault.server_id or claim.server_id).first()
        if at_fault is not None and servers.is_gone(at_fault, fault.program):
            _end(run, claim, director, Run.State.FAILED, fault)
        else:
            _wait_for_server(run, claim, fault, director, at_fault)
    except TargetProblem as problem:
        if isinstance(problem, CommandTimeout) or director.cleaning.left_out:
            transitions.sweep_later(run)
        _end(run, claim, director, Run.State.FAILED, problem)
    else:
        # What the database says of its figures is not asked, where they are at hand.
        _finish(
            run, claim, None if is_stored else results.digest(director.bench.findings)
        )


def _work(director: Director, claim: Claim, is_stored: bool) -> None:
    try:
        async_to_sync(_watched)(director, claim, is_stored)
    except OSError as error:
        raise classify_worker_error(error) from error


async def _watched(director: Director, claim: Claim, is_stored: bool) -> None:
    turns = director.bench.turns

    async def pulse() -> Order:
        if stopping.is_set():
            return await sync_to_async(_let_go)(claim)
        if turns is not None and turns.is_in_vain(claim.run_id):
            return await sync_to_async(_let_go)(
                claim,
                "turns_stopped",
                "Another run of its round is left to another worker.",
            )
        return held_here.order_for(claim)

    execute_or_clean = clean_up_watched if is_stored else execute_watched
    try:
        await execute_or_clean(director, pulse, interval_s=settings.HEARTBEAT_SECONDS)
    except Detached:
        # What it measures goes on there. Another slice would overlap with it.
        if turns is not None:
            turns.stop()
        raise
    finally:
        if turns is not None:
            # It has ended on its machine: the others go on without it.
            turns.leave(claim.run_id)
        await director.bench.close()
        await director.reporter.settle()


def _let_go(claim: Claim, code: str = "worker_stopped", message: str = "") -> Order:
    """Hand a run over: the next claim has it at once."""
    transitions.transition(
        run_id=claim.run_id,
        to=Run.State.LOST,
        code=code,
        message=message,
        token=claim.token,
    )
    return "detach"


def _finish(run: Run, claim: Claim, figures: str | None) -> None:
    """Finish the run; its findings were stored before the target was cleaned up."""

    def is_now(state: str) -> bool:
        return _enter(state, run, claim, code=state, figures=figures)

    def say() -> None:
        # Whoever only cleaned up has not entered the state before.
        if not is_now(Run.State.FINISHED) and is_now(Run.State.COLLECTING):
            is_now(Run.State.FINISHED)

    reporting.retrying(say)


def _end(
    run: Run, claim: Claim, director: Director, state: str, why: TargetProblem
) -> None:
    def say() -> None:
        with transaction.atomic():
            end_findings = director.bench.findings
            if results.store(
                run_id=run.pk, token=claim.token, findings=end_findings, has_failed=True
            ):
                _enter(state, run, claim, **_event_of(why))

    reporting.retrying(say)


def _wait_for_server(
    run: Run,
    claim: Claim,
    fault: ServerFault,
    director: Director,
    at_fault: Server | None,
) -> None:
    """Hold the server before the run is given up, so that no other run of it meets the fault.

    The run is begun again when a check finds the server mended, as often as others are.
    """
    is_own = (fault.server_id or claim.server_id) == claim.server_id
    is_full = fault.code in DISK_CODES and is_own
    if is_full:
        fault.needed_bytes = max(fault.needed_bytes, director.preparing.needed_bytes)
    # Clusters that are kept for a next campaign take the room: the clean-up removes them.
    is_mended = is_full and sweeping.kept_clusters(claim.server_id).exists()
    if at_fault is not None and not is_mended:
        servers.hold(server=at_fault, fault=fault, run=run)
    transitions.sweep_later(run)

    def leave() -> None:
        attempts.start_again(run_id=run.pk, token=claim.token, **_event_of(fault))

    reporting.retrying(leave)


def _hand_back(run: Run, claim: Claim, problem: TargetProblem) -> None:
    """The server cannot be used now: the run waits for it, and the server's page says why.

    A cancelled run does not wait, since nothing could end it there until then.
    """
    away = Server.objects.filter(pk=problem.server_id or claim.server_id).first()
    if away is not None:
        servers.record_problem(server=away, problem=problem)
        worker_health.count_put_back(away.slug)

    @transaction.atomic
    def leave() -> None:
        if transitions.cancel_where_asked(
            run_id=run.pk, token=claim.token, is_out_of_reach=True
        ):
            return
        # A run that was already on the target is lost, not queued: something may still be there.
        if claim.taken_over or not _enter(
            Run.State.QUEUED, run, claim, **_event_of(problem)
        ):
            _enter(Run.State.LOST, run, claim, **_event_of(problem))

    reporting.retrying(leave)


def _director(run: Run, claim: Claim, turns: Turns | None = None) -> Director:
    plan = RunPlan.from_json(run.plan or {})
    if not registry.knows(plan.scenario):
        raise UnreadablePlan(plan.scenario)
    scenario = registry.find_by_levels(plan.scenario, plan.levels)
    server = run.server
    if server is None:
        raise ValueError(f"run {run.pk} has no server")
    return Director(
        plan=plan,
        attempt=run.attempt,
        instance=logins.instance_name(),
        places=_places(server, plan, claim),
        procedure=scenario.procedure,
        reporter=reporting.DatabaseReporter(
            run=run, token=claim.token, is_taken_over=claim.taken_over
        ),
        disk_bytes=scenario.procedure.sizes(
            {**plan.parameters, **plan.levels}
        ).disk_bytes,
        taken_over=claim.taken_over,
        turns=turns if plan.slice_s else None,
        load=load_contents.find_content(plan),
    )


def _places(server: Server, plan: RunPlan, claim: Claim) -> list[Place]:
    other_servers = Server.objects.select_related("ssh_key").in_bulk(
        [machine.server_id for machine in plan.others]
    )
    machines = [server, *(other_servers[machine.server_id] for machine in plan.others)]
    return [
        Place(
            _line(server),
            server.pk,
            claim.token,
            tuple(server.privileges),
            title=server.name,
            last_token=claim.last_tokens.get(server.pk),
            mark=claim.mark,
        )
        for server in machines
    ]


def _line(server: Server) -> Line:
    """The server's *current* address: a machine that moved to another port still has its runs.

    Raises TargetProblem `private_key_unreadable`.
    """
    try:
        login_way = logins.way_to(server)
    except TargetProblem as problem:
        problem.server_id = server.pk
        raise

    async def connect() -> Host:
        try:
            return await logins.connect_along(login_way)
        except TargetProblem as problem:
            problem.server_id = server.pk
            raise

    return Line(connect)
