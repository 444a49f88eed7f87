"""A command of the machine's owner: a program that lies in one folder of the target.

BenchLab takes no text of a command from anybody, only the name of a file in `commands` below the
base directory. That folder is filled over SSH by whoever has the account there; BenchLab never
writes into it. The command gets no arguments, starts in a folder of the run, and finds the run's
server by the usual variables. Its wall time is measured in any case; what it prints is read by the
adapters, in the process for foreign files.
"""

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial

from runs.execution.bench import LAST_LINES, Bench
from runs.execution.clusters.postgres import DATABASE, SUPERUSER
from runs.execution.errors import TargetProblem
from runs.execution.steps.steps import StepResult
from runs.reading import process
from runs.reading.refusals import NotUnderstood, TooMuch
from runs.scenarios import pgbench_procedure
from runs.scenarios.definition import (
    NameFactor,
    Parameter,
    Quick,
    Scenario,
    Sizes,
    Values,
)
from runs.scenarios.pgbench_design import BUSY_CLUSTER_BYTES, BYTES_PER_SCALE, WAL_BYTES
from runs.tools import known_metrics
from runs.tools.adapter import MetricValue, Reading
from runs.tools.pgbench.versions import version_text
from runs.wording import gettext_noop as _

FACTOR = "command"
FOLDER = "commands"
TIME_LIMIT = "time_limit"
EXECUTABLE = "executable"
# A step's time is known to a hundredth of a second on most targets (`step_record.sh`).
CLOCK_SECONDS = 0.01
SHORT_SECONDS = 1.0
# Of what a command that fails is quoted with.
MOST_CHARACTERS = 4000
MOST_SERIES = 100
MOST_POINTS = 200_000
# What may be the matter with a file, by the word that `_LOOK` and preflight.sh have for it. They
# name the `command` and the `folder`.
FAULTS = {
    "missing": (
        "command_missing",
        _("There is no command %(command)s in %(folder)s."),
        _(
            "Put it there, as the user that BenchLab logs in as, and make it executable."
        ),
    ),
    "link": (
        "command_is_link",
        _("%(command)s in %(folder)s, or that folder, is a symbolic link."),
        _("Put the file itself there."),
    ),
    "irregular": (
        "command_irregular",
        _("%(command)s in %(folder)s is no regular file."),
        _("Put a program or a script there."),
    ),
    "not_executable": (
        "command_not_executable",
        _(
            "The user that BenchLab logs in as cannot execute %(command)s in %(folder)s."
        ),
        _("Make it executable there (chmod u+x)."),
    ),
}
_LOOK = """
file=$1/$2
if [ -L "$1" ] || [ -L "$file" ]; then echo link
elif [ ! -e "$file" ]; then echo missing
elif [ ! -f "$file" ]; then echo irregular
elif [ ! -x "$file" ]; then echo not_executable
else echo executable && sha256sum <"$file"
fi
"""
_EXECUTE = """
mkdir -p "$1" && cd "$1" || exit
PATH=$2:$PATH BENCHLAB_BINDIR=$3 BENCHLAB_VERSION=$4
PGHOST=$5 PGPORT=$6 PGUSER=$7 PGDATABASE=$8
export PATH BENCHLAB_BINDIR BENCHLAB_VERSION PGHOST PGPORT PGUSER PGDATABASE
exec "$9"
"""


class Command:
    """A fresh cluster, empty or with pgbench's tables, and one execution of the command."""

    async def load(self, bench: Bench) -> None:
        """pgbench's tables where a scale is given."""
        if bench.parameters.get("scale"):
            await pgbench_procedure.initialise(bench)

    async def warm(self, bench: Bench) -> None:
        """pgbench's tables are read into memory."""
        if bench.parameters.get("scale"):
            await pgbench_procedure.prewarm(bench)

    async def measure(self, bench: Bench) -> None:
        """Execute the command, and read what it printed when nothing is recorded any more.

        Raises TargetProblem where the file is not one to execute, `command_failed` for an exit
        status other than 0, and `step_timeout` at the time limit.
        """
        folder, name = f"{bench.database.base.path}/{FOLDER}", _name_of(bench)
        await _look(bench, folder, name)
        result = await bench.follow(
            "command",
            _argv(bench, f"{folder}/{name}"),
            limit_s=bench.parameters[TIME_LIMIT],
        )
        bench.keep("stdout.txt", result.stdout)
        if result.stderr:
            bench.keep("stderr.txt", result.stderr)
        if result.exit_status != 0:
            raise _failed(name, result)
        _add_wall_time(bench, name, result)
        bench.afterwards.append(partial(_read, bench, result))

    def sizes(self, parameters: Values) -> Sizes:
        """What the person who queues it says of the command's data, and pgbench's tables."""
        data = int(parameters.get("scale", 0)) * BYTES_PER_SCALE
        own_data = int(parameters.get("disk_mb", 1000)) * 1024 * 1024
        wal = min(data, WAL_BYTES)
        return Sizes(disk_bytes=data + wal + own_data + BUSY_CLUSTER_BYTES)

    def seconds(self, parameters: Values) -> tuple[float, float]:
        """At most the time limit: how long the command takes shows only when it is executed."""
        scale = int(parameters.get("scale", 0))
        return 4 + 0.3 * scale, 2 + 0.05 * scale + parameters[TIME_LIMIT]


def _name_of(bench: Bench) -> str:
    """Raises TargetProblem for a name that no campaign of today may have."""
    name = bench.levels[FACTOR]
    if not COMMAND.accepts(name):
        raise TargetProblem(
            _("%(command)s is not the name of a command."),
            code="command_name",
            remedy=COMMAND.help,
            command=name,
        )
    return str(name)


async def _look(bench: Bench, folder: str, name: str) -> None:
    """Raise TargetProblem for a file that is not one to execute; note what it holds."""
    argv = ("sh", "-c", _LOOK, "look", folder, name)
    state, *digests = (await bench.step("look-at-command", argv)).stdout.split()[:2]
    if state != EXECUTABLE:
        code, text, remedy = FAULTS[state]
        raise TargetProblem(text, code=code, remedy=remedy, command=name, folder=folder)
    bench.note(
        "command_file",
        _("The file of the command %(command)s has the SHA-256 %(digest)s."),
        level="info",
        command=name,
        digest="".join(digests),
    )


def _argv(bench: Bench, path: str) -> tuple[str, ...]:
    """The command in a folder of the run, with the newest programs in front, and its variables."""
    plan, cluster = bench.plan, bench.cluster
    where = (cluster.socket_dir, str(cluster.port), SUPERUSER, DATABASE)
    return (
        "sh",
        "-c",
        _EXECUTE,
        "command",
        f"{bench.directory}/work",
        plan.client_bindir,
        plan.bindir,
        version_text(plan.version_num),
        *where,
        path,
    )


def _add_wall_time(bench: Bench, name: str, result: StepResult) -> None:
    seconds = max(result.seconds, CLOCK_SECONDS)
    bench.measured(known_metrics.WALL_TIME, seconds)
    if seconds < SHORT_SECONDS:
        bench.note(
            "short_command",
            _(
                "The command %(command)s took less than a second, and its time is known to a "
                "hundredth of one: let it repeat its work."
            ),
            level="info",
            command=name,
        )


def _failed(name: str, result: StepResult) -> TargetProblem:
    printed = (result.stdout + result.stderr)[-MOST_CHARACTERS:].strip()
    return TargetProblem(
        _("The command %(command)s ended with exit status %(exit_status)s:\n%(lines)s"),
        code="command_failed",
        remedy=_(
            "Read its output among the files of the run. Where it should count as measured, let "
            "it end with 0."
        ),
        command=name,
        exit_status=result.exit_status,
        lines="\n".join(printed.splitlines()[-LAST_LINES:]),
    )


async def _read(bench: Bench, result: StepResult) -> None:
    """Add what the command printed; without anything its wall time stays the only figure."""
    files = {"stdout": result.stdout}
    if result.stderr:
        files["stderr"] = result.stderr
    try:
        reading = await asyncio.to_thread(_reading_of, files)
    except (NotUnderstood, TooMuch) as refused:
        reason = getattr(refused, "refusal", refused)
        bench.note(
            "output_not_read",
            _(
                "Nothing of what the command printed was read, so its wall time alone is "
                "measured: %(reason)s"
            ),
            level="info",
            reason=reason,
        )
        return
    if reading.status != "finished":
        bench.note(
            "output_in_doubt",
            _("What the command printed of %(tool)s: %(reason)s"),
            tool=reading.tool_name,
            reason=reading.failure,
        )
    _add_figures(bench, reading)


def _reading_of(files: Mapping[str, str]) -> Reading:
    """What a tool that is recognised has printed. Raises NotUnderstood, TooMuch."""
    size = sum(map(len, files.values()))
    with process.reading() as door:
        reading: Reading = door.read("tool", {"tool": "", "files": files}, size=size)
    return reading


def _add_figures(bench: Bench, reading: Reading) -> None:
    known_values = list(_known_values(reading))
    for value in known_values:
        bench.measured(known_metrics.METRICS[value.metric], value.value)
    if reading.measurements:
        bench.findings.tool_name = reading.tool_name[:40]
        bench.findings.tool_version = (reading.tool_version or "")[:40]
    bench.findings.series += [
        series
        for series in reading.series[:MOST_SERIES]
        if len(series.name) <= 80 and len(series.values) <= MOST_POINTS
    ]
    if left_out := len(reading.measurements) - len(known_values):
        bench.note(
            "figures_left_out",
            _(
                "%(number)s figures with names of their own stand in stdout.txt alone: what is "
                "measured here has the names that tools share."
            ),
            level="info",
            number=left_out,
        )


def _known_values(reading: Reading) -> Iterator[MetricValue]:
    """The figures that all projects share, in their units."""
    for value in reading.measurements:
        metric = known_metrics.METRICS.get(value.metric)
        if metric is not None and metric.unit == value.unit:
            yield value


COMMAND = NameFactor(
    FACTOR,
    _("Command"),
    pattern=r"[A-Za-z0-9_][A-Za-z0-9._-]{0,79}",
    default=("bench.sh",),
    help=_(
        "Names of files in the folder commands of the server's base directory, with commas "
        "between: letters, digits, dots, hyphens and underscores, without arguments."
    ),
)
SCENARIO = Scenario(
    slug="command",
    title=_("Own command"),
    description=_(
        "A test suite, a migration or any other program that lies on the server: its wall time on "
        "each version, and the figures that it prints."
    ),
    source="",
    factors=(COMMAND,),
    parameters=(
        Parameter(
            TIME_LIMIT,
            _("Time limit"),
            "s",
            default=600,
            minimum=1,
            maximum=86_400,
            help=_("A command that takes longer is ended, and its run fails."),
        ),
        Parameter(
            "scale",
            _("Scale factor"),
            "",
            default=0,
            minimum=0,
            maximum=100_000,
            help=_(
                "Of pgbench's tables, which are there before; 0: an empty database."
            ),
            zero=_("an empty database"),
        ),
        Parameter(
            "disk_mb",
            _("Size of the data"),
            "MB",
            default=1000,
            minimum=0,
            maximum=10_000_000,
            help=_("What the command itself writes, at most; so much must be free."),
        ),
    ),
    metrics=(
        known_metrics.WALL_TIME,
        known_metrics.TPS,
        known_metrics.LATENCY_AVERAGE,
    ),
    writes=True,
    procedure=Command(),
    quick=Quick({TIME_LIMIT: 60, "disk_mb": 100}, {FACTOR: ("bench.sh",)}),
)
