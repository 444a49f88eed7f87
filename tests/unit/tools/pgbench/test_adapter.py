"""Every recorded pgbench run through the adapter: the printed figures, or a reason."""

import re

import pytest

from runs.tools import registry
from runs.tools.adapter import UnreadableOutput
from runs.tools.pgbench import Expected, PgbenchResult, parse
from tests.each import over
from tests.unit.tools.pgbench.samples import (
    Sample,
    all_samples,
    sample,
    samples_with_log,
)
from tests.unit.tools.reading import codes, figures, series

ADAPTER = registry.find("pgbench")
SAMPLES = all_samples()
TPS = re.compile(
    r"^tps = (\S+) \((?:excluding connections|without initial|including reconnection)",
    re.MULTILINE,
)


def files_of(run: Sample) -> dict[str, str]:
    return {
        "stdout": run.stdout,
        "stderr": run.stderr,
        "exit_status": str(run.exit_status),
    }


# An initialisation is no run: test_what_is_no_benchmark_is_refused.
RUNS = [run for run in SAMPLES if not run.name.endswith("/k_init_s1")]
each = over(RUNS)


@each
def test_a_run_is_finished_or_says_why_not(run):
    reading = ADAPTER.read(files_of(run))

    assert reading.status == {"complete": "finished"}.get(
        expected_status(run), expected_status(run)
    )
    assert (reading.status == "finished") == (not reading.reasons)
    assert (reading.status == "failed") == (not reading.measurements)


@over([run for run in SAMPLES if run not in RUNS])
def test_what_is_no_benchmark_is_refused(run):
    with pytest.raises(UnreadableOutput, match="of no benchmark"):
        ADAPTER.read(files_of(run))


@each
def test_the_printed_tps_is_the_measured_one(run):
    printed = TPS.search(run.stdout)
    if expected_status(run) == "complete" and counted_right(run):
        assert printed
        assert figures(ADAPTER.read(files_of(run)))["tps"] == float(printed[1])


@each
def test_both_streams_may_come_as_one_text(run):
    if run.exit_status == 0:
        mixed = ADAPTER.read({"raw": run.stderr + run.stdout})
        assert mixed.status == ADAPTER.read(files_of(run)).status


def test_progress_is_series():
    reading = ADAPTER.read(files_of(sample("18.6/g_rate50_limit20")))

    assert {(found.start, found.interval) for found in reading.series} == {(1.0, 1.0)}
    assert {"tps", "latency", "schedule_lag", "skipped_transactions"} <= set(
        series(reading)
    )


def test_progress_with_timestamps_starts_at_the_first_interval():
    reading = ADAPTER.read(files_of(sample("18.6/g_progress_timestamp")))

    assert {round(found.start, 1) for found in reading.series} == {1.0}


def test_statements_are_measurements_with_their_text_as_title():
    reading = ADAPTER.read(files_of(sample("18.6/a_tpcb_r")))

    found = {value.metric: value for value in reading.measurements}
    name = next(name for name in found if "update_pgbench_accounts" in name)
    assert name.startswith("statement_1_6_")
    assert found[name].title.startswith("UPDATE pgbench_accounts SET abalance")
    assert found[name].unit == "ms"


def test_scripts_have_figures_of_their_own():
    found = figures(ADAPTER.read(files_of(sample("18.6/g_two_scripts_rate_limit"))))

    assert {"script_1_tps", "script_2_tps", "script_1_transactions"} <= set(found)


def test_what_was_run_is_in_levels_and_versions():
    reading = ADAPTER.read(files_of(sample("18.6/a_tpcb")))

    assert reading.tool_version == reading.server_version == "18.6"
    assert {"clients", "threads", "scale", "duration"} <= set(reading.levels)
    assert reading.labels["query_mode"] == "simple"


def test_a_text_of_something_else_is_refused():
    with pytest.raises(UnreadableOutput) as refused:
        ADAPTER.read({"raw": "SQL statistics:\n"})

    assert refused.value.code == "not_pgbench_output"


@over(samples_with_log())
def test_a_log_with_its_summary_adds_to_it(run):
    alone = ADAPTER.read(files_of(run))
    reading = ADAPTER.read({**files_of(run), **run.logs})

    assert reading.status == "finished"
    assert set(figures(alone).items()) <= set(figures(reading).items())
    assert reading.unknown_lines == ()
    if "aggregate" in run.case:
        assert {"tps", "latency", "latency_max"} <= set(series(reading))
        assert reading.notes == alone.notes
    elif "prefix" not in run.case:
        assert "latency_p90" in figures(reading)


@pytest.mark.parametrize("version", ["9.5.25", "12.13", "15.16", "18.6"])
def test_a_whole_log_has_the_rates_that_the_summary_averages(version):
    name = f"{version}/h_log_rate"
    reading = ADAPTER.read({**files_of(sample(name)), **sample(name).logs})

    tps = series(reading)["tps"]
    assert sum(tps) <= figures(reading)["transactions"]
    assert sum(tps) / len(tps) == pytest.approx(figures(reading)["tps"], rel=0.2)
    assert figures(reading)["latency_p50"] <= figures(reading)["latency_p90"]
    assert figures(reading)["latency_max"] >= figures(reading)["latency_p99"]


def test_the_log_of_one_of_two_threads_gives_no_rates():
    name = "18.6/h_log_j2"
    first, _ = sorted(sample(name).logs.items())

    reading = ADAPTER.read({**files_of(sample(name)), "log": first[1]})

    assert [note.code for note in reading.notes] == ["log_differs"]
    assert "latency_max" not in figures(reading)
    assert reading.series == ()


def test_the_aggregated_log_of_one_of_two_threads_gives_no_rates():
    name = "18.6/h_log_aggregate_j2"
    first, second = (content for _, content in sorted(sample(name).logs.items()))

    one = ADAPTER.read({**files_of(sample(name)), "log": first})
    joined = ADAPTER.read({**files_of(sample(name)), "log": first + second})

    assert [note.code for note in one.notes] == ["log_differs"]
    assert one.series == ()
    assert series(joined)["tps"][0] == 582 + 598


def test_few_transactions_have_no_extreme_percentiles():
    name = "18.6/h_log_prefix"
    found = figures(ADAPTER.read({**files_of(sample(name)), **sample(name).logs}))

    assert "latency_p95" in found
    assert "latency_p99" not in found


def test_a_log_alone_is_partial_and_has_latencies_only():
    reading = ADAPTER.read(sample("18.6/h_log_rate").logs)

    assert (reading.status, codes(reading)) == ("partial", ["no_summary"])
    assert set(figures(reading)) == {
        "latency_p50",
        "latency_p90",
        "latency_p95",
        "latency_p99",
    }
    assert reading.series == ()


def test_a_log_of_a_failed_run_gives_no_figures():
    failed = sample("12.13/i_sql_error")
    assert expected_status(failed) == "failed"

    reading = ADAPTER.read({**files_of(failed), **sample("12.13/h_log_rate").logs})

    assert (reading.status, reading.measurements) == ("failed", ())


def test_a_file_that_is_no_log_is_told():
    reading = ADAPTER.read({**files_of(sample("18.6/a_tpcb")), "notes.txt": b"hello\n"})

    assert [note.code for note in reading.notes] == ["unknown_file"]
    assert reading.status == "finished"


def test_a_result_without_its_transactions_says_what_is_missing():
    text = re.sub(
        r"number of transactions actually.*\n", "", sample("18.6/a_tpcb").stdout
    )

    reading = ADAPTER.read({"stdout": text})

    assert (reading.status, codes(reading)) == ("failed", ["no_result"])


# Every recorded run, against figures read from it by other means than the parser's.


# What became of a case, as the sessions that recorded it noted.
FAILED = {
    "c_empty_script",
    "err_not_initialised",
    "err_not_initialised_n",
    "g_exit_on_abort",
    "i_bad_c",
    "i_bad_host",
    "i_bad_meta",
    "i_both_t_and_T",
    "i_missing_db",
    "i_missing_role",
    "i_no_privilege",
    "i_no_privilege_n",
    "i_progress_unsupported",
    "i_refused_n",
    "i_refused_tcp",
    "i_refused_unix",
    "i_script_missing",
    "i_sigint",
    "i_sigkill",
    "i_sigterm",
    "i_sql_error",
    "i_sql_error_r",
    "i_sql_error_t",
    "i_statement_timeout",
    "i_syntax_error",
    "i_too_many_connections_n",
    "i_too_many_connections_nonsuper",
    "i_undefined_variable",
    "i_unknown_option",
    "k_init_s1",
}
PARTIAL = {
    "i_backend_crash",
    "i_lock_timeout",
    "i_sometimes_error",
    "i_sometimes_error_t",
    "i_stop_fast",
    "i_stop_immediate",
    "i_terminate_one_backend",
}
BY_VERSION = {
    "g_deadlock_default": lambda major: "partial" if major < 15 else "complete",
    "g_serializable_default": lambda major: "partial" if major < 15 else "complete",
    "i_too_many_connections": lambda major: "partial" if major < 15 else "failed",
    "i_c_not_multiple_of_j": lambda major: "failed" if major < 9.6 else "complete",
    "x_j_more_than_c": lambda major: "failed" if major < 9.6 else "complete",
    "g_progress_timestamp": lambda major: "failed" if major < 9.6 else "complete",
}


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


each_sample = over(SAMPLES)
each_with_figures = over(sample for sample in SAMPLES if whole(sample))
each_counted_right = over(
    sample for sample in SAMPLES if whole(sample) and counted_right(sample)
)
each_with_history = over(
    sample for sample in SAMPLES if sample.history_rows is not None
)


def test_the_samples_are_there():
    assert len(SAMPLES) > 700
    assert {sample.major for sample in SAMPLES} >= {
        9.2,
        9.3,
        9.5,
        9.6,
        12,
        13,
        15,
        16,
        17,
        18,
        19,
    }


@each_sample
def test_a_run_has_the_status_that_it_deserves(sample):
    assert parsed(sample).status == expected_status(sample)


@each_sample
def test_the_status_needs_no_wall_time(sample):
    result = parse(sample.stdout, sample.stderr, exit_status=sample.exit_status)

    assert result.status == expected_status(sample)


@each_sample
def test_a_run_that_is_not_complete_says_why(sample):
    result = parsed(sample)

    causes = [problem for problem in result.problems if not problem.note]
    assert (result.status == "complete") == (not causes)
    assert all(problem.code and problem.message for problem in result.problems)


@each_sample
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

    assert result.transactions_processed == printed(
        r"actually processed: (\d+)", sample.stdout
    )
    assert result.transactions_requested == printed(
        r"processed: \d+/(\d+)", sample.stdout
    )
    assert result.failed_transactions == printed(
        r"^number of failed.*: (\d+)", sample.stdout
    )
    assert result.skipped == printed(
        r"^number of transactions skipped: (\d+)", sample.stdout
    )
    assert result.retried == printed(
        r"^number of transactions retried: (\d+)", sample.stdout
    )
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
    assert result.maximum_tries == printed(
        r"^maximum number of tries: (\d+)", sample.stdout
    )
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


@each_sample
def test_each_line_of_progress_becomes_a_point(sample):
    result = parsed(sample)
    lines = re.findall(r"^progress: (\S+) s, (\S+) tps", sample.stderr, re.MULTILINE)

    assert [point.seconds for point in result.progress] == [
        float(time) for time, _ in lines
    ]
    if counted_right(sample) and result.status != "failed":
        assert [point.tps for point in result.progress] == [
            float(tps) for _, tps in lines
        ]


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
            assert (
                f" - latency average = {script.latency_average_ms:.3f} ms\n"
                in sample.stdout
            )


@each_with_figures
def test_the_scripts_make_up_the_run(sample):
    """The tool sums scripts and threads at different moments, so they may be a few apart."""
    result = parsed(sample)

    if result.scripts:
        processed = sum(script.transactions_processed for script in result.scripts)
        assert processed == pytest.approx(result.transactions_processed, rel=0.001)
        tps = sum(script.tps or 0 for script in result.scripts)
        assert tps == pytest.approx(
            result.tps_including_connections or result.tps, rel=0.001
        )


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
