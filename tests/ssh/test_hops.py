"""Reaching a target through other servers (ProxyJump), each a real OpenSSH server of its own."""

import asyncio
import shutil
from collections.abc import Iterator

import pytest

from runs.execution import ssh
from runs.execution.connection import Line
from runs.execution.errors import ConnectionLost, HostKeyChanged, HostUnreachable, LoginRefused
from runs.execution.ssh import Address, Login
from tests.ssh.openssh import OpenSSH, login_name, short_folder

pytestmark = pytest.mark.openssh

KEYS = [ssh.generate_private_key() for _each in range(3)]


@pytest.fixture
def chain(sshd_binary, account) -> Iterator[list[OpenSSH]]:
    """Three servers; each lets in another key."""
    servers = []
    for _private, public in KEYS:
        server = OpenSSH(sshd_binary, short_folder(), account)
        server.prepare(public)
        server.start()
        servers.append(server)
    yield servers
    for server in servers:
        server.stop()
        shutil.rmtree(server.folder)


@pytest.fixture
def logins(chain, account) -> list[Login]:
    name = login_name(account)
    return [
        Login(Address("127.0.0.1", server.port, name), server.host_key, private)
        for server, (private, _public) in zip(chain, KEYS, strict=True)
    ]


async def connecting(logins: list[Login]) -> ssh.Host:
    *hops, last = logins
    return await ssh.connect(
        last.address, host_key=last.host_key, private_key=last.private_key, through=hops
    )


def port_seen(logins: list[Login]) -> str:
    """The port of the sshd that a command at the end of the way finds itself under."""

    async def ask() -> str:
        async with await connecting(logins) as host:
            answer = await host.run(["sh", "-c", "echo $SSH_CONNECTION"])
            return answer.stdout.decode().split()[-1]

    return asyncio.run(ask())


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_command_runs_at_the_end_of_the_way(logins, chain, count):
    assert port_seen(logins[:count]) == str(chain[count - 1].port)


def test_the_host_key_is_asked_for_through_the_hops(logins, chain):
    offered = asyncio.run(ssh.offered_host_key(logins[2].address, logins[:2]))
    assert ssh.fingerprint(offered) == ssh.fingerprint(chain[2].host_key)


def test_a_hop_that_is_away_is_named(logins, chain):
    chain[1].stop()
    with pytest.raises(HostUnreachable) as told:
        asyncio.run(connecting(logins))
    assert told.value.code == "hop_unreachable"
    assert f"At the hop {logins[1].address}: " in told.value.message
    assert f"through the hop {logins[0].address}" in told.value.message


def test_a_hop_that_refuses_the_key_is_named(logins, chain):
    (chain[0].folder / "authorized_keys").write_text("")
    with pytest.raises(LoginRefused) as told:
        asyncio.run(connecting(logins))
    assert told.value.code == "hop_login_refused"
    assert f"At the hop {logins[0].address}: " in told.value.message


def test_a_hop_with_another_host_key_is_not_passed(logins, chain):
    chain[0].stop()
    chain[0].new_host_key()
    chain[0].start()
    with pytest.raises(HostKeyChanged) as told:
        asyncio.run(connecting(logins))
    assert told.value.code == "hop_key_changed"
    assert f"At the hop {logins[0].address}: " in told.value.message


def test_a_hop_whose_key_nobody_confirmed_is_not_passed(logins):
    unconfirmed = Login(logins[0].address, "", logins[0].private_key)
    with pytest.raises(HostKeyChanged) as told:
        asyncio.run(connecting([unconfirmed, *logins[1:]]))
    assert "not confirmed yet" in told.value.message


def test_a_target_that_is_away_is_told_with_the_hop_before_it(logins, chain):
    chain[2].stop()
    with pytest.raises(HostUnreachable) as told:
        asyncio.run(connecting(logins))
    assert told.value.code == "host_unreachable"
    assert f"through the hop {logins[1].address}" in told.value.message
    assert "AllowTcpForwarding" in told.value.remedy


def test_a_hop_that_forwards_nothing_is_told(logins, chain):
    chain[0].stop()
    with (chain[0].folder / "sshd_config").open("a") as configuration:
        configuration.write("AllowTcpForwarding no\n")
    chain[0].start()
    with pytest.raises(HostUnreachable) as told:
        asyncio.run(connecting(logins[:2]))
    assert "AllowTcpForwarding" in told.value.remedy


def test_a_hop_that_breaks_is_a_lost_connection_and_the_line_comes_back(logins, chain):
    told: list[str] = []

    async def tell(code: str, _message: str) -> None:
        told.append(code)

    async def act(host: ssh.Host) -> bytes:
        if not told:
            command = asyncio.create_task(host.run(["sleep", "30"]))
            await asyncio.sleep(0.5)
            chain[0].drop_connections()
            await command
        return (await host.run(["echo", "back"])).stdout

    async def run() -> bytes:
        line = Line(lambda: connecting(logins), waits=(0.2, 0.5, 1))
        try:
            return await line.do(act, tell)
        finally:
            await line.close()

    assert asyncio.run(run()) == b"back\n"
    assert told == [ConnectionLost.code]


def test_closing_leaves_no_connection_at_any_hop(logins, chain):
    async def run() -> None:
        host = await connecting(logins)
        await host.close()

    asyncio.run(run())
    for server in chain:
        server.wait_until_nobody_is_connected()


def test_no_private_key_is_in_what_a_login_prints(logins):
    assert "PRIVATE" not in repr(logins)
