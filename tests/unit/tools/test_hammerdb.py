"""HammerDB's forms of output give the figures in them."""

import json

import pytest

from runs.tools import registry
from tests.unit.tools.reading import codes, figures, read, sample, series

ADAPTER = registry.find("hammerdb")
RESULT = {"nopm": 23456.0, "tpm": 54321.0}


def test_a_timed_log_gives_the_result():
    reading = read("hammerdb", "timed.log")

    assert (reading.status, reading.tool_version) == ("finished", "4.12")
    assert figures(reading) == RESULT
    assert reading.levels == {"clients": 3, "duration": 300, "rampup": 120}
    assert reading.labels == {"jobid": "65A1B2C3D4E503E213437383"}
    assert reading.unknown_lines == ()


def test_the_order_of_version_3_is_understood():
    assert figures(read("hammerdb", "old_order.log")) == {"nopm": 26543, "tpm": 61234}


def test_a_jobs_result_is_read():
    reading = read("hammerdb", "job_result.json")

    assert (reading.status, figures(reading)) == ("finished", RESULT)
    assert reading.levels == {"clients": 3}


def test_the_time_profile_beside_a_log_gives_each_procedures_latencies():
    reading = ADAPTER.read(
        {"stdout": sample("hammerdb", "timed.log"), "timing": sample("hammerdb", "xtprof.log")}
    )

    found = figures(reading)
    assert found["neword_calls"] == 165003  # of the summary, not of a virtual user
    assert found["neword_latency_average"] == 3.456
    assert found["neword_latency_p95"] == 7.654
    assert found["payment_latency_max"] == 88.888
    assert reading.unknown_lines == ()


def test_timing_as_json_gives_the_same():
    as_json = figures(read("hammerdb", "job_outputs.txt"))
    as_text = figures(
        ADAPTER.read(
            {"stdout": sample("hammerdb", "timed.log"), "timing": sample("hammerdb", "xtprof.log")}
        )
    )

    assert as_json == as_text


def test_a_job_report_is_read_whole():
    reading = read("hammerdb", "job_report.json")

    assert reading.status == "finished"
    assert (reading.tool_version, reading.server_version) == ("6.0", "18.4")
    assert reading.levels == {"clients": 8, "warehouses": 100, "duration": 300, "rampup": 120}
    assert figures(reading)["nopm"] == 123456
    assert figures(reading)["neword_latency_p99"] == 2.831
    assert series(reading)["tpm"] == (100000, 281000, 283000, 285000, 284000, 42)
    assert [(found.start, found.interval) for found in reading.series] == [(0.0, 10.0)]


def test_a_virtual_user_that_failed_makes_the_result_partial():
    reading = read("hammerdb", "user_failed.log")

    assert (reading.status, codes(reading)) == ("partial", ["tool_error", "users_failed"])
    assert figures(reading) == RESULT


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("killed.log", "no_result"),
        ("xtprof.log", "no_result"),
        ("mysql.log", "other_database"),
        ("job_report_tproc_h.json", "other_benchmark"),
    ],
)
def test_a_run_without_a_result_failed(name, code):
    reading = read("hammerdb", name)

    assert (reading.status, codes(reading)) == ("failed", [code])
    assert reading.measurements == ()


def test_two_different_results_are_not_one():
    text = sample("hammerdb", "timed.log")

    reading = ADAPTER.read({"raw": text + text.replace(b"23456 NOPM", b"24680 NOPM")})

    assert (reading.status, codes(reading)) == ("failed", ["several_results"])


def test_a_log_and_the_same_jobs_result_are_one():
    files = {
        "stdout": sample("hammerdb", "timed.log"),
        "job": sample("hammerdb", "job_result.json"),
    }

    assert figures(ADAPTER.read(files)) == RESULT


def test_no_new_order_is_no_result():
    text = sample("hammerdb", "timed.log").replace(b"23456 NOPM", b"0 NOPM")

    assert codes(ADAPTER.read({"raw": text})) == ["nothing_processed"]


def test_a_result_line_that_was_cut_is_no_result():
    text = sample("hammerdb", "timed.log").partition(b" PostgreSQL TPM")[0]

    assert codes(ADAPTER.read({"raw": text})) == ["no_result"]


def test_a_report_without_numbers_gives_none():
    report = json.loads(sample("hammerdb", "job_report.json"))
    report["result"]["nopm"] = None

    assert codes(ADAPTER.read({"raw": json.dumps(report)})) == ["nothing_processed"]
