# ruff: noqa: D102 - the callbacks keep the contracts that asyncio and asyncssh document
"""An SSH server for one account of this machine, which runs commands as OpenSSH would.

    python -m benchlab.embedded.ssh_target --port 0 --authorized-key PATH --home PATH \
        --port-file PATH <HOST_KEY

It runs as the account that it serves, and has no more rights than that: its private host key comes
on standard input, from a file which that account cannot read. It stands in for sshd where there is
none, and keeps to what BenchLab relies on there: binary streams with back-pressure, end of file,
exit status and signal, and commands that live on when their connection is lost. Only commands
(exec): no terminal, no forwarding, no SFTP. SIGTERM and SIGINT end every process that was started
through it.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from asyncio.streams import FlowControlMixin
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from benchlab.embedded.account import Account, myself
from benchlab.embedded.descendants import Ending, become_subreaper
from benchlab.embedded.places import write_private

CHUNK_BYTES = 64 * 1024


class Reaper:
    """The only place that waits for children, so that no exit status goes astray.

    Children of commands become ours when their parent ends; those are only laid to rest.
    """

    def __init__(self) -> None:
        self._waiting: dict[
            int, tuple[subprocess.Popen[bytes], asyncio.Future[int]]
        ] = {}

    def expect(self, process: "subprocess.Popen[bytes]") -> "asyncio.Future[int]":
        """A future for the wait status of a child; call it right after the start."""
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting[process.pid] = (process, ended)
        return ended

    def reap(self) -> None:
        """Take every dead child (the handler of SIGCHLD)."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid in self._waiting:
                    process, ended = self._waiting.pop(pid)
                    process.returncode = os.waitstatus_to_exitcode(status)
                    ended.set_result(status)


@dataclass(frozen=True)
class Shell:
    """Starts commands: with their account and folder, and the waiting for them."""

    account: Account
    home: Path
    reaper: Reaper

    def start(self, command: str) -> "subprocess.Popen[bytes]":
        """Run the command in sh, in a session of its own, with pipes on its streams."""
        return self.account.spawn(
            ["/bin/sh", "-c", command],
            env=self.account.environment(self.home),
            cwd=self.home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


class Execution(asyncssh.SSHServerProcess[bytes]):
    """One command on one channel. It ends on its own; a lost channel only closes its pipes."""

    def __init__(self, shell: Shell):
        super().__init__(self._run, None, 3, allow_scp=False)
        self._shell = shell
        self._pid = 0

    def shell_requested(self) -> bool:
        return False

    async def _run(self, _process: "asyncssh.SSHServerProcess[bytes]") -> None:
        try:
            process = self._shell.start(self.command or "")
        except OSError as error:
            self.stderr.write(f"cannot run the command: {error}\n".encode())
            self.exit(126)
            return
        self._pid = process.pid
        exited = self._shell.reaper.expect(process)
        feeding = asyncio.create_task(_feed(self.stdin, process))
        await self.redirect(None, process.stdout, process.stderr, send_eof=False)
        status = await exited
        self._pid = 0
        feeding.cancel()
        with contextlib.suppress(OSError, asyncssh.Error):  # the client is gone
            # as under sshd: a background child that holds an output open keeps the channel open
            await self.stdout.drain()
            await self.stderr.drain()
            if os.WIFSIGNALED(status):
                name = signal.Signals(os.WTERMSIG(status)).name.removeprefix("SIG")
                self.exit_with_signal(name, os.WCOREDUMP(status))
            else:
                self.exit(os.WEXITSTATUS(status))

    def signal_received(self, signal_name: str) -> None:
        with contextlib.suppress(AttributeError, ProcessLookupError, PermissionError):
            if self._pid:
                os.killpg(self._pid, getattr(signal, f"SIG{signal_name}"))


async def _feed(
    stdin: "asyncssh.SSHReader[bytes]", process: "subprocess.Popen[bytes]"
) -> None:
    """Pass on what the client sends; a command that no longer reads gets nothing."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(FlowControlMixin, process.stdin)
    pipe = asyncio.StreamWriter(transport, protocol, None, loop)
    try:
        while data := await stdin.read(CHUNK_BYTES):
            pipe.write(data)
            await pipe.drain()
    except (OSError, asyncssh.Error):
        return  # the command reads no more, or the client is gone
    finally:
        pipe.close()


class Door(asyncssh.SSHServer):
    """Lets in the one account with a key of the file as it is at that moment."""

    def __init__(self, shell: Shell, authorized_keys: Path):
        self._shell = shell
        self._authorized_keys = authorized_keys

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn

    def begin_auth(self, username: str) -> bool:
        if username == self._shell.account.name:
            # no file yet, or no key in it: then nobody gets in
            with contextlib.suppress(OSError, ValueError):
                self._connection.set_authorized_keys(str(self._authorized_keys))
        return True

    def session_requested(self) -> Execution:
        return Execution(self._shell)


# Python ignores these for itself, and lets its children have them.
OF_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}


def handle_what_is_ignored() -> None:
    """Let commands die of every signal, even if our own parent ignored some (as nohup does).

    An ignored signal stays ignored in children; one that is handled gets its default there.
    """
    for number in signal.valid_signals() - OF_PYTHON:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: None)


async def serve(options: argparse.Namespace, host_key: asyncssh.SSHKey) -> None:
    """Serve until SIGTERM or SIGINT, and leave no process behind."""
    handle_what_is_ignored()
    become_subreaper()
    reaper, stopping = Reaper(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGCHLD, reaper.reap)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    shell = Shell(myself(), options.home, reaper)
    server = await asyncssh.create_server(
        lambda: Door(shell, options.authorized_key),
        "127.0.0.1",
        options.port,
        server_host_keys=[host_key],
        config=None,
        encoding=None,
        allow_pty=False,
        agent_forwarding=False,
        password_auth=False,
        kbdint_auth=False,
        host_based_auth=False,
        gss_host=None,
        compression_algs=None,
    )
    write_private(options.port_file, f"{server.get_port()}\n")
    await stopping.wait()
    server.close()
    ending = Ending()
    while not ending.advance():  # noqa: ASYNC110 - the process table has no event to wait for
        await asyncio.sleep(0.05)
    reaper.reap()


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="ssh_target", description="BenchLab's embedded SSH target"
    )
    parser.add_argument(
        "--port", type=int, default=0, help="on 127.0.0.1; 0 takes a free one"
    )
    parser.add_argument(
        "--authorized-key", type=Path, required=True, help="read at each login"
    )
    parser.add_argument("--home", type=Path, required=True, help="where commands start")
    parser.add_argument(
        "--port-file", type=Path, required=True, help="written when it listens"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    asyncio.run(serve(read_options(), asyncssh.import_private_key(sys.stdin.read())))
