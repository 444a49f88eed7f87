"""What the parser makes of the oddities of pgbench's output, one by one."""

import pytest

from runs.tools.pgbench import Expected, PgbenchResult, parse
from runs.tools.pgbench.result import Figures
from tests.unit.tools.pgbench.samples import sample

GOOD = sample("18.6/a_tpcb")
OLD = sample("9.3.25/a_tpcb")


def parsed(name: str, **expected: float) -> PgbenchResult:
    run = sample(name)
    return parse(
        run.stdout,
        run.stderr,
        exit_status=run.exit_status,
        expected=Expected(**expected),
    )


def codes(result: PgbenchResult) -> list[str]:
    return [problem.code for problem in result.problems]


def message(result: PgbenchResult, code: str) -> str:
    return next(problem.message for problem in result.problems if problem.code == code)


# Whether the run may be believed


def test_an_aborted_client_makes_the_run_partial():
    result = parsed("9.6.23/i_terminate_one_backend")

    assert sample("9.6.23/i_terminate_one_backend").exit_status == 0
    assert result.status == "partial"
    assert result.tps == 114.986069
    assert message(result, "clients_aborted") == (
        "1 of 3 clients aborted; the first message: client 0 aborted in state 0: "
        "FATAL:  terminating connection due to administrator command"
    )


def test_an_aborted_client_is_seen_when_the_streams_are_mixed():
    run = sample("9.6.23/i_terminate_one_backend")
    result = parse(run.stderr + run.stdout, "", exit_status=0)

    assert codes(result) == ["clients_aborted"]
    assert len(result.progress) == 4


def test_a_run_whose_clients_all_died_early_says_what_time_it_covers():
    result = parsed("9.3.25/i_sometimes_error")

    assert result.status == "partial"
    assert message(result, "ended_early") == (
        "The run took 0.2 s of its 4 s; its figures cover no more."
    )


@pytest.mark.parametrize("version", ["9.3.25", "9.6.23", "12.13", "18.6"])
def test_the_short_time_is_seen_without_a_message(version):
    run = sample(f"{version}/i_stop_fast")

    assert "ended_early" in codes(parse(run.stdout, "", exit_status=0))


TABLES = ("branches", "tellers", "history")
# What each version says where the tables that it vacuums before a run are not there.
VACUUMED = {
    "9.5 to 12": "".join(
        f'ERROR:  relation "pgbench_{table}" does not exist\n'
        "(ignoring this error and continuing anyway)\n"
        for table in TABLES
    ),
    "13 and 14": "".join(
        f'pgbench: error: ERROR:  relation "pgbench_{table}" does not exist\n'
        "pgbench: (ignoring this error and continuing anyway)\n"
        for table in TABLES
    ),
    "15 and later": "".join(
        f'pgbench: error: ERROR:  relation "pgbench_{table}" does not exist\n'
        "pgbench: detail: (ignoring this error and continuing anyway)\n"
        for table in TABLES
    ),
    "a standby": 3
    * (
        "pgbench: error: ERROR:  cannot execute VACUUM during recovery\n"
        "pgbench: detail: (ignoring this error and continuing anyway)\n"
    ),
    "messages of several lines": 3
    * (
        "pgbench: error: ERROR:  canceling statement due to lock timeout\n"
        'CONTEXT:  while scanning relation "public.pgbench_tellers"\n'
        "pgbench: detail: (ignoring this error and continuing anyway)\n"
    ),
}


@pytest.mark.parametrize("version", VACUUMED)
def test_an_error_that_pgbench_ignores_is_none(version):
    said = f"starting vacuum...{VACUUMED[version]}end.\n"
    apart = parse(GOOD.stdout, said, exit_status=0)
    mixed = parse(said + GOOD.stdout, "", exit_status=0)

    for result in (apart, mixed):
        assert (result.status, codes(result)) == ("complete", [])
        assert result.latency_average_ms is not None
        assert result.unknown_lines == ()


def test_an_error_before_those_that_it_ignores_counts():
    error = 'pgbench: error: ERROR:  relation "orders" does not exist\n'
    said = f"{error}starting vacuum...{VACUUMED['15 and later']}end.\n"

    result = parse(GOOD.stdout, said, exit_status=0)

    assert codes(result) == ["not_initialised"]
    assert "orders" in message(result, "not_initialised")


REFUSED = (
    'connection to server at "localhost" (::1), port 5432 failed: Connection refused\n'
    "\tIs the server running on that host and accepting TCP/IP connections?\n"
    'connection to server at "localhost" (127.0.0.1), port 5432 failed: Connection refused\n'
    "\tIs the server running on that host and accepting TCP/IP connections?\n"
)
WAITING = {
    "psql": f"psql: error: {REFUSED}",
    "psql 12": (
        "psql: could not connect to server: Connection refused\n"
        '\tIs the server running on host "localhost" (127.0.0.1) and accepting\n'
        "\tTCP/IP connections on port 5432?\n"
    ),
    "createdb": f"createdb: error: {REFUSED}",
    "pg_isready": "pg_isready: error: could not translate host name\n",
    "Python": f"psycopg2.OperationalError: {REFUSED}",
}


@pytest.mark.parametrize("program", WAITING)
def test_a_loop_that_waits_for_the_server_is_not_of_pgbench(program):
    said = WAITING[program]
    result = parse(said * 3 + GOOD.stdout, GOOD.stderr, exit_status=0)

    assert (result.status, codes(result)) == ("complete", [])
    assert result.unknown_lines[0] == said.partition("\n")[0]


def test_a_connection_of_pgbench_that_failed_counts_behind_such_a_loop():
    own = f"pgbench: error: {REFUSED}pgbench: error: could not create connection for client 3\n"

    result = parse(WAITING["psql"] + own + GOOD.stdout, "", exit_status=0)

    assert codes(result) == ["connection_failed"]
    assert "pgbench: error: connection to server" in message(
        result, "connection_failed"
    )


def test_a_wall_time_shorter_than_the_duration_makes_the_run_partial():
    assert parse(GOOD.stdout, GOOD.stderr, exit_status=0).status == "complete"

    result = parse(
        GOOD.stdout, GOOD.stderr, exit_status=0, expected=Expected(elapsed_s=1.5)
    )

    assert result.status == "partial"
    assert codes(result) == ["ended_early"]


def test_a_throttled_run_may_end_before_its_last_turn():
    run = sample("15.16/g_rate50_limit20")
    rare = run.stdout.replace("duration: 5 s", "duration: 8 s").replace("255", "4")
    rare = rare.replace("tps = 52.353269", "tps = 0.800000")
    unthrottled = "\n".join(
        line for line in rare.split("\n") if "schedule lag" not in line
    )

    assert parse(rare, "", exit_status=0).status == "complete"
    assert codes(parse(unthrottled, "", exit_status=0)) == ["ended_early"]


def test_time_to_connect_belongs_to_the_duration():
    slow = GOOD.stdout.replace("duration: 5 s", "duration: 10 s")
    assert slow != GOOD.stdout
    before, _, after = slow.partition("initial connection time = ")
    slow = f"{before}initial connection time = 5000.000{after[after.index(' ms') :]}"

    assert parse(slow, "", exit_status=0).status == "complete"


def test_a_run_that_took_longer_keeps_its_figures_and_says_so():
    result = parsed("12.13/i_duration_shorter_than_txn", elapsed_s=3.06)

    assert result.status == "complete"
    assert result.tps == 0.665606
    assert codes(result) == ["overran"]


def test_another_number_of_clients_than_asked_for_makes_the_run_partial():
    result = parse(
        GOOD.stdout, GOOD.stderr, exit_status=0, expected=Expected(clients=100)
    )

    assert result.status == "partial"
    assert "not of 100 as asked for" in message(result, "clients_differ")


def test_another_duration_than_asked_for_makes_the_run_partial():
    result = parse(
        GOOD.stdout, GOOD.stderr, exit_status=0, expected=Expected(duration_s=300)
    )

    assert codes(result) == ["duration_differs"]


def test_a_refused_connection_makes_the_run_partial_although_it_exits_with_0():
    result = parsed("9.3.25/i_too_many_connections")

    assert result.status == "partial"
    assert "sorry, too many clients" in message(result, "connection_failed")


def test_fewer_transactions_than_asked_for_make_the_run_partial():
    run = sample("9.3.25/i_sometimes_error_t")
    result = parse(run.stdout, "", exit_status=0)

    assert result.status == "partial"
    assert codes(result) == ["transactions_missing"]


def test_failed_transactions_are_counted_from_15_on_and_leave_the_run_complete():
    result = parsed("18.6/g_serializable_default")

    assert result.status == "complete"
    assert result.failed_transactions is not None
    assert result.failed_transactions > 0


@pytest.mark.parametrize("status", [1, 2, 3])
def test_an_exit_status_makes_the_run_partial(status):
    result = parse(GOOD.stdout, GOOD.stderr, exit_status=status)

    assert result.status == "partial"
    assert codes(result) == ["exit_status"]


@pytest.mark.parametrize(
    ("status", "name"), [(130, "SIGINT"), (-9, "SIGKILL"), (143, "SIGTERM")]
)
def test_a_signal_is_named(status, name):
    assert name in message(parse("", "", exit_status=status), "interrupted")


def test_an_interrupted_run_keeps_the_progress_that_was_seen():
    result = parsed("13.12/i_sigkill")

    assert result.status == "failed"
    assert result.tps is None
    assert len(result.progress) == 2


def test_an_unknown_exit_status_does_not_condemn_a_whole_result():
    assert parse(GOOD.stdout, GOOD.stderr, exit_status=None).status == "complete"


@pytest.mark.parametrize("version", ["9.3.25", "9.6.23", "18.6"])
def test_failing_statements_are_no_transactions(version):
    """9.6 counts the statement that kills a client, and prints a tps for it."""
    result = parsed(f"{version}/i_sql_error")

    assert result.status == "failed"
    assert result.tps is None
    assert result.transactions_processed is None


def test_missing_tables_are_named_with_what_to_do():
    result = parsed("15.16/err_not_initialised")

    assert "pgbench -i" in message(result, "not_initialised")


def test_skipped_and_failed_transactions_are_among_those_asked_for():
    run = sample("15.16/g_rate50_limit20")
    counted = run.stdout.replace(
        "duration: 5 s", "number of transactions per client: 130"
    )
    counted = counted.replace("processed: 255", "processed: 251/260")
    counted = counted.replace("failed transactions: 0", "failed transactions: 4")
    all_accounted = counted.replace(
        "transactions skipped: 0", "transactions skipped: 5"
    )

    assert codes(parse(counted, "", exit_status=0)) == ["transactions_missing"]
    assert parse(all_accounted, "", exit_status=0).status == "complete"


def test_the_words_of_an_old_tool_are_in_the_problem():
    result = parsed("9.5.25/i_c_not_multiple_of_j")

    assert "must be a multiple of number of threads" in message(result, "exit_status")


@pytest.mark.parametrize(
    "text", ["", "\n\n", "Segmentation fault\n", "tps = 5\n", "{}"]
)
def test_what_is_not_pgbenchs_output_is_a_failed_run(text):
    result = parse(text, "", exit_status=0)

    assert result.status == "failed"
    assert codes(result)[0] == "not_pgbench_output"


def test_two_outputs_in_one_are_no_result():
    result = parse(GOOD.stdout + OLD.stdout, "", exit_status=0)

    assert result.status == "failed"
    assert "several_results" in codes(result)


def test_a_failed_run_keeps_its_settings_and_no_figure():
    result = parsed("9.3.25/i_sql_error_r")

    assert (result.clients, result.duration_s) == (2, 3)
    assert {name: getattr(result, name) for name in vars(Figures())} == vars(Figures())


# Figures


def test_an_estimated_latency_of_a_partial_run_is_left_out():
    """It is the time of all the clients asked for, and some of them were dead."""
    result = parsed("18.6/i_sometimes_error_t")

    assert "latency average" in sample("18.6/i_sometimes_error_t").stdout
    assert result.status == "partial"
    assert result.latency_average_ms is None


def test_an_estimated_latency_may_include_failures():
    run = sample("15.16/a_tpcb_noprogress")
    line = next(
        line for line in run.stdout.split("\n") if line.startswith("latency average")
    )
    result = parse(
        run.stdout.replace(line, line + " (including failures)"),
        run.stderr,
        exit_status=0,
    )

    assert result.latency_average_ms is not None
    assert not result.latency_is_measured


def test_9_6_counts_skipped_transactions_as_processed_and_is_corrected():
    result = parsed("9.6.23/g_rate_overload_limit")

    assert result.transactions_processed == 59600 - 50888 == 8712
    assert result.tps == pytest.approx(19861.707860 * 8712 / 59600)
    assert result.tps_including_connections == pytest.approx(
        19851.711711 * 8712 / 59600
    )
    assert result.skipped == 50888
    assert codes(result) == ["skipped_corrected"]
    assert result.status == "complete"


def test_9_6_scripts_are_corrected_too():
    first, second = parsed("9.6.23/g_two_scripts_rate_limit").scripts

    assert (first.transactions_processed, second.transactions_processed) == (
        6733 - 2052,
        2316 - 833,
    )
    assert first.tps == pytest.approx(2240.880883 * 4681 / 6733)


def test_progress_that_counts_skipped_transactions_has_no_tps():
    result = parsed("9.6.23/g_rate_overload_limit")

    assert [point.tps for point in result.progress] == [None, None, None]
    assert [point.latency_ms for point in result.progress] == [None, None, None]
    assert [point.skipped for point in result.progress] == [17973, 16439, 16476]


@pytest.mark.parametrize("version", ["9.5.25", "12.13", "13.12", "15.16", "18.6"])
def test_other_versions_do_not_count_skipped_transactions(version):
    result = parsed(f"{version}/g_rate_overload_limit")

    assert codes(result) == []
    assert (
        result.transactions_processed
        == sample(f"{version}/g_rate_overload_limit").history_rows
    )
    assert all(point.tps for point in result.progress)


@pytest.mark.parametrize(
    "version", ["9.5.25", "9.6.23", "12.13", "13.12", "15.16", "18.6"]
)
def test_the_schedule_lag_is_that_of_executed_transactions(version):
    """All are nearly as late as the limit of 5 ms lets them be, whatever 9.6 to 14 print."""
    result = parsed(f"{version}/g_rate_overload_limit")

    assert result.schedule_lag_average_ms == pytest.approx(4.95, abs=0.02)
    assert result.schedule_lag_max_ms == pytest.approx(5.0, abs=0.01)


@pytest.mark.parametrize(
    ("version", "processed"),
    [
        ("12.13", [6541 - 2012, 2358 - 823]),
        ("15.16", [3608, 1293]),
        ("18.6", [6750, 2207]),
    ],
)
def test_a_scripts_transactions_are_the_processed_ones(version, processed):
    result = parsed(f"{version}/g_two_scripts_rate_limit")

    assert [script.transactions_processed for script in result.scripts] == processed


@pytest.mark.parametrize("version", ["9.6.23", "12.13", "15.16", "18.6"])
def test_a_script_that_never_ran_has_no_latency(version):
    result = parsed(f"{version}/g_weight0")
    never, always = result.scripts

    assert (never.weight, never.transactions_processed) == (0, 0)
    assert never.latency_average_ms is None
    assert {row.latency_ms for row in result.statements if row.script == 1} == {None}
    assert None not in {row.latency_ms for row in result.statements if row.script == 2}
    assert always.transactions_processed == result.transactions_processed


def test_reconnecting_counts_in_tps_from_14_on():
    result = parsed("18.6/j_connect_S_r")

    assert result.tps == result.tps_including_connections == 309.190719
    assert result.reconnects is True


def test_a_tool_to_13_does_not_tell_that_it_reconnected():
    result = parsed("9.3.25/j_connect_S_r")

    assert (result.tps, result.tps_including_connections) == (2543.418430, 779.861028)
    assert result.reconnects is None


@pytest.mark.parametrize(
    ("line", "tool", "server"),
    [
        ("pgbench (17.8)", "17.8", "17.8"),
        ("pgbench (18.4, server 9.2.24)", "18.4", "9.2.24"),
        ("pgbench (15.18 (Debian 15.18-0+deb12u1), server 9.2.24)", "15.18", "9.2.24"),
        ("pgbench (16.1 (Debian 16.1-1), server 15.4 (Debian 15.4-2))", "16.1", "15.4"),
        ("pgbench (19beta1, server 18.6)", "19beta1", "18.6"),
        ("pgbench (19beta1)", "19beta1", "19beta1"),
        ("pgbench (19devel, server 18rc1)", "19devel", "18rc1"),
    ],
)
def test_the_first_line_tells_the_versions(line, tool, server):
    result = parse(
        GOOD.stdout.replace("pgbench (18.6)", line), GOOD.stderr, exit_status=0
    )

    assert (result.tool_version, result.server_version) == (tool, server)
    assert result.status == "complete"


def test_19_counts_other_failures():
    run = sample("18.6/g_maxtries10_detailed")
    line = "number of deadlock failures: 0 (0.000%)\n"
    newer = run.stdout.replace(line, line + "number of other failures: 7 (0.067%)\n")
    result = parse(newer, run.stderr, exit_status=0)

    assert (result.serialization_failures, result.deadlock_failures) == (421, 0)
    assert result.other_failures == 7
    assert result.unknown_lines == ()


def test_without_failures_counted_there_are_none_known():
    result = parsed("13.12/a_tpcb")

    assert result.failed_transactions is None
    assert result.retried is None


# Statements and scripts


def test_statements_have_the_columns_of_their_header():
    update = parsed("18.6/g_maxtries10_detailed").statements[3]

    assert (
        update.text
        == "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;"
    )
    assert (update.latency_ms, update.failures, update.retries) == (0.178, 421, 4328)


def test_a_table_ends_with_the_first_line_that_is_no_row():
    run = sample("18.6/b_select_only_r")
    result = parse(run.stdout + "the end\n 0.001 0 SELECT 1;\n", "", exit_status=0)

    assert len(result.statements) == 2
    assert result.unknown_lines == ("the end",)


def test_a_statement_that_starts_with_a_number_keeps_it():
    run = sample("18.6/b_select_only_r")
    changed = run.stdout.replace("           0 SELECT", "           0 42 SELECT")
    assert changed != run.stdout

    assert parse(changed, "", exit_status=0).statements[1].text.startswith("42 SELECT")


def test_old_tools_number_the_files_of_their_statements():
    rows = parsed("9.5.25/g_two_scripts_old").statements

    assert [row.script for row in rows] == [1] * 4 + [2] * 7
    assert rows[-1].latency_ms == 4.895774


# Progress


def test_an_idle_interval_has_no_latency():
    for version in ("9.5.25", "9.6.23", "13.12", "18.6"):
        points = parsed(f"{version}/x_lock_wait_stall").progress
        idle = [point for point in points if point.tps == 0]

        assert idle
        assert {(point.latency_ms, point.stddev_ms) for point in idle} == {(None, None)}


def test_the_columns_of_progress_are_read_up_to_retries():
    text = (
        "progress: 3.0 s, 39.0 tps, lat 2.034 ms stddev 2.515, 4 failed, lag 0.127 ms, 5 skipped, "
        "6 retried, 7 retries\n"
    )
    (point,) = parse(GOOD.stdout, text, exit_status=0).progress

    assert vars(point) == {
        "seconds": 3.0,
        "tps": 39.0,
        "latency_ms": 2.034,
        "stddev_ms": 2.515,
        "lag_ms": 0.127,
        "failed": 4,
        "skipped": 5,
    }


def test_threads_may_share_a_line_of_progress():
    first, second = GOOD.stderr.strip().split("\n")[1:3]
    abort = "client 1 aborted in state 4: ERROR:  division by zero"
    result = parse(GOOD.stdout, f"{first}{second}\n{first}{abort}\n", exit_status=0)

    assert len(result.progress) == 3
    assert codes(result) == ["clients_aborted"]


def test_progress_of_an_unknown_tool_that_skips_has_no_tps():
    """A killed run prints no summary, so that it may be one of 9.6's."""
    run = sample("9.6.23/g_rate_overload_limit")
    result = parse("", run.stderr, exit_status=-9)

    assert [point.tps for point in result.progress] == [None, None, None]


def test_a_point_that_lost_its_skipped_transactions_has_no_tps():
    run = sample("9.6.23/g_rate50_limit20")
    shared = run.stderr.replace(", lag 0.278 ms, 0 skipped", "client 0 receiving")
    assert shared != run.stderr

    assert parse(run.stdout, run.stderr, exit_status=0).progress[0].tps == 39.0
    assert parse(run.stdout, shared, exit_status=0).progress[0].tps is None


def test_the_last_point_of_a_finished_run_is_kept_however_its_output_was_passed_on():
    run = sample("13.12/a_tpcb")
    expected = [1008.9, 763.0, 850.0, 990.0, 1010.0]
    for streams in (
        (run.stdout, run.stderr),
        (run.stdout, run.stderr.rstrip("\n")),  # by a shell's $(...)
        (run.stderr + run.stdout, ""),  # by 2>&1
    ):
        assert [
            point.tps for point in parse(*streams, exit_status=0).progress
        ] == expected
    killed = parse("", run.stderr.rstrip("\n"), exit_status=-9)
    assert [point.tps for point in killed.progress] == [*expected[:-1], None]


def test_a_cut_line_of_progress_is_not_read():
    cut = "progress: 5.0 s, 48.0 tps, lat 7.770 ms stddev 9.4"
    result = parse(GOOD.stdout, cut, exit_status=0)

    assert result.progress == ()
    assert result.unknown_lines == (cut,)


def test_progress_may_count_from_the_epoch():
    assert parsed("18.6/g_progress_timestamp").progress[0].seconds > 1.7e9


# Text


def test_windows_line_ends_make_no_difference():
    crlf = parse(
        GOOD.stdout.replace("\n", "\r\n"),
        GOOD.stderr.replace("\n", "\r\n"),
        exit_status=0,
    )

    assert crlf == parse(GOOD.stdout, GOOD.stderr, exit_status=0)


@pytest.mark.parametrize(
    "nothing", ["-nan", "nan", "inf", "-1.#IND00", "1.#QNAN0", "-nan(ind)"]
)
def test_what_is_no_number_is_none(nothing):
    tps = "tps = 860.513467 (excluding connections establishing)"
    run = sample("9.3.25/g_two_scripts_old")
    assert tps in run.stdout
    result = parse(run.stdout.replace("860.513467", nothing), run.stderr, exit_status=0)

    assert result.tps is None
    assert result.status == "failed"


def test_an_unknown_line_is_reported():
    result = parse(GOOD.stdout + "number of moons: 3\n", GOOD.stderr, exit_status=0)

    assert result.unknown_lines == ("number of moons: 3",)
    assert result.status == "complete"


def test_a_sql_text_may_hold_any_separator():
    run = sample("18.6/b_select_only_r")
    odd = "SELECT 'a\x0b\x1c\x85\u2028b';"
    changed = run.stdout.replace(
        "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;", odd
    )

    assert parse(changed, "", exit_status=0).statements[-1].text == odd


def test_debugging_output_with_the_words_of_an_abort_is_none():
    chatter = "pgbench: client 0 sending SELECT 'client 1 aborted in state 2';\n"
    result = parse(GOOD.stdout, GOOD.stderr + chatter, exit_status=0)

    assert result.status == "complete"


def test_a_result_without_its_last_newline_is_whole():
    """A shell's $(...) takes it away."""
    assert parse(GOOD.stdout.rstrip("\n"), GOOD.stderr, exit_status=0) == parse(
        GOOD.stdout, GOOD.stderr, exit_status=0
    )


def test_a_last_statement_that_may_have_been_cut_is_left_out():
    run = sample("18.6/a_tpcb_r")
    result = parse(run.stdout.rstrip("\n"), run.stderr, exit_status=0)

    assert result.status == "complete"
    assert codes(result) == ["cut_line"]
    assert len(result.statements) == len(parsed("18.6/a_tpcb_r").statements) - 1
    assert result.unknown_lines[0].endswith("END;")
