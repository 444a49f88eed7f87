"""Storage bandwidth: how fast a device reads and writes by itself, and the cost of flushing.

Source: PGECons WG1 report 2013: figures 4.1 and 4.2 (fio with direct I/O, 8 kB blocks and four
jobs, each of 1 GB; the median of three runs), and table 5.6 (sequential writing with an fsync
after each 8 kB, each 128 kB, and none). No database is involved: PostgreSQL is idle meanwhile.

The device is that of the server's base directory. To compare two devices of a machine, register it
under two of its names, with a base directory on each device, and measure on both. fio's files are
in the run's folder. As in the report, the jobs end when their size is done; a run that was too
short says so.
"""

from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.execution.steps.step_limits import GRACE_SECONDS
from runs.execution.steps.steps import StepResult
from runs.scenarios.definition import (
    ChoiceFactor,
    Parameter,
    Parameters,
    Place,
    Quick,
    Scenario,
    Sizes,
    Values,
)
from runs.scenarios.pgbench_design import BUSY_CLUSTER_BYTES
from runs.tools import known_metrics
from runs.tools.fio import adapter
from runs.wording import gettext_noop as _

BLOCK_KB = 8
SHORTEST_SECONDS = 5.0
NO_SUCH_PROGRAM = 127
MIB = 1024 * 1024
WAYS = {
    "sequential read": "read",
    "sequential write": "write",
    "random read": "randread",
    "random write": "randwrite",
}
DIRECT = "direct"
# A flush after this many writes of a block; 0 means only at the end.
FLUSH_AFTER = {f"{kb}kB": kb // BLOCK_KB for kb in (8, 128)} | {"none": 0}
IN_MEMORY = frozenset(("tmpfs", "ramfs"))


class StorageBandwidth:
    """Check the file system, run fio on it, read its report."""

    async def load(self, bench: Bench) -> None:
        """No data: fio creates its own."""

    async def warm(self, bench: Bench) -> None:
        """Nothing is cached: direct I/O, or a flush at the end."""

    async def measure(self, bench: Bench) -> None:
        """fio in a folder of the run. Raises TargetProblem for a file system in memory."""
        folder = f"{bench.directory}/fio"
        await self._look(bench, folder)
        done = await bench.follow(
            "fio",
            ("env", "LC_ALL=C", *argv(bench.levels, bench.parameters, folder)),
            limit_s=bench.parameters["duration"] + GRACE_SECONDS,
        )
        bench.keep("fio.json", done.stdout)
        self._read(bench, done)

    async def _look(self, bench: Bench, folder: str) -> None:
        """The type of the file system; in memory there is no device to measure."""
        await bench.step("make-folder", ["mkdir", "-p", folder])
        step_result = await bench.step(
            "look-at-file-system", ["stat", "-f", "-c", "%T", folder]
        )
        if step_result.stdout.strip() in IN_MEMORY:
            raise TargetProblem(
                _("%(path)s is in memory (%(stdout)s)."),
                code="memory_file_system",
                remedy=_(
                    "Give the server a base directory on the device that is to be measured."
                ),
                path=bench.database.base.path,
                stdout=step_result.stdout.strip(),
            )
        mount = await bench.step(
            "look-at-mount", ["findmnt", "-T", folder], check=False
        )
        bench.keep("mount.txt", mount.stdout)

    def _read(self, bench: Bench, done: StepResult) -> None:
        if done.exit_status == NO_SUCH_PROGRAM:
            raise TargetProblem(
                _("The program fio is missing on %(address)s."),
                code="missing_program",
                remedy=_("Install fio on the server."),
                address=bench.database.address,
            )
        try:
            bandwidth = adapter.read_bandwidth(done.stdout)
        except ValueError as problem:
            raise TargetProblem(
                _("fio gave no result: %(problem)s %(stderr)s"),
                code="fio_failed",
                remedy=_(
                    "Read fio.json of the run; the file system may not take direct I/O."
                ),
                problem=problem,
                stderr=done.stderr.strip()[-300:],
            ) from problem
        figures = {
            known_metrics.STORAGE_READ: bandwidth.read_mb,
            known_metrics.STORAGE_WRITE: bandwidth.write_mb,
            known_metrics.IOPS: bandwidth.iops,
            known_metrics.FSYNC_LATENCY: bandwidth.fsync_ms,
        }
        for metric, value in figures.items():
            if value:
                bench.measured(metric, round(value, 3))
        bench.measured(
            known_metrics.BANDWIDTH, round(bandwidth.read_mb + bandwidth.write_mb, 3)
        )
        bench.findings.tool_name, bench.findings.tool_version = "fio", bandwidth.version
        if bandwidth.seconds < min(SHORTEST_SECONDS, bench.parameters["duration"]):
            bench.note(
                "too_short",
                _(
                    "The size was done after %(seconds)s s: give a larger one, as caches of the "
                    "device may have taken it all."
                ),
                seconds=f"{bandwidth.seconds:.1f}",
            )

    def sizes(self, parameters: Values) -> Sizes:
        """One file per job, and a cluster without data."""
        files = int(parameters["size_mb"]) * MIB * int(parameters["jobs"])
        return Sizes(disk_bytes=BUSY_CLUSTER_BYTES, run_bytes=files)

    def seconds(self, parameters: Values) -> tuple[float, float]:
        """Files to be read are created first, at 100 MB/s."""
        laid_out = int(parameters["size_mb"]) * int(parameters["jobs"]) / 100
        return 4.0, 2 + laid_out + parameters["duration"]


def argv(levels: Values, parameters: Values, folder: str) -> tuple[str, ...]:
    """fio's command line: as printed in the report, or buffered with a flush after an interval."""
    interval = str(levels["fsync_interval"])
    common = (
        "fio",
        "--name=benchlab",
        f"--directory={folder}",
        f"--size={parameters['size_mb']}M",
        f"--bs={BLOCK_KB}k",
        "--group_reporting",
        f"--runtime={parameters['duration']}",
        f"--rw={WAYS[str(levels['access'])]}",
        "--output-format=json",
        *(["--time_based"] if parameters.get("time_based") else []),
    )
    if interval == DIRECT:
        return (*common, "--direct=1", f"--numjobs={parameters['jobs']}")
    return (*common, "--numjobs=1", f"--fsync={FLUSH_AFTER[interval]}", "--end_fsync=1")


def measures(levels: Values, _parameters: Parameters) -> bool:
    """Flushes are combined with sequential writing only."""
    return bool(
        levels["fsync_interval"] == DIRECT or levels["access"] == "sequential write"
    )


SCENARIO = Scenario(
    slug="storage-bandwidth",
    title=_("Storage bandwidth"),
    description=_(
        "What the device below the server's base directory reads and writes on its own, "
        "in sequence and at random, and what a flush after each 8 or 128 kB costs, by fio."
    ),
    source="PGECons WG1 2013",
    factors=(
        ChoiceFactor(
            "access",
            _("Access"),
            choices={
                "sequential read": _("sequential read"),
                "sequential write": _("sequential write"),
                "random read": _("random read"),
                "random write": _("random write"),
            },
            default=tuple(WAYS),
        ),
        ChoiceFactor(
            "fsync_interval",
            _("fsync after"),
            choices={
                DIRECT: _("direct I/O, without a flush"),
                "8kB": "8 kB",
                "128kB": "128 kB",
                "none": _("buffered, flushed at the end"),
            },
            default=(DIRECT,),
        ),
    ),
    parameters=(
        Parameter(
            "size_mb",
            _("Size per job"),
            "MiB",
            default=1024,
            minimum=1,
            maximum=1_000_000,
            help=_("The report used 1 GB."),
        ),
        Parameter(
            "jobs",
            _("Jobs"),
            "",
            default=4,
            minimum=1,
            maximum=64,
            help=_("With direct I/O; the report used 4. With flushes there is one."),
        ),
        Parameter(
            "duration",
            _("Duration"),
            "s",
            default=60,
            minimum=1,
            maximum=86_400,
            help=_(
                "At most: the jobs end when their size is done. The report used 60."
            ),
        ),
        Parameter(
            "time_based",
            _("Go on until the duration is over"),
            "",
            default=0,
            minimum=0,
            maximum=1,
            help=_("1: the jobs begin their size again. The report: 0."),
        ),
    ),
    metrics=(
        known_metrics.BANDWIDTH,
        known_metrics.STORAGE_READ,
        known_metrics.STORAGE_WRITE,
        known_metrics.IOPS,
        known_metrics.FSYNC_LATENCY,
    ),
    writes=False,
    procedure=StorageBandwidth(),
    measures=measures,
    elsewhere={
        "device": _(
            "a second device of another kind: register the machine once more with its base "
            "directory there, and choose both servers"
        )
    },
    places={"wg1-2013-5-6": Place(metric=known_metrics.STORAGE_WRITE.name)},
    quick=Quick(
        parameters={"size_mb": 64, "jobs": 2, "duration": 6, "time_based": 1},
        levels={
            "access": (
                "sequential read",
                "sequential write",
                "random read",
                "random write",
            ),
            "fsync_interval": (DIRECT, "8kB", "128kB", "none"),
        },
    ),
)
