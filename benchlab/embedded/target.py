"""The embedded SSH target as a child process: this machine, as a server that BenchLab can reach."""

import hashlib
import os
import signal
from pathlib import Path
from typing import Any

import asyncssh

from benchlab.embedded.account import Account, service_account
from benchlab.embedded.embedded_server import EmbeddedServer
from benchlab.embedded.errors import StartError
from benchlab.embedded.places import kept_secret
from benchlab.embedded.processes import Program
from benchlab.embedded.software import Software, find_software
from runs.execution.steps.base_dir import LONGEST_BASE_DIR


class EmbeddedTarget(EmbeddedServer):
    """An SSH server for one account and the keys in `authorized_keys`.

    In `folder` home/ is where commands start and base/ is for BenchLab's files; both belong to
    the account. The authorised keys there belong to `keeper`, who adds to them; `keys` is ours, and
    has the host key. It runs on `software`, with the account's rights. stop() ends every process
    that was started through it.
    """

    name = "target"

    def __init__(
        self,
        folder: Path,
        keys: Path,
        *,
        software: Software | None = None,
        keeper: Account | None = None,
        **options: Any,
    ):
        super().__init__(folder, **options)
        self.software = software or find_software()
        self._keeper = keeper
        # Only root gives folders away: through sudo, the account makes its own.
        self._theirs = _place_of(self.folder, self.account)
        self.home = self._theirs / "home"
        self.base_dir = _within_reach_of_sockets(self._theirs / "base")
        self.authorized_keys = self.folder / "authorized_keys"
        self._host_key = keys / "host_key"
        self._port_file = self._theirs / "listening" / "port"

    @property
    def user(self) -> str:
        """The only account that can log in."""
        return self.account.name

    @property
    def host_key(self) -> str:
        """The public host key, to pin: `ssh-ed25519 AAAA...`."""
        key = asyncssh.import_private_key(self._private_host_key())
        return key.export_public_key().decode().strip()

    def _private_host_key(self) -> str:
        def make() -> str:
            return (
                asyncssh.generate_private_key("ssh-ed25519")
                .export_private_key()
                .decode()
            )

        return kept_secret(self._host_key, make) + "\n"

    def prepare(self) -> None:
        """Make the folders."""
        self._host_key.parent.mkdir(parents=True, exist_ok=True)
        super().prepare()
        self.authorized_keys.touch(mode=0o644)
        if self._keeper is not None:
            self._keeper.own(self.authorized_keys)
        if self.account.by_sudo:
            self._let_it_make_its_folders()
            return
        for folder in (self.home, self.base_dir, self._port_file.parent):
            folder.mkdir(mode=0o700, exist_ok=True)
            self._own(folder)

    def _let_it_make_its_folders(self) -> None:
        """The account makes them itself, and ends what a supervisor that was killed has left."""
        account, folders = (
            self.account,
            (self.home, self.base_dir, self._port_file.parent),
        )
        account.succeeds("pkill", "-TERM", "-f", "--", str(self._port_file))
        account.succeeds("mkdir", "-p", "-m", "711", self._theirs)
        account.succeeds("mkdir", "-p", "-m", "700", *folders)
        for folder in (self._theirs, *folders):
            is_real = folder.is_dir() and not folder.is_symlink()
            if not is_real or folder.lstat().st_uid != account.uid:
                raise StartError(
                    f"{folder} is not a folder of {account.name}: remove it"
                )
        if not account.succeeds("test", "-r", self.authorized_keys):
            raise StartError(
                f"{account.name} cannot read {self.authorized_keys}: set BENCHLAB_VAR to a folder"
                " that every account can get into"
            )

    def _own(self, folder: Path) -> None:
        """Give the folder to the account; one below /var/tmp may be somebody else's by now."""
        # `nobody` had it until the accounts were apart.
        uids = {os.getuid(), self.account.uid, service_account({}).uid}
        if folder.is_symlink() or folder.lstat().st_uid not in uids:
            raise StartError(
                f"{folder} belongs to somebody else: remove it, or set BENCHLAB_VAR"
            )
        self.account.take_over(folder)

    def program(self) -> Program:
        """The server, with the rights of the account and its host key on standard input."""
        if self.account.by_sudo:
            self.account.succeeds("rm", "-f", self._port_file)
        else:
            self._port_file.unlink(missing_ok=True)
        module = "benchlab.embedded.ssh_target"
        return self.build_program(
            [
                self.software.python,
                "-m",
                module,
                "--port",
                str(self.port),
                "--home",
                self.home,
                "--authorized-key",
                self.authorized_keys,
                "--port-file",
                self._port_file,
            ],
            env=self._environment(),
            cwd=self.software.root,
            stdin=self._private_host_key().encode(),
            stops=((signal.SIGTERM, 10.0),),
        )

    def is_heard(self) -> bool:
        """Whether it listens: it then writes its port."""
        if self.account.by_sudo:
            return self.account.succeeds("test", "-e", self._port_file)
        return self._port_file.exists()

    def _environment(self) -> dict[str, str]:
        """Only what Python needs: no secret of the instance."""
        passed_names = ("LD_LIBRARY_PATH", "COVERAGE_PROCESS_START")
        ours = {name: os.environ[name] for name in passed_names if name in os.environ}
        return self.account.environment(self.home) | ours | self.software.variables


def _place_of(folder: Path, account: Account) -> Path:
    """Where the account's own files are: in `folder`, or in a place where it may make them."""
    if not account.by_sudo:
        return folder
    digest = hashlib.sha256(os.fsencode(folder) + account.name.encode()).hexdigest()[
        :12
    ]
    return Path("/var/tmp") / f"benchlab-{digest}"  # noqa: S108 (owner is checked)


def _within_reach_of_sockets(base: Path) -> Path:
    """The base directory; one with a short name where the path is too long for a Unix socket.

    Nothing in it outlives a campaign, so it may be outside of var/.
    """
    if len(os.fsencode(base)) <= LONGEST_BASE_DIR:
        return base
    digest = hashlib.sha256(os.fsencode(base)).hexdigest()[:12]
    return Path("/var/tmp") / f"benchlab-{digest}"  # noqa: S108 (owner and mode are checked)
