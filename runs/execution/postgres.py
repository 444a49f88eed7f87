"""A PostgreSQL cluster on a target: initdb, configure, start, query, stop.

Each act is a durable step; this module only knows the commands and what their failures mean.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from runs.execution.initdb import options_for

SUPERUSER = "benchlab"
DATABASE = "benchlab"
PORT = 5432
START_TIMEOUT_SECONDS = 300
# A fast shutdown writes a checkpoint: with large shared_buffers that takes its time.
STOP_TIMEOUT_SECONDS = 900
# pg_ctl takes a killed postmaster for alive until init has reaped it; in a container that may be
# never. Such a process serves nobody.
_STATUS = """
"$1" status -D "$2" || exit
read -r pid <"$2/postmaster.pid" || exit 3
case $(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null) in Z*) exit 3 ;; esac
"""


@dataclass(frozen=True)
class Cluster:
    """Where a cluster lives and which binaries serve it.

    `client_bindir` is where psql lies, `log` the server's log file of this run. The server listens
    on a Unix socket in a folder that only its owner can enter; and on `address`, if there is one.
    """

    bindir: str
    version_num: int
    client_bindir: str
    directory: str
    socket_dir: str
    log: str
    port: int = PORT
    address: str = ""

    def elsewhere(self, directory: str) -> Self:
        """A cluster of the same binaries in another folder."""
        return replace(self, directory=directory)

    @property
    def data(self) -> str:
        """The data directory."""
        return f"{self.directory}/data"

    def initdb(self, options: Sequence[str]) -> tuple[str, ...]:
        """Create the cluster; durable writes of initdb itself do not matter to a measurement."""
        return (
            f"{self.bindir}/initdb", "-D", self.data, "-U", SUPERUSER, "-A", "trust",
            "-E", "UTF8", "--locale=C", *options_for(self.version_num, options),
        )  # fmt: skip

    def configure(self, settings: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
        """Append settings to postgresql.conf: (argv, standard input)."""
        lines = [f"{name} = {_quoted(value)}" for name, value in sorted(settings.items())]
        append = 'cat >>"$1"'
        argv = ("sh", "-c", append, "configure", f"{self.data}/postgresql.conf")
        return argv, "\n".join(["", "# BenchLab", "listen_addresses = ''", *lines, ""])

    def start(self) -> tuple[str, ...]:
        """Start the server and wait until it answers."""
        return (
            f"{self.bindir}/pg_ctl", "start", "-w", "-t", str(START_TIMEOUT_SECONDS),
            "-D", self.data, "-l", self.log, "-o", self._options,
        )  # fmt: skip

    @property
    def _options(self) -> str:
        listen = f' -h "{self.address}"' if self.address else ""
        return f'-p {self.port} -k "{self.socket_dir}"{listen}'

    def stop(
        self, mode: str = "fast", *, patience_s: int = STOP_TIMEOUT_SECONDS
    ) -> tuple[str, ...]:
        """Stop the server and wait until it has."""
        return (
            f"{self.bindir}/pg_ctl", "stop", "-w", "-t", str(patience_s),
            "-D", self.data, "-m", mode,
        )  # fmt: skip

    def status(self) -> tuple[str, ...]:
        """Exit status 0 while the server runs."""
        return ("sh", "-c", _STATUS, "status", f"{self.bindir}/pg_ctl", self.data)

    def psql(self, *, database: str = DATABASE) -> tuple[str, ...]:
        """Run the SQL on standard input; stop at the first error; unaligned, tab-separated."""
        return (
            f"{self.client_bindir}/psql", "-X", "-q", "-A", "-t", "-F", "\t",
            "-v", "ON_ERROR_STOP=1", "-h", self.socket_dir, "-p", str(self.port),
            "-U", SUPERUSER, "-d", database, "-f", "-",
        )  # fmt: skip


def _quoted(value: str) -> str:
    """A value for postgresql.conf. Raises ValueError for what one line cannot hold."""
    if "\n" in value or "\0" in value:
        raise ValueError("a setting's value must be one line")
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
