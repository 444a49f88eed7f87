"""Servers: registering, confirming the host key, and discovering what the machine is."""

from collections.abc import Sequence

from asgiref.sync import async_to_sync
from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _

from runs import dispatch
from runs.execution import ssh
from runs.execution.base_dir import LONGEST_BASE_DIR, BaseDir, is_plain_path
from runs.execution.errors import (
    ConnectionLost,
    HostKeyChanged,
    HostUnreachable,
    TargetProblem,
)
from runs.execution.facts import Facts, InstallationFacts, discover
from runs.models import (
    Installation,
    Lease,
    Server,
    Topology,
    TopologyNode,
)
from runs.services import instances, machines, ssh_keys
from runs.services.errors import ServiceError


def public_key() -> str:
    """The line that a server's `authorized_keys` needs."""
    return ssh_keys.default().public_key


def fingerprint(host_key: str) -> str:
    """`SHA256:...` of a public host key line."""
    return ssh.fingerprint(host_key)


def address_of(server: Server) -> ssh.Address:
    """Where to log in."""
    return ssh.Address(server.address, server.port, server.username)


async def connect(address: ssh.Address, *, host_key: str, private_key: str) -> ssh.Host:
    """Open a connection to a confirmed server."""
    return await ssh.connect(address, host_key=host_key, private_key=private_key)


def register(
    *,
    name: str,
    address: str,
    port: int,
    username: str,
    base_dir: str,
    bindirs: list[str],
    by: object = None,
) -> Server:
    """Ask the machine for its host key and keep it for a person to confirm.

    Nothing is logged in to or executed yet. Raises ServiceError `host_unreachable`,
    `server_exists` or `base_dir_too_long`.
    """
    base_dir = base_dir.rstrip("/")
    _check_paths(base_dir, bindirs)
    if Server.objects.filter(address=address, port=port, username=username).exists():
        raise ServiceError(
            "server_exists",
            _("%(user)s@%(address)s:%(port)s is registered already.")
            % {"user": username, "address": address, "port": port},
            remedy=_("Open it in the list of servers."),
            field="address",
        )
    offered = _offered(ssh.Address(address, port, username))
    return _store(
        name=name,
        address=address,
        port=port,
        username=username,
        base_dir=base_dir,
        bindirs=bindirs,
        offered_host_key=offered,
    )


@transaction.atomic
def confirm_host_key(*, server: Server, fingerprint: str, by: object = None) -> Server:
    """Pin the offered host key, whose fingerprint the person has compared on the server itself.

    Raises ServiceError `fingerprint_differs` for another fingerprint than the offered key's.
    """
    server = Server.objects.select_for_update().get(pk=server.pk)
    if not server.offered_host_key or ssh.fingerprint(server.offered_host_key) != fingerprint:
        raise ServiceError(
            "fingerprint_differs",
            _("That is not the fingerprint which the server offers now."),
            remedy=_("Reload the page and compare again on the server itself."),
        )
    server.host_key, server.offered_host_key = server.offered_host_key, ""
    server.state = Server.State.UNREACHABLE
    server.problem_code = server.problem = server.problem_remedy = ""
    server.save()
    return server


@transaction.atomic
def add_bindirs(*, server: Server, bindirs: Sequence[str]) -> Server:
    """Look for PostgreSQL in these folders as well, from the next inspection on.

    Raises ServiceError `path_not_plain`.
    """
    server = Server.objects.select_for_update().get(pk=server.pk)
    _check_paths(server.base_dir, list(bindirs))
    server.bindirs = list(dict.fromkeys([*server.bindirs, *bindirs]))
    server.save(update_fields=["bindirs"])
    return server


def inspect(*, server: Server) -> Server:
    """Log in, claim the base directory, discover hardware, OS and installations; keep the result.

    A fault of the target is not raised: it becomes the server's state and problem, with the
    remedy, for the page. Raises ServiceError `host_key_not_confirmed`.
    """
    if not server.host_key:
        raise ServiceError(
            "host_key_not_confirmed",
            _("The host key of this server is not confirmed yet."),
            remedy=_("Compare the fingerprint on the server and confirm it here."),
        )
    private = ssh_keys.private_key(server.ssh_key)
    base = BaseDir(server.base_dir, instances.name())
    try:
        facts, free = async_to_sync(_look)(server, private, base)
    except TargetProblem as problem:
        return record_problem(server=server, problem=problem)
    return _keep(server, facts, free)


def record_problem(*, server: Server, problem: TargetProblem) -> Server:
    """Note why a server cannot be used now; a changed host key is fetched for confirmation."""
    offered = ""
    if isinstance(problem, HostKeyChanged):
        try:
            offered = _offered(address_of(server))
        except ServiceError:
            offered = ""
    state = Server.State.UNREACHABLE
    if not isinstance(problem, (HostUnreachable, ConnectionLost)):
        state = Server.State.REFUSED
    Server.objects.filter(pk=server.pk).update(
        state=state,
        problem_code=problem.code,
        problem=problem.message,
        problem_remedy=_(problem.remedy) if problem.remedy else "",
        offered_host_key=offered,
        checked_at=timezone.now(),
    )
    server.refresh_from_db()
    return server


@transaction.atomic
def single_topology(*, server: Server) -> Topology:
    """The topology in which this server is both database and load generator."""
    topology, created = Topology.objects.get_or_create(
        slug=f"single-{server.slug}",
        defaults={"name": server.name, "kind": Topology.Kind.SINGLE},
    )
    if created:
        for role in (TopologyNode.Role.DATABASE, TopologyNode.Role.LOAD_GENERATOR):
            TopologyNode.objects.create(topology=topology, server=server, role=role)
    return topology


def _check_paths(base_dir: str, bindirs: list[str]) -> None:
    for field, path in (("base_dir", base_dir), *(("bindirs", bindir) for bindir in bindirs)):
        if not is_plain_path(path):
            raise ServiceError(
                "path_not_plain",
                _("%(path)s is not a path that BenchLab can use.") % {"path": path},
                remedy=_(
                    "Give an absolute path in its shortest form, without quotes, commas or signs "
                    "that a shell reads."
                ),
                field=field,
            )
    if len(base_dir.encode()) > LONGEST_BASE_DIR:
        raise ServiceError(
            "base_dir_too_long",
            _("The base directory has %(length)d bytes; at most %(most)d are possible.")
            % {"length": len(base_dir.encode()), "most": LONGEST_BASE_DIR},
            remedy=_("PostgreSQL's Unix socket lies below it: choose a shorter path."),
            field="base_dir",
        )


def _offered(address: ssh.Address) -> str:
    try:
        return async_to_sync(ssh.offered_host_key)(address)
    except HostUnreachable as problem:
        raise ServiceError(
            problem.code, problem.message, remedy=_(problem.remedy), field="address"
        ) from problem


@transaction.atomic
def _store(**fields: object) -> Server:
    server = Server(slug=_free_slug(str(fields["name"])), ssh_key=ssh_keys.default(), **fields)
    server.save()
    Lease.objects.create(server=server)
    single_topology(server=server)
    return server


def _free_slug(name: str) -> str:
    wanted = slugify(name) or "server"
    slug, number = wanted, 1
    while Server.objects.filter(slug=slug).exists():
        number += 1
        slug = f"{wanted}-{number}"
    return slug


async def _look(server: Server, private_key: str, base: BaseDir) -> tuple[Facts, int]:
    host = await connect(address_of(server), host_key=server.host_key, private_key=private_key)
    async with host:
        free = await base.claim(host)
        return await discover(host, server.bindirs, base_dir=server.base_dir), free


@transaction.atomic
def _keep(server: Server, facts: Facts, free: int) -> Server:
    server = Server.objects.select_for_update().get(pk=server.pk)
    machines.keep(server=server, hardware=facts.hardware, system=facts.operating_system)
    server.free_bytes = free
    server.state = Server.State.READY
    server.problem_code = server.problem = server.problem_remedy = ""
    server.offered_host_key = ""
    server.checked_at = timezone.now()
    server.save()
    usable = [found for found in facts.installations if is_plain_path(found.bindir)]
    for found in usable:
        _keep_installation(server, found)
    gone = server.installations.exclude(bindir__in=[found.bindir for found in usable])
    gone.filter(removed_at=None).update(removed_at=timezone.now())
    dispatch.wake(server.pk)
    return server


def _keep_installation(server: Server, found: InstallationFacts) -> None:
    Installation.objects.update_or_create(
        server=server,
        bindir=found.bindir,
        defaults={
            "version": found.version,
            "version_num": found.version_num,
            "vendor": found.vendor,
            "configure_options": found.configure_options,
            "cflags": found.cflags,
            "block_size": found.block_size,
            "wal_segment_size": found.wal_segment_size,
            "extensions": list(found.extensions),
            "pgbench_version_num": found.pgbench_version_num,
            "has_psql": found.has_psql,
            "removed_at": None,
        },
    )
