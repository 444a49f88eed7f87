"""The account that runs servers and commands which must not be root."""

import codecs
import os
import pwd
import signal
import stat
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn, Protocol

from benchlab.embedded.descendants import Process, descendants
from benchlab.embedded.errors import StartError

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

Stream = int | IO[bytes] | None

# How much a check in another account may report about its failure.
LONGEST_COMPLAINT = 10_000
YES, NO, FAILED = range(3)


class Child(Protocol):
    """A process that was started here: what is used of subprocess.Popen."""

    pid: int
    stdin: IO[bytes] | None

    def poll(self) -> int | None:
        """Its exit status, below 0 for a signal; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, some seconds at most. Raises subprocess.TimeoutExpired."""

    def send_signal(self, sig: int, /) -> None:
        """Send it a signal, unless it has ended."""


@dataclass(frozen=True)
class Account:
    """Who runs a process: `switch` says whether this process must change to that account first.

    `by_sudo`: an ordinary user's process starts it through sudo, and ends it through sudo.
    """

    name: str
    uid: int
    gid: int
    switch: bool
    by_sudo: bool = False

    @property
    def is_another(self) -> bool:
        """Whether it is another account than that of this process."""
        return self.switch or self.by_sudo

    def spawn(
        self,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stdin: Stream = subprocess.DEVNULL,
        stdout: Stream = subprocess.DEVNULL,
        stderr: Stream = subprocess.DEVNULL,
        pass_fds: Sequence[int] = (),
    ) -> subprocess.Popen[bytes]:
        """Start argv as this account in a session of its own, so that Ctrl-C reaches only us."""
        words, variables = [os.fspath(word) for word in argv], dict(env)
        if self.by_sudo:
            words, variables = self._through_sudo(words, variables, cwd), {"PATH": PATH}
        return subprocess.Popen(
            words,
            env=variables,
            cwd="/" if self.by_sudo else cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=pass_fds,
            start_new_session=True,
            user=self.uid if self.switch else None,
            group=self.gid if self.switch else None,
            extra_groups=[] if self.switch else None,
        )

    def _through_sudo(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path
    ) -> list[str]:
        """The command that sudo runs: environments of the other accounts have no secret in them."""
        variables = [f"{name}={value}" for name, value in env.items()]
        inside = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', os.fspath(cwd), *argv]
        return [
            "sudo",
            "-n",
            "-u",
            self.name,
            "--",
            "/usr/bin/env",
            "-i",
            *variables,
            *inside,
        ]

    def send(self, process: Child, number: signal.Signals) -> None:
        """Send a signal to a process of this account that `spawn` has started.

        sudo itself is root's: what it has started gets the signal, and everything below as well if
        that signal ends without asking.
        """
        if not self.by_sudo:
            process.send_signal(number)
        elif process.poll() is None:
            processes = self.owned_below(process)
            pids = {process.pid for process in processes}
            if number != signal.SIGKILL:
                pids -= {process.pid for process in processes if process.parent in pids}
            if pids:
                self.succeeds("kill", f"-{number.value}", *map(str, pids))

    def owned_below(self, process: Child) -> list[Process]:
        """The processes of this account that a process has started."""
        return [process for process in descendants(process.pid) if self._owns(process)]

    def _owns(self, process: Process) -> bool:
        try:
            return Path(f"/proc/{process.pid}").stat().st_uid == self.uid
        except OSError:
            return False

    def printed(
        self,
        *argv: str | Path,
        env: Mapping[str, str] | None = None,
        cwd: Path = Path("/"),
    ) -> tuple[int, str]:
        """The exit status of argv as this account, and what it prints. Raises OSError."""
        env = self.environment(Path("/")) if env is None else env
        with self.spawn(
            argv, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            text = process.communicate()[0].decode(errors="replace").strip()
        return process.returncode, text

    def succeeds(
        self,
        *argv: str | Path,
        env: Mapping[str, str] | None = None,
        cwd: Path = Path("/"),
    ) -> bool:
        """Whether this account can run argv to a good end; the kernel's answer, not a guess."""
        env = self.environment(Path("/")) if env is None else env
        try:
            with self.spawn(argv, env=env, cwd=cwd) as process:
                return process.wait() == 0
        except OSError:
            return False

    def ask(self, question: Callable[[], bool]) -> bool:
        """The answer of a function that reads what others send, asked as this account.

        Where that is another one, in a child process without our rights. Raises StartError where
        the function raises, with its words.
        """
        if not self.switch:
            return question()
        codecs.lookup(
            "idna"
        )  # loaded at need, from files that the child may not be able to read
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            self._answer(question, writing)
        os.close(writing)
        with open(reading, "rb") as pipe:  # noqa: PTH123 - a descriptor, not a path
            complaint = pipe.read(LONGEST_COMPLAINT).decode(errors="replace")
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == FAILED:
            raise StartError(complaint)
        return status == YES

    def _answer(self, question: Callable[[], bool], writing: int) -> NoReturn:
        status = NO
        try:
            os.setgroups([])
            os.setgid(self.gid)
            os.setuid(self.uid)
            status = YES if question() else NO
        except Exception as error:  # noqa: BLE001 - told to whoever asked
            status = FAILED
            message = str(error) if isinstance(error, StartError) else repr(error)
            os.write(writing, message.encode()[:LONGEST_COMPLAINT])
        finally:
            os._exit(status)

    def can_enter(self, folder: Path) -> bool:
        """Whether this account can reach the folder's content."""
        return self.succeeds("/bin/sh", "-c", '[ -x "$1" ]', "sh", folder)

    def own(self, path: Path) -> None:
        """Give a file or folder that we made to this account."""
        if self.switch:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def take_over(self, folder: Path) -> None:
        """Give this account a folder of another one, with what that one had in it.

        So an instance that ran everything as `nobody` gets accounts of its own. No link is
        followed, and files of third accounts stay theirs.
        """
        former = folder.lstat()
        if not self.switch or former.st_uid == self.uid:
            return
        if not stat.S_ISDIR(former.st_mode):
            raise StartError(f"{folder} is no folder: remove it, or set BENCHLAB_VAR")
        for _path, folders, files, descriptor in os.fwalk(folder, topdown=False):
            for name in (*folders, *files):
                status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                if status.st_uid == former.st_uid:
                    os.chown(
                        name,
                        self.uid,
                        self.gid,
                        dir_fd=descriptor,
                        follow_symlinks=False,
                    )
        self.own(folder)

    def environment(self, home: Path) -> dict[str, str]:
        """A clean environment: nothing of ours, so no secret of ours either."""
        return {
            "PATH": PATH,
            "HOME": str(home),
            "USER": self.name,
            "LOGNAME": self.name,
            "SHELL": "/bin/sh",
            "LANG": "C.UTF-8",
        }


def myself() -> Account:
    """The account of this process."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:  # a container may run under a bare number
        name = str(uid)
    return Account(name, uid, os.getgid(), switch=False)


def unprivileged_account(environ: Mapping[str, str] = os.environ) -> Account | None:
    """When we are root, the account of the servers: BENCHLAB_USER, else nobody. Else None."""
    if os.getuid() != 0:
        return None
    name = environ.get("BENCHLAB_USER", "nobody")
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise StartError(
            f"there is no account {name!r}: set BENCHLAB_USER to an existing unprivileged account"
        ) from None
    if entry.pw_uid == 0:
        raise StartError(
            f"BENCHLAB_USER={name} is root, and PostgreSQL does not run as root"
        )
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, switch=True)


def service_account(environ: Mapping[str, str] = os.environ) -> Account:
    """The account of the servers: the unprivileged one when we are root, else our own."""
    return unprivileged_account(environ) or myself()
