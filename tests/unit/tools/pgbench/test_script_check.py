"""What is wrong with a script is found before it is run."""

import math
from dataclasses import replace

import pytest

from runs.scenarios.long_run_stability import SCRIPTS
from runs.scenarios.pgbench_load import BUILT_IN
from runs.tools import registry
from runs.tools.pgbench import generators
from runs.tools.pgbench.result import PgbenchResult, ProgressPoint
from runs.tools.pgbench.script_check import GivenScript, check, command_lines, line_of_command
from tests.unit.tools.pgbench.samples import all_samples, sample


def codes(text, variables=None, **options):
    found = check([GivenScript("one", text)], variables or {}, **options)
    return [(each.line, each.code) for each in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1;", []),
        ("\\set a random(1, :scale)\nSELECT :a, ':missing', now()::date;", []),
        ("SELECT :a;", [(1, "variable_missing")]),
        ("\\set a :a + 1\nSELECT 1;", [(1, "variable_missing")]),
        ("\\set a\nSELECT 1;", [(1, "bad_set")]),
        ("\\set a random(1, 2\nSELECT 1;", [(1, "brackets")]),
        ("\\sett a 1\nSELECT 1;", [(1, "unknown_command")]),
        ("\\setrandom a 1 2\nSELECT 1;", [(1, "setrandom")]),
        ("\\sleep a\nSELECT 1;", [(1, "bad_sleep")]),
        ("\\sleep 10 ms\nSELECT 1;", []),
        ("\\if 1\nSELECT 1;", [(1, "condition_open")]),
        ("SELECT 1;\n\\endif", [(2, "condition_without_if")]),
        ("\\if\nSELECT 1;\n\\endif", [(1, "no_condition")]),
        ("\\set a 1\n-- nothing\n", [(0, "no_sql")]),
        ("SELECT 'a;", [(0, "quote_open")]),
        ("DO $a$ BEGIN PERFORM 'x'; END $a$;", []),
        ("SELECT 1 AS b \\gset\nSELECT :b;", []),
        ("\\shell rm x\nSELECT 1;", [(1, "shell")]),
        ("SELECT 1; \\shell rm x", [(1, "shell")]),
        ("SELECT 1;\nSELECT 2; \\ \\\n SetShell a rm x", [(2, "shell")]),
        ("SELECT 1; -- a\r\\shell rm x", [(1, "shell")]),
    ],
)
def test_each_fault_is_told_with_its_line(text, expected):
    assert codes(text) == expected


def test_an_administrator_may_allow_programs_and_variables_may_be_given():
    assert codes("\\setshell a echo 1\nSELECT :a, :b;", {"b": "2"}, allows_shell=True) == []


def test_weights_names_and_variables_are_looked_at_together():
    scripts = [GivenScript("a", "SELECT 1;", 0), GivenScript("a", "SELECT 1;", 2)]
    found = check(scripts, {"scale": "1", "2b": "1"})
    assert [each.code for each in found] == [
        "name_twice", "bad_variable", "bad_variable", "bad_weight",
    ]  # fmt: skip
    assert [each.code for each in check([], {})] == ["no_script"]


def test_nothing_is_wrong_with_our_own_scripts():
    assert [codes(text) for text in BUILT_IN.values()] == [[]] * len(BUILT_IN)
    assert [codes(each.text, {"warehouses": "2"}) for each in SCRIPTS] == [[]] * len(SCRIPTS)


SCRIPT = r"""-- a comment; with a semicolon
\set aid random(1, 10)

BEGIN; SELECT ';', "a;b",
  (SELECT 1);
SELECT 1 \; SELECT 2;
SELECT 3 AS x \gset
DO $body$ BEGIN PERFORM 1; END $body$;
\set b :x \
  + 1
/* ; */ END"""


def test_each_command_has_the_line_at_which_it_begins():
    assert list(command_lines(SCRIPT)) == [2, 4, 4, 6, 7, 8, 9, 11]
    assert line_of_command(SCRIPT, 3) == 6
    assert line_of_command(SCRIPT, 99) == 0


ADAPTER = registry.find("pgbench")


KNOWN = [each for each in all_samples() if "transaction type: " in each.stdout]


def workload(of):
    return dict(ADAPTER.read({"stdout": of.stdout, "stderr": of.stderr}).workload)


@pytest.mark.parametrize("version", ["9.3.25", "9.5.25", "9.6.23", "13.12", "15.16", "18.6"])
def test_the_same_load_is_told_alike_by_every_version(version):
    found = workload(sample(f"{version}/a_tpcb"))

    assert found.pop("connection", "kept") == "kept"
    assert found == {"script": "tpcb-like", "query_mode": "simple", "rate": 0, "max_tries": 1}


def test_scripts_have_the_names_of_their_files_or_built_ins():
    found = {workload(each).get("script") for each in KNOWN}
    assert {"tpcb-like", "select-only", "simple-update", "serializable.sql", None} <= found
    assert not any("/" in name or "<" in name for name in found if name)


def test_what_a_version_does_not_print_is_not_known():
    assert "connection" not in workload(sample("13.12/a_tpcb"))
    custom = [each for each in KNOWN if "transaction type: Custom query" in each.stdout]
    assert custom
    assert all("script" not in workload(each) for each in custom)


def test_several_scripts_are_told_with_their_weights():
    found = {workload(each).get("script") for each in KNOWN if "weight" in each.case}

    assert any("*" in name and "+" in name for name in found if name), found


ONE = PgbenchResult(
    status="complete",
    clients=2,
    threads=1,
    tps=100.0,
    transactions_processed=1000,
    latency_average_ms=10.0,
    latency_stddev_ms=1.0,
    initial_connection_time_ms=3.0,
)
OTHER = replace(
    ONE,
    tps=300.0,
    transactions_processed=3000,
    latency_average_ms=30.0,
    latency_stddev_ms=2.0,
    initial_connection_time_ms=5.0,
)


def test_one_result_stays_as_it_is():
    assert generators.combined([ONE]) is ONE


def test_rates_and_counts_are_added():
    both = generators.combined([ONE, OTHER])
    assert (both.tps, both.transactions_processed, both.clients) == (400.0, 4000, 4)
    assert both.initial_connection_time_ms == 5.0


def test_latencies_are_those_of_all_transactions():
    both = generators.combined([ONE, OTHER])
    assert both.latency_average_ms == pytest.approx(25.0)
    # 1,000 of N(10, 1) and 3,000 of N(30, 2): within 3.25, between 75.
    assert both.latency_stddev_ms == pytest.approx(math.sqrt(3.25 + 75))


def test_what_one_machine_does_not_tell_is_unknown():
    both = generators.combined([ONE, replace(OTHER, latency_stddev_ms=None, tps=None)])
    assert both.tps is None
    assert both.latency_stddev_ms is None
    assert both.latency_average_ms == pytest.approx(25.0)


def test_progress_is_added_as_long_as_all_tell():
    def point(seconds, tps, latency):
        return ProgressPoint(seconds=seconds, tps=tps, latency_ms=latency, stddev_ms=1.0)

    first = [point(1, 10, 2.0), point(2, 10, 2.0), point(3, 10, 2.0)]
    second = [point(1, 30, 4.0), point(2, 0, None)]
    together = generators.progress([first, second])
    assert [each.tps for each in together] == [40, 10]
    assert together[0].latency_ms == pytest.approx(3.5)
    assert together[1].latency_ms is None
    assert generators.progress([first, []]) == ()
