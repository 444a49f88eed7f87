"""sysbench's recorded outputs give the figures that they print."""

import pytest

from runs.tools import registry
from runs.tools.adapter import UnreadableOutput
from tests.unit.tools.reading import codes, figures, read, sample, series

ADAPTER = registry.find("sysbench")
OLTP = ("oltp_point_select.txt", "oltp_read_only.txt", "oltp_read_write.txt")


def test_a_run_gives_the_printed_figures():
    reading = read("sysbench", "oltp_read_write.txt")

    assert (reading.status, reading.tool_version) == ("finished", "1.0.20")
    assert reading.levels == {"threads": 4, "clients": 4, "duration": 15.0077}
    assert figures(reading) == {
        "tps": 1013.24,
        "qps": 20267.17,
        "transactions": 15207,
        "queries": 304176,
        "errors": 2,
        "reconnects": 0,
        "events": 15207,
        "latency_minimum": 0.78,
        "latency_average": 3.95,
        "latency_max": 47.78,
        "latency_p95": 8.58,
    }


@pytest.mark.parametrize("name", OLTP)
def test_no_line_of_a_run_is_unknown(name):
    assert read("sysbench", name).unknown_lines == ()


def test_intermediate_reports_are_series():
    reading = read("sysbench", "oltp_read_write.txt")

    assert {(found.start, found.interval) for found in reading.series} == {(1.0, 1.0)}
    assert set(series(reading)) == {"tps", "qps", "latency_p95", "errors"}
    assert series(reading)["tps"][:3] == (1218.76, 1029.58, 817.85)
    assert series(reading)["latency_p95"][-1] == 8.58
    assert series(reading)["errors"].count(1.0) == 2
    assert all(len(values) == 15 for values in series(reading).values())


def test_a_missing_report_leaves_a_gap():
    text = sample("sysbench", "oltp_read_write.txt")
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith(b"[ 7s ]")]

    values = series(ADAPTER.read({"raw": b"".join(lines)}))["tps"]

    assert len(values) == 15
    assert values[5:8] == (930.09, None, 1016.02)


def test_the_histogram_gives_the_percentile_that_sysbench_prints_itself():
    text = sample("sysbench", "oltp_read_only.txt").decode()
    printed = "99th percentile:                        6.79"
    assert printed in text

    found = figures(ADAPTER.read({"raw": text.replace("99th", "98th")}))

    assert found["latency_p98"] == 6.79
    assert round(found["latency_p99"], 2) == 6.79


def test_a_histogram_that_is_not_whole_gives_no_percentile():
    text = sample("sysbench", "oltp_read_only.txt").decode()
    lines = text.splitlines(keepends=True)
    bar = next(line for line in lines if "|*" in line)

    found = figures(ADAPTER.read({"raw": text.replace(bar, "")}))

    assert {name for name in found if "_p" in name} == {"latency_p99"}


def test_a_cpu_run_has_events():
    reading = read("sysbench", "cpu_run.txt")

    assert reading.status == "finished"
    assert figures(reading)["events_per_second"] == 3201.65
    assert figures(reading)["events"] == 9636
    assert reading.levels == {"threads": 2, "duration": 3.0089}


def test_a_refused_connection_is_a_failure_with_its_message():
    reading = read("sysbench", "oltp_read_write_error.txt")

    assert reading.status == "failed"
    assert codes(reading) == ["tool_error", "no_result"]
    assert "Connection refused" in reading.reasons[0].message
    assert reading.measurements == ()


def test_loading_is_no_run():
    assert codes(read("sysbench", "prepare.txt")) == ["no_result"]


def test_an_error_beside_a_summary_makes_it_partial():
    text = sample("sysbench", "oltp_read_write.txt").replace(
        b"SQL statistics",
        b"FATAL: The --time limit has expired, forcing shutdown...\nSQL statistics",
    )

    reading = ADAPTER.read({"raw": text})

    assert (reading.status, codes(reading)) == ("partial", ["tool_error"])


def test_a_report_without_its_end_is_partial():
    text = sample("sysbench", "oltp_read_write.txt").partition(b"Latency (ms)")[0]

    reading = ADAPTER.read({"raw": text})

    assert (reading.status, codes(reading)) == ("partial", ["cut"])
    assert figures(reading)["tps"] == 1013.24
    assert "latency_average" not in figures(reading)


def test_a_run_without_events_failed():
    text = sample("sysbench", "oltp_read_write.txt").replace(
        b"number of events:              15207", b"number of events:              0"
    )

    assert codes(ADAPTER.read({"raw": text})) == ["nothing_processed"]


def test_the_final_newlines_may_be_stripped():
    text = sample("sysbench", "oltp_read_write.txt")

    assert ADAPTER.read({"raw": text.strip()}) == ADAPTER.read({"raw": text})


def test_unknown_lines_are_reported():
    text = sample("sysbench", "oltp_read_write.txt") + b"\nsomething of tomorrow: 12.5\n"

    assert ADAPTER.read({"raw": text}).unknown_lines == ("something of tomorrow: 12.5",)


def test_a_text_of_something_else_is_refused():
    with pytest.raises(UnreadableOutput) as refused:
        ADAPTER.read({"raw": "tpmC: 12"})

    assert refused.value.code == "not_sysbench_output"
