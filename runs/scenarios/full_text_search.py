"""Full-text search in Japanese: searches and inserts by kind of index.

Source: PGECons WG1 report 2017, chapter 7: 203,317 records of video metadata in jsonb, an index on
the title or the description, count(*) of the records with a word, alone and during about 1,200
inserts a second; with one database, or with logical replication, whose subscriber alone has the
index and is searched while the inserts go to the publisher (tables 7.10 to 7.12). Ours: the
records, and two indexes without extensions from elsewhere, under their own names: `trgm` (pg_trgm)
and `bigram` (all pieces of two characters, in plain SQL). pg_bigm and PGroonga are levels if an
installation has them. A search whose plan does not use the index gives no result.
"""

from dataclasses import replace

from runs.execution.bench import Bench, Entrance
from runs.execution.errors import TargetProblem
from runs.execution.machine.monitors import GRACE_SECONDS
from runs.execution.plan import MAIN
from runs.scenarios import arrangements, percentiles, pgbench_design, pgbench_procedure
from runs.scenarios.datasets import sending, videos
from runs.scenarios.definition import (
    ChoiceFactor,
    ClusterOptions,
    ExtensionRequirement,
    FurtherCluster,
    Parameter,
    Place,
    Quick,
    Requirement,
    Scenario,
    Sizes,
    Values,
)
from runs.scenarios.metrics import PGBENCH
from runs.scenarios.pgbench_design import comparable
from runs.scenarios.timed_sql import planned
from runs.tools import known_metrics
from runs.tools.pgbench import adapt_script
from runs.wording import gettext_noop as _

REPLICATION, LOGICAL, REPLICA = "replication", "logical", "replica"
JSONB_SINCE = 90400
TABLES = """
CREATE TABLE records (id int, tag text, record jsonb);
CREATE TABLE nikoniko (tag text, record jsonb);
"""
COPY_ROWS = """
ALTER TABLE records ADD PRIMARY KEY (id);
INSERT INTO nikoniko SELECT tag, record FROM records;
"""
# All pieces of two characters; immutable, as an index requires.
BIGRAMS = """
CREATE FUNCTION bigrams(given text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $body$
    SELECT array_agg(substr($1, i, 2)) FROM generate_series(1, greatest(length($1) - 1, 1)) i
$body$;
"""
CREATE_INDEX = {
    "trgm": "CREATE INDEX searched ON nikoniko USING gin ({text} gin_trgm_ops)",
    "bigram": "CREATE INDEX searched ON nikoniko USING gin (bigrams({text}))",
    "pg_bigm": "CREATE INDEX searched ON nikoniko USING gin ({text} gin_bigm_ops)",
    "pgroonga": "CREATE INDEX searched ON nikoniko USING pgroonga ({text})",
}
EXTENSIONS = {"trgm": "pg_trgm", "pg_bigm": "pg_bigm", "pgroonga": "pgroonga"}
LIKE = f"{{text}} LIKE '%{videos.KEYWORD}%'"
WHERE = {
    "none": LIKE,
    "trgm": LIKE,
    "pg_bigm": LIKE,
    "bigram": f"bigrams({{text}}) @> ARRAY['カレ', 'レー'] AND {LIKE}",
    "pgroonga": f"{{text}} &@ '{videos.KEYWORD}'",
}
INSERTING_STEP = "background-inserts"
INSERT_SCRIPT = """\\set number random(1, :records)
INSERT INTO nikoniko SELECT tag, record FROM records WHERE id = :number;
"""


class Data:
    """What both scenarios of the theme load."""

    async def load(self, bench: Bench) -> None:
        """The records, a second table of them to insert from, and the cell's index."""
        count = bench.parameters["records"]
        await bench.sql("create-tables", TABLES)
        await sending.copied(
            bench,
            "copy",
            [videos.TABLE],
            lambda folder: sending.module(videos.__name__, str(count), str(folder)),
        )
        await bench.sql("copy-rows", COPY_ROWS)
        if searched(bench) == MAIN:
            await _create_index(bench)
        # Otherwise the searches would have to clear what inserts left on an index's pending list.
        await bench.sql("vacuum-analyze", "VACUUM ANALYZE;")
        await bench.sql("checkpoint-after-load", "CHECKPOINT;")

    async def arrange(self, bench: Bench) -> None:
        """The subscriber, a copy of the loaded cluster, gets the index, and then all inserts."""
        if (replica := searched(bench)) == MAIN:
            return
        await _create_index(bench)
        await bench.sql("vacuum-replica", "VACUUM ANALYZE;", at=replica)
        await arrangements.subscribe(bench, replica, ["nikoniko"])

    async def warm(self, bench: Bench) -> None:
        """All of it."""
        await pgbench_design.prewarm_all(bench)
        if (replica := searched(bench)) != MAIN:
            await pgbench_design.prewarm_all(bench, at=replica)

    def sizes(self, parameters: Values) -> Sizes:
        """Both tables, the largest index, and WAL."""
        data = parameters["records"] * videos.BYTES_A_RECORD * 3
        logs = percentiles.log_bytes(parameters["duration"])
        return Sizes(2 * data + 256 * 1024 * 1024, run_bytes=logs)

    def seconds(self, parameters: Values) -> tuple[float, float]:
        """Measured on two cores: 0.25 ms per record to generate and index."""
        return 5 + 25e-5 * parameters["records"], 4 + parameters["duration"]


class Search(Data):
    """Search for a word, alone or during inserts at a fixed rate."""

    async def measure(self, bench: Bench) -> None:
        """The plan first: it must use the index. Then one client searches all the time."""
        query = f"SELECT count(*) FROM nikoniko WHERE {condition(bench)}"
        await _check_plan(bench, query)
        hits = await bench.sql("count-hits", f"{query};", at=searched(bench))
        bench.measured(known_metrics.HITS, float(hits))
        await _note_index(bench)
        if bench.levels["background_load"] != "on":
            await _search(bench, query)
            return
        before = await _rows(bench, "count-before")
        argv = await _background(bench)
        inserting = bench.background(bench.database, INSERTING_STEP, argv)
        bench.of_the_load.append((bench.database, INSERTING_STEP))
        await _search(bench, query)
        await _note_behind(bench)
        result = await bench.ended(inserting)
        inserted = await _rows(bench, "count-after") - before
        rate = inserted / result.seconds if result.seconds else 0.0
        bench.measured(known_metrics.BACKGROUND_INSERTS, rate)
        if rate < bench.parameters["insert_rate"] * 0.9:
            bench.note(
                "background_too_slow",
                _(
                    "There were %(rate)s inserts a second during the searches, of the %(wanted)s "
                    "that were requested."
                ),
                rate=f"{rate:.0f}",
                wanted=bench.parameters["insert_rate"],
            )


class Inserts(Data):
    """Insert without pause into a table with the cell's index."""

    async def measure(self, bench: Bench) -> None:
        """pgbench's transactions a second are the inserts a second."""
        await _note_index(bench)
        await pgbench_procedure.measure(bench, _insert_script(bench))
        bench.measured(known_metrics.INSERTS, bench.findings.measurements["tps"])
        await _note_behind(bench)


def searched(bench: Bench) -> str:
    """The cluster that has the index and is searched."""
    return REPLICA if bench.levels.get(REPLICATION) == LOGICAL else MAIN


async def _create_index(bench: Bench) -> None:
    index, at = str(bench.levels["index"]), searched(bench)
    if index == "bigram":
        await bench.sql("create-function", BIGRAMS, at=at)
    if name := EXTENSIONS.get(index):
        await bench.sql("create-extension", f"CREATE EXTENSION {name};", at=at)
    if index == "trgm":
        await _check_letters(bench)
    if index in CREATE_INDEX:
        statement = CREATE_INDEX[index].format(text=text(bench))
        await bench.sql("create-index", f"{statement};", at=at)


async def _search(bench: Bench, query: str) -> None:
    if member := bench.members.get(searched(bench)):
        bench.entrance = Entrance(member.cluster.port, member.cluster.address)
    await pgbench_procedure.measure(bench, f"{query};\n")
    bench.entrance = None


async def _note_behind(bench: Bench) -> None:
    """Of the subscriber, as it may lag: the report took that to be acceptable."""
    if searched(bench) != MAIN:
        await arrangements.note_behind(bench, [REPLICA])


def text(bench: Bench) -> str:
    """The indexed expression of the cell."""
    return f"(record->>'{bench.levels['text_column']}')"


def condition(bench: Bench) -> str:
    """The search condition that the cell's index supports."""
    return WHERE[str(bench.levels["index"])].format(text=text(bench))


async def _check_plan(bench: Bench, query: str) -> None:
    plan = await planned(bench, "search", query, at=searched(bench))
    if bench.levels["index"] != "none" and not any(
        node.index == "searched" for node in plan.nodes()
    ):
        raise TargetProblem(
            _("The search does not use the index: %(name)s."),
            code="other_plan",
            remedy=_(
                "Read the run's plan; more records make the planner choose the index."
            ),
            name=plan.nodes()[-1].name,
        )


async def _check_letters(bench: Bench) -> None:
    """pg_trgm uses the database's locale: with C, Japanese has no trigrams."""
    statement = f"SELECT show_trgm('{videos.KEYWORD}') <> '{{}}';"
    trigrams = await bench.sql("show-trigrams", statement, at=searched(bench))
    if trigrams.strip() != "t":
        raise TargetProblem(
            _(
                "pg_trgm finds no trigram in Japanese text: the locale knows no such letters."
            ),
            code="no_trigrams",
            remedy=_("The server needs the locale C.UTF-8."),
        )


async def _note_index(bench: Bench) -> None:
    if bench.levels["index"] not in CREATE_INDEX:
        return
    statement = "SELECT pg_relation_size('searched');"
    size = await bench.sql("read-index-size", statement, at=searched(bench))
    bench.measured(known_metrics.INDEX_BYTES, float(size))


async def _rows(bench: Bench, step: str) -> int:
    return int(await bench.sql(step, "SELECT count(*) FROM nikoniko;"))


async def _background(bench: Bench) -> tuple[str, ...]:
    path = f"{bench.directory}/background.sql"
    script = adapt_script(_insert_script(bench), bench.plan.client_version_num)
    await bench.write("write-background-script", path, script)
    seconds = bench.parameters["duration"] + GRACE_SECONDS
    rate = bench.parameters["insert_rate"]
    command = pgbench_procedure.silent(
        bench, bench.cluster, path, seconds, clients=1, rate=rate
    )
    return ("env", "LC_ALL=C", *command)


def _insert_script(bench: Bench) -> str:
    return INSERT_SCRIPT.replace(":records", str(bench.parameters["records"]))


def cluster(version_num: int, levels: Values) -> ClusterOptions:
    """A locale that knows Japanese letters; each index and column is another cluster.

    By libc in every version: pg_trgm asks it what a letter is, also of a database whose own locale
    is PostgreSQL's built-in C.UTF-8 (17 and later).
    """
    data: tuple[str, ...] = (str(levels["index"]), str(levels["text_column"]))
    required: dict[str, str] = {}
    if levels.get(REPLICATION) == LOGICAL:
        data = (LOGICAL,)  # the index is the subscriber's
        required = {"wal_level": "logical", "max_wal_senders": "10"}
    return ClusterOptions(
        comparable(version_num),
        initdb_options=("--locale=C.UTF-8",),
        data=data,
        required=required,
    )


def arrangement(_version_num: int, levels: Values) -> tuple[FurtherCluster, ...]:
    """The subscriber, which begins as a copy of the loaded cluster."""
    if levels.get(REPLICATION) != LOGICAL:
        return ()
    return (FurtherCluster(REPLICA, "subscriber", "copy", {"wal_level": "replica"}),)


FACTORS = (
    ChoiceFactor(
        "index",
        _("Index"),
        choices={
            "none": _("none"),
            "trgm": "pg_trgm",
            "bigram": _("bigrams in SQL"),
            "pg_bigm": "pg_bigm",
            "pgroonga": "PGroonga",
        },
        default=("none", "bigram"),
    ),
    ChoiceFactor(
        "text_column",
        _("Indexed text"),
        choices={"title": _("title"), "description": _("description")},
        default=("title",),
    ),
    ChoiceFactor(
        REPLICATION,
        _("Index and searches"),
        choices={
            "none": _("in the one database"),
            LOGICAL: _("in a subscriber of logical replication"),
        },
        default=("none",),
    ),
)
PARAMETERS = (
    Parameter(
        "records",
        _("Records"),
        "rows",
        default=40_000,
        minimum=1000,
        maximum=10_000_000,
        help=_("About 1.5 kB each. The report had 203,317."),
    ),
    Parameter("clients", _("Clients"), "", default=1, minimum=1, maximum=1000),
    Parameter("duration", _("Duration"), "s", default=10, minimum=1, maximum=604_800),
)
BESIDE = pgbench_design.switch("background_load", _("Concurrent inserts"), "off", "on")
RATE = Parameter(
    "insert_rate",
    _("Inserts a second during the searches"),
    "inserts/s",
    default=300,
    minimum=1,
    maximum=100_000,
    help=_("The report had about 1,200."),
)

SEARCH = Scenario(
    slug="full-text-search",
    title=_("Full-text search"),
    description=_(
        "How long a search for a Japanese word takes by kind of index, alone and during inserts."
    ),
    source="PGECons WG1 2017",
    factors=(*FACTORS, BESIDE),
    parameters=(*PARAMETERS, RATE),
    metrics=(
        *PGBENCH,
        known_metrics.HITS,
        known_metrics.INDEX_BYTES,
        known_metrics.BACKGROUND_INSERTS,
        known_metrics.BEHIND,
    ),
    primary=known_metrics.LATENCY_AVERAGE.name,
    writes=True,
    only_reads=lambda levels: (
        levels.get("background_load") == "off" and levels.get(REPLICATION) != LOGICAL
    ),
    procedure=Search(),
    cluster=cluster,
    arrangement=arrangement,
    kind="logical",
    requires=(
        Requirement(JSONB_SINCE, _("jsonb came with PostgreSQL 9.4.")),
        Requirement(
            arrangements.LOGICAL_SINCE,
            _("logical replication came with PostgreSQL 10."),
            REPLICATION,
            LOGICAL,
        ),
    ),
    extensions=tuple(
        ExtensionRequirement(name, "index", level) for level, name in EXTENSIONS.items()
    ),
    quick=Quick({"duration": 6}, {"index": ("none", "bigram")}),
)
INSERTING = replace(
    SEARCH,
    slug="full-text-inserts",
    title=_("Full-text search: inserts"),
    description=_(
        "How many records a second are inserted by kind of index on their text."
    ),
    factors=FACTORS,
    parameters=PARAMETERS,
    metrics=(
        known_metrics.INSERTS,
        *PGBENCH,
        known_metrics.INDEX_BYTES,
        known_metrics.BEHIND,
    ),
    primary="",
    only_reads=lambda _levels: False,
    procedure=Inserts(),
    places={"wg1-2017-7-7": Place(), "wg1-2017-7-10": Place()},
)
SCENARIOS = (SEARCH, INSERTING)
