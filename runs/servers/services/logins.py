"""How to reach a server: logins with keys and hops, and the name by which targets know us."""

import asyncio
from collections.abc import Coroutine, Iterator
from itertools import islice
from typing import Any, TypeVar

from asgiref.sync import async_to_sync
from cryptography.fernet import InvalidToken
from django.utils.translation import gettext as _

from runs.access.services.host_secrets import NotShared
from runs.execution.errors import (
    HostUnreachable,
    TargetProblem,
    WorkerFault,
    classify_worker_error,
)
from runs.execution.ssh.hosts import Address, Host, Login
from runs.models import Instance, Server
from runs.servers.services import ssh_keys
from runs.shared import database
from runs.shared.errors import ServiceError
from runs.wording import gettext_noop, put

MOST_HOPS = 3
# An inspection takes some seconds on a busy machine; one that stays silent gets this long.
MOST_SECONDS = 60.0
NO_ANSWER = gettext_noop("%(address)s did not answer within %(seconds)s s.")

Way = tuple[Login, ...]
Found = TypeVar("Found")


class KeyUnreadable(TargetProblem):
    """A private key was encrypted with a key that is not configured."""

    code = "private_key_unreadable"
    remedy = gettext_noop(
        "Add the key it was encrypted under to BENCHLAB_ENCRYPTION_KEY of web and workers, "
        "restart them, and inspect the server again."
    )


def refused(problem: TargetProblem, field: str = "") -> ServiceError:
    """The same for who has asked, in the reader's language."""
    remedy = _(problem.remedy) if problem.remedy else ""
    return ServiceError(
        problem.code, put(problem.wording, _), remedy=remedy, field=field
    )


def address_of(server: Server) -> Address:
    """Where to log in."""
    return Address(server.address, server.port, server.username, server.name)


def way_to(server: Server) -> Way:
    """The logins on the way, the first hop first and the server last. Reads the database.

    Raises KeyUnreadable, and WorkerFault on a host that may not have the keys.
    """
    try:
        return tuple(
            Login(
                address_of(server),
                server.host_key,
                ssh_keys.private_key(server.ssh_key),
            )
            for server in [*reversed(hops_before(server)), server]
        )
    except NotShared as error:
        text = gettext_noop("This host may not have the SSH key for %(server)s.")
        raise WorkerFault(text, server=server.name) from error
    except InvalidToken as error:
        text = gettext_noop("The private key for %(server)s cannot be decrypted.")
        raise KeyUnreadable(text, server=server.name) from error


def ask(question: Coroutine[Any, Any, Found], server: Server) -> Found:
    """Talk to a machine, for MOST_SECONDS at most, without a connection to the results database.

    Raises HostUnreachable after that time, WorkerFault where this process lacks something itself.
    """
    database.give_back()
    try:
        return async_to_sync(asyncio.wait_for)(question, MOST_SECONDS)
    except TimeoutError as error:
        seconds = f"{MOST_SECONDS:.0f}"
        raise HostUnreachable(
            NO_ANSWER, address=server.name, seconds=seconds
        ) from error
    except OSError as error:
        raise classify_worker_error(error) from error


async def connect_along(login_way: Way) -> Host:
    """Open a connection to the last of them. Raises as `ssh.connect`."""
    from runs.execution.ssh import ssh  # noqa: PLC0415 - takes 0.2 s, and most processes log in nowhere

    *hops, last_login = login_way
    return await ssh.connect(
        last_login.address,
        host_key=last_login.host_key,
        private_key=last_login.private_key,
        through=hops,
    )


async def greet(login_way: Way) -> None:
    """Log in and do nothing. Raises as `ssh.connect`."""
    async with await connect_along(login_way):
        pass


def hops_before(server: Server) -> list[Server]:
    """The hops on the way to a server, the first one first; never more than allowed."""
    return list(islice(_chain(server.jump), MOST_HOPS))


def check_jump(server: Server, jump: Server | None) -> None:
    """Raise ServiceError `hop_loop`, `hop_not_confirmed` or `too_many_hops` for a wrong hop."""
    if jump is None:
        return
    if not jump.host_key:
        message = _("The host key of %(hop)s is not confirmed yet.") % {
            "hop": jump.name
        }
        remedy = _("Confirm it on its own page first.")
        raise ServiceError("hop_not_confirmed", message, remedy=remedy, field="jump")
    before = list(_chain(jump))
    if server in before:
        message = _("The way to %(hop)s passes through %(server)s itself.")
        message %= {"hop": jump.name, "server": server.name}
        remedy = _("Choose another hop.")
        raise ServiceError("hop_loop", message, remedy=remedy, field="jump")
    if len(before) + _longest_behind(server) > MOST_HOPS:
        message = _("The way would have more than %(most)d hops.") % {"most": MOST_HOPS}
        remedy = _("Choose a hop that is reached more directly.")
        raise ServiceError("too_many_hops", message, remedy=remedy, field="jump")


def _chain(hop: Server | None) -> Iterator[Server]:
    """It and the hops before it, each once."""
    seen_servers: set[Server] = set()
    while hop is not None and hop not in seen_servers:
        seen_servers.add(hop)
        yield hop
        hop = hop.jump


def _longest_behind(server: Server) -> int:
    """How many hops it takes from a server to the last one behind it; 0 if it is not a hop."""
    if server._state.adding:
        return 0
    behind, level = 0, [server.pk]
    while level and behind <= MOST_HOPS:
        level = list(Server.objects.filter(jump__in=level).values_list("pk", flat=True))
        behind += bool(level)
    return behind


def instance_name() -> str:
    """The random name of this results database; it marks folders on targets as ours."""
    instance, _created = Instance.objects.get_or_create(pk=1)
    return instance.name.hex
