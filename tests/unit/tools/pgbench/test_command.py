"""Command lines of pgbench, and what is wrong with a script is found before it is run."""

import math
from dataclasses import replace

import pytest

from runs.scenarios.long_run_stability import SCRIPTS
from runs.scenarios.pgbench_load import BUILT_IN
from runs.tools import registry
from runs.tools.pgbench import (
    Connection,
    Log,
    Script,
    adapt_script,
    benchmark,
    generators,
    initialise,
)
from runs.tools.pgbench.result import PgbenchResult, ProgressPoint
from runs.tools.pgbench.script_check import check
from runs.tools.pgbench.script_tokens import command_lines, line_of_command
from runs.tools.pgbench.scripts import GivenScript
from runs.tools.pgbench.versions import UnsupportedByToolError
from tests.unit.timing import cpu_seconds
from tests.unit.tools.pgbench.samples import all_samples, sample

#


SOCKET = Connection(
    host="/var/run/postgresql", port=5432, user="bench", database="bench"
)
READ = Script("/srv/read.sql")


def command(client_version: int = 180000, **changes: object) -> tuple[str, ...]:
    arguments: dict[str, object] = {
        "client_version": client_version,
        "scripts": [READ],
        "clients": 32,
        "duration_s": 300,
        "scale": 1000,
    }
    return benchmark("/usr/pgsql/bin", SOCKET, **(arguments | changes))


def option(name: str, arguments: tuple[str, ...]) -> str:
    return arguments[arguments.index(name) + 1]


def test_tables_are_made_quietly():
    assert initialise("/usr/pgsql/bin", SOCKET, scale=1000) == (
        "/usr/pgsql/bin/pgbench",
        "-i",
        "-s",
        "1000",
        "-q",
        "-h",
        "/var/run/postgresql",
        "-p",
        "5432",
        "-U",
        "bench",
        "bench",
    )


def test_a_fillfactor_is_given_to_the_tables():
    assert option("-F", initialise("/b", SOCKET, scale=1, fillfactor=80)) == "80"


def test_9_2_cannot_make_tables_quietly():
    assert "-q" not in initialise("/b", SOCKET, scale=1, client_version=90224)
    assert "-q" in initialise("/b", SOCKET, scale=1, client_version=90300)


def test_a_run_has_all_the_options_of_the_reports():
    assert command() == (
        "/usr/pgsql/bin/pgbench",
        "-n",
        "-c",
        "32",
        "-j",
        "16",
        "-T",
        "300",
        "-s",
        "1000",
        "-P",
        "1",
        "-r",
        "-f",
        "/srv/read.sql@1",
        "-h",
        "/var/run/postgresql",
        "-p",
        "5432",
        "-U",
        "bench",
        "bench",
    )


def test_progress_and_statements_can_be_left_out():
    arguments = command(progress_s=None, per_statement=False)

    assert "-P" not in arguments
    assert "-r" not in arguments


@pytest.mark.parametrize(
    ("version", "known"), [(90224, False), (90325, False), (90400, True)]
)
def test_progress_is_asked_for_from_9_4_on(version, known):
    assert ("-P" in command(version)) == known


@pytest.mark.parametrize(
    ("clients", "threads"), [(1, 1), (2, 1), (3, 1), (4, 2), (9, 4), (100, 50)]
)
def test_half_as_many_threads_as_clients(clients, threads):
    assert option("-j", command(clients=clients)) == str(threads)


@pytest.mark.parametrize(("clients", "threads"), [(1, 1), (9, 3), (7, 1), (10, 5)])
def test_to_9_5_the_threads_divide_the_clients(clients, threads):
    assert option("-j", command(90525, clients=clients)) == str(threads)


def test_scripts_have_weights_from_9_6_on():
    arguments = command(
        90600, scripts=[Script("/srv/read.sql", 3), Script("/srv/write.sql", 1)]
    )

    assert "/srv/read.sql@3" in arguments
    assert "/srv/write.sql@1" in arguments


def test_to_9_5_scripts_have_one_weight():
    both = [Script("/srv/read.sql", 2), Script("/srv/write.sql", 2)]

    assert option("-f", command(90525, scripts=both)) == "/srv/read.sql"
    assert "/srv/write.sql" in command(90525, scripts=both)


@pytest.mark.parametrize(
    ("version", "changes", "message"),
    [
        (
            90525,
            {"scripts": [Script("/a", 3), Script("/b")]},
            "different weights needs pgbench 9.6",
        ),
        (
            90325,
            {"rate_tps": 50},
            r"rate limit needs pgbench 9.4 or later; this one is 9.3\.",
        ),
        (140000, {"maximum_tries": 3}, "needs pgbench 15 or later; this one is 14"),
        (180000, {"scripts": []}, "needs a script"),
        (180000, {"scripts": [Script("/a", 0)]}, "needs a script"),
    ],
)
def test_what_the_tool_does_not_know_is_refused(version, changes, message):
    with pytest.raises(UnsupportedByToolError, match=message):
        command(version, **changes)


def test_limits_are_given_as_plain_numbers():
    arguments = command(rate_tps=1_000_000, maximum_tries=3)

    assert option("-R", arguments) == "1000000"
    assert "--max-tries=3" in arguments


def test_the_query_mode_comes_before_the_scripts():
    """Tools to 9.5 refuse it otherwise."""
    arguments = command(90525, query_mode="prepared")

    assert option("-M", arguments) == "prepared"
    assert arguments.index("-M") < arguments.index("-f")


def test_variables_and_reconnecting_are_given():
    arguments = command(variables={"aid_max": "100000"}, reconnect=True)

    assert option("-D", arguments) == "aid_max=100000"
    assert "-C" in arguments


@pytest.mark.parametrize("changes", [{"clients": 0}, {"duration_s": 0}, {"scale": -1}])
def test_numbers_below_one_are_refused(changes):
    with pytest.raises(ValueError, match="has to be 1 or more"):
        command(**changes)


@pytest.mark.parametrize("name", ["", "-d", "--help", "host=elsewhere"])
def test_a_database_that_is_no_name_is_refused(name):
    with pytest.raises(ValueError, match="name of a database"):
        Connection(host="db1", port=5432, user="bench", database=name)


def test_what_a_shell_would_read_stays_one_argument():
    odd = Connection(host="db1", port=5432, user="a b", database="$(id); drop")
    arguments = benchmark(
        "/opt/my pg/bin",
        odd,
        client_version=160000,
        scripts=[Script("/srv/a b@2.sql")],
        clients=1,
        duration_s=1,
        scale=1,
    )

    assert arguments[0] == "/opt/my pg/bin/pgbench"
    assert "/srv/a b@2.sql@1" in arguments
    assert arguments[-1] == "$(id); drop"


@pytest.mark.parametrize(
    ("client_version", "more"), [(110022, ""), (120000, " tcp_user_timeout=60000")]
)
def test_a_database_that_falls_silent_is_given_up_as_soon_as_the_version_can(
    client_version, more
):
    silent = Connection("db1", 5432, "bench", r"o'ur \ db", silence_s=60)
    arguments = benchmark(
        "/b",
        silent,
        client_version=client_version,
        scripts=[READ],
        clients=1,
        duration_s=1,
        scale=1,
    )

    assert arguments[-1] == (
        r"dbname='o\'ur \\ db' connect_timeout=60 keepalives_idle=15 keepalives_interval=15 "
        f"keepalives_count=3{more}"
    )


@pytest.mark.parametrize("version", [100000, 180000])
def test_transactions_are_logged_into_a_folder(version):
    arguments = command(version, log=Log("/srv/runs/7-1"))

    assert "-l" in arguments
    assert "--log-prefix=/srv/runs/7-1/pgbench_log" in arguments
    assert not [each for each in arguments if each.startswith("--sampling-rate")]


def test_to_9_6_a_log_is_written_where_the_tool_is_started():
    arguments = command(90624, log=Log("/srv/runs/7-1"))

    assert arguments[:2] == ("sh", "-c")
    assert arguments[4:6] == ("/srv/runs/7-1", "/usr/pgsql/bin/pgbench")
    assert not [each for each in arguments if each.startswith("--log-prefix")]


@pytest.mark.parametrize(("share", "written"), [(0.02, "0.02"), (3.3e-5, "0.000033")])
def test_a_part_of_the_transactions_can_be_logged(share, written):
    assert f"--sampling-rate={written}" in command(log=Log("/srv", share))


def test_9_2_logs_all_transactions_or_none():
    assert "-l" in command(90224, log=Log("/srv"))
    with pytest.raises(UnsupportedByToolError):
        command(90224, log=Log("/srv", 0.5))


def test_nothing_is_logged_unless_asked_for():
    assert "-l" not in command()


READ_SCRIPT = r"""\set aid_max 100000 * :scale
\set aid random(1, :aid_max)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
"""


@pytest.mark.parametrize("version", [90600, 100000, 160000, 190000])
def test_a_script_is_unchanged_from_9_6_on(version):
    assert adapt_script(READ_SCRIPT, version) == READ_SCRIPT


@pytest.mark.parametrize("version", [90200, 90400, 90525])
def test_a_random_value_has_a_command_of_its_own_before_9_6(version):
    assert adapt_script(READ_SCRIPT, version) == (
        "\\set aid_max 100000 * :scale\n"
        "\\setrandom aid 1 :aid_max\n"
        "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
    )


@pytest.mark.parametrize(
    ("modern", "old"),
    [
        (r"\set delta random(-5000, 5000)", ["\\setrandom delta -5000 5000"]),
        (r"\set  aid  RANDOM( 1 ,10 ) ", ["\\setrandom aid 1 10"]),
        (r"\set n :a+1", ["\\set n :a + 1"]),
        (r"\set n -1", ["\\set n -1"]),
        (r"\set n :a", ["\\set n :a"]),
        (r"\sleep 10 ms", ["\\sleep 10 ms"]),
        (r"\setrandom a 1 2", ["\\setrandom a 1 2"]),
        (
            r"\set aid random(1, 100000 * :scale)",
            [
                "\\set benchlab_aid_high 100000 * :scale",
                "\\setrandom aid 1 :benchlab_aid_high",
            ],
        ),
        ("-- a comment\n\nSELECT 1;", ["SELECT 1;"]),
        ("SELECT a,\n  b\nFROM t;\nEND;", ["SELECT a, b FROM t;", "END;"]),
        ("SELECT ';--' ;", ["SELECT ';--' ;"]),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1\n\\sleep 1 s\nEND;", ["SELECT 1", "\\sleep 1 s", "END;"]),
    ],
)
def test_each_command_is_written_as_9_3_reads_it(modern, old):
    assert adapt_script(modern, 90325).splitlines() == old


def test_9_5_computes_with_whole_numbers():
    script = "\\set n (:a + 1) * 2 % 7\n"

    assert adapt_script(script, 90525) == script
    with pytest.raises(
        UnsupportedByToolError, match=r"one operation .* needs pgbench 9\.5"
    ):
        adapt_script(script, 90424)


@pytest.mark.parametrize(
    ("script", "version", "message"),
    [
        (
            r"\set n random_gaussian(1, 10, 2.5)",
            90525,
            "Line 1: pgbench 9.5 cannot compute",
        ),
        (r"\set n 1 + random(1, 10)", 90525, "cannot compute"),
        (r"\set n 0.5", 90325, "cannot compute"),
        (r"\set n :a || 1", 90325, "cannot compute"),
        (r"\set n random(1)", 90325, "a lower and an upper bound"),
        (r"\set n random(1, abs(:a))", 90325, "cannot compute"),
        ("SELECT 1; SELECT 2;", 90325, "a line is one statement"),
        ("SELECT 1 -- one\n + 2;", 90325, "no comment behind it"),
        (
            "SELECT 1;\n\\if :a > 1",
            100000,
            r"Line 2: \\if needs pgbench 11 or later; .* is 10",
        ),
        ("SELECT 1 AS a \\gset", 110000, r"\\gset needs pgbench 12"),
        (r"\startpipeline", 130000, "needs pgbench 14"),
        (r"\set n permute(:a, 10)", 130000, r"permute\(\) needs pgbench 14"),
        (r"\set n random_zipfian(1, 10, 1.1)", 100000, "needs pgbench 11"),
        ("\\set n 1 + \\\n 2", 90600, "over several lines needs pgbench 10"),
        ("/* a\n*/ SELECT 1 AS a \\GSET", 110000, r"Line 2: \\gset needs pgbench 12"),
        (
            "BEGIN; \\set n 1",
            90525,
            "behind something else on its line needs pgbench 9.6",
        ),
    ],
)
def test_what_a_tool_cannot_run_is_refused_with_its_line(script, version, message):
    with pytest.raises(UnsupportedByToolError, match=message):
        adapt_script(script, version)


def test_a_quoted_text_is_no_command():
    script = "/* \\if */ SELECT '\n\\gset';\n"

    assert adapt_script(script, 100000) == script


@pytest.mark.parametrize("unit", ["1", ":a1", "+", " ", "random("])
def test_a_long_expression_takes_no_long_time(unit):
    def translate() -> None:
        with pytest.raises(UnsupportedByToolError):
            adapt_script(f"\\set n {unit * 20_000}!", 90525)

    assert cpu_seconds(translate, tries=1) < 5


# What is wrong with a script is found before it is run.


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
        ("\\set a random(1, 2\nSELECT 1;", [(1, "bad_expression")]),
        ("\\sett a 1\nSELECT 1;", [(1, "unknown_command")]),
        ("\\setrandom a 1 2\nSELECT 1;", [(1, "setrandom")]),
        ("\\sleep a\nSELECT 1;", [(1, "bad_sleep")]),
        ("\\sleep 10 ms\nSELECT 1;", []),
        ("\\if 1\nSELECT 1;", [(1, "condition_open")]),
        ("SELECT 1;\n\\endif", [(2, "condition_without_if")]),
        ("\\if\nSELECT 1;\n\\endif", [(1, "no_condition")]),
        ("\\set a 1\n-- nothing\n", [(0, "no_sql")]),
        ("SELECT 'a;", [(1, "quote_open")]),
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
    assert (
        codes("\\setshell a echo 1\nSELECT :a, :b;", {"b": "2"}, allows_shell=True)
        == []
    )


def test_weights_names_and_variables_are_looked_at_together():
    scripts = [GivenScript("a", "SELECT 1;", 0), GivenScript("a", "SELECT 1;", 2)]
    found = check(scripts, {"scale": "1", "2b": "1"})
    assert [each.code for each in found] == [
        "name_twice",
        "bad_variable",
        "bad_variable",
        "bad_weight",
    ]
    assert [each.code for each in check([], {})] == ["no_script"]


def test_nothing_is_wrong_with_our_own_scripts():
    assert [codes(text) for text in BUILT_IN.values()] == [[]] * len(BUILT_IN)
    assert [codes(each.text, {"warehouses": "2"}) for each in SCRIPTS] == [[]] * len(
        SCRIPTS
    )


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
    assert list(command_lines("/* all */\n\\set a 1\n;\n\\\n/* b */\nSELECT 1;")) == [
        1,
        2,
        3,
        6,
    ]
    assert line_of_command(SCRIPT, 3) == 6
    assert line_of_command(SCRIPT, 99) == 0


ADAPTER = registry.find("pgbench")


KNOWN = [each for each in all_samples() if "transaction type: " in each.stdout]


def workload(of):
    return dict(ADAPTER.read({"stdout": of.stdout, "stderr": of.stderr}).workload)


@pytest.mark.parametrize(
    "version", ["9.3.25", "9.5.25", "9.6.23", "13.12", "15.16", "18.6"]
)
def test_the_same_load_is_told_alike_by_every_version(version):
    found = workload(sample(f"{version}/a_tpcb"))

    assert found.pop("connection", "kept") == "kept"
    assert found == {
        "script": "tpcb-like",
        "query_mode": "simple",
        "rate": 0,
        "max_tries": 1,
    }


def test_scripts_have_the_names_of_their_files_or_built_ins():
    found = {workload(each).get("script") for each in KNOWN}
    assert {
        "tpcb-like",
        "select-only",
        "simple-update",
        "serializable.sql",
        None,
    } <= found
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
        return ProgressPoint(
            seconds=seconds, tps=tps, latency_ms=latency, stddev_ms=1.0
        )

    first = [point(1, 10, 2.0), point(2, 10, 2.0), point(3, 10, 2.0)]
    second = [point(1, 30, 4.0), point(2, 0, None)]
    together = generators.progress([first, second])
    assert [each.tps for each in together] == [40, 10]
    assert together[0].latency_ms == pytest.approx(3.5)
    assert together[1].latency_ms is None
    assert generators.progress([first, []]) == ()


def test_a_fault_is_told_once_a_line_however_often_it_is_made_there():
    """A line of 13,000 times the same variable was a page of 4 MB."""
    found = check([GivenScript("a", ":a " * 13_000 + "\n:a :b :a")], {})
    assert [(each.line, each.word) for each in found] == [(1, "a"), (2, "a"), (2, "b")]
