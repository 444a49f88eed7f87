"""pgbench's command lines as argument lists, and the options of `pgbench -i`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType

from runs.patterns import re
from runs.tools.pgbench import versions
from runs.tools.pgbench.versions import UnsupportedByToolError, require

# A silent connection is probed this many times, at equal intervals.
_PROBES = 4
_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
# The tool's own name for its logs: that of the process follows, and from the second thread its
# number.
_LOG_NAME = "pgbench_log"


@dataclass(frozen=True)
class Connection:
    """Where the database is. `host` may be the directory of a Unix socket.

    With `silence_s` the tool gives up a database that sends nothing for that many seconds:
    the network between them is cut. Without it that would be the kernel's quarter of an hour.
    """

    host: str
    port: int
    user: str
    database: str
    silence_s: int | None = None

    def __post_init__(self) -> None:
        if not self.database or self.database.startswith("-") or "=" in self.database:
            # The tool would read an option, or a connection string, and connect elsewhere.
            raise ValueError(
                f"Not a name of a database that pgbench can be given: {self.database!r}"
            )

    def arguments(self) -> tuple[str, ...]:
        """Return the options, without the name of the database, which comes last."""
        return ("-h", self.host, "-p", str(self.port), "-U", self.user)

    def target(self, client_version: int | None) -> str:
        """Return the last argument: the database's name, or a connection string with it."""
        if self.silence_s is None:
            return self.database
        name = self.database.replace("\\", "\\\\").replace("'", "\\'")
        pause = max(1, self.silence_s // _PROBES)
        words = {"connect_timeout": max(2, self.silence_s), "keepalives_idle": pause}
        words |= {"keepalives_interval": pause, "keepalives_count": _PROBES - 1}
        if (client_version or 0) >= versions.USER_TIMEOUT:
            # What was sent and never acknowledged: probes come only where nothing was sent.
            words["tcp_user_timeout"] = self.silence_s * 1000
        return " ".join(
            [
                f"dbname='{name}'",
                *(f"{word}={value_text}" for word, value_text in words.items()),
            ]
        )


@dataclass(frozen=True)
class Script:
    """A script file on the machine of the tool, and how often it is chosen among several."""

    path: str
    weight: int = 1


@dataclass(frozen=True)
class Log:
    """Logs of transactions (`-l`), one a thread, in a folder on the machine of the tool.

    Each transaction is logged with the chance `share`; 1 are all of them.
    """

    directory: str
    share: float = 1.0

    @property
    def prefix(self) -> str:
        """The prefix of the logs' paths."""
        return f"{self.directory}/{_LOG_NAME}"


def initialise(
    bindir: str,
    connection: Connection,
    *,
    scale: int,
    fillfactor: int | None = None,
    options: Sequence[str] = (),
    client_version: int | None = None,
) -> tuple[str, ...]:
    """Return the command that makes and loads the tables (`-q` is left out for 9.2).

    `options` are further ones of `-i` (`init_options.read` checks them).
    """
    _require_positive(scale=scale)
    command = [_pgbench(bindir), "-i", "-s", str(scale)]
    if client_version is None or client_version >= versions.QUIET_INITIALISATION:
        command.append("-q")
    if fillfactor is not None:
        command += ["-F", str(fillfactor)]
    return (
        *command,
        *options,
        *connection.arguments(),
        connection.target(client_version),
    )


def benchmark(
    bindir: str,
    connection: Connection,
    *,
    client_version: int,
    scripts: Sequence[Script],
    clients: int,
    duration_s: int,
    scale: int,
    progress_s: int | None = 1,
    per_statement: bool = True,
    query_mode: str = "simple",
    variables: Mapping[str, str] = _NO_VARIABLES,
    rate_tps: float | None = None,
    maximum_tries: int | None = None,
    reconnect: bool = False,
    random_seed: int | None = None,
    log: Log | None = None,
) -> tuple[str, ...]:
    """Return the command of one run.

    Progress is left out for a tool that cannot report it (to 9.3); whatever else the tool does
    not know raises UnsupportedByToolError, because the run would be another one without it.
    """
    _require_positive(clients=clients, duration_s=duration_s, scale=scale)
    command = [_pgbench(bindir), "-n", "-c", str(clients)]
    command += ["-j", str(threads_for(clients, client_version))]
    command += ["-T", str(duration_s), "-s", str(scale)]
    if progress_s and client_version >= versions.PROGRESS:
        command += ["-P", str(progress_s)]
    command += ["-r"] * per_statement + ["-C"] * reconnect
    command += _limits(client_version, rate_tps, maximum_tries)
    command += _mode_and_variables(
        query_mode, variables
    )  # to 9.5 they have to come before -f
    if random_seed is not None:
        require(client_version, versions.RANDOM_SEED, "A random seed")
        command.append(f"--random-seed={random_seed}")
    command += _scripts(client_version, scripts)
    command += _logging(client_version, log)
    command += [*connection.arguments(), connection.target(client_version)]
    if log and client_version < versions.LOG_PREFIX:
        # It can only log into the folder in which it is started.
        return (
            "sh",
            "-c",
            'cd "$1" && shift && exec "$@"',
            "in",
            log.directory,
            *command,
        )
    return tuple(command)


def once(
    bindir: str,
    connection: Connection,
    *,
    script: str,
    scale: int,
    query_mode: str = "simple",
    variables: Mapping[str, str] = _NO_VARIABLES,
    times: int = 1,
    random_seed: int | None = None,
) -> tuple[str, ...]:
    """Return the command that runs the script at this path so many times, by one client."""
    command = [_pgbench(bindir), "-n", "-c", "1", "-t", str(times), "-s", str(scale)]
    if random_seed is not None:
        command.append(f"--random-seed={random_seed}")
    command += _mode_and_variables(query_mode, variables)
    return (*command, "-f", script, *connection.arguments(), connection.target(None))


def threads_for(clients: int, client_version: int) -> int:
    """Return the threads for a number of clients: half of them, the rule of the reports.

    To 9.5 the number has to divide that of the clients, so that the next lower one that does is
    taken.
    """
    number_of_threads = max(1, clients // 2)
    if client_version >= versions.ANY_THREADS:
        return number_of_threads
    return next(
        count for count in range(number_of_threads, 0, -1) if clients % count == 0
    )


def _mode_and_variables(query_mode: str, variables: Mapping[str, str]) -> list[str]:
    mode = [] if query_mode == "simple" else ["-M", query_mode]
    return mode + [
        word for name, value in variables.items() for word in ("-D", f"{name}={value}")
    ]


def _limits(
    client_version: int, rate_tps: float | None, maximum_tries: int | None
) -> list[str]:
    arguments = []
    if rate_tps is not None:
        require(client_version, versions.RATE, "A rate limit")
        arguments += ["-R", f"{rate_tps:.15g}"]
    if maximum_tries is not None:
        require(client_version, versions.MAXIMUM_TRIES, "Trying a transaction again")
        arguments.append(f"--max-tries={maximum_tries}")
    return arguments


def _logging(client_version: int, log: Log | None) -> list[str]:
    if log is None:
        return []
    arguments = ["-l"]
    if log.share < 1:
        require(
            client_version, versions.LOG_SAMPLING, "Logging a part of the transactions"
        )
        arguments.append(f"--sampling-rate={log.share:.9f}".rstrip("0"))
    if client_version >= versions.LOG_PREFIX:
        arguments.append(f"--log-prefix={log.prefix}")
    return arguments


def _scripts(client_version: int, scripts: Sequence[Script]) -> list[str]:
    if not any(script.weight > 0 for script in scripts):
        raise UnsupportedByToolError("A run needs a script with a weight above 0.")
    if client_version >= versions.SCRIPT_WEIGHTS:
        # The weight is always given, because the tool takes the last @ of a path for its mark.
        return [
            argument
            for script in scripts
            for argument in ("-f", f"{script.path}@{script.weight}")
        ]
    if len({script.weight for script in scripts}) > 1:
        require(client_version, versions.SCRIPT_WEIGHTS, "Scripts of different weights")
    return [argument for script in scripts for argument in ("-f", script.path)]


def _pgbench(bindir: str) -> str:
    return str(PurePosixPath(bindir) / "pgbench")


def _require_positive(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} has to be 1 or more, not {number}.")


# By option: the form of its value (None: it has none), and the pgbench that knows it first.
_KNOWN: dict[str, tuple[str | None, int]] = {
    "--unlogged-tables": (None, 90200),
    "--foreign-keys": (None, 90300),
    "--fillfactor": (r"[1-9][0-9]|100", 90200),
    "--partitions": (r"[1-9][0-9]{0,4}", versions.PARTITIONS),
    "--partition-method": (r"range|hash", versions.PARTITIONS),
}


@dataclass(frozen=True)
class InitOption:
    """One option as it is written on the command line."""

    text: str
    since: int


def read_init_options(text: str) -> tuple[InitOption, ...]:
    """The options in a line such as `--foreign-keys --fillfactor=80`.

    Raises UnsupportedByToolError, which names the word, for what may not be given here.
    """
    return tuple(_option(word) for word in text.split())


def init_options_for_tool(text: str, client_version: int) -> tuple[str, ...]:
    """The same for one pgbench. Raises UnsupportedByToolError if it is too old for one."""
    for init_option in (options := read_init_options(text)):
        require(client_version, init_option.since, init_option.text.partition("=")[0])
    return tuple(init_option.text for init_option in options)


def _option(word: str) -> InitOption:
    name, equals, value = word.partition("=")
    form, since = _KNOWN.get(name, (None, 0))
    if not since:
        raise UnsupportedByToolError(
            f"{word!r} is no option that may be given here: {', '.join(_KNOWN)} are."
        )
    if form is None and equals:
        raise UnsupportedByToolError(f"{name} has no value.")
    if form is not None and not re.fullmatch(form, value):
        raise UnsupportedByToolError(f"{name} needs a value of the form {form}.")
    return InitOption(word, since)
