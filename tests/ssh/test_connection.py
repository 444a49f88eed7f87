"""Connecting to a real OpenSSH server, also through other servers, and what its sessions allow."""

import asyncio
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace

import asyncssh
import pytest

from runs.execution import preflight
from runs.execution.clusters.leftovers import marked
from runs.execution.errors import (
    ConnectionLost,
    HostKeyChanged,
    HostUnreachable,
    LoginRefused,
    TargetProblem,
)
from runs.execution.ssh import hosts, sessions, ssh
from runs.execution.ssh.hosts import SESSIONS_NEEDED, Address, Host, Login
from runs.execution.ssh.reconnecting import Line
from runs.execution.steps.steps import peek, perform
from tests.ssh.directing import execute, left_running, names
from tests.ssh.openssh import OpenSSH, login_name, short_folder

pytestmark = pytest.mark.openssh


# Connecting to a real OpenSSH server: who gets in, what is trusted, what is reported.


def connecting(address: Address, host_key: str, private_key: str) -> None:
    async def attempt() -> None:
        host = await ssh.connect(address, host_key=host_key, private_key=private_key)
        await host.close()

    asyncio.run(attempt())


def test_the_fingerprint_is_the_one_that_ssh_keygen_prints(openssh: OpenSSH, address):
    offered = asyncio.run(ssh.offered_host_key(address))
    command = ["ssh-keygen", "-lf", str(openssh.folder / "host_key.pub")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert hosts.fingerprint(offered) in printed.split()


def test_the_confirmed_host_key_lets_us_in(openssh: OpenSSH, address, key_pair):
    connecting(address, openssh.host_key, key_pair[0])


def test_another_host_key_stops_everything(openssh: OpenSSH, address, key_pair):
    pinned = openssh.host_key
    openssh.stop()
    openssh.new_host_key()
    openssh.start()
    with pytest.raises(HostKeyChanged) as refused:
        connecting(address, pinned, key_pair[0])
    assert hosts.fingerprint(pinned) in refused.value.message
    assert "confirm it" in refused.value.remedy


def test_a_host_key_of_another_type_stops_everything(
    openssh: OpenSSH, address, key_pair
):
    openssh_folder = openssh.folder
    command = [
        "ssh-keygen",
        "-q",
        "-t",
        "ecdsa",
        "-N",
        "",
        "-f",
        str(openssh_folder / "other"),
    ]
    subprocess.run(command, check=True)
    with pytest.raises(HostKeyChanged):
        connecting(address, (openssh_folder / "other.pub").read_text(), key_pair[0])


def test_an_unknown_key_is_refused_with_the_remedy(openssh: OpenSSH, address):
    stranger, _public = ssh.generate_private_key()
    with pytest.raises(LoginRefused) as refused:
        connecting(address, openssh.host_key, stranger)
    assert "authorized_keys" in refused.value.remedy


def test_a_wrong_port_is_unreachable(openssh: OpenSSH, address, key_pair):
    openssh.stop()
    with pytest.raises(HostUnreachable) as refused:
        connecting(address, openssh.host_key, key_pair[0])
    assert refused.value.message.endswith(
        f":{address.port} cannot be reached over SSH: Connection refused."
    )


def test_an_unknown_host_is_unreachable(openssh: OpenSSH, key_pair):
    nowhere = Address("no-such-host.invalid", 22, "nobody")
    with pytest.raises(HostUnreachable):
        connecting(nowhere, openssh.host_key, key_pair[0])
    with pytest.raises(HostUnreachable):
        asyncio.run(ssh.offered_host_key(nowhere))


def test_a_command_is_an_argument_list_and_no_shell_reads_it(on_host):
    hostile = "$(touch /tmp/pwned); `id`\n'\" * é"

    async def act(host):
        return await host.run(["printf", "%s|", hostile, ""])

    assert on_host(act).stdout.decode() == hostile + "||"


def test_a_null_byte_is_refused_before_anything_is_sent(on_host):
    async def act(host):
        with pytest.raises(ValueError, match="null byte"):
            await host.run(["echo", "a\0b"])

    on_host(act)


def test_input_output_and_exit_status_come_back_as_bytes(on_host):
    async def act(host):
        return await host.run(
            ["sh", "-c", "cat; echo err >&2; exit 7"], stdin=bytes(range(256))
        )

    answer = on_host(act)
    assert (answer.exit_status, answer.stdout, answer.stderr) == (
        7,
        bytes(range(256)),
        b"err\n",
    )


def test_no_answer_waits_for_a_delayed_acknowledgement(on_host):
    """sshd sends the first answer when what it said before has been acknowledged."""

    async def seconds(host) -> float:
        began = time.monotonic()
        await host.run(["true"])
        return time.monotonic() - began

    # The kernel delays each by 40 ms at least; other work does not slow down all of them.
    assert any(on_host(seconds) < 0.038 for _attempt in range(20))


@pytest.mark.openssh
def test_a_connection_that_ends_as_a_session_begins_is_lost(on_host, monkeypatch):
    def ended(_channel):
        raise AssertionError

    async def act(host):
        monkeypatch.setattr(asyncssh.channel.SSHClientChannel, "get_connection", ended)
        await host.run(["true"])

    with pytest.raises(ConnectionLost, match="as a session began"):
        on_host(act)


def test_a_dropped_connection_is_told_as_lost(on_host, openssh: OpenSSH):
    async def act(host):
        command = asyncio.create_task(host.run(["sleep", "30"]))
        await asyncio.sleep(0.5)
        openssh.drop_connections()
        with pytest.raises(ConnectionLost):
            await command

    on_host(act)


# Reaching a target through other servers (ProxyJump), each a real OpenSSH server of its own.


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


async def connecting_by(logins: list[Login]) -> Host:
    *hops, last = logins
    return await ssh.connect(
        last.address, host_key=last.host_key, private_key=last.private_key, through=hops
    )


def port_seen(logins: list[Login]) -> str:
    """The port of the sshd that a command at the end of the way finds itself under."""

    async def ask() -> str:
        async with await connecting_by(logins) as host:
            answer = await host.run(["sh", "-c", "echo $SSH_CONNECTION"])
            return answer.stdout.decode().split()[-1]

    return asyncio.run(ask())


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_command_runs_at_the_end_of_the_way(logins, chain, count):
    assert port_seen(logins[:count]) == str(chain[count - 1].port)


def test_the_host_key_is_asked_for_through_the_hops(logins, chain):
    offered = asyncio.run(ssh.offered_host_key(logins[2].address, logins[:2]))
    assert hosts.fingerprint(offered) == hosts.fingerprint(chain[2].host_key)


def test_a_hop_that_is_away_is_named(logins, chain):
    chain[1].stop()
    with pytest.raises(HostUnreachable) as told:
        asyncio.run(connecting_by(logins))
    assert told.value.code == "hop_unreachable"
    assert f"At the hop {logins[1].address}: " in told.value.message
    assert f"through the hop {logins[0].address}" in told.value.message


def test_a_hop_that_refuses_the_key_is_named(logins, chain):
    (chain[0].folder / "authorized_keys").write_text("")
    with pytest.raises(LoginRefused) as told:
        asyncio.run(connecting_by(logins))
    assert told.value.code == "hop_login_refused"
    assert f"At the hop {logins[0].address}: " in told.value.message


def test_a_hop_with_another_host_key_is_not_passed(logins, chain):
    chain[0].stop()
    chain[0].new_host_key()
    chain[0].start()
    with pytest.raises(HostKeyChanged) as told:
        asyncio.run(connecting_by(logins))
    assert told.value.code == "hop_key_changed"
    assert f"At the hop {logins[0].address}: " in told.value.message


def test_a_hop_whose_key_nobody_confirmed_is_not_passed(logins):
    unconfirmed = Login(logins[0].address, "", logins[0].private_key)
    with pytest.raises(HostKeyChanged) as told:
        asyncio.run(connecting_by([unconfirmed, *logins[1:]]))
    assert "not confirmed yet" in told.value.message


def test_a_target_that_is_away_is_told_with_the_hop_before_it(logins, chain):
    chain[2].stop()
    with pytest.raises(HostUnreachable) as told:
        asyncio.run(connecting_by(logins))
    assert told.value.code == "host_unreachable"
    assert f"through the hop {logins[1].address}" in told.value.message
    assert "AllowTcpForwarding" in told.value.remedy


def test_a_hop_that_forwards_nothing_is_told(logins, chain):
    chain[0].stop()
    with (chain[0].folder / "sshd_config").open("a") as configuration:
        configuration.write("AllowTcpForwarding no\n")
    chain[0].start()
    with pytest.raises(HostUnreachable) as told:
        asyncio.run(connecting_by(logins[:2]))
    assert "AllowTcpForwarding" in told.value.remedy


def test_a_hop_that_breaks_is_a_lost_connection_and_the_line_comes_back(logins, chain):
    told: list[str] = []

    async def tell(code: str, _problem: TargetProblem) -> None:
        told.append(code)

    async def act(host: Host) -> bytes:
        if not told:
            command = asyncio.create_task(host.run(["sleep", "30"]))
            await asyncio.sleep(0.5)
            chain[0].drop_connections()
            await command
        return (await host.run(["echo", "back"])).stdout

    async def run() -> bytes:
        line = Line(lambda: connecting_by(logins), waits=(0.2, 0.5, 1))
        try:
            return await line.do(act, tell)
        finally:
            await line.close()

    assert asyncio.run(run()) == b"back\n"
    assert told == [ConnectionLost.code]


def test_closing_leaves_no_connection_at_any_hop(logins, chain):
    async def run() -> None:
        host = await connecting_by(logins)
        await host.close()

    asyncio.run(run())
    for server in chain:
        server.wait_until_nobody_is_connected()


def test_no_private_key_is_in_what_a_login_prints(logins):
    assert "PRIVATE" not in repr(logins)


# Sessions of a real OpenSSH server: too few of them, and login shells that greet.


prepared = pytest.mark.usefixtures("prepared")


@pytest.mark.parametrize("allowed", [1, 2])
@prepared
def test_a_run_with_too_few_sessions_fails_with_the_remedy(
    direct, plan, openssh, base_dir, monkeypatch, allowed
):
    monkeypatch.setattr(sessions, "WAITS_SECONDS", (0.1, 0.2))
    openssh.configure(f"MaxSessions {allowed}")
    director = direct(replace(plan, parameters={"scale": 1, "duration": 600}))
    director.bench.look_s = 1
    # Its load would take longer than a test may.
    with pytest.raises(TargetProblem) as told:
        execute(director)
    assert told.value.code == "too_few_sessions"
    assert "MaxSessions" in told.value.remedy
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []


def test_preflight_tries_as_many_sessions_as_a_run_needs(
    on_host, openssh, base, monkeypatch
):
    async def look(host):
        return (await preflight.look(host, base, [], [])).allows_sessions

    monkeypatch.setattr(sessions, "WAITS_SECONDS", (0.1,))
    openssh.configure(f"MaxSessions {SESSIONS_NEEDED}")
    assert on_host(look)
    openssh.configure("")
    text = (openssh.folder / "sshd_config").read_text()
    fewer = text.replace(
        f"MaxSessions {SESSIONS_NEEDED}", f"MaxSessions {SESSIONS_NEEDED - 1}"
    )
    (openssh.folder / "sshd_config").write_text(fewer)
    openssh.configure("")
    assert not on_host(look)


@pytest.mark.parametrize(("shell", "is_plain"), [("sh", True), ("bash", False)])
def test_a_plain_login_shell_executes_scripts_itself(on_host, openssh, shell, is_plain):
    """Any other may know another language, or have what its user has configured."""
    openssh.configure(f'ForceCommand exec {shell} -c "$SSH_ORIGINAL_COMMAND"')
    script = """
        read -r own </proc/$$/cmdline; read -r line
        printf '%s %s %s\\n' "$line" "$1" "$#" "$own"
        exit 3
    """
    command = ["sh", "-c", script.strip(), "script", 'it\'s \\n "$1"', ""]

    async def act(host):
        return [
            await host.run(command, stdin=b"given\n", in_own_session=detached)
            for detached in (False, False, True)
        ]

    for number, answer in enumerate(on_host(act)):
        said, _end, own = answer.stdout.decode().rpartition(" 2\n")
        assert (said, answer.exit_status) == ('given it\'s \\n "$1"', 3)
        assert ("benchlab-begin" in own) == (is_plain and number > 0)


def test_a_login_shell_that_greets_is_not_of_what_a_command_prints(
    on_host, openssh, base
):
    shell = 'printf "Welcome\\nbenchlab"; echo; eval "$SSH_ORIGINAL_COMMAND"'
    openssh.configure(f"ForceCommand {shell}")

    async def act(host):
        await base.claim(host)
        for name in ("1-1", "2-1"):
            await base.make_folder(host, base.join("runs", name))
        steps = base.join("runs", "1-1")
        await perform(host, steps, "talk", ["echo", "first second"])
        return (
            (await host.run(["cat"], stdin=b"in")).stdout,
            await peek(host, steps, "talk", "out", len("first ")),
            await marked(host, base),
        )

    printed, rest, left = on_host(act)
    assert (printed, rest) == (b"in", b"second\n")
    assert left == [base.join("runs", "2-1"), base.join("runs", "1-1")]


def test_a_login_shell_that_starts_nothing_is_told(on_host, openssh):
    openssh.configure("ForceCommand echo This account is not available.")

    async def act(host):
        with pytest.raises(TargetProblem) as told:
            await host.run(["true"])
        return told.value

    problem = on_host(act)
    assert problem.code == "no_report"
    assert "not available" in problem.message
