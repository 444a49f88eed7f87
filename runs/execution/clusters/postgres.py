"""A PostgreSQL cluster on a target: initdb, configure, start, query, stop, and its settings.

Each action is a durable step; this module only knows the commands and what their failures mean.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runs import foreign_json
from runs.execution.clusters.initdb_options import options_for
from runs.execution.errors import TargetProblem
from runs.execution.machine.cpus import pinned
from runs.execution.ssh.hosts import COMMAND_SECONDS, Run
from runs.postgresql_settings import conf_text, names, ownership
from runs.wording import gettext_noop as _

SUPERUSER = "benchlab"
DATABASE = "benchlab"
PORT = 5432
# A fast shutdown writes a checkpoint, and a start may have to recover: with large shared_buffers
# that takes time. It ends before the step's limit (`step_limits.MINUTES`), and reports the reason.
WAIT_SECONDS = 29 * 60
# The oldest versions return 1; 4 means: there is no data directory.
NOT_RUNNING = frozenset((1, 3, 4))
# pg_ctl takes a killed postmaster for alive until init has reaped it; in a container that may be
# never. Such a process serves nobody.
_STATUS = """
"$1" status -D "$2" || exit
read -r pid <"$2/postmaster.pid" || exit 3
case $(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null) in Z*) exit 3 ;; esac
"""

_PROMPTLY = (Path(__file__).parent / "pg_ctl_promptly.sh").read_text()
# In the last line of postmaster.pid.
STATUS_SINCE = 100000


@dataclass(frozen=True)
class Cluster:
    """A cluster's place, and the binaries that serve it.

    `client_bindir` is the folder of psql, `log` the server's log file of this run. The server
    listens on a Unix socket in a folder that only its owner can enter; and on `address`, if there
    is one (several separated by commas). It runs only on the processors `cpus`, or on all.
    `passfile` has the password with which the server itself connects to others.
    """

    bindir: str
    version_num: int
    client_bindir: str
    directory: str
    socket_dir: str
    log: str
    port: int = PORT
    address: str = ""
    cpus: str = ""
    passfile: str = ""

    @property
    def data(self) -> str:
        """The data directory."""
        return f"{self.directory}/data"

    def initdb(self, options: Sequence[str]) -> tuple[str, ...]:
        """Create the cluster; initdb need not sync its files for a measurement."""
        return (
            f"{self.bindir}/initdb",
            "-D",
            self.data,
            "-U",
            SUPERUSER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            *options_for(self.version_num, options),
        )

    def configure(self, settings: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
        """Append settings to postgresql.conf: (argv, standard input).

        Raises TargetProblem `setting_refused` for one that would run a program on the target (plans
        queued long ago may have it), or that does not fit into one line.
        """
        return self.append(["listen_addresses = ''", *lines_for(settings)])

    def append(self, lines: Sequence[str]) -> tuple[tuple[str, ...], str]:
        """Append lines of `lines_for` to postgresql.conf: (argv, standard input)."""
        argv = ("sh", "-c", 'cat >>"$1"', "configure", f"{self.data}/postgresql.conf")
        return argv, "\n".join(["", "# BenchLab", *lines, ""])

    def reload(self) -> tuple[str, ...]:
        """Let the running server reload its configuration."""
        return (f"{self.bindir}/pg_ctl", "reload", "-D", self.data)

    def start(self) -> tuple[str, ...]:
        """Start the server and wait until it answers."""
        secret = ("env", f"PGPASSFILE={self.passfile}") if self.passfile else ()
        return (
            *secret,
            *pinned(self.cpus),
            f"{self.bindir}/pg_ctl",
            "start",
            "-w",
            "-t",
            str(WAIT_SECONDS),
            "-D",
            self.data,
            "-l",
            self.log,
            "-o",
            self._options,
        )

    @property
    def _options(self) -> str:
        listen = f' -h "{self.address}"' if self.address else ""
        return f'-p {self.port} -k "{self.socket_dir}"{listen}'

    def stop(self) -> tuple[str, ...]:
        """Stop the server cleanly and wait until it has."""
        return (
            f"{self.bindir}/pg_ctl",
            "stop",
            "-w",
            "-t",
            str(WAIT_SECONDS),
            "-D",
            self.data,
            "-m",
            "fast",
        )

    def promptly(self, argv: Sequence[str]) -> tuple[str, ...]:
        """What goes before the command of `start` or `stop` to notice sooner that it is done."""
        action = "stop" if "stop" in argv else "start"
        if action == "start" and self.version_num < STATUS_SINCE:
            return ()
        return ("sh", "-c", _PROMPTLY, "promptly", self.data, action)

    def status(self) -> tuple[str, ...]:
        """Exit status 0 while the server runs, one of NOT_RUNNING when it does not.

        Any other status means nothing: its pg_ctl may be gone.
        """
        return ("sh", "-c", _STATUS, "status", f"{self.bindir}/pg_ctl", self.data)

    def psql(self, *, database: str = DATABASE) -> tuple[str, ...]:
        """Run the SQL on standard input; stop at the first error; unaligned, tab-separated."""
        return (
            f"{self.client_bindir}/psql",
            "-X",
            "-q",
            "-A",
            "-t",
            "-F",
            "\t",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            self.socket_dir,
            "-p",
            str(self.port),
            "-U",
            SUPERUSER,
            "-d",
            database,
            "-f",
            "-",
        )


def lines_for(settings: Mapping[str, str]) -> list[str]:
    """Lines of postgresql.conf, by name. Raises TargetProblem `setting_refused`."""
    return [_line(name, value) for name, value in sorted(settings.items())]


def _line(name: str, value: str) -> str:
    if ownership.runs_command(name, value) or ownership.loads_from_elsewhere(
        name, value
    ):
        raise _refused(
            _("%(line)s would run something on the server."), f"{name} = {value}"
        )
    if not names.is_name(name) or "\n" in value or "\0" in value:
        raise _refused(
            _("%(line)s is no line of postgresql.conf."), f"{name} = {value}"
        )
    return f"{name} = {conf_text.quoted(value)}"


def _refused(text: str, line: str) -> TargetProblem:
    return TargetProblem(
        text,
        line=line,
        code="setting_refused",
        remedy=_(
            "Nothing was written. Leave the setting out of the configuration and queue again."
        ),
    )


# One JSON object per line: a value may contain tabs and newlines. Works from 9.2 on. Both at once,
# since each step costs the run some hundredths of a second.
READ_SETTINGS = """
SELECT row_to_json(s) FROM (
    SELECT name, setting, coalesce(unit, '') AS unit, source FROM pg_settings ORDER BY name
) s;
SELECT row_to_json(e) FROM (
    SELECT name AS extension FROM pg_available_extensions ORDER BY name
) e;
"""
# The places of the run's files, not how the server was set.
PLACES = frozenset(
    (
        "config_file",
        "data_directory",
        "hba_file",
        "ident_file",
        "listen_addresses",
        "port",
        "primary_conninfo",
        "unix_socket_directories",
        "unix_socket_directory",
    )
)


def read_settings(printed: str) -> dict[str, dict[str, str]]:
    """The settings that READ_SETTINGS printed, by name, without the places."""
    rows = [row for row in json_rows(printed) if "name" in row]
    return {row.pop("name"): row for row in rows if row["name"] not in PLACES}


def differing(
    before: Mapping[str, Mapping[str, str]], after: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """The names of the settings with another value, in their order."""
    names = sorted(before.keys() | after.keys())
    return [
        name
        for name in names
        if before.get(name, {}).get("setting") != after.get(name, {}).get("setting")
    ]


def read_extensions(printed: str) -> frozenset[str]:
    """The names of the extensions that READ_SETTINGS printed."""
    return frozenset(
        row["extension"] for row in json_rows(printed) if "extension" in row
    )


def json_rows(printed: str) -> list[dict[str, Any]]:
    """The objects of a query that prints one a line."""
    return [foreign_json.loads(line) for line in printed.split("\n") if line]


# A fast shutdown writes a checkpoint.
SECONDS_BETWEEN_SIGNALS = 60
SIGNALS = 3
_STOP = (Path(__file__).parent / "stop_cluster.sh").read_text()


def argv_to_stop(directory: str) -> tuple[str, ...]:
    """Stop the server of a folder: fast, immediate, KILL; exit status 1 if it still runs."""
    return (
        "sh",
        "-c",
        _STOP,
        "stop",
        f"{directory}/data",
        str(SECONDS_BETWEEN_SIGNALS),
    )


async def stop_in(run: Run, directory: str) -> bool:
    """Stop it; whether its cluster is prepared. Raises TargetProblem `postgres_does_not_stop`.

    Check first (`BaseDir.checked`) whether the folder is ours.
    """
    patience = SIGNALS * SECONDS_BETWEEN_SIGNALS + COMMAND_SECONDS
    reply = await run(argv_to_stop(directory), timeout_s=patience)
    if reply.exit_status != 0:
        raise does_not_stop(directory)
    return reply.stdout.startswith(b"prepared\n")


def does_not_stop(directory: str) -> TargetProblem:
    """A server that even KILL did not end."""
    return TargetProblem(
        _("PostgreSQL in %(directory)s does not stop."),
        code="postgres_does_not_stop",
        remedy=_("Look at the process on the server; it may wait for its disk."),
        directory=directory,
    )
