"""Duet: two clusters under the same load at the same time, for machines that others use as well.

After L. Bulej, V. Horký, P. Tůma and others, "Duet Benchmarking: Improving Measurement Accuracy in
the Cloud" (ICPE 2020): what disturbs the machine disturbs both, so it is not in their ratio. An
experiment: both compete for processors, caches and memory, and their throughputs are not those of
a machine of their own. So no metric here is called tps, and nothing is compared with other runs.

The partner is the campaign's first installation, with the settings that its own cells have; that
installation against itself says what no difference looks like. A run is made of pairs of loads,
which begin at the same time, and of which each starts first in turn. A pair is a block: the run's
value is the geometric mean of the ratios of its pairs.
"""

import math
import statistics
from collections.abc import Sequence

from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.execution.ssh.login_shell import shell_line
from runs.execution.steps.step_limits import GRACE_SECONDS
from runs.scenarios import pgbench_design as design
from runs.scenarios import pgbench_procedure as procedure
from runs.scenarios.definition import (
    FurtherCluster,
    Parameter,
    Quick,
    Scenario,
    Sizes,
    Values,
)
from runs.scenarios.fixed_point_read import SCRIPT
from runs.tools import known_metrics, pgbench
from runs.tools.adapter import SeriesData
from runs.wording import Wording
from runs.wording import gettext_noop as _

MAIN, PARTNER = "main", "partner"
# What all begins at one time; each is the first to begin in every second pair.
PAIRS = """
cd "$1" || exit 1
pair=1
while [ "$pair" -le "$2" ]; do
    first=main second=partner
    [ $((pair % 2)) = 1 ] || { first=partner second=main; }
    sh "run-$first.sh" >"$first-$pair.out" 2>"$first-$pair.err" &
    one=$!
    sh "run-$second.sh" >"$second-$pair.out" 2>"$second-$pair.err" &
    two=$!
    wait "$one" && wait "$two" || { cat ./*-"$pair".err >&2; exit 1; }
    pair=$((pair + 1))
done
"""
READ = """
cd "$1" && for file in main-*.out partner-*.out; do echo "== $file"; cat "$file"; done
"""


class Duet:
    """Load both, read both into memory, and run the pairs."""

    async def load(self, bench: Bench) -> None:
        """`pgbench -i` at the scale."""
        await procedure.initialise(bench)

    async def arrange(self, bench: Bench) -> None:
        """The same for the partner, which each run has of its own."""
        await procedure.initialise(bench, at=PARTNER)

    async def warm(self, bench: Bench) -> None:
        """Both in the same way: read in the order of the key."""
        await bench.sql("prewarm", procedure.PREWARM_BY_READING)
        await bench.sql("prewarm-partner", procedure.PREWARM_BY_READING, at=PARTNER)

    async def measure(self, bench: Bench) -> None:
        """All pairs in one step, then their ratios. Raises TargetProblem `duet_incomplete`."""
        folder, pairs = bench.database.directory, int(bench.parameters["pairs"])
        script = pgbench.for_tool(SCRIPT, bench.plan.client_version_num)
        await bench.write("write-script", f"{folder}/script.sql", script)
        clusters = {MAIN: bench.cluster, PARTNER: bench.members[PARTNER].cluster}
        for name, cluster in clusters.items():
            path, length = f"{folder}/script.sql", bench.parameters["duration"]
            line = shell_line(
                procedure.silent(bench, cluster, path, length, bench.clients)
            )
            await bench.write(
                f"write-{name}", f"{folder}/run-{name}.sh", f"exec {line}\n"
            )
        seconds = pairs * bench.parameters["duration"]
        done = await bench.follow(
            "pgbench",
            ["env", "LC_ALL=C", "sh", "-c", PAIRS, "pairs", folder, str(pairs)],
            limit_s=seconds + pairs * GRACE_SECONDS,
        )
        if done.exit_status != 0:
            raise _incomplete(done.stderr.strip()[-500:])
        text = (
            await bench.step("read-pairs", ["sh", "-c", READ, "read", folder])
        ).stdout
        bench.keep("pairs.txt", text)
        _report(bench, *(_throughputs(text, name, bench) for name in (MAIN, PARTNER)))

    def sizes(self, parameters: Values) -> Sizes:
        """Data, index and WAL of one cluster; the partner takes the same again."""
        data = parameters["scale"] * design.BYTES_PER_SCALE
        wal = min(data, design.WAL_BYTES)
        return Sizes(disk_bytes=data + wal + design.BUSY_CLUSTER_BYTES)

    def seconds(self, parameters: Values) -> tuple[float, float]:
        """Each run creates and loads its partner."""
        scale = parameters["scale"]
        seconds_to_create = 4 + 0.3 * scale
        return seconds_to_create, seconds_to_create + 2 + 0.04 * scale + parameters[
            "pairs"
        ] * (parameters["duration"] + 0.2)


def _throughputs(text: str, name: str, bench: Bench) -> list[float]:
    throughput_of: dict[int, float] = {}
    expected = pgbench.Expected(
        duration_s=bench.parameters["duration"], clients=bench.clients
    )
    for section in text.split("== ")[1:]:
        file, _newline, output = section.partition("\n")
        side, _dash, number = file.removesuffix(".out").partition("-")
        if side != name:
            continue
        result = pgbench.parse(output, "", exit_status=0, expected=expected)
        bench.findings.tool_name = "pgbench"
        bench.findings.tool_version = result.tool_version or bench.findings.tool_version
        if result.status != "complete" or not result.tps:
            raise _incomplete(result.failure)
        throughput_of[int(number)] = result.tps
    return [throughput_of[number] for number in sorted(throughput_of)]


def _report(
    bench: Bench, throughputs: Sequence[float], partners: Sequence[float]
) -> None:
    logs = [
        math.log(throughput / partner)
        for throughput, partner in zip(throughputs, partners, strict=True)
    ]
    spread = statistics.stdev(logs) if len(logs) > 1 else 0.0
    ratio, length = known_metrics.DUET_RATIO, float(bench.parameters["duration"])
    bench.measured(ratio, math.exp(statistics.mean(logs)))
    bench.measured(known_metrics.DUET_TPS, statistics.mean(throughputs))
    bench.measured(known_metrics.DUET_PARTNER_TPS, statistics.mean(partners))
    bench.measured(known_metrics.DUET_SPREAD, 100 * spread)
    ratios = tuple(math.exp(log) for log in logs)
    series = SeriesData(ratio.name, ratio.unit, ratios, start=length, interval=length)
    bench.findings.series.append(series)
    partner = next(
        cluster_plan
        for cluster_plan in bench.plan.clusters
        if cluster_plan.name == PARTNER
    )
    text = _("Measured at the same time as %(partner)s: only the ratio says something.")
    bench.note("duet", text, level="info", partner=partner.bindir)


def _incomplete(actual: str | Wording) -> TargetProblem:
    return TargetProblem(
        _("A load of a pair did not end as asked. %(found)s"),
        code="duet_incomplete",
        remedy=_(
            "Read pairs.txt and the logs of both clusters, then queue the run again."
        ),
        found=actual,
    )


def partner(_version_num: int, _levels: Values) -> tuple[FurtherCluster, ...]:
    """The baseline's installation, in a cluster that each run makes."""
    return (FurtherCluster(PARTNER, "partner", "initdb", of_baseline=True),)


SCENARIO = Scenario(
    slug="duet",
    title=_("Duet (experiment for noisy machines)"),
    description=_(
        "Two clusters answer the same reading load at the same time, and only the ratio of their "
        "throughputs counts: what disturbs the machine disturbs both. The partner of every "
        "installation is the campaign's first one."
    ),
    source="Bulej, Horký, Tůma et al., ICPE 2020",
    factors=(design.clients_factor(1),),
    parameters=(
        design.scale(_("Of each of the two clusters; one unit is about 16 MB.")),
        Parameter(
            "duration",
            _("Duration of a pair"),
            "s",
            default=5,
            minimum=1,
            maximum=3_600,
        ),
        Parameter(
            "pairs",
            _("Pairs of a run"),
            "",
            default=12,
            minimum=2,
            maximum=1_000,
            help=_("Each of the two starts first in every second pair."),
        ),
    ),
    metrics=(
        known_metrics.DUET_RATIO,
        known_metrics.DUET_TPS,
        known_metrics.DUET_PARTNER_TPS,
        known_metrics.DUET_SPREAD,
    ),
    writes=False,
    procedure=Duet(),
    arrangement=partner,
    quick=Quick({"scale": 2, "duration": 2, "pairs": 6}, {"clients": (1,)}, repeats=3),
)
