"""The forms of output of BenchBase, HammerDB, sysbench and go-tpc give the figures in them."""

import json

import pytest

from runs.tools import registry
from runs.tools.adapter import UnreadableOutput
from runs.wording import put
from tests.unit.tools.reading import codes, figures, read, sample, series

# BenchBase's summary and series give the figures in them.


BENCHBASE = registry.find("benchbase")


def test_a_summary_gives_its_figures_in_milliseconds():
    reading = read("benchbase", "tpcc.summary.json")

    assert (reading.status, reading.server_version) == ("finished", "16.4")
    assert reading.levels == {"clients": 8, "scale": 10, "benchmark": "tpcc"}
    assert reading.labels == {"isolation": "TRANSACTION_SERIALIZABLE"}
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

    reading = BENCHBASE.read({"summary": text})

    assert (reading.status, codes(reading)) == ("partial", ["ended_early"])


def test_results_beside_the_summary_are_series():
    reading = BENCHBASE.read(
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
    reading = BENCHBASE.read(
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
    assert "summary.json" in put(refused.value.remedy)


def test_a_summary_that_was_cut_is_refused():
    with pytest.raises(UnreadableOutput):
        BENCHBASE.read({"summary": sample("benchbase", "tpcc.summary.json")[:-5]})


GO_TPC = registry.find("go-tpc")


@pytest.mark.parametrize(
    ("name", "tpmc", "total", "efficiency", "errors", "p99"),
    [
        ("tpcc_run_plain.txt", 26639.0, 58064.0, 103573.3, 4, 29.4),
        ("tpcc_run_table.txt", 24363.8, 53972.1, 94727.0, 1, 35.7),
        ("tpcc_run_json.txt", 21647.0, 48827.8, 84163.9, 3, 35.7),
    ],
)
def test_each_form_gives_the_printed_figures(
    name, tpmc, total, efficiency, errors, p99
):
    reading = read("go_tpc", name)

    found = figures(reading)
    assert reading.status == "finished"
    assert (found["tpmc"], found["tpm"], found["efficiency"]) == (
        tpmc,
        total,
        efficiency,
    )
    assert found["errors"] == errors
    assert found["new_order_latency_p99"] == p99
    assert reading.levels == {}
    assert reading.unknown_lines == ()


def test_an_operation_has_all_its_columns():
    found = figures(read("go_tpc", "tpcc_run_plain.txt"))

    assert found["stock_level_transactions"] == 539
    assert found["stock_level_tpm"] == 2160.3
    assert found["stock_level_latency_average"] == 3.7
    assert found["stock_level_latency_p50"] == 1.6
    assert found["stock_level_latency_p90"] == 8.9
    assert found["stock_level_latency_p95"] == 13.6
    assert found["stock_level_latency_p99"] == 31.5
    assert found["stock_level_latency_p99_9"] == 48.2
    assert found["stock_level_latency_max"] == 58.7


def test_intervals_are_series():
    reading = read("go_tpc", "tpcc_run_plain.txt")

    assert series(reading)["new_order_tpm"] == (26216.7, 28657.9)
    assert {(found.start, found.interval) for found in reading.series} == {(5.0, 5.0)}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tpcc_connerr.txt", ["tool_error", "no_result"]),
        ("tpcc_prepare.txt", ["no_result"]),
        ("tpcc_check.txt", ["no_result"]),
        ("tpch_prepare.txt", ["no_result"]),
    ],
)
def test_what_is_no_whole_run_failed(name, expected):
    reading = read("go_tpc", name)

    assert (reading.status, codes(reading)) == ("failed", expected)
    assert reading.measurements == ()


def test_a_run_that_was_killed_failed_though_it_has_intervals():
    text = sample("go_tpc", "tpcc_run_plain.txt").partition(b"Finished")[0]

    reading = GO_TPC.read({"raw": text})

    assert (reading.status, codes(reading)) == ("failed", ["no_result"])
    assert series(reading)["new_order_tpm"] == (26216.7, 28657.9)


@pytest.mark.parametrize("form", ["plain", "table", "json"])
def test_the_final_newline_may_be_stripped(form):
    text = sample("go_tpc", f"tpcc_run_{form}.txt")

    assert GO_TPC.read({"raw": text.strip()}) == GO_TPC.read({"raw": text})


def test_a_number_that_is_none_makes_its_row_unknown():
    text = sample("go_tpc", "tpcc_run_json.txt").replace(
        b'"TPM":"1825.2"', b'"TPM":"NaN"'
    )

    reading = GO_TPC.read({"raw": text})

    assert "delivery_tpm" not in figures(reading)
    assert len(reading.unknown_lines) == 1


def test_a_table_without_the_column_of_operations_is_unknown():
    text = sample("go_tpc", "tpcc_run_table.txt").replace(b"OPERATION ", b"OPERATNAN ")

    reading = GO_TPC.read({"raw": text})

    assert reading.status == "failed" or "new_order_tpm" not in figures(reading)
    assert any("NEW_ORDER" in line for line in reading.unknown_lines)


SYSBENCH = registry.find("sysbench")
OLTP = ("oltp_point_select.txt", "oltp_read_only.txt", "oltp_read_write.txt")


def test_a_run_gives_the_printed_figures():
    reading = read("sysbench", "oltp_read_write.txt")

    assert (reading.status, reading.tool_version) == ("finished", "1.0.20")
    assert reading.levels == {"threads": 4, "clients": 4}
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
    assert set(series(reading)) == {"tps", "qps", "latency_p95", "error_rate"}
    assert series(reading)["tps"][:3] == (1218.76, 1029.58, 817.85)
    assert series(reading)["latency_p95"][-1] == 8.58
    assert series(reading)["error_rate"].count(1.0) == 2
    assert all(len(values) == 15 for values in series(reading).values())


def test_a_missing_report_leaves_a_gap():
    text = sample("sysbench", "oltp_read_write.txt")
    lines = [
        line
        for line in text.splitlines(keepends=True)
        if not line.startswith(b"[ 7s ]")
    ]

    values = series(SYSBENCH.read({"raw": b"".join(lines)}))["tps"]

    assert len(values) == 15
    assert values[5:8] == (930.09, None, 1016.02)


def test_the_histogram_gives_the_percentile_that_sysbench_prints_itself():
    text = sample("sysbench", "oltp_read_only.txt").decode()
    printed = "99th percentile:                        6.79"
    assert printed in text

    found = figures(SYSBENCH.read({"raw": text.replace("99th", "98th")}))

    assert found["latency_p98"] == 6.79
    assert round(found["latency_p99"], 2) == 6.79


def test_a_histogram_that_is_not_whole_gives_no_percentile():
    text = sample("sysbench", "oltp_read_only.txt").decode()
    lines = text.splitlines(keepends=True)
    bar = next(line for line in lines if "|*" in line)

    found = figures(SYSBENCH.read({"raw": text.replace(bar, "")}))

    assert {name for name in found if "_p" in name} == {"latency_p99"}


def test_a_cpu_run_has_events():
    reading = read("sysbench", "cpu_run.txt")

    assert reading.status == "finished"
    assert figures(reading)["events_per_second"] == 3201.65
    assert figures(reading)["events"] == 9636
    assert reading.levels == {"threads": 2, "primes": 10000}


def test_a_run_of_files_says_of_which():
    reading = read("sysbench", "1.0.20_fileio.txt")

    assert reading.levels == {
        "threads": 1,
        "mode": "random r/w",
        "block_size": "16KiB",
        "file_size": "16MiB",
        "files": 4,
        "rw_ratio": "1.50",
        "fsync_every": 100,
        "fsync_at_end": "Enabled",
        "io_mode": "synchronous",
    }
    assert reading.unknown_lines == ()


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("cpu_run.txt", "numbers limit: 10000", "numbers limit: 20000"),
        ("1.0.20_fileio.txt", "flags: (none)", "flags: directio"),
        ("1.0.20_fileio.txt", "16MiB total", "2GiB total"),
        ("1.0.20_fileio.txt", "Using synchronous", "Using asynchronous"),
        ("1.0.20_fileio.txt", "each 100 requests", "each 1 requests"),
        ("1.0.20_memory.txt", "total size: 200MiB", "total size: 100GiB"),
        ("0.4.12_real.txt", "Running mixed OLTP", "Running simple OLTP"),
    ],
)
def test_runs_of_other_conditions_are_no_repeats(name, before, after):
    text = sample("sysbench", name).decode()
    assert before in text
    one, other = (
        SYSBENCH.read({"raw": each}) for each in (text, text.replace(before, after))
    )

    assert one.status == other.status == "finished"
    assert one.levels != other.levels
    assert figures(one) == figures(other)


def test_files_that_are_made_before_a_run_are_no_second_result():
    text = sample("sysbench", "1.0.20_fileio.txt").decode()
    prepared = (
        f"{text.partition(chr(10))[0]}\n\n4 files, 4096Kb each, 16Mb total\n"
        "Creating files for the test...\nExtra file open flags: (none)\n"
    )

    reading = SYSBENCH.read({"raw": prepared + text})
    assert (reading.status, reading.levels) == (
        "finished",
        SYSBENCH.read({"raw": text}).levels,
    )


@pytest.mark.parametrize(
    ("printed", "mib"),
    [
        ("1.0986Gb", 1.0986 * 1024),
        ("937.46Kb", 937.46 / 1024),
        ("15Mb", 15.0),
        ("512b", 512 / 1024**2),
        ("165.6Mb", 165.6),
    ],
)
def test_the_throughput_of_files_is_in_mib_whatever_is_printed(printed, mib):
    text = sample("sysbench", "0.5_fileio.txt").decode()
    assert "(165.6Mb/sec)" in text

    reading = SYSBENCH.read({"raw": text.replace("165.6Mb/sec", f"{printed}/sec")})

    assert figures(reading)["transfer_rate"] == pytest.approx(mib)
    assert reading.unknown_lines == ()


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

    reading = SYSBENCH.read({"raw": text})

    assert (reading.status, codes(reading)) == ("partial", ["tool_error"])


def test_a_report_without_its_end_is_partial():
    text = sample("sysbench", "oltp_read_write.txt").partition(b"Latency (ms)")[0]

    reading = SYSBENCH.read({"raw": text})

    assert (reading.status, codes(reading)) == ("partial", ["cut"])
    assert figures(reading)["tps"] == 1013.24
    assert "latency_average" not in figures(reading)


def test_a_run_without_events_failed():
    text = sample("sysbench", "oltp_read_write.txt").replace(
        b"number of events:              15207", b"number of events:              0"
    )

    assert codes(SYSBENCH.read({"raw": text})) == ["nothing_processed"]


def test_the_final_newlines_may_be_stripped():
    text = sample("sysbench", "oltp_read_write.txt")

    assert SYSBENCH.read({"raw": text.strip()}) == SYSBENCH.read({"raw": text})


def test_unknown_lines_are_reported():
    text = (
        sample("sysbench", "oltp_read_write.txt") + b"\nsomething of tomorrow: 12.5\n"
    )

    assert SYSBENCH.read({"raw": text}).unknown_lines == (
        "something of tomorrow: 12.5",
    )


def test_a_text_of_something_else_is_refused():
    with pytest.raises(UnreadableOutput) as refused:
        SYSBENCH.read({"raw": "tpmC: 12"})

    assert refused.value.code == "not_sysbench_output"


# HammerDB's forms of output give the figures in them.


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
        {
            "stdout": sample("hammerdb", "timed.log"),
            "timing": sample("hammerdb", "xtprof.log"),
        }
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
            {
                "stdout": sample("hammerdb", "timed.log"),
                "timing": sample("hammerdb", "xtprof.log"),
            }
        )
    )

    assert as_json == as_text


def test_a_job_report_is_read_whole():
    reading = read("hammerdb", "job_report.json")

    assert reading.status == "finished"
    assert (reading.tool_version, reading.server_version) == ("6.0", "18.4")
    assert reading.levels == {
        "clients": 8,
        "warehouses": 100,
        "duration": 300,
        "rampup": 120,
    }
    assert figures(reading)["nopm"] == 123456
    assert figures(reading)["neword_latency_p99"] == 2.831
    assert series(reading)["tpm"] == (100000, 281000, 283000, 285000, 284000, 42)
    assert [(found.start, found.interval) for found in reading.series] == [(0.0, 10.0)]


def test_levels_are_what_was_asked_for_also_of_a_log():
    text = sample("hammerdb", "4.9_timed.log").decode()
    kept = (
        "Value 1 for tpcc:pg_count_ware is the same as existing value 1, no change made"
    )
    assert kept in text
    changed = "Changed tpcc:pg_count_ware from 1 to 50 for PostgreSQL"
    reading = ADAPTER.read({"stdout": text.replace(kept, changed).encode()})
    assert reading.levels == {
        "clients": 1,
        "warehouses": 50,
        "duration": 60,
        "rampup": 0,
    }


def test_a_virtual_user_that_failed_makes_the_result_partial():
    reading = read("hammerdb", "5.0_user_failed.log")

    assert (reading.status, codes(reading)) == (
        "partial",
        ["tool_error", "users_failed"],
    )
    assert figures(reading) == {"nopm": 29936.0, "tpm": 68056.0}


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
