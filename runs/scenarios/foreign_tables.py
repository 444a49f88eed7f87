"""Foreign tables: reading and writing tables of other servers by postgres_fdw.

Source: PGECons WG1 report 2017, chapter 9. Reading (table 9.3): one customer of the address book
joined with one account, in four patterns: 1 both tables local, 2 the accounts foreign, 3 the
customers foreign, 4 both, each on a server of its own: on one server the join itself would be
sent there. Updating and inserting (9.4.2, 9.4.3): one row, local or foreign, with one client.

Each server has pgbench's tables and an address book of 100,000 rows a scale unit, whose id is an
account's. The report used JDBC Runner; its driver prepares statements on the server, and so does
pgbench here (`-M prepared`). The seconds that are not counted come before, as a load of their own.

postgres_fdw: servers, user mappings and foreign tables of a run's further clusters.

The statements work in every version from 9.3 on, and use improvements of later ones.
"""

import re
from collections.abc import Sequence

from runs.execution.bench import Bench
from runs.execution.clusters import standbys
from runs.execution.clusters.postgres import DATABASE, SUPERUSER
from runs.execution.errors import TargetProblem
from runs.execution.plan import MAIN
from runs.scenarios import pgbench_design, pgbench_procedure
from runs.scenarios.definition import (
    ChoiceFactor,
    ClusterOptions,
    ExtensionRequirement,
    Factor,
    FurtherCluster,
    Parameter,
    Parameters,
    Place,
    Quick,
    Requirement,
    Scenario,
    Sizes,
    Values,
)
from runs.scenarios.metrics import PGBENCH
from runs.scenarios.pgbench_procedure import Options
from runs.wording import gettext_noop as _

EXTENSION = "postgres_fdw"
SINCE = 90300
BATCHES_SINCE = 140000
PARALLEL_COMMIT_SINCE = 150000

_REMOTE_SQL = re.compile(r"Remote SQL: (.*)")


async def require(bench: Bench) -> None:
    """Create the extension. Raises TargetProblem `missing_extension`."""
    if EXTENSION not in bench.extensions[MAIN]:
        raise TargetProblem(
            _("%(bindir)s has no extension %(extension)s."),
            code="missing_extension",
            remedy=_(
                "Install PostgreSQL's contrib modules there (postgresql-contrib)."
            ),
            bindir=bench.plan.bindir,
            extension=EXTENSION,
        )
    await bench.sql("create-extension", f"CREATE EXTENSION IF NOT EXISTS {EXTENSION};")


async def link(bench: Bench, names: Sequence[str]) -> None:
    """A foreign server with the name of each of these clusters, and a user mapping for it."""
    lines = []
    for name in names:
        cluster = bench.members[name].cluster
        host = (cluster.address or cluster.socket_dir).replace("'", "''")
        server_options = (
            f"host '{host}', port '{cluster.port}', dbname '{DATABASE}'{_better(bench)}"
        )
        lines += [
            f"CREATE SERVER {name} FOREIGN DATA WRAPPER {EXTENSION} OPTIONS ({server_options});",
            f"CREATE USER MAPPING FOR {SUPERUSER} SERVER {name} OPTIONS (user '{SUPERUSER}');",
        ]
    await bench.sql("create-servers", "\n".join(lines))


def _better(bench: Bench) -> str:
    options = ""
    if bench.plan.version_num >= BATCHES_SINCE:
        options += ", batch_size '1000', async_capable 'true'"
    if bench.plan.version_num >= PARALLEL_COMMIT_SINCE:
        options += ", parallel_commit 'true'"
    return options


def remote_sql(plan: str) -> list[str]:
    """The statements that a plan (EXPLAIN VERBOSE) sends to other servers."""
    return [match.strip() for match in _REMOTE_SQL.findall(plan)]


ADDRBOOK_COLUMNS = (
    "id bigint, name varchar(32), kana varchar(32), email varchar(64), gender char(1), age int, "
    "birthday date, marriage char(2), blood_type char(3), division varchar(4), "
    "phone_no varchar(12), mobile_no varchar(13), carrier varchar(10), note text"
)
ACCOUNT_COLUMNS = "aid int, bid int, abalance int, filler char(84)"
HISTORY_COLUMNS = (
    "tid int, bid int, aid int, delta int, mtime timestamp, filler char(22)"
)
# The same rows on each server and on each day.
FILL = """
CREATE TABLE addrbook ({columns});
INSERT INTO addrbook
SELECT id, left(md5('n' || id), 20), left(md5('k' || id), 20),
    md5('e' || id) || '@example.com', substr('FM', 1 + id % 2, 1), 18 + id % 70,
    date '1940-01-01' + id % 25000, 'm' || id % 2, 'AB' || id % 3, 'd' || id % 100,
    '03' || 10000000 + id, '090' || 10000000 + id, 'c' || id % 5, md5('t' || id)
FROM generate_series(1, {rows}) AS id;
ALTER TABLE addrbook ADD PRIMARY KEY (id);
VACUUM ANALYZE addrbook;
CHECKPOINT;
"""
# Tables of each external server, in a schema of its own here: (number, name, columns).
FOREIGN = (
    (1, "pgbench_accounts", ACCOUNT_COLUMNS),
    (1, "pgbench_history", HISTORY_COLUMNS),
    (2, "addrbook", ADDRBOOK_COLUMNS),
)
# (schema of the customers, schema of the accounts) of each pattern.
PATTERNS = {
    1: ("public", "public"),
    2: ("public", "ext1"),
    3: ("ext2", "public"),
    4: ("ext2", "ext1"),
}
# From then on the update of a foreign row is one statement; before, a select and an update.
UPDATE_SENT_WHOLE_SINCE = 90600
SELECT = """\\set naccounts 100000 * :scale
\\set id random(1, :naccounts)
SELECT ad.name, ad.age, ac.abalance FROM {customers}.addrbook ad, {accounts}.pgbench_accounts ac
WHERE ad.id = :id AND ad.id = ac.aid;
"""
UPDATE = """\\set naccounts 100000 * :scale
\\set aid random(1, :naccounts)
\\set delta random(-999999, 999999)
UPDATE {accounts}.pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
"""
INSERT = """\\set naccounts 100000 * :scale
\\set aid random(1, :naccounts)
\\set tid random(1, 10)
\\set delta random(-999999, 999999)
INSERT INTO {accounts}.pgbench_history (tid, bid, aid, delta) VALUES (:tid, 1, :aid, :delta);
"""


class ForeignTables:
    """Load one server and copy it twice, link the tables, check the plan, run the load."""

    async def load(self, bench: Bench) -> None:
        """`pgbench -i`, and the address book."""
        await pgbench_procedure.initialise(bench)
        rows = 100_000 * bench.parameters["scale"]
        await bench.sql(
            "load-addrbook", FILL.format(columns=ADDRBOOK_COLUMNS, rows=rows)
        )

    async def arrange(self, bench: Bench) -> None:
        """Servers, mappings and foreign tables, with statistics of the latter."""
        await require(bench)
        await link(bench, list(bench.members))
        lines = ["CREATE SCHEMA ext1;", "CREATE SCHEMA ext2;"]
        lines += [
            f"CREATE FOREIGN TABLE ext{number}.{name} ({columns}) "
            f"SERVER external{number} OPTIONS (schema_name 'public', table_name '{name}');"
            for number, name, columns in FOREIGN
        ]
        lines += [f"ANALYZE ext{number}.{name};" for number, name, _columns in FOREIGN]
        await bench.sql("create-foreign-tables", "\n".join(lines))

    async def warm(self, bench: Bench) -> None:
        """The report prints nothing about it: the seconds that are not counted warm the cache."""

    async def measure(self, bench: Bench) -> None:
        """Store and check the plan, then run the operation's statement by pgbench -M prepared."""
        await self._check_plan(bench)
        warm_up = bench.parameters["warm_up"]
        options = Options(query_mode="prepared", warm_up_s=warm_up)
        await pgbench_procedure.measure(bench, script(bench.levels), options)

    async def _check_plan(self, bench: Bench) -> None:
        """A plan that fetches a complete table, or joins elsewhere, would be another experiment."""
        statement_lines = script(bench.levels).splitlines()
        statement = " ".join(
            line for line in statement_lines if not line.startswith("\\")
        )
        for name in (":id", ":aid", ":tid", ":delta"):
            statement = statement.replace(name, "1")
        plan = await bench.sql("explain", f"EXPLAIN (VERBOSE) {statement}")
        bench.keep("plan.txt", plan)
        if problem := plan_problem(plan, bench.plan.version_num, bench.levels):
            raise TargetProblem(
                "%(found)s\n%(plan)s",
                code="plan_differs",
                remedy=_(
                    "Look at plan.txt of the run, and at the settings of the planner."
                ),
                found=problem,
                plan=plan,
            )

    def sizes(self, parameters: Values) -> Sizes:
        """Both tables, their indexes, and the WAL of loading them; each server has them."""
        data = parameters["scale"] * pgbench_design.BYTES_PER_SCALE * 5 // 2
        return pgbench_design.sizes(parameters, data)

    def seconds(self, parameters: Values) -> tuple[float, float]:
        """About 2 s per unit of scale to load; 6 s to copy, start, link and stop three servers."""
        measured = parameters["warm_up"] + parameters["duration"]
        return 4 + 2.0 * parameters["scale"], 6 + 0.3 * parameters["scale"] + measured


def script(levels: Values) -> str:
    """What pgbench runs in a cell."""
    if levels["operation"] == "select":
        customers, accounts = PATTERNS[int(levels["pattern"])]
        return SELECT.format(customers=customers, accounts=accounts)
    accounts = "ext1" if levels["table_location"] == "foreign" else "public"
    return (UPDATE if levels["operation"] == "update" else INSERT).format(
        accounts=accounts
    )


def plan_problem(plan: str, version_num: int, levels: Values) -> str:
    """Why a plan (EXPLAIN VERBOSE) is not that of the cell; empty if it is."""
    sent, expected = remote_sql(plan), sent_statements(version_num, levels)
    if len(sent) != expected:
        return f"The plan sends {len(sent)} statements to other servers, and {expected} are meant:"
    if [
        sent_statement
        for sent_statement in sent
        if "WHERE" not in sent_statement and not sent_statement.startswith("INSERT")
    ]:
        return "The plan fetches a whole table from another server:"
    return ""


def sent_statements(version_num: int, levels: Values) -> int:
    """How many statements a plan of the cell sends to other servers."""
    if levels["operation"] == "select":
        return sum(schema != "public" for schema in PATTERNS[int(levels["pattern"])])
    if levels["table_location"] == "local":
        return 0
    in_two = levels["operation"] == "update" and version_num < UPDATE_SENT_WHOLE_SINCE
    return 2 if in_two else 1


def measures(levels: Values, _parameters: Parameters) -> bool:
    """Patterns are for reading; local or foreign is for writing."""
    if levels["operation"] == "select":
        return bool(levels["table_location"] == "local")
    return bool(levels["pattern"] == 1)


def cluster(version_num: int, _levels: Values) -> ClusterOptions:
    """Base backups of the loaded server must be possible."""
    return ClusterOptions(required=standbys.needed_settings(version_num))


def arrangement(_version_num: int, _levels: Values) -> tuple[FurtherCluster, ...]:
    """Two external servers with the same data, in every cell."""
    return tuple(
        FurtherCluster(name, "foreign", "copy") for name in ("external1", "external2")
    )


SCENARIO = Scenario(
    slug="foreign-tables",
    title=_("Foreign tables"),
    description=_(
        "What it costs to keep tables on other servers: a join of one customer with one account "
        "in four patterns of local and foreign tables, and single-row updates and inserts, by "
        "postgres_fdw."
    ),
    source="PGECons WG1 2017",
    factors=(
        ChoiceFactor(
            "operation",
            _("Operation"),
            choices={
                "select": _("join of one customer and one account"),
                "update": _("update of one account"),
                "insert": _("insert into the history"),
            },
            default=("select",),
        ),
        Factor(
            "pattern",
            _("Pattern"),
            default=(1, 2, 3, 4),
            minimum=1,
            maximum=4,
            help=_(
                "1: both tables local, 2: accounts foreign, 3: customers foreign, 4: both foreign."
            ),
        ),
        ChoiceFactor(
            "table_location",
            _("Table written to"),
            choices={"local": _("local table"), "foreign": _("foreign table")},
            default=("local",),
        ),
        pgbench_design.clients_factor(1, 8),
    ),
    parameters=(
        pgbench_design.scale(
            _(
                "One unit is 100,000 accounts and customers, about 40 MB a server. The report "
                "used 1."
            ),
            default=1,
        ),
        pgbench_design.duration(_("Seconds per run. The report used 60.")),
        Parameter(
            "warm_up",
            _("Warm-up"),
            "s",
            default=10,
            minimum=0,
            maximum=3600,
            help=_(
                "Seconds of the same load before, which are not counted. The report used 10."
            ),
        ),
    ),
    metrics=PGBENCH,
    writes=True,
    procedure=ForeignTables(),
    cluster=cluster,
    arrangement=arrangement,
    kind="fdw",
    extensions=(ExtensionRequirement(EXTENSION),),
    measures=measures,
    requires=(Requirement(SINCE, _("postgres_fdw came with PostgreSQL 9.3.")),),
    quick=Quick(
        parameters={"scale": 1, "duration": 6, "warm_up": 2},
        levels={"operation": ("select",), "pattern": (1, 2, 3, 4), "clients": (1, 8)},
    ),
    # Only the loss is printed: of a foreign table against a local one.
    places={
        slug: Place(levels={"pattern": (1,), "table_location": ("local", "foreign")})
        for slug in ("wg1-2017-9-4-2", "wg1-2017-9-4-3")
    },
)
