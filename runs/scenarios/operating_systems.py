"""Operating systems, and the two settings that the report found to depend on them.

Source: PGECons WG1 report 2017, chapter 5: the fixed-point loads on Windows and Linux (5.4.1,
5.4.2), shared_buffers small and large (5.4.3), pg_test_fsync (table 5.3) and wal_sync_method
(5.4.4). The operating system belongs to the server: choose several servers, and `server` is the
factor. shared_buffers (with reading) and wal_sync_method (with updating) vary on one server.

Chapter 5 prints no procedure of its own and refers to the fixed-point observations: load, prewarm,
their scripts, with full pages (fillfactor 100). Before the updates of a wal_sync_method,
pg_test_fsync measures on the same disk how long one write with that method takes by itself.
"""

from collections.abc import Mapping

from runs.execution.bench import NOT_A_PROGRAM, Bench
from runs.execution.errors import TargetProblem
from runs.scenarios import (
    fixed_point_read,
    fixed_point_update,
    pgbench_design,
    pgbench_procedure,
)
from runs.scenarios.definition import (
    ChoiceFactor,
    ClusterOptions,
    Parameter,
    Parameters,
    Place,
    Quick,
    Scenario,
    Sizes,
    Values,
)
from runs.scenarios.metrics import PGBENCH
from runs.tools import known_metrics
from runs.tools.pg_test_fsync import adapter
from runs.wording import gettext_noop as _

UPDATE = fixed_point_update.SCENARIO
AS_CONFIGURED = "as-configured"
SIZES = ("16MB", "64MB", "256MB", "1GB", "4GB", "16GB", "38GB")
METHODS = ("open_datasync", "fdatasync", "fsync", "fsync_writethrough", "open_sync")
# Without these nothing waits for the disk, and the method has no effect.
WAITING = ("fsync", "synchronous_commit")


class OperatingSystems(pgbench_procedure.PrewarmedTables):
    """Load, prewarm, check the setting and the disk, run the load."""

    async def measure(self, bench: Bench) -> None:
        """The fixed-point reading or updating load, after checking the settings of the levels."""
        if bench.levels["operation"] == "read":
            await pgbench_procedure.measure(bench, fixed_point_read.SCRIPT)
            return
        method = str(bench.levels["wal_sync_method"])
        if method != AS_CONFIGURED:
            check_method(bench.findings.settings, method)
            await self._test_fsync(bench, method)
        await pgbench_procedure.measure(bench, fixed_point_update.SCRIPT)

    async def _test_fsync(self, bench: Bench, method: str) -> None:
        seconds = bench.parameters["fsync_seconds"]
        if not seconds:
            return
        system = await bench.step(
            "look-at-file-system", ["stat", "-f", "-c", "%T", bench.cluster.data]
        )
        if system.stdout.strip() == "tmpfs":
            bench.note(
                "memory_file_system",
                _("The data are in memory (tmpfs): nothing waits for a disk."),
            )
        path = f"{bench.directory}/pg_test_fsync.out"
        program = f"{bench.plan.bindir}/pg_test_fsync"
        argv = ["env", "LC_ALL=C", program, "-s", str(seconds), "-f", path]
        done = await bench.step("pg-test-fsync", argv, check=False)
        text = done.stdout + done.stderr
        bench.keep("pg_test_fsync.txt", text)
        rate = adapter.one_write(done.stdout).get(method)
        if done.exit_status in NOT_A_PROGRAM:
            message = _("pg_test_fsync is not installed beside this PostgreSQL.")
            bench.note("fsync_not_tested", message, level="info")
        elif rate is None:
            text = _(
                "pg_test_fsync does not report how long a write by %(method)s takes here."
            )
            bench.note("fsync_not_tested", text, level="info", method=method)
        else:
            bench.measured(known_metrics.FSYNC_OPERATIONS, rate)

    def sizes(self, parameters: Values) -> Sizes:
        """As for the fixed-point updates, though without room in the pages."""
        return UPDATE.procedure.sizes(parameters)

    def seconds(self, parameters: Values) -> tuple[float, float]:
        """As for the fixed-point updates; pg_test_fsync runs 17 tests."""
        prepare, measure = super().seconds(parameters)
        return prepare, measure + 17 * parameters["fsync_seconds"]


def check_method(settings: Mapping[str, Mapping[str, str]], method: str) -> None:
    """Check that the server uses that method, and waits for the disk. Raises TargetProblem.

    `settings` is what the server reports. If a method is refused, the old one stays in place.
    """
    used = settings.get("wal_sync_method", {}).get("setting", "")
    if used != method:
        raise TargetProblem(
            _(
                "The server says wal_sync_method = %(said)s, and %(method)s was asked for."
            ),
            code="setting_not_taken",
            remedy=_(
                "Leave the level out: this operating system does not have that method."
            ),
            said=used,
            method=method,
        )
    off = [name for name in WAITING if settings.get(name, {}).get("setting") == "off"]
    if off:
        raise TargetProblem(
            _("%(off)s = off: no commit waits for the disk, by whichever method."),
            code="setting_void",
            remedy=_(
                "Choose a configuration that waits for the disk (fsync, synchronous_commit)."
            ),
            off=" and ".join(off),
        )


def cluster(version_num: int, levels: Values) -> ClusterOptions:
    """The settings that the levels name; room for WAL if the load writes."""
    required = {
        name: str(levels[name])
        for name in ("shared_buffers", "wal_sync_method")
        if levels[name] != AS_CONFIGURED
    }
    room = (
        UPDATE.cluster(version_num, levels).settings
        if levels["operation"] == "update"
        else {}
    )
    return ClusterOptions(settings=room, required=required)


def measures(levels: Values, _parameters: Parameters) -> bool:
    """As in the report: shared_buffers with reading, wal_sync_method with updating."""
    unused_factor = (
        "wal_sync_method" if levels["operation"] == "read" else "shared_buffers"
    )
    return bool(levels[unused_factor] == AS_CONFIGURED)


def only_reads(levels: Values) -> bool:
    """Whether a cell changes nothing."""
    return bool(levels["operation"] == "read")


# What the publication varies by the operating system alone.
AS_THERE = {"shared_buffers": (AS_CONFIGURED,), "wal_sync_method": (AS_CONFIGURED,)}

SCENARIO = Scenario(
    slug="operating-systems",
    title=_("Operating systems"),
    description=_(
        "The fixed-point loads on several servers, and the settings that the report found to "
        "depend on the operating system: shared_buffers with reading, wal_sync_method with "
        "updating, and what pg_test_fsync says of the same method on the same disk."
    ),
    source="PGECons WG1 2017",
    factors=(
        ChoiceFactor(
            "operation",
            _("Operation"),
            choices={"read": _("reading"), "update": _("updating")},
            default=("read", "update"),
        ),
        ChoiceFactor(
            "shared_buffers",
            "shared_buffers",
            choices={
                AS_CONFIGURED: _("as configured"),
                **{size: size for size in SIZES},
            },
            default=(AS_CONFIGURED,),
        ),
        ChoiceFactor(
            "wal_sync_method",
            "wal_sync_method",
            choices={
                AS_CONFIGURED: _("as configured"),
                **{method: method for method in METHODS},
            },
            default=(AS_CONFIGURED,),
        ),
        pgbench_design.clients_factor(1, 4),
    ),
    parameters=(
        pgbench_design.scale(
            _("One unit is 100,000 accounts, about 16 MB. The report used 1000.")
        ),
        pgbench_design.duration(_("Seconds per run. The report used 300.")),
        Parameter(
            "fsync_seconds",
            _("pg_test_fsync, seconds a test"),
            "s",
            default=1,
            minimum=0,
            maximum=60,
            help=_(
                "Before each run of a wal_sync_method; it makes 17 tests. 0 leaves it out."
            ),
        ),
    ),
    metrics=(*PGBENCH, known_metrics.CPU_IDLE, known_metrics.FSYNC_OPERATIONS),
    writes=True,
    procedure=OperatingSystems(),
    cluster=cluster,
    measures=measures,
    only_reads=only_reads,
    quick=Quick(
        parameters={"scale": 10, "duration": 6, "fsync_seconds": 1},
        levels={
            "operation": ("update",),
            "shared_buffers": (AS_CONFIGURED,),
            "wal_sync_method": ("open_datasync", "fdatasync"),
            "clients": (1, 8),
        },
    ),
    elsewhere={
        "os": _(
            "the same machine with Windows: BenchLab does not log in there, so measure it by hand "
            "and upload the results"
        )
    },
    places={
        "wg1-2017-windows-linux-read": Place(
            levels={**AS_THERE, "operation": ("read",)}
        ),
        "wg1-2017-windows-linux-update": Place(
            levels={**AS_THERE, "operation": ("update",)}
        ),
        "wg1-2017-windows-shared-buffers": Place(
            levels={"operation": ("read",), "wal_sync_method": (AS_CONFIGURED,)}
        ),
        "wg1-2017-windows-wal-sync-method": Place(
            levels={"operation": ("update",), "shared_buffers": (AS_CONFIGURED,)}
        ),
        "wg1-2017-5-3": Place(
            levels={
                "operation": ("update",),
                "shared_buffers": (AS_CONFIGURED,),
                "clients": (1,),
            },
            metric=known_metrics.FSYNC_OPERATIONS.name,
        ),
    },
)
