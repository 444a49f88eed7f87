"""Writes what the engine reports about a run into the results database."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from runs.control_characters import neutralised
from runs.execution.errors import Detached, TargetProblem
from runs.execution.machine.target_facts import Facts
from runs.execution.reporter import Findings, Phase
from runs.execution.steps.steps import StepResult
from runs.models import Command, PreparedCluster, Run
from runs.queue.services import results, transitions
from runs.servers.services import machines, shared_machines
from runs.shared import database
from runs.tools.adapter import SeriesData

T = TypeVar("T")

logger = logging.getLogger(__name__)

# How much a command's record shows of each stream; where it matters the artifact has it all.
SHOWN_CHARACTERS = 16_000
WAITS_SECONDS = (0.5, 1, 2, 5, 10, 30, 60, 60, 60)
# Storing a step takes the interpreter from what begins the next one.
SECONDS_BEFORE_STORING = 0.03
AWAY = (OperationalError, InterfaceError)
_ONE_STEP = ("run", "attempt", "step")
# What a replayed step replaces.
_OF_A_STEP = [
    field.name
    for field in Command._meta.concrete_fields
    if not field.primary_key and field.name not in _ONE_STEP
]


class DatabaseReporter:
    """Writes reports for the holder of the lease `token`; survives short losses of the database.

    After a long loss each method raises Detached.

    A report about a run that now belongs to another worker is dropped: that worker may have
    finished it already.

    Steps and clusters are stored while the run goes on with its next step, since the machine that
    is measured must not wait for the results database; short ones that follow each other together.
    They are stored before the next phase and before the results, and `settle` waits for the last of
    them.
    """

    def __init__(self, *, run: Run, token: int, is_taken_over: bool = False) -> None:
        self.run = run
        self.token = token
        self.is_taken_over = is_taken_over
        self._commands = 0
        self._waiting: list[Callable[[], object]] = []
        self._writing: asyncio.Task[None] | None = None
        self._is_waited_for = asyncio.Event()

    async def phase(self, phase: Phase) -> None:
        """Change the state. Raises Detached when the run belongs to another worker now."""
        await self.settle()
        held = partial(transitions.transition, run_id=self.run.pk, token=self.token)
        if not await self._write(partial(held, to=phase, code=phase)):
            raise Detached

    async def command(self, host: str, result: StepResult) -> None:
        """Store a step; a replayed one updates the same row."""
        self._commands += 1
        command = _command(self.run, host, self._commands, result)
        await self._write_meanwhile(
            lambda: Command.objects.bulk_create(
                [command],
                update_conflicts=True,
                unique_fields=_ONE_STEP,
                update_fields=_OF_A_STEP,
            )
        )

    async def machine(self, name: str, facts: Facts | None) -> None:
        """Store the facts of a machine of the run; its server's page reports a change.

        Raises MachineTaken if it is the machine of another run in progress.
        """
        news: list[int] = []

        def keep() -> None:
            changed_id = machines.keep_found(
                run=self.run, name=name, facts=facts, is_taken_over=self.is_taken_over
            )
            news.extend([changed_id] if changed_id else [])

        def group() -> None:
            for server_id in news:
                if facts is not None:
                    shared_machines.keep(server_id=server_id, identity=facts.identity)
                shared_machines.require_free(self.run, server_id)

        await self._write_as_holder(keep)
        if news:
            await self._write(group)

    async def event(self, code: str, problem: TargetProblem) -> None:
        """Add a line to the run's history."""
        await self._write_as_holder(lambda: self._keep_event(code, problem))

    async def cluster(
        self, directory: str, *, prepared_now: bool, size: int = 0
    ) -> None:
        """Record which shared cluster the run uses, and which run made it."""
        await self._write_meanwhile(
            lambda: self._keep_cluster(directory, prepared_now, size)
        )

    async def found(self, findings: Findings) -> None:
        """Store the result, before anything of it is removed from the target. Raises Detached."""
        await self.settle()

        def store() -> bool:
            return results.store(
                run_id=self.run.pk, token=self.token, findings=findings
            )

        if not await self._write(store):
            raise Detached

    async def live_series(self, series: Sequence[SeriesData]) -> None:
        """Show progress."""
        await self._write_as_holder(
            lambda: results.store_series(run_id=self.run.pk, series=series)
        )

    def _keep_event(self, code: str, problem: TargetProblem) -> None:
        wording = problem.wording
        transitions.event_of(self.run, code, problem.message, wording=wording).save()
        if code == "cleanup_incomplete":
            transitions.sweep_later(self.run)

    def _keep_cluster(self, directory: str, prepared_now: bool, size: int) -> None:
        use: dict[str, Any] = {
            "campaign_id": self.run.campaign_id,
            "used_at": timezone.now(),
        }
        if prepared_now:
            use |= {"prepared_by": self.run, "bytes": size}
        cluster, _created = PreparedCluster.objects.update_or_create(
            server=self.run.server,
            directory=directory,
            removed_at=None,
            defaults=use,
            create_defaults={**use, "key": directory.rpartition("/")[2]},
        )
        Run.objects.filter(pk=self.run.pk).update(cluster=cluster)

    async def settle(self) -> None:
        """Wait until everything reported so far is stored. Raises Detached."""
        self._is_waited_for.set()
        try:
            while self._writing is not None:
                writing = self._writing
                await asyncio.shield(writing)
                if self._writing is writing:
                    self._writing = None
        finally:
            self._is_waited_for.clear()

    async def _write_meanwhile(self, write: Callable[[], object]) -> None:
        """Store it soon, in the order of the reports. Raises Detached if an earlier one failed."""
        self._waiting.append(write)
        if self._writing is not None and self._writing.done():
            await self.settle()
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_waiting())

    async def _write_waiting(self) -> None:
        while self._waiting:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SECONDS_BEFORE_STORING):
                    await self._is_waited_for.wait()
            writes, self._waiting = self._waiting, []
            await self._write_as_holder(*writes)

    async def _write_as_holder(self, *writes: Callable[[], object]) -> None:
        @transaction.atomic
        def write_if_held() -> None:
            if transitions.holds(self.run.pk, self.token):
                for write in writes:
                    write()

        await self._write(write_if_held)

    async def _write(self, write: Callable[[], T]) -> T:
        """Raises Detached if the database stays away: whoever takes over finds everything."""
        try:
            return await sync_to_async(lambda: retrying(write))()
        except AWAY as error:
            logger.exception(
                "results database stays away; run %s is let go of", self.run.pk
            )
            raise Detached from error


def _command(run: Run, host: str, ordinal: int, result: StepResult) -> Command:
    return Command(
        run=run,
        attempt=run.attempt,
        step=result.name,
        ordinal=ordinal,
        host=host,
        argv=list(result.argv),
        stdin=_shown(result.stdin),
        exit_status=result.exit_status,
        started_at=datetime.fromtimestamp(result.started, UTC),
        finished_at=datetime.fromtimestamp(result.finished, UTC),
        stdout=_shown(result.stdout),
        stderr=_shown(result.stderr),
        truncated=max(len(result.stdout), len(result.stderr)) > SHOWN_CHARACTERS,
    )


def retrying(write: Callable[[], T]) -> T:
    """Retry a write while the results database is away, for some minutes."""
    try:
        for wait in WAITS_SECONDS:
            try:
                return write()
            except AWAY:
                logger.warning(
                    "results database is away; trying again in %s s",
                    wait,
                    exc_info=True,
                )
                connection.close()
                time.sleep(wait)
        return write()
    finally:
        database.give_back()


def _shown(text: str) -> str:
    text = neutralised(text)
    if len(text) <= SHOWN_CHARACTERS:
        return text
    half = SHOWN_CHARACTERS // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters ...]\n{text[-half:]}"
