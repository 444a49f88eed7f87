"""Connecting to a real OpenSSH server: who gets in, what is trusted, what is reported."""

import asyncio
import subprocess
import time

import pytest

from runs.execution import ssh
from runs.execution.errors import ConnectionLost, HostKeyChanged, HostUnreachable, LoginRefused
from runs.execution.ssh import Address
from tests.ssh.openssh import OpenSSH

pytestmark = pytest.mark.openssh


def connecting(address: Address, host_key: str, private_key: str) -> None:
    async def attempt() -> None:
        host = await ssh.connect(address, host_key=host_key, private_key=private_key)
        await host.close()

    asyncio.run(attempt())


def test_the_fingerprint_is_the_one_that_ssh_keygen_prints(openssh: OpenSSH, address):
    offered = asyncio.run(ssh.offered_host_key(address))
    command = ["ssh-keygen", "-lf", str(openssh.folder / "host_key.pub")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert ssh.fingerprint(offered) in printed.split()


def test_the_confirmed_host_key_lets_us_in(openssh: OpenSSH, address, key_pair):
    connecting(address, openssh.host_key, key_pair[0])


def test_another_host_key_stops_everything(openssh: OpenSSH, address, key_pair):
    pinned = openssh.host_key
    openssh.stop()
    openssh.new_host_key()
    openssh.start()
    with pytest.raises(HostKeyChanged) as refused:
        connecting(address, pinned, key_pair[0])
    assert ssh.fingerprint(pinned) in refused.value.message
    assert "confirm it" in refused.value.remedy


def test_a_host_key_of_another_type_stops_everything(openssh: OpenSSH, address, key_pair):
    openssh_folder = openssh.folder
    command = ["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(openssh_folder / "other")]
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
        return await host.run(["sh", "-c", "cat; echo err >&2; exit 7"], stdin=bytes(range(256)))

    answer = on_host(act)
    assert (answer.exit_status, answer.stdout, answer.stderr) == (7, bytes(range(256)), b"err\n")


def test_no_answer_waits_for_a_delayed_acknowledgement(on_host):
    """sshd sends the first answer when what it said before has been acknowledged."""

    async def seconds(host) -> float:
        began = time.monotonic()
        await host.run(["true"])
        return time.monotonic() - began

    # The kernel delays each by 40 ms at least; other work does not slow down all of them.
    assert any(on_host(seconds) < 0.038 for _attempt in range(20))


def test_a_dropped_connection_is_told_as_lost(on_host, openssh: OpenSSH):
    async def act(host):
        command = asyncio.create_task(host.run(["sleep", "30"]))
        await asyncio.sleep(0.5)
        openssh.drop_connections()
        with pytest.raises(ConnectionLost):
            await command

    on_host(act)
