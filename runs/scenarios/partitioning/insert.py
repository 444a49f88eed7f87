"""Inserting into partitions: by trigger functions, straight into them, declared, and without any.

Table 3.5 of the report: elapsed seconds to load the days' files with COPY. Printed: single table
and direct are equal, C trigger 1.6 times, dynamic 2.3 times, static 8 times at 30 partitions and 32
times at 90. Today static and dynamic change places at few partitions; static still grows with their
number, dynamic does not. The C trigger needs a compiler for each version: not offered.
"""

from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.scenarios.definition import ChoiceFactor, Quick, Scenario, Sizes, Values
from runs.scenarios.partitioning import layout
from runs.scenarios.timed_sql import timed
from runs.tools import known_metrics
from runs.wording import gettext_noop as _

KINDS = {"unpartitioned": "unpartitioned", "declarative": "declarative"}
TRIGGER = """
CREATE FUNCTION access_log_insert() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
{body}
    RETURN NULL;
END
$body$;
CREATE TRIGGER access_log_insert BEFORE INSERT ON access_log
    FOR EACH ROW EXECUTE PROCEDURE access_log_insert();
"""
DYNAMIC = """
    EXECUTE 'INSERT INTO public.access_log_' || to_char(NEW.date - DATE '2012-12-31', 'FM000')
        || ' SELECT ($1).*' USING NEW;
"""


class Insert:
    """Generate each day's file; then, for each run, create the tables and load the files."""

    async def load(self, bench: Bench) -> None:
        """One file per day, next to the cluster's own, so that copies of the cluster have them."""
        rows = bench.parameters["rows_per_partition"]
        await bench.step("make-folder", ["mkdir", "-p", _folder(bench)])
        copies = [
            f"COPY ({' '.join(layout.rows_of(day, rows).split())}) TO '{_file(bench, day)}';"
            for day in range(1, layout.days(bench) + 1)
        ]
        await bench.sql("make-files", "\n".join(copies))

    async def warm(self, bench: Bench) -> None:
        """Only the files are read, and these have just been written or copied."""

    async def measure(self, bench: Bench) -> None:
        """New tables and trigger, a checkpoint, COPY of all files in one session; then count."""
        trigger, count = str(bench.levels["trigger"]), layout.days(bench)
        await bench.sql("create-tables", ddl(trigger, count))
        await bench.sql("checkpoint", "CHECKPOINT;")
        copies = [
            f"COPY {layout.child(day) if trigger == 'direct' else 'access_log'} "
            f"FROM '{_file(bench, day)}';"
            for day in range(1, count + 1)
        ]
        done = await timed(bench, "copy-files", "\n".join(copies))
        await _check_rows(bench, trigger)
        bench.measured(known_metrics.ELAPSED, done.seconds)
        rows = count * bench.parameters["rows_per_partition"]
        bench.measured(known_metrics.ROW_RATE, rows / done.seconds)

    def sizes(self, parameters: Values) -> Sizes:
        """The files, the table, and as much WAL."""
        table = layout.bytes_of(parameters, with_index=False)
        return Sizes(3 * table + 128 * 1024 * 1024)

    def seconds(self, parameters: Values) -> tuple[float, float]:
        """Measured on two cores: 2 µs per row to generate, 4 to 20 to load."""
        rows = layout.rows_in_all(parameters)
        return 5 + 6e-6 * rows, 2 + 15e-6 * rows


def ddl(trigger: str, count: int) -> str:
    """The tables for a way of inserting, with its trigger."""
    tables = layout.create(KINDS.get(trigger, "partitioned"), count)
    if trigger == "static":
        return tables + TRIGGER.format(body=_static(count))
    if trigger == "dynamic":
        return tables + TRIGGER.format(body=DYNAMIC)
    return tables


def _static(count: int) -> str:
    """Tests each partition in order and stops at the match: late days test most."""
    return "\n".join(
        f"    IF NEW.date = {layout.day_of(day)} THEN "
        f"INSERT INTO {layout.child(day)} VALUES (NEW.*); RETURN NULL; END IF;"
        for day in range(1, count + 1)
    )


async def _check_rows(bench: Bench, trigger: str) -> None:
    """COPY does not report rows that a trigger takes: all must be there, none in the parent."""
    only = (
        "ONLY access_log" if trigger not in KINDS else "(SELECT 1 WHERE false) nothing"
    )
    counted = await bench.sql(
        "count-rows",
        f"SELECT (SELECT count(*) FROM access_log), (SELECT count(*) FROM {only});",
    )
    row_count, in_parent = (int(count) for count in counted.split())
    expected = layout.days(bench) * bench.parameters["rows_per_partition"]
    if (row_count, in_parent) != (expected, 0):
        raise TargetProblem(
            _(
                "%(found)s of %(wanted)s rows were stored, %(in_parent)s of them in the parent "
                "table."
            ),
            code="rows_missing",
            remedy=_("Read the server's log of the run."),
            found=row_count,
            wanted=expected,
            in_parent=in_parent,
        )


def _folder(bench: Bench) -> str:
    return f"{bench.cluster.data}/benchlab"


def _file(bench: Bench, day: int) -> str:
    return f"{_folder(bench)}/day-{day:03d}"


SCENARIO = Scenario(
    slug="partitioning",
    title=_("Partitioning: insert"),
    description=_(
        "How long it takes to load days of an access log into one table and into a partition a "
        "day, by trigger functions, straight and declared."
    ),
    source="PGECons WG1 2013",
    factors=(
        ChoiceFactor(
            "trigger",
            _("Way of inserting"),
            choices={
                "static": _("static trigger"),
                "dynamic": _("dynamic trigger"),
                "direct": _("straight into partitions"),
                "declarative": _("declared partitions"),
                "unpartitioned": _("one table"),
            },
            default=("static", "dynamic", "direct", "unpartitioned"),
        ),
        layout.MONTHS,
    ),
    parameters=(layout.rows_parameter(2000),),
    metrics=(known_metrics.ELAPSED, known_metrics.ROW_RATE),
    writes=True,
    procedure=Insert(),
    cluster=layout.cluster,
    requires=(layout.declarative("trigger"),),
    quick=Quick({"rows_per_partition": 2000}, {"months": (1, 6)}),
)
