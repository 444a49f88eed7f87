"""Storage placement: the gain of putting WAL, indexes, tables or everything on a fast device.

Source: PGECons WG1 report 2013, chapter 4: tables 4.5 and 4.6 (pgbench updating and reading, for
each of five placements) and 4.7 (an index scan that needs only the index, and one that must also
read the table because an update changed a row in each page without VACUUM).

The slow device is that of the server's base directory. The fast one belongs to a second
registration of the same machine with its base directory there, which is chosen as the server for
further clusters. Each run has a new copy of the loaded cluster, and moves to the fast device what
its level says: WAL as a link, table and index by a tablespace. Then the server is restarted, so
that its buffers are empty, and the files of its cluster are dropped from the system's cache where
the server is allowed to; nothing is prewarmed. If both are the same device, the placements cannot
differ, and the run says so. With data that fit into memory they hardly differ.
"""

from dataclasses import replace

from runs.execution.bench import Bench
from runs.execution.clusters import file_cache
from runs.execution.errors import TargetProblem
from runs.execution.nodes import PLACED, folder_of
from runs.execution.steps.base_dir import BaseDir
from runs.scenarios import pgbench_design, pgbench_procedure
from runs.scenarios.definition import (
    ChoiceFactor,
    ClusterOptions,
    Parameters,
    Place,
    Quick,
    Requirement,
    Scenario,
    Sizes,
    Values,
)
from runs.scenarios.metrics import PGBENCH
from runs.scenarios.pgbench_load import BUILT_IN
from runs.tools import known_metrics
from runs.wording import gettext_noop as _

SLOW = "all-hdd"
WAL = "wal-ssd"
INDEX = "index-ssd"
TABLE = "table-ssd"
ALL = "all-ssd"
IN_MEMORY = frozenset(("tmpfs", "ramfs"))
INDEX_ONLY_SINCE = 90200
INDEX_ONLY = """\\set naccounts 100000 * :scale
\\set aid random(1, :naccounts)
SELECT aid FROM pgbench_accounts WHERE aid = :aid;
"""
# One row of each page; the first is enough, wherever a page's rows start.
UPDATE_EACH_PAGE = """
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE ctid = ANY (ARRAY(
    SELECT ('(' || page || ',1)')::tid
    FROM generate_series(0::bigint, (pg_relation_size('pgbench_accounts')
        / current_setting('block_size')::bigint) - 1) AS page));
CHECKPOINT;
"""
HEAP_FETCHES = """
SET enable_seqscan = off; SET enable_bitmapscan = off;
EXPLAIN (ANALYZE) SELECT aid FROM pgbench_accounts WHERE aid BETWEEN 1 AND 1000;
"""

# Old and new place of the WAL; the folder was pg_xlog up to 9.6.
_MOVE_WAL = """
export LC_ALL=C
for name in pg_wal pg_xlog; do
    [ -d "$1/$name" ] && [ ! -L "$1/$name" ] || continue
    cp -a "$1/$name" "$2/$name" && rm -rf "$1/$name" && ln -s "$2/$name" "$1/$name"
    exit
done
"""
# For each folder: number of its device, its file system, and whether this user may write there.
_DEVICES = """
export LC_ALL=C
for dir; do
    [ -w "$dir" ] && can=yes || can=no
    echo "$(stat -c %d "$dir") $(stat -f -c %T "$dir") $can"
done
"""


class StoragePlacement(pgbench_procedure.PrewarmedTables):
    """Place, update a row in each page if the scan is to fail, restart cold, run the load."""

    # The files are copied and moved, and the server is restarted.
    seconds_more = (6.0, 0.3)

    async def arrange(self, bench: Bench) -> None:
        """Move what the level names, and start with cold caches."""
        placement = str(bench.levels["placement"])
        folder = await self._fast_folder(bench) if placement != SLOW else ""
        if placement in {INDEX, TABLE, ALL}:
            await bench.sql("move", _move_sql(placement, folder), database="postgres")
        if bench.levels["index_only_scan"] == "fails":
            await bench.sql("update-each-page", UPDATE_EACH_PAGE)
        cluster = bench.cluster
        await bench.step("stop-to-place", cluster.stop(), serving=cluster)
        if placement in {WAL, ALL}:
            argv = ["sh", "-c", _MOVE_WAL, "move-wal", cluster.data, folder]
            await bench.step("move-wal", argv)
        places = [cluster.data, *([folder] if folder else [])]
        await file_cache.forget(bench, places, step="forget")
        await bench.step("start-placed", cluster.start(), serving=cluster)

    async def warm(self, bench: Bench) -> None:
        """Nothing: the devices are what is measured."""

    async def measure(self, bench: Bench) -> None:
        """pgbench's own scripts, or the look-up that needs only the index."""
        load = bench.levels["load"]
        if load == "index-only":
            script = INDEX_ONLY
        else:
            script = BUILT_IN["tpcb-like" if load == "update" else "select-only"]
        await pgbench_procedure.measure(bench, script)
        if load == "index-only":
            await self._check_scan(bench)

    async def _fast_folder(self, bench: Bench) -> str:
        """A marked folder on the fast device that the database's user can write to.

        Raises TargetProblem `no_fast_device`, `memory_file_system`, `placement_not_writable`.
        """
        nodes = bench.database_nodes[1:]
        if not nodes:
            raise TargetProblem(
                _(
                    "There is no fast device: no second registration of the machine was chosen."
                ),
                code="no_fast_device",
                remedy=_(
                    "Register the machine again under another of its names, with a base directory "
                    "on the fast device, and choose it as server for further clusters."
                ),
            )
        base: BaseDir = nodes[0].base
        path = base.join("clusters", folder_of(bench.plan.run_id, PLACED))
        await nodes[0].retry_on_host(lambda host: base.make_folder(host, path))
        folder = f"{path}/data"
        await bench.step("make-fast-folder", ["mkdir", "-p", folder], check=False)
        argv = ["sh", "-c", _DEVICES, "devices", bench.cluster.data, folder]
        devices = await bench.step("look-at-devices", argv, check=False)
        _check_devices(bench, devices.stdout, folder)
        return folder

    async def _check_scan(self, bench: Bench) -> None:
        """Check that the scan read the table, or did not, as the level says."""
        plan = await bench.sql("explain", HEAP_FETCHES)
        bench.keep("plan.txt", plan)
        fetches = [
            line.split(":")[1] for line in plan.splitlines() if "Heap Fetches:" in line
        ]
        fetched = int(fetches[0]) if fetches else -1
        fails = bench.levels["index_only_scan"] == "fails"
        if fetched < 0 or fails != (fetched > 0):
            raise TargetProblem(
                _(
                    "The scan fetched %(fetched)s rows from the table, which is not what the "
                    "level says:\n%(plan)s"
                ),
                code="plan_differs",
                remedy=_(
                    "Look at plan.txt of the run, and at the settings of the planner."
                ),
                fetched=max(fetched, 0),
                plan=plan,
            )
        bench.measured(known_metrics.HEAP_FETCHES, float(fetched))

    def sizes(self, parameters: Values) -> Sizes:
        """Data, index, and the WAL of loading and moving them."""
        data = int(parameters["scale"]) * pgbench_design.BYTES_PER_SCALE
        moved = data + min(data, pgbench_design.WAL_BYTES)
        return pgbench_design.sizes(
            parameters, data, written=moved + pgbench_design.WAL_BYTES
        )


def _move_sql(placement: str, folder: str) -> str:
    """Statements that move table, index, or the complete database into a tablespace there."""
    quoted = folder.replace("'", "''")
    lines = [f"CREATE TABLESPACE fast LOCATION '{quoted}';"]
    if placement == ALL:
        return "\n".join(
            [*lines, "ALTER DATABASE benchlab SET TABLESPACE fast;", "CHECKPOINT;"]
        )
    lines.append("\\connect benchlab")
    if placement == TABLE:
        tables = ("accounts", "branches", "tellers", "history")
        lines += [f"ALTER TABLE pgbench_{name} SET TABLESPACE fast;" for name in tables]
    else:
        lines += [
            f"ALTER INDEX pgbench_{name}_pkey SET TABLESPACE fast;"
            for name in ("accounts", "branches", "tellers")
        ]
    return "\n".join([*lines, "CHECKPOINT;"])


def _check_devices(bench: Bench, printed: str, folder: str) -> None:
    """Raise TargetProblem for what cannot be measured; note what cannot differ."""
    slow, fast = (
        [*line.split(), "", "", ""][:3] for line in [*printed.splitlines(), "", ""][:2]
    )
    if fast[2] != "yes":
        raise TargetProblem(
            _("PostgreSQL's user cannot write to %(folder)s."),
            code="placement_not_writable",
            remedy=_(
                "Let BenchLab log in as the same user on both registrations of the machine."
            ),
            folder=folder,
        )
    if fast[1] in IN_MEMORY:
        raise TargetProblem(
            _("%(folder)s is in memory (%(fast)s), which is not a device."),
            code="memory_file_system",
            remedy=_(
                "Give the server a base directory on the device that is to be measured."
            ),
            folder=folder,
            fast=fast[1],
        )
    if slow[0] == fast[0]:
        bench.note(
            "same_device",
            _(
                "Both base directories are on the same device: the placements cannot differ."
            ),
        )


def cluster(version_num: int, _levels: Values) -> ClusterOptions:
    """Room for WAL and time between checkpoints; no vacuum that would undo the update's effect."""
    room = pgbench_design.room_for_wal(version_num, "64GB", 1000)
    settings = {**room, "checkpoint_timeout": "60min"}
    return ClusterOptions(settings=settings, required={"autovacuum": "off"})


def measures(levels: Values, _parameters: Parameters) -> bool:
    """Only the index-only load has scans that succeed or fail, with all or nothing moved."""
    if levels["load"] == "index-only":
        return bool(
            levels["index_only_scan"] != "any" and levels["placement"] in {SLOW, ALL}
        )
    return bool(levels["index_only_scan"] == "any")


ON_ONE_MACHINE = Quick(
    parameters={"scale": 10, "duration": 6, "clients": 2},
    levels={"placement": (SLOW,)},
    on_one_machine=frozenset({"placement"}),
)

SCENARIO = Scenario(
    slug="storage-placement",
    title=_("Storage placement"),
    description=_(
        "What it brings to put WAL, indexes, tables or everything on a fast device: updating, "
        "reading, and index-only scans that succeed or fail, each from cold caches. The fast "
        "device is the base directory of a second registration of the same machine."
    ),
    source="PGECons WG1 2013",
    factors=(
        ChoiceFactor(
            "placement",
            _("Placement"),
            choices={
                SLOW: _("all on the slow device"),
                WAL: _("WAL on the fast device"),
                INDEX: _("indexes on the fast device"),
                TABLE: _("tables on the fast device"),
                ALL: _("all on the fast device"),
            },
            default=(SLOW,),
        ),
        ChoiceFactor(
            "load",
            _("Load"),
            choices={
                "update": _("updating (TPC-B)"),
                "read": _("reading"),
                "index-only": _("look-up in the index only"),
            },
            default=("update", "read"),
        ),
        ChoiceFactor(
            "index_only_scan",
            _("Index-only scan"),
            choices={
                "any": _("not applicable"),
                "succeeds": _("succeeds"),
                "fails": _("fails: a row of each page was updated"),
            },
            default=("any",),
        ),
    ),
    parameters=(
        pgbench_design.scale(
            _(
                "The question needs more than fits into memory: the report used 26,000 and 6,400."
            ),
            default=60,
        ),
        pgbench_design.duration(_("Seconds per run. The report used 600.")),
        pgbench_design.clients(2, _("As many as the server has cores, in the report.")),
    ),
    metrics=(*PGBENCH, known_metrics.HEAP_FETCHES),
    writes=True,
    procedure=StoragePlacement(),
    cluster=cluster,
    kind="single",
    measures=measures,
    requires=(
        Requirement(
            INDEX_ONLY_SINCE,
            _("index-only scans came with PostgreSQL 9.2."),
            factor="load",
            level="index-only",
        ),
    ),
    quick=replace(
        ON_ONE_MACHINE,
        levels={
            "placement": (SLOW,),
            "load": ("update", "read", "index-only"),
            "index_only_scan": ("any", "succeeds", "fails"),
        },
    ),
    elsewhere={
        "placement": _(
            "a second device of another kind: register the machine once more with its base "
            "directory there, and choose that registration for further clusters"
        )
    },
    places={
        "wg1-2013-4-7": Place(levels={"load": ("index-only",)}, quick=ON_ONE_MACHINE),
        "wg1-2013-4-index-only-cpu": Place(
            levels={"load": ("index-only",), "index_only_scan": ("succeeds",)},
            quick=ON_ONE_MACHINE,
        ),
        "wg1-2013-4-stack": Place(
            levels={
                "placement": (SLOW,),
                "load": ("index-only",),
                "index_only_scan": ("fails",),
            },
            quick=ON_ONE_MACHINE,
            treatment=("waits",),
        ),
    },
)
