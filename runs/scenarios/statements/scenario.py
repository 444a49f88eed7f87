"""Somebody's own load, statement by statement: its data, then each statement in random order.

The load itself is not in the run's plan: `bench.load` has it. What the run finds of each statement
is kept encrypted with the load's own key, so that readers of the campaign see sums alone.

Statements are executed by an ordinary role, in a transaction that is rolled back, with their values
written as constants: planned as PostgreSQL plans a prepared statement for given values. Nothing of
them is read by psql (`data_script.executed`).
"""

from collections.abc import Sequence

from runs.execution.bench import Bench
from runs.execution.reporter import ArtifactData
from runs.scenarios.definition import (
    ChoiceFactor,
    ClusterOptions,
    Parameter,
    Quick,
    Scenario,
    Sizes,
    Values,
)
from runs.scenarios.statements import cold, drawing, loading, trials
from runs.scenarios.statements.cold import COLD
from runs.scenarios.statements.passes import (
    FINE,
    MOST_PASSES,
    TimedUnit,
    execute_once,
    execute_passes,
    send_statements,
    timed,
)
from runs.scenarios.statements.plans import explain, shapes
from runs.scenarios.statements.whole import CLIENTS, MOST_CLIENTS, measure_whole
from runs.statements import content
from runs.statements.content import LoadContent
from runs.statements.found import Found, FoundUnit
from runs.tools import known_metrics
from runs.wording import gettext_noop as _

FACTOR = "load"


class Statements:
    """Load the data once for each version, warm them, and execute the statements in passes."""

    async def load(self, bench: Bench) -> None:
        """The role, the extensions, the data, and what the planner knows of them."""
        load = _load_of(bench)
        await bench.sql("make-role", loading.role_sql())
        await loading.make_extensions(bench, load.data.extensions)
        await loading.LOADING[load.data.kind](bench, load)
        await bench.sql("vacuum-analyze", "VACUUM ANALYZE;")
        await drawing.draw(bench, load)
        await bench.sql("checkpoint-after-load", "CHECKPOINT;")

    async def warm(self, bench: Bench) -> None:
        """Execute each statement once, as the measured passes do; nothing where these are cold."""
        if cold.is_cold(bench):
            return
        load = await drawing.add_drawn_values(bench, _load_of(bench))
        await send_statements(bench, load)
        tried = trials.read_trial(bench, load)
        await execute_once(bench, [tried.unit] if tried else load.units)

    async def measure(self, bench: Bench) -> None:
        """Passes in random order while there is time, then the plans."""
        load = await drawing.add_drawn_values(bench, _load_of(bench))
        if cold.is_cold(bench):
            _note_cold(bench)
        if (tried := trials.read_trial(bench, load)) is not None:
            await trials.measure(bench, load, tried)
            return
        await send_statements(bench, load)
        calls = await execute_passes(bench, load)
        units = [timed(unit, calls) for unit in load.units]
        fine = [unit.number for unit in units if unit.code == FINE]
        plans = await explain(bench, fine)
        found = Found(
            version=str(bench.levels["version"]),
            units=tuple(
                FoundUnit(
                    number=unit.number,
                    milliseconds=unit.milliseconds,
                    executions=unit.executions,
                    code=unit.code,
                    read_bytes=unit.read_bytes,
                    plans=plans.get(unit.number, ()),
                    shapes=shapes(plans.get(unit.number, ())),
                )
                for unit in units
            ),
            whole=await measure_whole(bench, load, fine),
        )
        kept = content.sealed(load.key, found.to_json())
        bench.findings.artifacts.append(
            ArtifactData(content.ARTIFACT, kept, content.MEDIA_TYPE)
        )
        _report(bench, load, units)
        if found.whole is not None and found.whole.calls_per_second is not None:
            bench.measured(known_metrics.LOAD_RATE, found.whole.calls_per_second)

    def sizes(self, parameters: Values) -> Sizes:
        """What the person who queues it says of the data."""
        return Sizes(disk_bytes=int(parameters.get("disk_mb", 1000)) * 1024 * 1024)

    def seconds(self, parameters: Values) -> tuple[float, float]:
        """Loading by the size of the data, and the budget of the passes and of the whole."""
        budget = int(parameters["duration"])
        whole_seconds = budget if parameters.get(CLIENTS) else 0
        return 5 + int(
            parameters.get("disk_mb", 1000)
        ) / 50, 5 + budget * 1.3 + whole_seconds


def _load_of(bench: Bench) -> LoadContent:
    if bench.load is None:
        raise loading.load_missing(str(bench.levels.get(FACTOR)))
    return bench.load


def _note_cold(bench: Bench) -> None:
    text = _(
        "Measured cold: before each execution PostgreSQL was restarted, and its files were dropped "
        "from the machine's memory."
    )
    bench.note("cold_executions", text, level="info")


def _report(bench: Bench, load: LoadContent, units: Sequence[TimedUnit]) -> None:
    """Sums, which readers of the campaign may see: the load at its weights, and how much failed."""
    calls_of = {unit.number: unit.calls for unit in load.units}
    timed = [unit for unit in units if unit.milliseconds is not None]
    failed = len(units) - len(timed)
    weight = sum(calls_of[unit.number] for unit in timed)
    if weight:
        total = sum(
            calls_of[unit.number] * (unit.milliseconds or 0.0) for unit in timed
        )
        bench.measured(known_metrics.LOAD_CALL, total / weight)
    bench.measured(known_metrics.LOAD_STATEMENTS, float(len(timed)))
    bench.measured(known_metrics.LOAD_FAILED, float(failed))
    bench.findings.tool_name = "psql"
    if failed:
        text = _("%(number)s of %(all)s statements of the load failed on this version.")
        bench.note(
            "statements_failed", text, level="info", number=failed, all=len(units)
        )


def _cluster(_version_num: int, levels: Values) -> ClusterOptions:
    """Other loads have other data. What is measured are statements, not checkpoints."""
    return ClusterOptions(
        settings={"autovacuum": "off", "log_checkpoints": "off"},
        data=(str(levels[FACTOR]),),
    )


SCENARIO = Scenario(
    slug="statements",
    title=_("Own load, statement by statement"),
    description=_(
        "The statements of a load of your own, each timed on every version, with what differs in "
        "their plans."
    ),
    source="",
    factors=(
        ChoiceFactor(
            FACTOR, _("Load"), choices={}, default=(), further=r"[a-z0-9][a-z0-9-]*"
        ),
    ),
    parameters=(
        Parameter(
            "duration",
            _("Time for the statements"),
            "s",
            default=30,
            minimum=1,
            maximum=86_400,
            help=_(
                "Seconds in which a run executes all statements again and again; then the load "
                "as a whole for as long."
            ),
        ),
        Parameter(
            "passes",
            _("Passes at least"),
            "",
            default=3,
            minimum=1,
            maximum=MOST_PASSES,
        ),
        Parameter(
            COLD,
            _("Caches are emptied before each execution"),
            "",
            default=0,
            minimum=0,
            maximum=1,
            help=_(
                "1: PostgreSQL is restarted, and its files are dropped from the machine's memory."
            ),
            zero=_("no"),
            one=_("yes"),
        ),
        Parameter(
            CLIENTS,
            _("Clients of the load as a whole"),
            "",
            default=8,
            minimum=0,
            maximum=MOST_CLIENTS,
            help=_(
                "Its statements at their calls, by so many clients at once; 0: not measured."
            ),
        ),
        Parameter(
            "statement_timeout",
            _("Statement timeout"),
            "s",
            default=20,
            minimum=1,
            maximum=3600,
            help=_(
                "A statement that takes longer on a version is named, and not judged."
            ),
        ),
        Parameter(
            "disk_mb",
            _("Size of the data"),
            "MB",
            default=1000,
            minimum=10,
            maximum=10_000_000,
            help=_(
                "With indexes, in a cluster; so much must be free for each version."
            ),
        ),
    ),
    metrics=(
        known_metrics.LOAD_CALL,
        known_metrics.LOAD_STATEMENTS,
        known_metrics.LOAD_FAILED,
        known_metrics.LOAD_RATE,
    ),
    writes=True,
    procedure=Statements(),
    cluster=_cluster,
    quick=Quick({"duration": 5, "passes": 3}),
)
