"""Servers: registering, confirming the host key, and discovering the machine."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import ProtectedError, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from runs import celery_messages
from runs.access.services import audit
from runs.execution.bench import NOT_A_PROGRAM, missing_program
from runs.execution.errors import (
    CommandTimeout,
    ConnectionLost,
    HostKeyChanged,
    HostUnreachable,
    ServerFault,
    TargetProblem,
    TooFewSessions,
    WorkerFault,
)
from runs.execution.machine import privileged
from runs.execution.machine.target_facts import Facts, discover
from runs.execution.ssh import hosts
from runs.execution.ssh.hosts import Host
from runs.execution.steps.base_dir import LONGEST_BASE_DIR, BaseDir, is_plain_path
from runs.execution.steps.steps import disk_too_small
from runs.models import (
    Installation,
    Lease,
    Run,
    Server,
    ServerEvent,
    SSHKey,
    Topology,
    TopologyNode,
)
from runs.models.servers import NodeRole
from runs.servers.services import host_keys, logins, machines, shared_machines, ssh_keys
from runs.shared import slugs, worker_health
from runs.shared.errors import Problem, ServiceError
from runs.wording import gettext_noop, say_stored

# Cannot be slugs: they are the addresses of other pages.
NOT_SLUGS = frozenset(("new", "keys"))
# Problems that may have gone by the next check, without anybody fixing something here.
PASSING = (HostUnreachable, ConnectionLost, CommandTimeout)
SUDO_REFUSES = gettext_noop("sudo does not allow it")
# If these were edited during an inspection, it has looked at something else.
_LOOKED_AT = ("address", "port", "username", "base_dir", "jump_id", "ssh_key_id")


def public_key() -> str:
    """The line that a server's `authorized_keys` needs."""
    return ssh_keys.default().public_key


def fingerprint(host_key: str) -> str:
    """`SHA256:...` of a public host key line."""
    return hosts.fingerprint(host_key)


def register(
    *,
    name: str,
    address: str,
    port: int,
    username: str,
    base_dir: str,
    bindirs: list[str],
    ssh_key: SSHKey | None = None,
    jump: Server | None = None,
    site: str = "",
    asks: bool = True,
) -> Server:
    """Ask the machine for its host key and store it for a person to confirm.

    Unless it `asks`, the key is fetched later, by a check (`server_checks.look_at`). Without a base
    directory it is only a hop. BenchLab does not log in or execute anything yet, except on the hops
    on the way. Raises ServiceError `host_unreachable`, `server_exists`, `base_dir_too_long`, and
    those of `logins.check_jump`.
    """
    server = Server(
        name=name,
        address=address,
        port=port,
        username=username,
        base_dir=base_dir.rstrip("/") or base_dir,
        bindirs=bindirs,
        ssh_key=ssh_key or ssh_keys.default(),
        jump=jump,
        site=site,
    )
    check(server)
    if asks:
        server.offered_host_key = offered_host_key(server)
    return _store(server)


@transaction.atomic
def delete(*, server: Server) -> None:
    """Delete a server whose host key nobody has confirmed, such as one with a mistyped address.

    BenchLab has never logged in there, so it has left nothing. Raises ServiceError
    `server_was_confirmed`, and `server_in_use` if a run, campaign, schedule or bisection names it.
    """
    server = Server.objects.select_for_update().get(pk=server.pk)
    if server.host_key:
        message = _("Only a server whose host key nobody has confirmed can be deleted.")
        remedy = _("Put it under maintenance: then no run starts on it.")
        raise ServiceError("server_was_confirmed", message, remedy=remedy)
    details = described(server)
    try:
        if server.schedules.exists() or server.bisections.exists():
            raise _refuse_in_use(server)
        Topology.objects.filter(slug=_single(server)).delete()
        server.delete()
    except ProtectedError as error:
        raise _refuse_in_use(server) from error
    audit.record("server_deleted", server, before=details)


def _refuse_in_use(server: Server) -> ServiceError:
    message = _("Runs, campaigns, schedules or bisections need %(server)s.")
    remedy = _("Edit it instead of deleting it.")
    return ServiceError(
        "server_in_use", message % {"server": server.name}, remedy=remedy
    )


def check(server: Server) -> None:
    """Raise ServiceError for what a server must not have: bad paths, a duplicate, a wrong hop."""
    _check_paths(server.base_dir, server.bindirs)
    same = Server.objects.filter(
        address=server.address,
        port=server.port,
        username=server.username,
        jump=server.jump,
    )
    if same.exclude(pk=server.pk).exists():
        message = _("%(address)s is registered already.")
        message %= {"address": f"{server.username}@{server.address}:{server.port}"}
        remedy = _("Open it in the list of servers.")
        raise ServiceError("server_exists", message, remedy=remedy, field="address")
    logins.check_jump(server, server.jump)


@transaction.atomic
def add_bindirs(*, server: Server, bindirs: Sequence[str]) -> Server:
    """Search these folders for PostgreSQL too, from the next inspection on.

    Raises ServiceError `path_not_plain`.
    """
    server = Server.objects.select_for_update().get(pk=server.pk)
    _check_paths(server.base_dir, list(bindirs))
    was = {"bindirs": server.bindirs}
    server.bindirs = list(dict.fromkeys([*server.bindirs, *bindirs]))
    server.save(update_fields=["bindirs"])
    audit.record(
        "server_changed", server, before=was, after={"bindirs": server.bindirs}
    )
    return server


def inspect(*, server: Server) -> Server:
    """Log in, claim the base directory, discover hardware, OS and installations; store the result.

    A fault of the target is not raised: it becomes the server's state and problem, with the
    remedy, for the page. On a hop this only logs in. Nothing is stored if the server was edited
    meanwhile: its new address has to be looked at. Raises ServiceError `host_key_not_confirmed`,
    `private_key_unreadable`.
    """
    if not server.host_key:
        raise not_confirmed()
    login_way, facts_and_space, gone = readable_way(server), None, list[str]()
    try:
        if server.is_only_a_hop:
            logins.ask(logins.greet(login_way), server)
        else:
            base = BaseDir(server.base_dir, logins.instance_name())
            look = _look(server, login_way, base, _needs(server))
            facts_and_space, gone = logins.ask(look, server)
    except TargetProblem as problem:
        return record_problem(server=server, problem=problem)
    if facts_and_space is None:
        return _keep(server, None)
    facts, _free_bytes = facts_and_space
    if owner := shared_machines.has_its_folder(server, facts.identity):
        return record_problem(server=server, problem=_folder_is_shared(server, owner))
    _keep(server, facts_and_space, gone)
    shared_machines.keep(server_id=server.pk, identity=facts.identity)
    return Server.objects.get(pk=server.pk)


def _folder_is_shared(server: Server, owner: Server) -> TargetProblem:
    return TargetProblem(
        gettext_noop(
            "%(path)s is the base directory of %(server)s, which is the same machine."
        ),
        code="base_dir_foreign",
        remedy=gettext_noop(
            "Give each registration of a machine a base directory of its own."
        ),
        path=server.base_dir,
        server=owner.name,
    )


def not_confirmed() -> ServiceError:
    """The error of whoever wants to log in to a server whose host key no person has compared."""
    message = _("The host key of this server is not confirmed yet.")
    remedy = _("Compare the fingerprint on the server and confirm it here.")
    return ServiceError("host_key_not_confirmed", message, remedy=remedy)


def not_ready(server: Server, field: str) -> Problem:
    """Why no campaign can be queued for a server."""
    message = say_stored(server.wording, server.problem, _)
    message = message or _("Server %(server)s is not ready.") % {"server": server.name}
    mend = _("Inspect it on its page, or choose another.")
    remedy = _(server.problem_remedy) if server.problem_remedy else mend
    return Problem(server.problem_code or "server_not_ready", message, remedy, field)


def record_problem(*, server: Server, problem: TargetProblem) -> Server:
    """Store why a server cannot be used now; fetch a changed host key for confirmation.

    Nothing is stored if the server was edited since it was read, as in `inspect`, nor if it is this
    worker's own host that is at fault: then the worker pauses.
    """
    if isinstance(problem, WorkerFault):
        worker_health.note(problem.message)
        return server
    is_at_a_hop = problem.code.startswith("hop_")
    offered = ""
    if isinstance(problem, HostKeyChanged) and not is_at_a_hop:
        with contextlib.suppress(ServiceError):
            offered = offered_host_key(server)
            host_keys.note_changed(server, offered)
    state = Server.State.UNREACHABLE
    # Behind a hop that is fixed, the server answers again without anybody checking it.
    if not is_at_a_hop and not isinstance(problem, PASSING):
        state = Server.State.REFUSED
    _unedited(server).update(
        state=state,
        needs={"since": timezone.now().isoformat(), **server.needs},
        problem_code=problem.code,
        problem=problem.message,
        wording=problem.wording,
        problem_remedy=problem.remedy,
        offered_host_key=offered,
        checked_at=timezone.now(),
    )
    server.refresh_from_db()
    return server


def hold(*, server: Server, fault: ServerFault, run: Run) -> None:
    """No run starts on the server until a check finds the fault mended that this run has met."""
    server.needs = {
        "run": run.pk,
        "free_bytes": fault.needed_bytes,
        "mount": fault.mount,
        "privilege": fault.privilege,
        "program": fault.program,
        "gone": server.needs.get("gone", []),
    }
    record_problem(server=server, problem=fault)


def is_gone(server: Server, program: str) -> bool:
    """Whether checks have found for an hour that a program does not start there."""
    return bool(program) and program in server.needs.get("gone", ())


def described(server: Server) -> dict[str, Any]:
    """What the audit trail keeps of a registration."""
    names = ("name", "address", "port", "username", "base_dir", "bindirs", "site")
    return {
        **{name: getattr(server, name) for name in names},
        "privileges": server.privileges,
        "ssh_key": server.ssh_key.name,
        "jump": server.jump.slug if server.jump else None,
    }


@transaction.atomic
def single_topology(*, server: Server) -> Topology:
    """The topology with this server as both database and load generator."""
    roles = {role: [server] for role in (NodeRole.DATABASE, NodeRole.LOAD_GENERATOR)}
    return stored_topology(_single(server), server.name, Topology.Kind.SINGLE, roles)


def stored_topology(
    slug: str, name: str, kind: str, servers: Mapping[NodeRole, Sequence[Server]]
) -> Topology:
    """The topology of this slug, made of the servers of each role if it is new."""
    topology, created = Topology.objects.get_or_create(
        slug=slug, defaults={"name": name, "kind": kind}
    )
    if created:
        TopologyNode.objects.bulk_create(
            TopologyNode(topology=topology, server=server, role=role, ordinal=ordinal)
            for role, in_role in servers.items()
            for ordinal, server in enumerate(in_role, start=1)
        )
    return topology


def _single(server: Server) -> str:
    return f"single-{server.slug}"


def _check_paths(base_dir: str, bindirs: list[str]) -> None:
    paths = [("base_dir", base_dir)] if base_dir else []
    for field, path in (*paths, *(("bindirs", bindir) for bindir in bindirs)):
        if not is_plain_path(path):
            message = _("%(path)s is not a path that BenchLab can use.") % {
                "path": path
            }
            remedy = _(
                "Give an absolute path in its shortest form, without quotes, commas or signs "
                "that a shell reads."
            )
            raise ServiceError("path_not_plain", message, remedy=remedy, field=field)
    if len(base_dir.encode()) > LONGEST_BASE_DIR:
        message = _(
            "The base directory has %(length)d bytes; at most %(most)d are possible."
        )
        message %= {"length": len(base_dir.encode()), "most": LONGEST_BASE_DIR}
        remedy = _("PostgreSQL's Unix socket lies below it: choose a shorter path.")
        raise ServiceError(
            "base_dir_too_long", message, remedy=remedy, field="base_dir"
        )


def offered_host_key(server: Server) -> str:
    """What the machine shows now, through its hops. Raises ServiceError, `ssh.connect` codes."""
    from runs.execution.ssh import ssh  # noqa: PLC0415 - takes 0.2 s, and most processes log in nowhere

    hops = readable_way(server)[:-1]
    try:
        return logins.ask(ssh.offered_host_key(logins.address_of(server), hops), server)
    except TargetProblem as problem:
        field = "jump" if problem.code.startswith("hop_") else "address"
        raise logins.refused(problem, field) from problem


def readable_way(server: Server) -> logins.Way:
    """The logins on the way to a server. Raises ServiceError `private_key_unreadable`."""
    try:
        return logins.way_to(server)
    except logins.KeyUnreadable as problem:
        raise logins.refused(problem) from problem


@transaction.atomic
def _store(server: Server) -> Server:
    slugs.store(server, called=server.name, otherwise="server", taken=NOT_SLUGS)
    Lease.objects.create(server=server)
    single_topology(server=server)
    audit.record("server_registered", server, after=described(server))
    return server


async def _look(
    server: Server, login_way: logins.Way, base: BaseDir, needs: Mapping[str, Any]
) -> tuple[tuple[Facts, int], list[str]]:
    """Facts and free bytes, and the programs that were away for too long."""
    async with await logins.connect_along(login_way) as host:
        free = await base.claim(host, needs.get("mount", ""))
        needed = needs.get("free_bytes", 0)
        if free < needed:
            raise disk_too_small(base.path, needed=needed, free=free)
        if (
            server.problem_code == TooFewSessions.code
            and not await host.allows_sessions()
        ):
            raise TooFewSessions(server.problem)
        for privilege in {needs.get("privilege", "")} & set(server.privileges):
            if await privileged.refused(host, [privilege]):
                raise privileged.failed(privilege, SUDO_REFUSES)
        gone = await _gone(host, server, needs.get("program", ""))
        return (
            await discover(host, server.bindirs, base_dir=server.base_dir),
            free,
        ), gone


# An update of packages takes minutes. Whatever stays away for longer was removed.
PROGRAM_IS_AWAITED = timedelta(hours=1)


async def _gone(host: Host, server: Server, awaited: str) -> list[str]:
    """The programs that have been away for too long and still do not start.

    Raises ServerFault `missing_program` while the one that a run has missed is still awaited.
    """
    gone = []
    for program in {awaited, *server.needs.get("gone", ())} - {""}:
        answer = await host.run([program, "--version"])
        if answer.exit_status not in NOT_A_PROGRAM:
            continue
        if program == awaited and not server.is_away_for(PROGRAM_IS_AWAITED):
            output = (answer.stdout + answer.stderr).decode(errors="replace")
            raise missing_program(program, output)
        gone.append(program)
    return sorted(gone)


def _needs(server: Server) -> Mapping[str, Any]:
    """What the run needs that has met a fault, if it still waits for the server."""
    waits = Run.objects.filter(pk=server.needs.get("run", 0)).exclude(
        state__in=Run.ENDED
    )
    return server.needs if server.needs and waits.exists() else {}


def _unedited(server: Server) -> QuerySet[Server]:
    """Its row, unless what is looked at was edited since the server was read."""
    seen_values = {name: getattr(server, name) for name in _LOOKED_AT}
    return Server.objects.filter(pk=server.pk, **seen_values)


@transaction.atomic
def _keep(
    looked_at: Server,
    facts_and_space: tuple[Facts, int] | None,
    gone: Sequence[str] = (),
) -> Server:
    """The server is ready; `facts_and_space` are facts and free bytes, None of a hop."""
    server = _unedited(looked_at).select_for_update().first()
    if server is None:
        return Server.objects.get(pk=looked_at.pk)
    if facts_and_space is not None:
        facts, server.free_bytes = facts_and_space
        server.sweep_after = timezone.now()
        _keep_facts(server, facts)
    server.state = Server.State.READY
    server.problem_code = server.problem = server.problem_remedy = ""
    server.wording = {}
    server.needs = {"gone": list(gone)} if gone else {}
    server.offered_host_key = ""
    server.checked_at = timezone.now()
    server.save()
    return server


def _keep_facts(server: Server, facts: Facts) -> None:
    system = machines.describe_untreated(server=server, system=facts.operating_system)
    machines.keep(server=server, hardware=facts.hardware, system=system)
    usable = [
        installation_facts
        for installation_facts in facts.installations
        if is_plain_path(installation_facts.bindir)
    ]
    for installation_facts in usable:
        Installation.objects.update_or_create(
            server=server,
            bindir=installation_facts.bindir,
            defaults=asdict(installation_facts)
            | {"extensions": list(installation_facts.extensions), "removed_at": None},
        )
    for bindir, output in facts.broken:
        # Once: a library may be missing, and its version is not measured any more.
        said = {"code": "installation_broken", "message": f"{bindir}: {output}"}
        if not server.events.filter(**said).exists():
            ServerEvent.objects.create(server=server, **said)
    gone = server.installations.exclude(
        bindir__in=[installation_facts.bindir for installation_facts in usable]
    )
    gone.filter(removed_at=None).update(removed_at=timezone.now())
    celery_messages.wake(server.pk)
