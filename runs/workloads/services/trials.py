"""Trials of workloads: own scripts, run once on a scratch cluster of a registered server.

What only a server knows is found here before anything is queued: SQL, tables, columns, and what
never ends. The server's lease stays locked meanwhile, so nothing is measured at the same time.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from asgiref.sync import async_to_sync
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.execution.clusters import scratch
from runs.execution.clusters.scratch import Failure, Programs
from runs.execution.errors import TargetProblem
from runs.execution.plan import WorkloadContent
from runs.execution.ssh.hosts import CLOSING_SECONDS
from runs.execution.steps.base_dir import BaseDir
from runs.models import Installation, Server
from runs.queue.services import leases
from runs.servers.services import logins, tools
from runs.shared.errors import Fault, ServiceError
from runs.tools.pgbench import UnsupportedByToolError
from runs.wording import gettext_noop
from runs.workloads.services import workloads

# With what happens after that: the cluster is removed, the connection closed.
WHOLE_SECONDS = scratch.TRIAL_SECONDS + scratch.CLEANING_SECONDS + CLOSING_SECONDS
SERVER_BUSY = "server_busy"
_SENTENCES = {
    "sql_error": gettext_lazy("PostgreSQL %(version)s says: %(said)s"),
    "bad_command": gettext_lazy("pgbench says: %(said)s"),
    "never_ends": gettext_lazy(
        "It does not end within %(seconds)d s at scale 1. If that is wanted, give the campaign the "
        "setting statement_timeout."
    ),
    "not_initialised": gettext_lazy("The tables cannot be created: %(said)s"),
}


def tried(
    *,
    server: Server,
    content: WorkloadContent,
    installation: Installation | None = None,
) -> list[Fault]:
    """What is wrong with a workload, also in the eyes of a server; by default of its newest one.

    Nothing is run of scripts that have faults by themselves. Raises ServiceError `server_busy`,
    `missing_program`, and those of connecting.
    """
    if faults_of_content := workloads.faults(content):
        return faults_of_content
    present = tools.installed([server])[server.pk]
    chosen = tools.tools_among(present)
    newest = max(
        present, key=lambda installation: installation.version_num, default=None
    )
    subject = installation or newest
    if chosen is None or subject is None:
        message = _("%(server)s has no pgbench or no psql.") % {"server": server.name}
        raise ServiceError(
            "missing_program", message, remedy=_("Choose another server.")
        )
    programs = Programs(
        bindir=subject.bindir,
        version_num=subject.version_num,
        client_bindir=chosen.pgbench.bindir,
        client_version_num=chosen.pgbench.pgbench_version_num
        or chosen.pgbench.version_num,
        psql_bindir=chosen.psql.bindir,
    )
    marked_at = _mark(server)
    try:
        failures = _failures(server, programs, content)
    except UnsupportedByToolError as error:
        _unmark(server, marked_at)
        return [Fault("/scripts", "unsupported_by_tool", str(error))]
    except ServiceError as error:
        if error.code == SERVER_BUSY:  # nothing was begun
            _unmark(server, marked_at)
        raise
    _unmark(server, marked_at)
    return [_fault(failure, subject) for failure in failures]


def _mark(server: Server) -> datetime:
    """Before a trial begins: what a worker that is lost leaves there is cleaned up by a sweep.

    No run starts on the server until then.
    """
    now = timezone.now()
    Server.objects.filter(pk=server.pk, needs_sweep=False).update(
        needs_sweep=True, sweep_after=now
    )
    return now


def _unmark(server: Server, marked_at: datetime) -> None:
    """Nothing is left, unless somebody has asked for a clean-up meanwhile, or before."""
    own_server = Server.objects.filter(pk=server.pk, sweep_after=marked_at)
    own_server.update(needs_sweep=False, sweep_after=None)


@transaction.atomic
def _failures(
    server: Server, programs: Programs, content: WorkloadContent
) -> list[Failure]:
    if leases.idle_lease(server.pk) is None:
        message = _("%(server)s is measuring, or not ready.") % {"server": server.name}
        remedy = _("Try again when its run has ended, or choose another server.")
        raise ServiceError(SERVER_BUSY, message, remedy=remedy)
    base = BaseDir(server.base_dir, logins.instance_name())
    try:
        login_way = logins.way_to(server)
        return async_to_sync(_try_on)(login_way, base, programs, content, server.name)
    except TargetProblem as problem:
        raise logins.refused(problem) from problem


async def _try_on(
    login_way: logins.Way,
    base: BaseDir,
    programs: Programs,
    content: WorkloadContent,
    name: str,
) -> list[Failure]:
    try:
        async with (
            asyncio.timeout(scratch.TRIAL_SECONDS),
            await logins.connect_along(login_way) as host,
        ):
            return await scratch.tried(host, base, programs, content)
    except TimeoutError as error:
        # A machine that is silent is noticed before that: these are long scripts, or many.
        raise TargetProblem(
            _("The scripts did not end within %(seconds)s s on %(name)s."),
            code="trial_too_long",
            remedy=gettext_noop("Try fewer scripts at once, or shorter ones."),
            seconds=f"{scratch.TRIAL_SECONDS:.0f}",
            name=name,
        ) from error


def _fault(failure: Failure, installation: Installation) -> Fault:
    words = {
        "version": installation.version,
        "said": failure.output,
        "seconds": scratch.LOAD_SECONDS
        if failure.script is None
        else scratch.STATEMENT_SECONDS,
    }
    sentence = str(_SENTENCES[failure.code]) % words
    line_text = _("Line %(line)d: ") % {"line": failure.line} if failure.line else ""
    pointer = "/init_sql" if failure.script is None else f"/scripts/{failure.script}"
    if failure.code == "not_initialised":
        pointer = "/init_options"
    return Fault(pointer, failure.code, f"{line_text}{sentence}")


def messages(faults: Sequence[Fault], content: WorkloadContent) -> list[str]:
    """The faults for people, each with the name of its script."""
    names = {
        f"/scripts/{position}": script.name
        for position, script in enumerate(content.scripts)
    }
    named_messages = [(names.get(fault.pointer, ""), fault.message) for fault in faults]
    return [
        f"{name}: {message}" if name else message for name, message in named_messages
    ]
