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
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import asyncssh

from benchlab.embedded.account import Account, myself
from benchlab.embedded.descendants import Ending, become_subreaper
from benchlab.embedded.places import write_private

Stream = TypeVar("Stream", bound=asyncio.BaseProtocol)


class Reaper:
    """The only place that waits for children, so that no exit status goes astray.

    Children of commands become ours when their parent ends; those are only laid to rest.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[subprocess.Popen[bytes], asyncio.Future[int]]] = {}

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


class Input(asyncio.Protocol):
    """What the client sends, on its way into the command's standard input.

    The pipe counts from open() on, not from connection_made(): asyncio registers its descriptor
    only after the latter, and a pipe that is closed in between would stay registered, to the
    harming the next process with that number.
    """

    def __init__(self, channel: "asyncssh.SSHServerChannel[bytes]"):
        self._channel = channel
        self._pipe: asyncio.WriteTransport | None = None
        self._early: list[bytes] = []
        self._at_end = False
        self._closed = False

    def open(self, pipe: asyncio.WriteTransport) -> None:
        """Pass on what came before the pipe was there, and from now on all at once."""
        self._pipe = pipe
        pipe.write(b"".join(self._early))
        self._early.clear()
        if self._at_end:
            pipe.write_eof()
        if self._closed:
            self.close()

    def feed(self, data: bytes) -> None:
        """Pass data on; a command that no longer reads gets nothing, and nothing stops for it."""
        if self._closed:
            return
        if self._pipe is None:
            self._early.append(data)
        elif not self._pipe.is_closing():
            self._pipe.write(data)

    def feed_eof(self) -> None:
        """Close the command's input once it has taken what was sent."""
        self._at_end = True
        if self._pipe is not None:
            self._pipe.write_eof()

    def close(self) -> None:
        """Drop what is left."""
        self._closed = True
        self._early.clear()
        pipe = self._pipe
        # asyncio fails on abort() after an end of file without earlier data to write
        if pipe is not None and (not pipe.is_closing() or pipe.get_write_buffer_size()):
            pipe.abort()

    def pause_writing(self) -> None:
        self._channel.pause_reading()

    def resume_writing(self) -> None:
        # Not from within: asyncio calls us while it writes, and an end of file that arrived right
        # then would make it drop what the same call has just put into its buffer.
        asyncio.get_running_loop().call_soon(self._channel.resume_reading)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        self._channel.resume_reading()


class Output(asyncio.Protocol):
    """What the command writes to one of its streams, on its way to the client.

    As with Input, the pipe is touched from open() on.
    """

    def __init__(self, channel: "asyncssh.SSHServerChannel[bytes]", datatype: int | None):
        self._channel = channel
        self._datatype = datatype
        self._pipe: asyncio.ReadTransport | None = None
        self._held = False
        self._closed = False
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def open(self, pipe: asyncio.ReadTransport) -> None:
        """Obey what was asked for before the pipe was there."""
        self._pipe = pipe
        if self._closed:
            self.close()
        elif self._held:
            self.hold()

    def data_received(self, data: bytes) -> None:
        try:
            self._channel.write(data, self._datatype)
        except OSError:  # the client is gone: the command's next write fails, as under sshd
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def hold(self) -> None:
        """Read no more until go_on(): the client is slower than the command."""
        self._held = True
        if self._pipe is not None and not self._pipe.is_closing():
            self._pipe.pause_reading()

    def go_on(self) -> None:
        """Read again."""
        self._held = False
        if self._pipe is not None and not self._pipe.is_closing():
            self._pipe.resume_reading()

    def close(self) -> None:
        """Stop reading for good."""
        self._closed = True
        if self._pipe is not None:
            self._pipe.close()


class Execution(asyncssh.SSHServerSession[bytes]):
    """One command on one channel. It ends on its own; a lost channel only closes its pipes."""

    def __init__(self, shell: Shell):
        self._shell = shell
        self._command = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._lost = False

    def connection_made(self, chan: "asyncssh.SSHServerChannel[bytes]") -> None:
        self._channel = chan
        self._input = Input(chan)
        self._outputs = (Output(chan, None), Output(chan, asyncssh.EXTENDED_DATA_STDERR))

    def exec_requested(self, command: str) -> bool:
        self._command = command
        return True

    def session_started(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        # our own error must show in the log, and must not leave the client waiting forever
        if (fault := task.exception()) is not None:
            traceback.print_exception(fault)
            self._channel.abort()

    async def _run(self) -> None:
        try:
            process = self._process = self._shell.start(self._command)
        except OSError as error:
            self._channel.write_stderr(f"cannot run the command: {error}\n".encode())
            self._channel.exit(126)
            return
        exited = self._shell.reaper.expect(process)
        await self._connect(process)
        status = await exited
        self._process = None
        self._input.close()
        # as under sshd: a background child that holds an output open keeps the channel open
        for output in self._outputs:
            await output.ended
        if not self._lost:
            if os.WIFSIGNALED(status):
                name = signal.Signals(os.WTERMSIG(status)).name.removeprefix("SIG")
                self._channel.exit_with_signal(name, os.WCOREDUMP(status))
            else:
                self._channel.exit(os.WEXITSTATUS(status))

    async def _connect(self, process: "subprocess.Popen[bytes]") -> None:
        loop = asyncio.get_running_loop()
        stdin, _ = await loop.connect_write_pipe(partial(_itself, self._input), process.stdin)
        self._input.open(stdin)
        for output, stream in zip(self._outputs, (process.stdout, process.stderr), strict=True):
            pipe, _ = await loop.connect_read_pipe(partial(_itself, output), stream)
            output.open(pipe)

    def data_received(self, data: bytes, datatype: int | None) -> None:
        self._input.feed(data)

    def eof_received(self) -> bool:
        self._input.feed_eof()
        return True  # the command may still have much to say

    def pause_writing(self) -> None:
        for output in self._outputs:
            output.hold()

    def resume_writing(self) -> None:
        for output in self._outputs:
            output.go_on()

    def signal_received(self, signal: str) -> None:
        number = _signal_number(signal)
        if self._process is not None and number is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._input.close()
        for output in self._outputs:
            output.close()


def _itself(protocol: Stream) -> Stream:
    return protocol


def _signal_number(name: str) -> signal.Signals | None:
    try:
        return signal.Signals[f"SIG{name}"]
    except KeyError:
        return None


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
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--authorized-key", type=Path, required=True, help="read at each login")
    parser.add_argument("--home", type=Path, required=True, help="where commands start")
    parser.add_argument("--port-file", type=Path, required=True, help="written when it listens")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    asyncio.run(serve(read_options(), asyncssh.import_private_key(sys.stdin.read())))
