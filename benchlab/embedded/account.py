"""The account that runs servers and commands which must not be root."""

import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchlab.embedded.errors import StartError

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

Stream = int | IO[bytes] | None


@dataclass(frozen=True)
class Account:
    """Who runs a process: `switch` says whether this process must change to that account first."""

    name: str
    uid: int
    gid: int
    switch: bool

    def spawn(
        self,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stdin: Stream = subprocess.DEVNULL,
        stdout: Stream = subprocess.DEVNULL,
        stderr: Stream = subprocess.DEVNULL,
    ) -> "subprocess.Popen[bytes]":
        """Start argv as this account in a session of its own, so that Ctrl-C reaches only us."""
        return subprocess.Popen(
            [os.fspath(word) for word in argv],
            env=dict(env),
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            user=self.uid if self.switch else None,
            group=self.gid if self.switch else None,
            extra_groups=[] if self.switch else None,
        )

    def succeeds(self, *argv: str | Path) -> bool:
        """Whether this account can run argv to a good end; the kernel's answer, not a guess."""
        try:
            with self.spawn(argv, env=self.environment(Path("/")), cwd=Path("/")) as process:
                return process.wait() == 0
        except OSError:
            return False

    def can_enter(self, folder: Path) -> bool:
        """Whether this account can reach what lies in the folder."""
        return self.succeeds("/bin/sh", "-c", '[ -x "$1" ]', "sh", folder)

    def own(self, path: Path) -> None:
        """Give a file or folder that we made to this account."""
        if self.switch:
            os.chown(path, self.uid, self.gid)

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
    """When we are root, who runs the servers: BENCHLAB_USER, else nobody. None when not root."""
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
        raise StartError(f"BENCHLAB_USER={name} is root, and PostgreSQL does not run as root")
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, switch=True)


def service_account(environ: Mapping[str, str] = os.environ) -> Account:
    """The account of the servers: the unprivileged one when we are root, else our own."""
    return unprivileged_account(environ) or myself()
