"""Every recorded run, against figures read from it by other means than the parser's."""

import re

import pytest

from runs.tools.pgbench import Expected, PgbenchResult, parse
from tests.each import over
from tests.unit.tools.pgbench.samples import Sample, all_samples

# What became of a case, as the sessions that recorded it noted.
FAILED = {
    *("c_empty_script", "err_not_initialised", "err_not_initialised_n", "g_exit_on_abort"),
    *("i_bad_c", "i_bad_host", "i_bad_meta", "i_both_t_and_T", "i_missing_db", "i_missing_role"),
    *("i_no_privilege", "i_no_privilege_n", "i_progress_unsupported", "i_refused_n"),
    *("i_refused_tcp", "i_refused_unix", "i_script_missing", "i_sigint", "i_sigkill", "i_sigterm"),
    *("i_sql_error", "i_sql_error_r", "i_sql_error_t", "i_statement_timeout", "i_syntax_error"),
    *("i_too_many_connections_n", "i_too_many_connections_nonsuper", "i_undefined_variable"),
    *("i_unknown_option", "k_init_s1"),
}
PARTIAL = {
    *("i_backend_crash", "i_lock_timeout", "i_sometimes_error", "i_sometimes_error_t"),
    *("i_stop_fast", "i_stop_immediate", "i_terminate_one_backend"),
}
BY_VERSION = {
    "g_deadlock_default": lambda major: "partial" if major < 15 else "complete",
    "g_serializable_default": lambda major: "partial" if major < 15 else "complete",
    "i_too_many_connections": lambda major: "partial" if major < 15 else "failed",
    "i_c_not_multiple_of_j": lambda major: "failed" if major < 9.6 else "complete",
    "x_j_more_than_c": lambda major: "failed" if major < 9.6 else "complete",
    "g_progress_timestamp": lambda major: "failed" if major < 9.6 else "complete",
}
SAMPLES = all_samples()


def expected_status(sample: Sample) -> str:
    if "19beta1__server-9.2" in sample.name or sample.case in FAILED:
        return "failed"
    if sample.case in PARTIAL:
        return "partial"
    by_version = BY_VERSION.get(sample.case)
    return by_version(sample.major) if by_version else "complete"


def parsed(sample: Sample) -> PgbenchResult:
    return parse(
        sample.stdout,
        sample.stderr,
        exit_status=sample.exit_status,
        expected=Expected(elapsed_s=sample.elapsed_s),
    )


def printed(pattern: str, text: str) -> float | None:
    found = re.search(pattern, text, re.MULTILINE)
    return float(found[1]) if found else None


def whole(sample: Sample) -> bool:
    return expected_status(sample) != "failed"


def counted_right(sample: Sample) -> bool:
    """9.6 printed skipped transactions as processed."""
    skipped = printed(r"^number of transactions skipped: (\d+)", sample.stdout)
    return not (sample.major == 9.6 and skipped)


each = over(SAMPLES)
each_with_figures = over(sample for sample in SAMPLES if whole(sample))
each_counted_right = over(sample for sample in SAMPLES if whole(sample) and counted_right(sample))
each_with_history = over(sample for sample in SAMPLES if sample.history_rows is not None)


def test_the_samples_are_there():
    assert len(SAMPLES) > 700
    assert {sample.major for sample in SAMPLES} >= {9.2, 9.3, 9.5, 9.6, 12, 13, 15, 16, 17, 18, 19}


@each
def test_a_run_has_the_status_that_it_deserves(sample):
    assert parsed(sample).status == expected_status(sample)


@each
def test_the_status_needs_no_wall_time(sample):
    result = parse(sample.stdout, sample.stderr, exit_status=sample.exit_status)

    assert result.status == expected_status(sample)


@each
def test_a_run_that_is_not_complete_says_why(sample):
    result = parsed(sample)

    causes = [problem for problem in result.problems if not problem.note]
    assert (result.status == "complete") == (not causes)
    assert all(problem.code and problem.message for problem in result.problems)


@each
def test_a_failed_run_has_no_figures(sample):
    result = parsed(sample)

    if result.status == "failed":
        assert result.tps is None
        assert result.transactions_processed is None
        assert result.latency_average_ms is None
        assert result.statements == ()
        assert result.scripts == ()


@each_counted_right
def test_tps_is_the_printed_one_without_connecting(sample):
    tps = printed(
        r"^tps = (\S+) \((?:excluding connections|without initial|including reconnection)",
        sample.stdout,
    )

    assert tps is not None
    assert parsed(sample).tps == tps


@each_counted_right
def test_transactions_are_the_printed_ones(sample):
    result = parsed(sample)

    assert result.transactions_processed == printed(r"actually processed: (\d+)", sample.stdout)
    assert result.transactions_requested == printed(r"processed: \d+/(\d+)", sample.stdout)
    assert result.failed_transactions == printed(r"^number of failed.*: (\d+)", sample.stdout)
    assert result.skipped == printed(r"^number of transactions skipped: (\d+)", sample.stdout)
    assert result.retried == printed(r"^number of transactions retried: (\d+)", sample.stdout)
    assert result.retries == printed(r"^total number of retries: (\d+)", sample.stdout)
    assert result.late == printed(r"ms latency limit: (\d+)", sample.stdout)


@each_with_figures
def test_latency_is_the_printed_one_and_measured_with_a_deviation(sample):
    result = parsed(sample)
    average = printed(r"^latency average(?::| =) (\S+) ms", sample.stdout)
    deviation = printed(r"^latency stddev(?::| =) (\S+) ms", sample.stdout)

    assert result.latency_stddev_ms == deviation
    assert result.latency_is_measured == (deviation is not None)
    if result.status == "complete" or deviation is not None:
        assert result.latency_average_ms == average
    else:
        assert result.latency_average_ms is None


@each_with_figures
def test_the_settings_are_the_printed_ones(sample):
    result = parsed(sample)

    assert result.scale == printed(r"^scaling factor: (\d+)", sample.stdout)
    assert result.clients == printed(r"^number of clients: (\d+)", sample.stdout)
    assert result.threads == printed(r"^number of threads: (\d+)", sample.stdout)
    assert result.duration_s == printed(r"^duration: (\d+) s", sample.stdout)
    assert result.maximum_tries == printed(r"^maximum number of tries: (\d+)", sample.stdout)
    assert result.partitions == printed(r"^partitions: (\d+)", sample.stdout)
    assert f"query mode: {result.query_mode}\n" in sample.stdout
    assert f"transaction type: {result.transaction_type}\n" in sample.stdout


@each_with_figures
def test_connection_times_are_the_printed_ones(sample):
    result = parsed(sample)
    initial = printed(r"^initial connection time = (\S+) ms", sample.stdout)
    average = printed(r"^average connection time = (\S+) ms", sample.stdout)

    assert (result.initial_connection_time_ms, result.average_connection_time_ms) == (
        initial,
        average,
    )
    assert result.reconnects == (None if sample.major < 14 else average is not None)


@each
def test_each_line_of_progress_becomes_a_point(sample):
    result = parsed(sample)
    lines = re.findall(r"^progress: (\S+) s, (\S+) tps", sample.stderr, re.MULTILINE)

    assert [point.seconds for point in result.progress] == [float(time) for time, _ in lines]
    if counted_right(sample) and result.status != "failed":
        assert [point.tps for point in result.progress] == [float(tps) for _, tps in lines]


@each_with_figures
def test_each_statement_of_the_table_becomes_one(sample):
    rows = re.findall(
        r"^\s+(?:-?nan|\d+\.\d+)\s+(?:\d+\s+)*(.*\S)\s*$", sample.stdout, re.MULTILINE
    )

    assert [statement.text for statement in parsed(sample).statements] == rows


@each_with_figures
def test_each_script_has_its_weight_and_average(sample):
    result = parsed(sample)
    weights = re.findall(r"^ - weight: (\d+)", sample.stdout, re.MULTILINE)

    assert [str(script.weight) for script in result.scripts] == weights
    for script in result.scripts:
        if script.transactions_processed:
            assert f" - latency average = {script.latency_average_ms:.3f} ms\n" in sample.stdout


@each_with_figures
def test_the_scripts_make_up_the_run(sample):
    """The tool sums scripts and threads at different moments, so they may be a few apart."""
    result = parsed(sample)

    if result.scripts:
        processed = sum(script.transactions_processed for script in result.scripts)
        assert processed == pytest.approx(result.transactions_processed, rel=0.001)
        tps = sum(script.tps or 0 for script in result.scripts)
        assert tps == pytest.approx(result.tps_including_connections or result.tps, rel=0.001)


@each_with_figures
def test_a_run_with_figures_has_no_unknown_line(sample):
    assert parsed(sample).unknown_lines == ()


@each_with_history
def test_the_server_saw_as_many_transactions(sample):
    """pgbench_history holds a row for each transaction that was really run."""
    assert parsed(sample).transactions_processed == sample.history_rows


@each_with_figures
def test_the_version_is_that_of_the_tool(sample):
    result = parsed(sample)

    if sample.major < 14:
        assert result.tool_version is None
        assert result.server_version is None
    else:
        version = printed(r"^pgbench \((\d+\.\d+)", sample.stdout)
        assert float(result.tool_version) == version
        crossed = sample.name.startswith("cross")
        assert result.server_version == ("9.2.24" if crossed else result.tool_version)
