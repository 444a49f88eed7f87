"""A private OpenSSH server on 127.0.0.1, as a target like any other."""

import contextlib
import os
import pwd
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchlab.embedded.account import Account
from benchlab.embedded.embedded_server import free_port
from runs.execution.ssh.ssh import generate_private_key

CONFIGURATION = """
ListenAddress {address}:{port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile {folder}/pid
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 100
"""

# The unprivileged account has no login shell. In a mount namespace of its own this sshd sees a
# passwd file in which it has one; the machine itself is not touched.
WITH_SHELL = """
set -eu
while [ "$1" != -- ]; do
    mount --bind "$1" "$2"
    shift 2
done
shift
exec "$@"
"""


@dataclass
class OpenSSH:
    """A running sshd. `restart` brings it back with the same keys and port."""

    binary: str
    folder: Path
    account: Account
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    address: str = "127.0.0.1"
    # A network namespace of this machine (`ip netns`) that it serves in; empty: the usual one.
    namespace: str = ""
    # The account's login shell.
    shell: str = "/bin/sh"
    # Files that it and its sessions see in place of others: their paths by path (as root only).
    binds: Mapping[str, str] = field(default_factory=dict)

    def prepare(self, public_key: str) -> None:
        """Make the folder, the host key and the configuration; let `public_key` in."""
        self.port = free_port(0)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self.let_in(public_key)
        self.new_host_key()
        configuration = CONFIGURATION.format(
            address=self.address, port=self.port, folder=self.folder
        )
        (self.folder / "sshd_config").write_text(configuration)

    def let_in(self, public_key: str) -> None:
        """Accept this key from now on, and no other."""
        (self.folder / "authorized_keys").write_text(public_key + "\n")
        (self.folder / "authorized_keys").chmod(0o644)

    def new_host_key(self) -> None:
        """Generate a host key, another one if there was one."""
        private, public = generate_private_key()
        key = self.folder / "host_key"
        key.touch(mode=0o600)
        key.write_text(private)
        key.with_suffix(".pub").write_text(f"{public}\n")

    def configure(self, line: str) -> None:
        """Start again with another line of configuration."""
        self.stop()
        with (self.folder / "sshd_config").open("a") as configuration:
            configuration.write(f"{line}\n")
        self.start()

    @property
    def host_key(self) -> str:
        """The public host key line."""
        return (self.folder / "host_key.pub").read_text().strip()

    def start(self) -> None:
        """Start and wait until the port answers."""
        (self.folder / "log").unlink(missing_ok=True)
        # -r: it does not execute itself again for each connection, a third of what one takes.
        command = [self.binary, "-D", "-r", "-f", str(self.folder / "sshd_config")]
        command += ["-E", str(self.folder / "log")]
        if self.account.switch:
            Path("/run/sshd").mkdir(exist_ok=True)
            seen = {str(self._passwd()): "/etc/passwd", **self.binds}
            pairs = [path for pair in seen.items() for path in pair]
            shell = ["sh", "-c", WITH_SHELL, "sshd", *pairs, "--", *command]
            command = ["unshare", "--mount", "--propagation", "private", *shell]
        if self.namespace:
            command = ["ip", "netns", "exec", self.namespace, *command]
        self.process = subprocess.Popen(command, start_new_session=True)
        self._wait()

    def stop(self, *, connections: bool = True) -> None:
        """Stop sshd, and its connections too unless they shall live on."""
        if self.process is None:
            return
        if connections:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self.process = None

    def drop_connections(self) -> None:
        """Kill every connection's process, as a broken network would; sshd itself stays."""
        monitors = _children(self.process.pid if self.process else 0)
        # A connection's two processes; what runs in it is a child of the second, and lives on.
        for pid in [
            *monitors,
            *(child for monitor in monitors for child in _children(monitor)),
        ]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def wait_until_nobody_is_connected(self) -> None:
        """Wait for the end of every connection's process; fail when one stays."""
        until = time.monotonic() + 5
        while _children(self.process.pid if self.process else 0):
            assert time.monotonic() < until, "a connection is still open"
            time.sleep(0.05)

    def _passwd(self) -> Path:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        os.chown(home, self.account.uid, self.account.gid)
        lines = []
        for line in Path("/etc/passwd").read_text().splitlines():
            fields = line.split(":")
            if fields[0] == self.account.name:
                fields[5:7] = [str(home), self.shell]
            lines.append(":".join(fields))
        passwd = self.folder / "passwd"
        passwd.write_text("\n".join(lines) + "\n")
        return passwd

    def _wait(self) -> None:
        for _ in range(100):
            log = self.folder / "log"
            if log.exists() and "Server listening" in log.read_text():
                return
            if self.process is None or self.process.poll() is not None:
                break
            time.sleep(0.05)
        said = (
            (self.folder / "log").read_text() if (self.folder / "log").exists() else ""
        )
        raise AssertionError(f"sshd does not start: {said}")


def _children(pid: int) -> list[int]:
    # A connection may end meanwhile.
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        tasks = Path(f"/proc/{pid}/task/{pid}/children")
        return [int(child) for child in tasks.read_text().split()]
    return []


# script/test has temporary files in memory.
DISK = Path("/var/tmp")


def short_folder(*, on_disk: bool = False) -> Path:
    """A folder with a short name that everybody can enter."""
    folder = Path(tempfile.mkdtemp(prefix="bl-", dir=DISK if on_disk else None))
    folder.chmod(0o755)
    return folder


def login_name(account: Account) -> str:
    """The name to log in with."""
    return account.name if account.switch else pwd.getpwuid(os.getuid()).pw_name
