import asyncio
import hashlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import asyncssh
import pytest

from benchlab.embedded.account import Account
from benchlab.embedded.software import Software
from benchlab.embedded.target import EmbeddedTarget
from tests.embedded.conftest import open_folder

KEY = asyncssh.generate_private_key("ssh-ed25519")
PUBLIC = KEY.export_public_key().decode()
LARGE = 64 * 1024 * 1024

linux = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks into /proc"
)


@pytest.fixture(scope="module")
def target(software: Software) -> Iterator[EmbeddedTarget]:
    folder = open_folder()
    with started(folder, software) as server:
        yield server
    assert server.log.read_text() == ""  # it logs nothing but its own faults
    shutil.rmtree(folder)


def started(folder: Path, software: Software) -> EmbeddedTarget:
    server = EmbeddedTarget(folder / "target", folder / "keys", software=software)
    server.authorized_keys.parent.mkdir(exist_ok=True)
    server.authorized_keys.write_text(PUBLIC)
    return server


def connect(
    target: EmbeddedTarget, key: asyncssh.SSHKey = KEY, user: str | None = None
):
    return asyncssh.connect(
        "127.0.0.1",
        target.port,
        username=user or target.user,
        client_keys=[key],
        known_hosts=asyncssh.import_known_hosts(f"127.0.0.1 {target.host_key}\n"),
        config=None,
        agent_path=None,
    )


def with_connection(
    target: EmbeddedTarget, use: Callable[[asyncssh.SSHClientConnection], Awaitable]
):
    async def inner():
        async with connect(target) as connection:
            return await use(connection)

    return asyncio.run(asyncio.wait_for(inner(), 60))


def run(
    target: EmbeddedTarget, command: str, **options: object
) -> asyncssh.SSHCompletedProcess:
    return with_connection(target, lambda c: c.run(command, encoding=None, **options))


def eventually(condition: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@pytest.mark.parametrize("status", [0, 1, 77, 255])
def test_the_exit_status_comes_back(target: EmbeddedTarget, status: int) -> None:
    assert run(target, f"exit {status}").exit_status == status


@pytest.mark.parametrize("name", ["TERM", "KILL", "INT", "HUP"])
def test_a_deadly_signal_comes_back_by_name(target: EmbeddedTarget, name: str) -> None:
    result = run(target, f"kill -s {name} $$")
    assert result.exit_signal is not None
    assert result.exit_signal[0] == name


def test_a_command_does_not_ignore_what_the_starter_of_the_target_ignores(
    software: Software,
) -> None:
    folder, before = open_folder(), signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with started(folder, software) as server:
            os.kill(server.pid, signal.SIGHUP)
            result = run(server, "kill -s HUP $$; echo alive")
    finally:
        signal.signal(signal.SIGHUP, before)
        shutil.rmtree(folder)
    assert result.exit_signal is not None
    assert result.exit_signal[0] == "HUP"


def test_output_and_errors_come_back_apart_and_unchanged(
    target: EmbeddedTarget,
) -> None:
    result = run(target, r"printf 'out\000\377'; printf 'err\r\n' >&2")
    assert (result.stdout, result.stderr) == (b"out\x00\xff", b"err\r\n")


def test_input_arrives_to_its_last_byte_and_then_ends(target: EmbeddedTarget) -> None:
    data = os.urandom(8 * 1024 * 1024)
    result = run(target, "sha256sum", input=data)
    assert result.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()


def test_input_that_nobody_reads_is_no_obstacle(target: EmbeddedTarget) -> None:
    result = run(target, "exec <&-; sleep 0.2; echo done", input=bytes(8 * 1024 * 1024))
    assert (result.stdout, result.exit_status) == (b"done\n", 0)


def test_commands_that_end_before_their_input_do_no_harm_to_later_ones(
    target: EmbeddedTarget,
) -> None:
    async def many(connection: asyncssh.SSHClientConnection) -> None:
        ended = (connection.run("true", input="x" * 200_000) for _ in range(20))
        # The client may find that a command is gone while it still sends.
        await asyncio.gather(*ended, return_exceptions=True)
        connection.abort()

    data = os.urandom(8 * 1024 * 1024)
    for _ in range(3):
        with_connection(target, many)
        assert run(target, "cat", input=data).stdout == data


def test_large_output_arrives_whole(target: EmbeddedTarget) -> None:
    result = run(target, f"head -c {LARGE} /dev/zero; echo end >&2; exit 3")
    assert len(result.stdout) == LARGE
    assert (result.stderr, result.exit_status) == (b"end\n", 3)


@linux
def test_a_slow_reader_slows_the_command_instead_of_filling_memory(
    target: EmbeddedTarget,
) -> None:
    async def read_late(connection: asyncssh.SSHClientConnection) -> int:
        process = await connection.create_process(
            f"head -c {LARGE} /dev/zero", encoding=None, window=1024 * 1024
        )
        await asyncio.sleep(1)
        growth = resident(target) - before
        assert len(await process.stdout.read()) == LARGE
        return growth

    before = resident(target)
    assert with_connection(target, read_late) < 16 * 1024 * 1024


def resident(target: EmbeddedTarget) -> int:
    pages = int(Path(f"/proc/{target.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_many_commands_run_at_once_on_one_connection(target: EmbeddedTarget) -> None:
    # Each of them ends when all have begun.
    all_begun = "[ $(ls begun | wc -l) -ge 40 ]"

    async def many(connection: asyncssh.SSHClientConnection) -> list[str]:
        await connection.run("mkdir begun", check=True)
        commands = [
            connection.run(
                f"touch begun/{number}; until {all_begun}; do sleep 0.2; done; echo {number}"
            )
            for number in range(40)
        ]
        return [result.stdout.strip() for result in await asyncio.gather(*commands)]

    assert with_connection(target, many) == [str(number) for number in range(40)]


@linux
def test_hundreds_of_commands_leave_neither_files_nor_zombies(
    target: EmbeddedTarget,
) -> None:
    async def hundreds(connection: asyncssh.SSHClientConnection) -> None:
        for _ in range(300):
            await connection.run(
                "(setsid sleep 0 >/dev/null 2>&1 </dev/null &); true", check=True
            )

    with_connection(target, lambda c: c.run("true"))
    open_files = Path(f"/proc/{target.pid}/fd")
    assert eventually(lambda: children(target) == [])
    before = len(list(open_files.iterdir()))
    with_connection(target, hundreds)
    assert eventually(lambda: children(target) == [])
    assert eventually(lambda: len(list(open_files.iterdir())) <= before)


def children(target: EmbeddedTarget) -> list[str]:
    found = subprocess.run(
        ["ps", "-o", "stat=,args=", "--ppid", str(target.pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.splitlines()


def test_a_detached_child_does_not_keep_the_command_waiting(
    target: EmbeddedTarget,
) -> None:
    result = run(target, "setsid sleep 20 >/dev/null 2>&1 </dev/null & echo $!")
    assert alive(int(result.stdout))


def test_a_child_that_holds_the_output_keeps_the_channel_open(
    target: EmbeddedTarget,
) -> None:
    result = run(target, "(sleep 0.7; echo late) & echo early; exit 4")
    assert (result.stdout, result.exit_status) == (b"early\nlate\n", 4)


def test_a_signal_reaches_the_whole_process_group(target: EmbeddedTarget) -> None:
    async def terminate(connection: asyncssh.SSHClientConnection) -> tuple[str, str]:
        process = await connection.create_process(
            "sleep 60 & echo $!; wait", stdin=asyncssh.DEVNULL
        )
        child = (await process.stdout.readline()).strip()
        process.terminate()
        await process.wait_closed()
        return child, process.exit_signal[0]

    child, name = with_connection(target, terminate)
    assert name == "TERM"
    assert eventually(lambda: not alive(int(child)))


@pytest.mark.parametrize("how", ["close", "abort"])
def test_a_command_survives_the_loss_of_its_connection(
    target: EmbeddedTarget, how: str
) -> None:
    mark = f"survived-{how}"

    async def lose(connection: asyncssh.SSHClientConnection) -> None:
        await connection.create_process(
            f"echo here; exec >/dev/null 2>&1; sleep 1; echo yes > {mark}"
        )
        await asyncio.sleep(0.3)
        getattr(connection, how)()
        await connection.wait_closed()

    with_connection(target, lose)
    assert eventually(lambda: run(target, f"cat {mark}").stdout == b"yes\n", 5)


def test_a_command_survives_the_loss_of_its_channel(target: EmbeddedTarget) -> None:
    async def lose(connection: asyncssh.SSHClientConnection) -> bytes | str | None:
        process = await connection.create_process(
            "trap '' PIPE; sleep 0.7; echo yes > survivor"
        )
        process.close()
        await process.wait_closed()
        await asyncio.sleep(1.2)
        return (await connection.run("cat survivor")).stdout

    assert with_connection(target, lose) == "yes\n"


def test_commands_start_at_home_with_a_clean_environment(
    target: EmbeddedTarget, account: Account
) -> None:
    said = run(target, "pwd; id -un; env").stdout.decode().splitlines()
    names = {line.split("=")[0] for line in said[2:]}
    assert said[:2] == [str(target.home), account.name]
    assert names <= {
        "HOME",
        "PATH",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
    }


@pytest.mark.skipif(os.getuid() != 0, reason="only root changes to another account")
def test_commands_of_a_root_instance_are_not_root(
    target: EmbeddedTarget, account: Account
) -> None:
    said = run(
        target, "id -u; id -G; touch /root/x 2>/dev/null || echo refused"
    ).stdout.decode()
    assert said.split() == [str(account.uid), str(account.gid), "refused"]


def test_the_account_can_write_below_its_base_folder(target: EmbeddedTarget) -> None:
    assert run(target, f"touch {target.base_dir}/file").exit_status == 0


def test_a_wrong_key_is_refused(target: EmbeddedTarget) -> None:
    async def knock() -> None:
        async with connect(target, asyncssh.generate_private_key("ssh-ed25519")):
            pass

    with pytest.raises(asyncssh.PermissionDenied):
        asyncio.run(knock())


def test_another_account_is_refused(target: EmbeddedTarget) -> None:
    async def knock() -> None:
        async with connect(target, user="root" if target.user != "root" else "nobody"):
            pass

    with pytest.raises(asyncssh.PermissionDenied):
        asyncio.run(knock())


def test_a_key_counts_from_the_moment_it_is_in_the_file_until_it_is_not(
    ground: Path, software: Software
) -> None:
    with started(ground, software) as target:
        target.authorized_keys.unlink()
        with pytest.raises(asyncssh.PermissionDenied):
            run(target, "true")
        target.authorized_keys.write_text(PUBLIC)
        assert run(target, "true").exit_status == 0
        target.authorized_keys.write_text("# nobody\n")
        with pytest.raises(asyncssh.PermissionDenied):
            run(target, "true")


@pytest.mark.parametrize("request_for", ["shell", "terminal", "sftp", "forwarding"])
def test_only_commands_are_served(target: EmbeddedTarget, request_for: str) -> None:
    async def ask(connection: asyncssh.SSHClientConnection) -> None:
        if request_for == "shell":
            await connection.create_process()
        elif request_for == "terminal":
            await connection.create_process("true", term_type="xterm")
        elif request_for == "sftp":
            await connection.start_sftp_client()
        else:
            await connection.open_connection("127.0.0.1", target.port)

    with pytest.raises(asyncssh.ChannelOpenError):
        with_connection(target, ask)


def test_the_host_key_stays_the_same(ground: Path, software: Software) -> None:
    with started(ground, software) as target:
        first = target.host_key
    with started(ground, software) as target:
        assert target.host_key == first


@linux
def test_nothing_is_left_after_a_stop(ground: Path, software: Software) -> None:
    stubborn = "trap '' INT TERM; while :; do sleep 1; done"
    kinds = {
        "plain": "sleep 500",
        "detached": "setsid sleep 500",
        "deaf": f'setsid sh -c "{stubborn}"',
    }
    with started(ground, software) as target:
        for command in kinds.values():
            run(target, f"{command} >/dev/null 2>&1 </dev/null & echo $! >> pids")
        pids = [int(pid) for pid in run(target, "cat pids").stdout.split()]
        assert all(map(alive, pids))
    assert not any(map(alive, pids))


@linux
def test_a_detached_process_is_asked_by_an_interrupt_first(
    ground: Path, software: Software
) -> None:
    # a shell lets its background commands ignore SIGINT, and a shell cannot undo that; env can
    polite = (
        'trap "echo asked > asked; exit" INT; echo up > up; while :; do sleep 0.1; done'
    )
    with started(ground, software) as target:
        run(
            target,
            f"env --default-signal=INT setsid sh -c '{polite}' >/dev/null 2>&1 </dev/null &",
        )
        assert eventually(lambda: run(target, "cat up").stdout == b"up\n")
    assert (target.home / "asked").read_text() == "asked\n"


openssh = pytest.mark.skipif(shutil.which("ssh") is None, reason="ssh is missing")


@openssh
class TestOpenSSHClient:
    @pytest.fixture
    def ssh(self, target: EmbeddedTarget, tmp_path: Path) -> list[str]:
        key, hosts = tmp_path / "key", tmp_path / "hosts"
        key.write_bytes(KEY.export_private_key())
        key.chmod(0o600)
        hosts.write_text(f"[127.0.0.1]:{target.port} {target.host_key}\n")
        options = [
            f"UserKnownHostsFile={hosts}",
            "StrictHostKeyChecking=yes",
            "BatchMode=yes",
        ]
        return [
            "ssh",
            "-F",
            "none",
            "-i",
            str(key),
            "-p",
            str(target.port),
            "-l",
            target.user,
            *(word for option in options for word in ("-o", option)),
            "127.0.0.1",
        ]

    def test_status_and_streams(self, ssh: list[str]) -> None:
        result = subprocess.run(
            [*ssh, "cat; echo err >&2; exit 5"],
            input=b"in\n",
            capture_output=True,
            check=False,
        )
        assert (result.stdout, result.stderr, result.returncode) == (
            b"in\n",
            b"err\n",
            5,
        )

    def test_large_streams_both_ways(self, ssh: list[str]) -> None:
        data = os.urandom(16 * 1024 * 1024)
        result = subprocess.run(
            [*ssh, "cat"], input=data, capture_output=True, check=True
        )
        assert result.stdout == data

    def test_a_detached_child_does_not_keep_it_waiting(self, ssh: list[str]) -> None:
        command = "setsid sleep 20 >/dev/null 2>&1 </dev/null & echo started"
        result = subprocess.run(
            [*ssh, command], capture_output=True, timeout=5, check=True
        )
        assert result.stdout == b"started\n"

    def test_a_killed_client_leaves_the_command(
        self, ssh: list[str], target: EmbeddedTarget
    ) -> None:
        command = (
            "echo $$ > pid; exec >/dev/null 2>&1; sleep 1; echo yes > openssh-survivor"
        )
        with subprocess.Popen([*ssh, command]) as client:
            time.sleep(0.5)
            client.send_signal(signal.SIGKILL)
        assert eventually(
            lambda: run(target, "cat openssh-survivor").stdout == b"yes\n", 5
        )


def test_a_path_too_long_for_a_socket_gets_a_short_base_directory(ground, account):
    long = ground / ("n" * 60) / "target"
    target = EmbeddedTarget(long, ground / "keys", account=account)
    assert target.base_dir.parent == Path("/var/tmp")
    assert (
        EmbeddedTarget(long, ground / "keys", account=account).base_dir
        == target.base_dir
    )
    target.prepare()
    try:
        assert target.base_dir.stat().st_uid == account.uid
        assert target.base_dir.stat().st_mode & 0o777 == 0o700
    finally:
        target.base_dir.rmdir()
