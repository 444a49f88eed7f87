"""What scenarios ask of tools and servers, their estimates, and what is concluded from a run."""

import json
import re
from pathlib import Path

import pytest
import yaml
from django.utils.text import slugify

import runs.published
from runs.execution.clusters.preparing import BYTES_TO_SPARE
from runs.execution.machine import saturation
from runs.execution.steps.steps import StepResult
from runs.scenarios import percentiles, registry
from runs.scenarios.datasets import videos
from runs.scenarios.fixed_point_read import SCRIPT
from runs.scenarios.fixed_point_update import SCRIPT as UPDATE_SCRIPT
from runs.scenarios.foreign_tables import plan_problem, script
from runs.scenarios.long_run_stability import judge
from runs.scenarios.metrics import PGBENCH
from runs.scenarios.pgbench_procedure import client_shares
from runs.scenarios.stalls import Stall, longest, longest_hole
from runs.tools import pgbench
from runs.tools.pgbench import ProgressPoint
from tests.unit.benches import bench_of, codes

# The scenario as the reports define it, and its estimates.


READ = registry.get("fixed-point-read")


def test_every_metric_that_a_scenario_shows_first_is_one_of_its_metrics():
    for scenario in registry.every():
        assert scenario.metric(scenario.primary_metric).name == scenario.primary_metric


def test_metrics_of_one_name_are_one_metric():
    for scenario in registry.every():
        for metric in scenario.metrics:
            assert registry.metrics()[metric.name] == metric


def test_an_unknown_scenario_is_a_key_error():
    with pytest.raises(KeyError):
        registry.get("no-such")


def test_a_tool_before_9_6_gets_the_script_in_its_dialect():
    old = pgbench.adapt_script(SCRIPT, 90324)
    assert "\\setrandom aid 1 :aid_max" in old
    assert "random(" not in old


def test_a_larger_scale_needs_more_disk_and_time():
    small, large = ({"scale": scale, "duration": 60} for scale in (10, 1000))
    procedure = READ.procedure
    assert (
        procedure.sizes(large).disk_bytes
        > procedure.sizes(small).disk_bytes
        > 150 * 10**6
    )
    assert procedure.seconds(large)[0] > procedure.seconds(small)[0]
    assert procedure.seconds(small)[1] >= 60


# The updating scenario as the reports define it, in the words of old tools and servers.


UPDATE = registry.get("fixed-point-update")


def test_a_tool_before_9_6_gets_the_updating_script_in_its_dialect():
    assert pgbench.adapt_script(UPDATE_SCRIPT, 90305).splitlines() == [
        "\\set naccounts 100000 * :scale",
        "\\setrandom aid_val 1 :naccounts",
        (
            "UPDATE pgbench_accounts SET filler=repeat(md5(current_timestamp::text),2)"
            " WHERE aid = :aid_val;"
        ),
    ]


@pytest.mark.parametrize(
    ("version", "setting"),
    [
        (90224, "checkpoint_segments"),
        (90426, "checkpoint_segments"),
        (90503, "max_wal_size"),
        (180000, "max_wal_size"),
    ],
)
def test_room_for_wal_is_asked_for_by_the_setting_that_the_version_knows(
    version, setting
):
    assert list(UPDATE.cluster(version, {}).settings) == [setting]


def test_an_update_needs_more_disk_than_a_read_of_the_same_scale():
    read = registry.get("fixed-point-read").procedure
    parameters = {"scale": 100, "duration": 60}
    assert (
        UPDATE.procedure.sizes(parameters).disk_bytes
        > read.sizes(parameters).disk_bytes
    )


# How many transactions are logged for percentiles.
#
# When the threads of pgbench were what was slow.
#
# The figures are of PostgreSQL 18's pgbench with two clients on two processors, on which the server
# worked as well: scripts of 3,000 and 30,000 `\set` before a `SELECT 1`, and one that only waits.


HOUR = 3600


@pytest.mark.parametrize(
    ("clients", "seconds"), [(1, 60), (2, 100), (4, 50), (100, 20)]
)
def test_short_runs_and_those_of_few_clients_are_logged_whole(clients, seconds):
    assert percentiles.share(clients, seconds) == 1


@pytest.mark.parametrize("seconds", [20, 60, 300, HOUR, 168 * HOUR])
@pytest.mark.parametrize("clients", [1, 10, 1000])
def test_slow_runs_have_enough_and_fast_ones_not_too_many(clients, seconds):
    share = percentiles.share(clients, seconds)

    assert share * 51 * seconds >= 1000
    assert share * min(100_000, clients * 10_000) * seconds <= 2_100_000


def test_9_2_logs_only_what_is_logged_whole():
    assert percentiles.log("/srv", 1, 90224) is not None
    assert percentiles.log("/srv", 0.5, 90224) is None
    assert percentiles.log("/srv", 0.5, 90300) is not None


LOGGING = [each for each in registry.every() if set(PGBENCH) <= set(each.metrics)]


@pytest.mark.parametrize("scenario", LOGGING, ids=lambda scenario: scenario.slug)
def test_the_estimate_of_the_disk_knows_of_the_logs_and_of_no_more_than_those(scenario):
    given = {each.name: each.default for each in scenario.parameters}
    short, long, longer = (
        scenario.procedure.sizes(given | {"scale": 1, "duration": seconds}).run_bytes
        for seconds in (1, 60, 86_400)
    )

    assert 0 < short < long == longer < 100 * 10**6


def points(*tps):
    return [
        ProgressPoint(seconds=float(second), tps=each, latency_ms=None, stddev_ms=None)
        for second, each in enumerate(tps, 1)
    ]


@pytest.mark.parametrize(
    ("tps", "stall"),
    [
        ((), None),
        ((100.0,), None),
        ((100.0, 100.0, 100.0), None),
        ((100.0, 0.0, 100.0), None),
        ((100.0, 0.0, 0.0, 100.0), Stall(1.0, 2.0)),
        ((100.0, 0.0, 0.0, 100.0, 0.0, 0.0, 0.0), Stall(4.0, 3.0)),
        # Connections that took their time.
        ((0.0, 0.0, 100.0, 100.0), None),
        # Rare by themselves.
        ((1.0, 0.0, 0.0, 2.0, 1.0), None),
        # Not known is not nothing.
        ((100.0, None, None, 100.0), None),
    ],
)
def test_the_longest_time_without_a_transaction(tps, stall):
    assert longest(points(*tps)) == stall


@pytest.mark.parametrize(
    ("seconds", "hole"),
    [
        ((), None),
        ((1.0,), None),
        ((1.0, 2.0, 3.0, 4.0), None),
        # Late by a little, and the line after it in its turn.
        ((1.0, 2.4, 3.0, 4.0), None),
        ((1.0, 2.0, 3.0, 8.2, 9.0), Stall(3.0, 5.2)),
        ((1.0, 6.2), None),
        ((1.0, 2.0, 7.0), Stall(2.0, 5.0)),
        ((5.0, 10.0, 15.0, 29.0), Stall(15.0, 14.0)),
        # Connections that took their time.
        ((4.0, 5.0, 6.0), None),
    ],
)
def test_the_longest_time_without_a_line(seconds, hole):
    lines = [
        ProgressPoint(seconds=second, tps=100.0, latency_ms=None, stddev_ms=None)
        for second in seconds
    ]
    found = longest_hole(lines)
    assert found == (hole and Stall(hole.begun, pytest.approx(hole.seconds)))


def step(name, seconds, cpu_seconds):
    return StepResult(
        name, ("pgbench",), "", 0, 1e9, 1e9 + seconds, "", "", cpu_seconds
    )


SATURATED = (4.1284, 3.9141)
BUSY = (5.0284, 4.2133)
BUSY_WITH_TWO_THREADS = (5.0266, 8.9075)
WAITING = (5.0136, 0.1228)


@pytest.mark.parametrize(
    ("figures", "threads", "is_told"),
    [
        (SATURATED, 1, True),
        (SATURATED, 2, False),
        (BUSY, 1, False),
        (BUSY_WITH_TWO_THREADS, 2, False),
        (BUSY_WITH_TWO_THREADS, 1, True),
        (WAITING, 1, False),
        # An old pgbench does not say how many it had.
        (SATURATED, None, False),
    ],
)
def test_threads_that_were_busy_for_more_than_90_percent_of_the_time_are_told(
    figures, threads, is_told
):
    bench = bench_of()
    saturation.note_threads(bench, [step("pgbench", *figures)], [threads])
    assert codes(bench) == ["generator_saturated"] * is_told
    used = bench.findings.measurements["generator_cpu"]
    assert used == pytest.approx(figures[1] / figures[0], abs=0.001)


def test_of_several_generators_the_saturated_one_is_named_and_all_are_added_up():
    bench = bench_of("load1", "load2")
    steps = [step("pgbench-load1", *WAITING), step("pgbench-load2", *SATURATED)]
    saturation.note_threads(bench, steps, [1, 1])
    [note] = bench.findings.notes
    assert note.message.startswith(
        "pgbench-load2 kept 0.9 processors busy with 1 thread(s)"
    )
    assert bench.findings.measurements["generator_cpu"] == pytest.approx(
        0.973, abs=0.001
    )


def test_without_the_accounting_of_one_step_nothing_is_said():
    bench = bench_of("load1", "load2")
    steps = [step("pgbench-load1", *SATURATED), step("pgbench-load2", 4.0, None)]
    saturation.note_threads(bench, steps, [1, 1])
    assert codes(bench) == []
    assert bench.findings.measurements == {}


@pytest.mark.parametrize(
    ("clients", "generators", "shares"),
    [(8, 1, [8]), (8, 2, [4, 4]), (7, 3, [3, 2, 2]), (1, 3, [1])],
)
def test_every_client_is_somewhere_and_no_machine_has_none(clients, generators, shares):
    assert client_shares(clients, generators) == shares


# What a plan of the scenario must send to other servers, and what its scripts name.


ACCOUNTS = "Remote SQL: SELECT aid FROM public.pgbench_accounts WHERE ((aid = 1))"
CUSTOMERS = "Remote SQL: SELECT id FROM public.addrbook WHERE ((id = 1))"
JOIN = "Remote SQL: SELECT r1.name FROM (public.addrbook r1 INNER JOIN public.x r2) WHERE 1"


def levels(operation="select", pattern=1, location="local"):
    return {"operation": operation, "pattern": pattern, "table_location": location}


@pytest.mark.parametrize(
    ("plan", "cell", "problem"),
    [
        ("Index Scan", levels(), ""),
        (ACCOUNTS, levels(pattern=2), ""),
        (f"{ACCOUNTS}\n{CUSTOMERS}", levels(pattern=4), ""),
        (JOIN, levels(pattern=4), "sends 1 statements"),
        (
            "Remote SQL: SELECT aid FROM public.pgbench_accounts",
            levels(pattern=2),
            "whole table",
        ),
        (
            "Remote SQL: INSERT INTO public.pgbench_history(tid)",
            levels("insert", 1, "foreign"),
            "",
        ),
        ("Index Scan", levels("update", 1, "foreign"), "sends 0 statements"),
    ],
)
def test_a_plan_that_does_something_else_is_told(plan, cell, problem):
    assert problem in plan_problem(plan, 150000, cell)
    assert bool(plan_problem(plan, 150000, cell)) == bool(problem)


def test_before_9_6_a_foreign_update_is_two_statements():
    plan = f"{ACCOUNTS} FOR UPDATE\nRemote SQL: UPDATE public.x SET abalance = $2 WHERE ctid = $1"
    assert plan_problem(plan, 90500, levels("update", 1, "foreign")) == ""
    assert plan_problem(plan, 90600, levels("update", 1, "foreign"))


def test_each_pattern_names_its_tables():
    assert "ext2.addrbook ad, public.pgbench_accounts" in script(levels(pattern=3))
    assert "UPDATE ext1.pgbench_accounts" in script(levels("update", 1, "foreign"))
    assert "INTO public.pgbench_history" in script(levels("insert"))


def test_a_level_throughput_neither_drifts_nor_dips():
    verdict = judge([100.0] * 1200)
    assert (verdict.trend, verdict.dip, verdict.variation) == (100, 100, 0)
    assert verdict.interval_s == 60


def test_a_decay_is_the_end_against_the_beginning():
    falling = [100 - second / 20 for second in range(1200)]
    assert judge(falling).trend == pytest.approx(100 * 43 / 91, abs=3)


def test_a_dip_is_found_where_it_is_and_not_by_a_single_second():
    values = [100.0] * 1200
    values[600:660] = [10.0] * 60
    dipped = judge(values)
    assert (dipped.dip, dipped.dip_at_s) == (10, 600)
    values = [100.0] * 1200
    values[600] = None
    assert judge(values).dip > 95


def test_too_few_seconds_are_no_verdict():
    assert judge([100.0] * 5) is None
    assert judge([0.0] * 100) is None


def test_the_same_records_are_made_again_with_the_searched_word_as_often_as_in_the_report():
    made = [json.loads(record) for _number, _tag, record in videos.records(5000)]
    assert made == [
        json.loads(record) for _number, _tag, record in videos.records(5000)
    ]
    titles = [each["title"] for each in made]
    descriptions = [each["description"] for each in made]
    assert all(10 <= len(each) <= 25 for each in titles)
    assert all(60 <= len(each) <= 250 for each in descriptions)
    assert 10 <= sum(videos.KEYWORD in each for each in titles) <= 45
    assert 30 <= sum(videos.KEYWORD in each for each in descriptions) <= 80
    assert len(made[0]) == 13


# The designs that publications name can be asked of the scenarios that they name.


SOURCES = Path(runs.published.__file__).parent.glob("*.yaml")


def faults(slug, wanted):
    """What a design asks that its scenario does not know."""
    scenario = registry.get(wanted["scenario"])
    factors = {each.name: each for each in scenario.factors}
    parameters = {each.name: each for each in scenario.parameters}
    for name, levels in wanted.get("levels", {}).items():
        unknown = name not in factors or not all(map(factors[name].accepts, levels))
        if unknown:
            yield slug, name, levels
    for name, value in wanted.get("parameters", {}).items():
        known = parameters.get(name)
        if known is None or not known.minimum <= value <= known.maximum:
            yield slug, name, value


def test_every_design_is_one_of_its_scenario():
    runnable = {each.slug for each in registry.every()}
    found = [
        fault
        for source in SOURCES
        for each in yaml.safe_load(source.read_text())["campaigns"]
        if (wanted := each.get("reproduce") or {}).get("scenario") in runnable
        for fault in faults(each["slug"], wanted)
    ]
    assert found == []


# What docs/target-setup.md says of the room that a scenario needs is what BenchLab asks for.


DOCUMENT = Path(__file__).parents[2] / "docs/target-setup.md"
MIB = 1 << 20
ROWS = dict(
    re.findall(
        r"^ *\| `([a-z-]+)`(?: \(60 s\))? \|((?: \d+ \|){4})$",
        DOCUMENT.read_text(),
        re.MULTILINE,
    )
)
DURATION_S = 60


def test_every_scenario_with_pgbench_tables_is_in_the_table():
    scaled = {
        each.slug
        for each in registry.every()
        if "scale" in {one.name for one in (*each.factors, *each.parameters)}
    }
    assert set(ROWS) == scaled


@pytest.mark.parametrize("slug", ROWS)
def test_the_room_of_a_cluster_is_what_is_asked_for(slug):
    sizes = registry.get(slug).procedure.sizes
    told = [int(each) for each in ROWS[slug].replace("|", " ").split()]

    assert told == [
        round(sizes({"scale": scale, "duration": DURATION_S}).disk_bytes / MIB)
        for scale in (1, 10, 100, 1000)
    ]


def test_what_comes_beside_it_is_told():
    sizes = registry.get("fixed-point-read").procedure.sizes
    logs = round(sizes({"scale": 1, "duration": DURATION_S}).run_bytes / MIB)
    told = DOCUMENT.read_text()

    assert f"(at most {logs} MiB)" in told
    assert f"{BYTES_TO_SPARE // MIB} MiB that stay free" in told


@pytest.mark.parametrize("name", ["work_mem", "Read only", "2 keys: a_b", "_x_"])
def test_an_own_script_is_a_level_by_whatever_slug_its_name_gives(name):
    (own_scripts,) = (
        factor for factor in registry.get("pgbench").factors if factor.name == "script"
    )
    assert own_scripts.accepts(f"{slugify(name)}@12")
    assert not own_scripts.accepts(f"{slugify(name)}@0")
