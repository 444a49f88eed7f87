"""Every recorded pgbench run through the adapter: the printed figures, or a reason."""

import re

import pytest

from runs.tools import registry
from runs.tools.adapter import UnreadableOutput
from tests.each import over
from tests.unit.tools.pgbench.samples import Sample, all_samples, sample, samples_with_log
from tests.unit.tools.pgbench.test_samples import counted_right, expected_status
from tests.unit.tools.reading import codes, figures, series

ADAPTER = registry.find("pgbench")
SAMPLES = all_samples()
TPS = re.compile(
    r"^tps = (\S+) \((?:excluding connections|without initial|including reconnection)", re.MULTILINE
)


def files_of(run: Sample) -> dict[str, str]:
    return {"stdout": run.stdout, "stderr": run.stderr, "exit_status": str(run.exit_status)}


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
    assert {"tps", "latency", "schedule_lag", "skipped_transactions"} <= set(series(reading))


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
    assert set(figures(reading)) == {"latency_p50", "latency_p90", "latency_p95", "latency_p99"}
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
    text = re.sub(r"number of transactions actually.*\n", "", sample("18.6/a_tpcb").stdout)

    reading = ADAPTER.read({"stdout": text})

    assert (reading.status, codes(reading)) == ("failed", ["no_result"])
