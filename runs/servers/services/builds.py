"""Builds of commits on servers, for bisections: only where an administrator has allowed it.

A build executes the code of its commit as BenchLab's account on that server. A worker begins it as
a durable step, and looks at it from time to time; nothing is measured there until it has ended. It
goes on only while a bisection waits for it.
"""

import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from runs import celery_messages
from runs.access.services import audit
from runs.execution import building
from runs.execution.building import Ended
from runs.execution.errors import (
    OUT_OF_REACH,
    CommandTimeout,
    ConnectionLost,
    TargetProblem,
    TooFewSessions,
)
from runs.execution.ssh.hosts import Host
from runs.execution.steps.base_dir import BaseDir, is_plain_path
from runs.models import Bisection, Build, Installation, Run, Server
from runs.queue.services import leases
from runs.servers.services import logins, servers
from runs.shared.errors import ServiceError

logger = logging.getLogger(__name__)

# Installations of a server that were built; those used last stay.
MOST_KEPT = 20
# A worker that looks longer than that is gone.
LOOK = timedelta(seconds=120)
OVERDUE = timedelta(seconds=building.MOST_SECONDS + 300)
State = Build.State
# A busy machine, or one that is away, says nothing of what goes on there.
LOOKED_AT_AGAIN = (*OUT_OF_REACH, ConnectionLost, CommandTimeout, TooFewSessions)
Found = TypeVar("Found")
WORDS = {
    "build_failed": gettext_noop("configure, make or make install has failed."),
    "build_interrupted": gettext_noop(
        "The build has vanished: the server was restarted."
    ),
    "no_clone": gettext_noop(
        "The folder to build from is no repository that BenchLab can read."
    ),
    "no_source": gettext_noop("The commit has no source of PostgreSQL."),
    "not_usable": gettext_noop("The build is not a usable PostgreSQL."),
    "missing_program": gettext_noop("A program is missing that a build needs."),
    "too_long": gettext_noop("The build took longer than an hour, and was ended."),
    "unknown_commit": gettext_noop("No branch or tag of the clone has this commit."),
}


@transaction.atomic
def allow(*, server: Server, clone: str, options: Sequence[str] = ()) -> Server:
    """Let commits of this clone be built on a server, with these options of configure.

    An empty clone ends that: what goes on is ended, and what was built stays. Raises ServiceError
    `path_not_plain`, `bad_option`.
    """
    if clone and not is_plain_path(clone):
        message = _("%(path)s is not a path that BenchLab can use.") % {"path": clone}
        raise ServiceError("path_not_plain", message, field="build_from")
    for option in options:
        if (
            option.startswith(("--prefix", "--exec-prefix", "--bindir"))
            or "\0" in option
        ):
            message = _("%(option)s is set by BenchLab.") % {"option": option}
            raise ServiceError("bad_option", message, field="build_options")
    locked = Server.objects.select_for_update().get(pk=server.pk)
    before = {"build_from": locked.build_from, "build_options": locked.build_options}
    after = {"build_from": clone, "build_options": list(options)}
    Server.objects.filter(pk=server.pk).update(**after)
    audit.record("builds_allowed", server, before=before, after=after)
    server.refresh_from_db()
    return server


def may_build(server: Server) -> bool:
    """Whether an administrator has allowed it."""
    return bool(server.build_from and server.base_dir)


@transaction.atomic
def ask(*, server: Server, commit: str) -> Build:
    """The build of a commit, a new one where none is there or on its way."""
    done = Build.objects.filter(server=server, commit=commit, state=State.DONE).first()
    if done is not None and installation(done) is None:
        # Somebody has removed it, or an inspection did not find it any more.
        Build.objects.filter(pk=done.pk).update(state=State.REMOVED)
    bindir = building.bindir_of(_base(server), commit)
    build, is_new = Build.objects.get_or_create(
        server=server,
        commit=commit,
        state__in=Build.LIVE,
        defaults={"bindir": bindir, "options": list(server.build_options)},
    )
    if is_new:
        audit.record("build_asked_for", server, after={"commit": commit})
        celery_messages.build(build.pk)
    return build


def installation(build: Build) -> Installation | None:
    """What was built, if it is there."""
    installations = Installation.objects.filter(
        server=build.server_id, bindir=build.bindir
    )
    return (
        installations.filter(removed_at=None).first()
        if build.state == State.DONE
        else None
    )


def wake() -> None:
    """Let workers look at all builds that have not ended."""
    for build_id in Build.objects.filter(state__in=Build.OPEN).values_list(
        "pk", flat=True
    ):
        celery_messages.build(build_id)


def carry_on(*, build_id: int) -> None:
    """Begin a build or look at it, unless another worker does."""
    free = Build.objects.filter(pk=build_id, state__in=Build.OPEN).exclude(
        looked_at__gt=timezone.now() - LOOK
    )
    if not free.update(looked_at=timezone.now()):
        return
    build = Build.objects.select_related("server__ssh_key", "server__jump").get(
        pk=build_id
    )
    try:
        _carry_on(build)
    except LOOKED_AT_AGAIN as problem:
        logger.info("build %d is looked at again: %s", build_id, problem.message)
    except (TargetProblem, ServiceError) as problem:
        if build.state != State.BUILDING or _is_stopped(build):
            _end(build, State.FAILED, problem.code, message=problem.message)
    finally:
        Build.objects.filter(pk=build_id).update(looked_at=None)


def _carry_on(build: Build) -> None:
    is_overdue = (
        build.started_at is not None and build.started_at < timezone.now() - OVERDUE
    )
    if is_overdue or not _is_wanted(build):
        if build.state == State.BUILDING and not _is_stopped(build):
            return
        _end(
            build,
            State.FAILED if is_overdue else State.CANCELLED,
            "too_long" * is_overdue,
        )
        return
    if build.state == State.WAITING:
        if not _begin(build):
            return
        # Remove what was built longest ago, if there is much of it and no run waits for it.
        built = Build.objects.filter(server=build.server_id, state=State.DONE).order_by(
            "-ended_at"
        )
        for old_build in built.select_related("server")[MOST_KEPT - 1 :]:
            if not _is_used(old_build):
                remove(build=old_build)
    ended = _do_on_server(build, _built)
    if ended is None:
        return
    if ended.is_done and _registered(build):
        _end(build, State.DONE)
    elif _is_stopped(build):
        code = "not_usable" if ended.is_done else ended.code
        _end(build, State.FAILED, code, log="" if ended.is_done else ended.log)


def _is_wanted(build: Build) -> bool:
    """Whether a bisection waits for it, and it is still allowed."""
    waiting = Bisection.objects.filter(
        server=build.server_id, state=Bisection.State.RUNNING, is_building=True
    )
    is_awaited = any(
        build_entry["commit"] == build.commit
        for builds in waiting.values_list("builds", flat=True)
        for build_entry in builds
    )
    return is_awaited and may_build(build.server)


@transaction.atomic
def _begin(build: Build) -> bool:
    """Take the server, if nothing is measured there and nothing else is built."""
    lease = leases.idle_lease(build.server_id)
    is_busy = Build.objects.filter(
        server=build.server_id, state=State.BUILDING
    ).exists()
    if lease is None or is_busy:
        return False
    build.state, build.started_at = State.BUILDING, timezone.now()
    build.save(update_fields=["state", "started_at"])
    return True


def _do_on_server(
    build: Build, act: Callable[[Host, BaseDir, Build], Coroutine[Any, Any, Found]]
) -> Found:
    """Do something on the build's server. Raises TargetProblem and what `readable_way` raises."""
    # Before the machine is asked: within that the results database is not to be had.
    login_way, base = servers.readable_way(build.server), _base(build.server)

    async def done() -> Found:
        async with await logins.connect_along(login_way) as host:
            return await act(host, base, build)

    return logins.ask(done(), build.server)


async def _built(host: Host, base: BaseDir, build: Build) -> Ended | None:
    clone = build.server.build_from
    return await building.carry_on(host, base, clone, build.commit, build.options)


def _is_stopped(build: Build) -> bool:
    """End a build on its server; False where it may go on, so that nothing is measured there."""
    try:
        _do_on_server(build, _stopped)
    except (TargetProblem, ServiceError) as problem:
        logger.warning("build %d may go on: %s", build.pk, problem.message)
        return False
    return True


async def _stopped(host: Host, base: BaseDir, build: Build) -> None:
    await building.stop(host, base, build.commit)
    try:
        await building.remove(host, base, build.commit)
    except TargetProblem as problem:
        # What is left disturbs nothing that is measured.
        logger.warning("build %d was not removed: %s", build.pk, problem.message)


async def _removed(host: Host, base: BaseDir, build: Build) -> None:
    await building.remove(host, base, build.commit)


def _registered(build: Build) -> bool:
    servers.add_bindirs(server=build.server, bindirs=[build.bindir])
    servers.inspect(server=Server.objects.get(pk=build.server_id))
    present = Installation.objects.filter(server=build.server_id, bindir=build.bindir)
    return present.filter(removed_at=None).exists()


def remove_all(*, server: Server) -> int:
    """Remove what was built on a server, but for what runs wait for; returns how many.

    Raises TargetProblem.
    """
    built = list(
        Build.objects.filter(server=server, state=State.DONE).select_related("server")
    )
    unused = [build for build in built if not _is_used(build)]
    for build in unused:
        remove(build=build)
    return len(unused)


def _is_used(build: Build) -> bool:
    waiting = Run.objects.filter(
        cell__installation__bindir=build.bindir,
        cell__installation__server=build.server_id,
    )
    return waiting.exclude(state__in=Run.ENDED).exists()


def remove(*, build: Build) -> None:
    """Remove an installation that was built. Raises TargetProblem."""
    _do_on_server(build, _removed)
    Installation.objects.filter(server=build.server_id, bindir=build.bindir).update(
        removed_at=timezone.now()
    )
    server = Server.objects.get(pk=build.server_id)
    server.bindirs = [bindir for bindir in server.bindirs if bindir != build.bindir]
    server.save(update_fields=["bindirs"])
    _end(build, State.REMOVED)


def _base(server: Server) -> BaseDir:
    return BaseDir(server.base_dir, logins.instance_name())


def _end(
    build: Build, state: str, code: str = "", *, message: str = "", log: str = ""
) -> None:
    details = {"code": code, "message": message or WORDS.get(code, ""), "log": log}
    before = Build.objects.filter(pk=build.pk, state__in=Build.LIVE)
    before.update(state=state, ended_at=timezone.now(), **details)
    # What was waiting for the end of the build may be measured now.
    celery_messages.wake(build.server_id)
