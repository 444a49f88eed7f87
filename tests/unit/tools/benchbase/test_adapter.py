"""BenchBase's summary and series give the figures in them."""

import pytest

from runs.tools import registry
from runs.tools.adapter import UnreadableOutput
from tests.unit.tools.reading import codes, figures, read, sample, series

ADAPTER = registry.find("benchbase")


def test_a_summary_gives_its_figures_in_milliseconds():
    reading = read("benchbase", "tpcc.summary.json")

    assert (reading.status, reading.server_version) == ("finished", "16.4")
    assert reading.levels == {"clients": 8, "scale": 10, "duration": 60.0}
    assert reading.labels == {"benchmark_type": "tpcc", "isolation": "TRANSACTION_SERIALIZABLE"}
    assert figures(reading) == {
        "goodput": 1891.3147844310931,
        "throughput": 1913.103115281029,
        "requests": 114786,
        "latency_minimum": 0.08,
        "latency_p25": 5.135,
        "latency_p50": 6.198,
        "latency_average": 5.225,
        "latency_p75": 6.405,
        "latency_p90": 6.636,
        "latency_p95": 7.405,
        "latency_p99": 11.254,
        "latency_max": 58.595,
    }


def test_an_older_summary_without_a_final_state_is_finished():
    reading = read("benchbase", "older.summary.json")

    assert reading.status == "finished"
    assert "requests" not in figures(reading)
    assert "duration" not in reading.levels


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("aborted.summary.json", "run_aborted"),
        ("mysql.summary.json", "other_database"),
        ("nothing.summary.json", "nothing_processed"),
    ],
)
def test_a_run_that_failed_has_no_figures(name, code):
    reading = read("benchbase", name)

    assert (reading.status, codes(reading)) == ("failed", [code])
    assert reading.measurements == ()


def test_a_run_that_was_still_measuring_is_partial():
    text = sample("benchbase", "tpcc.summary.json").replace(b'"EXIT"', b'"MEASURE"')

    reading = ADAPTER.read({"summary": text})

    assert (reading.status, codes(reading)) == ("partial", ["ended_early"])


def test_results_beside_the_summary_are_series():
    reading = ADAPTER.read(
        {
            "summary": sample("benchbase", "tpcc.summary.json"),
            "results": sample("benchbase", "tpcc.results.csv"),
        }
    )

    assert {(found.start, found.interval) for found in reading.series} == {(5.0, 5.0)}
    assert series(reading)["throughput"] == tuple(1900.0 + i for i in range(12))
    assert series(reading)["latency"][0] == 5.2
    assert reading.unknown_lines == ()


def test_samples_are_in_microseconds():
    reading = ADAPTER.read(
        {
            "summary": sample("benchbase", "tpcc.summary.json"),
            "samples": sample("benchbase", "tpcc.samples.csv"),
        }
    )

    assert series(reading)["throughput"] == (1780, 1781, 1782, 1783, 1784)
    assert series(reading)["latency"] == pytest.approx([5.613] * 5)


def test_series_without_a_summary_are_refused():
    with pytest.raises(UnreadableOutput) as refused:
        read("benchbase", "tpcc.results.csv")

    assert refused.value.code == "not_benchbase_output"
    assert "summary.json" in refused.value.remedy


def test_a_summary_that_was_cut_is_refused():
    with pytest.raises(UnreadableOutput):
        ADAPTER.read({"summary": sample("benchbase", "tpcc.summary.json")[:-5]})
