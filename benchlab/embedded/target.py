"""The embedded SSH target as a child process: this machine, as a server that BenchLab can reach."""

import hashlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

from benchlab.embedded.account import Account, myself
from benchlab.embedded.embedded_server import EmbeddedServer
from benchlab.embedded.errors import StartError
from benchlab.embedded.places import REPOSITORY
from benchlab.embedded.processes import Program
from runs.execution.base_dir import LONGEST_BASE_DIR


class EmbeddedTarget(EmbeddedServer):
    """An SSH server for one account and the keys in `authorized_keys`.

    In `folder` home/ is where commands start and base/ is for BenchLab's files; both belong to
    the account. `keys` is ours: the host key and the authorised keys. stop() ends every process
    that was started through it.
    """

    name = "target"

    def __init__(self, folder: Path, keys: Path, **options: Any):
        super().__init__(folder, **options)
        self.home = self.folder / "home"
        self.base_dir = _within_reach_of_sockets(self.folder / "base")
        self.authorized_keys = keys / "authorized_keys"
        self._host_key = keys / "host_key"
        self._port_file = keys / "port"

    @property
    def user(self) -> str:
        """The only account that can log in."""
        return self.account.name

    @property
    def host_key(self) -> str:
        """The public host key, to pin: `ssh-ed25519 AAAA...`."""
        return self._host_key.with_name("host_key.pub").read_text().strip()

    def prepare(self) -> None:
        """Make the folders."""
        self._host_key.parent.mkdir(parents=True, exist_ok=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o711)
        for folder in (self.home, self.base_dir):
            folder.mkdir(mode=0o700, exist_ok=True)
            self._own(folder)

    def _own(self, folder: Path) -> None:
        """Give the folder to the account; one below /var/tmp may be somebody else's by now."""
        owner = folder.lstat()
        if owner.st_uid not in {os.getuid(), self.account.uid} or folder.is_symlink():
            raise StartError(f"{folder} belongs to somebody else: remove it, or set BENCHLAB_VAR")
        self.account.own(folder)

    def program(self) -> Program:
        """The server. It stays who we are: it must read its keys, and change to the account."""
        self._port_file.unlink(missing_ok=True)
        module = "benchlab.embedded.ssh_target"
        return Program(
            name=self.name,
            argv=[
                *(sys.executable, "-m", module, "--port", str(self.port), "--home", self.home),
                *("--host-key", self._host_key, "--authorized-key", self.authorized_keys),
                *("--port-file", self._port_file),
            ],
            account=myself(),
            log=self.log,
            env=_environment(self.account),
            cwd=REPOSITORY,
            stops=((signal.SIGTERM, 10.0),),
        )

    def answers(self) -> bool:
        """Whether it listens: it then writes its port."""
        return self._port_file.exists()


def _within_reach_of_sockets(base: Path) -> Path:
    """The base directory; one with a short name where the path is too long for a Unix socket.

    Nothing in it outlives a campaign, so it may lie outside of var/.
    """
    if len(os.fsencode(base)) <= LONGEST_BASE_DIR:
        return base
    digest = hashlib.sha256(os.fsencode(base)).hexdigest()[:12]
    return Path("/var/tmp") / f"benchlab-{digest}"  # noqa: S108 (owner and mode are checked)


def _environment(account: Account) -> dict[str, str]:
    """Only what Python and the choice of the account need: no secret of the instance."""
    wanted = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "COVERAGE_PROCESS_START")
    ours = {name: os.environ[name] for name in wanted if name in os.environ}
    return {**ours, "BENCHLAB_USER": account.name}
