"""What the storage scenarios take of the reports of fio and pg_test_fsync."""

import json
import re

import pytest

from runs.scenarios import operating_systems, storage_bandwidth
from runs.tools import registry
from runs.tools.fio.adapter import read_bandwidth
from runs.tools.pg_test_fsync.reader import one_write
from tests.unit.tools.reading import codes, figures, read, sample


def report(**job):
    found = {"read": {"bw": 0, "iops": 0}, "write": {"bw": 1000, "iops": 125}, "job_runtime": 2000}
    return json.dumps({"fio version": "fio-3.33", "jobs": [found | job]})


def test_bandwidth_is_told_in_millions_of_bytes():
    told = read_bandwidth("note: both iodepth >= 1\n" + report())
    assert (told.write_mb, told.read_mb, told.seconds) == (1.024, 0.0, 2.0)
    assert (told.fsync_ms, told.version) == (None, "3.33")


def test_the_mean_of_the_flushes_is_told_in_milliseconds():
    assert read_bandwidth(report(sync={"lat_ns": {"mean": 2_500_000, "N": 3}})).fsync_ms == 2.5


@pytest.mark.parametrize(
    "text", ["fio: engine does not support direct", "", "{", '{"jobs": []}', report(error=5)]
)
def test_what_is_no_result_is_told_in_fios_own_words(text):
    with pytest.raises(ValueError, match=r".+"):
        read_bandwidth(text)


def test_of_pg_test_fsync_only_the_first_section_counts():
    told = one_write(sample("pg_test_fsync", "default.txt").decode())
    assert told["fdatasync"] == 1458.957
    assert "fsync_writethrough" not in told
    assert one_write("") == {}


def test_a_flush_interval_is_so_many_writes_and_one_job():
    parameters = {"size_mb": 64, "jobs": 4, "duration": 3}
    levels = {"access": "sequential write", "fsync_interval": "8kB"}
    argv = storage_bandwidth.argv(levels, parameters, "/srv/f")
    assert {"--fsync=1", "--numjobs=1", "--bs=8k"} <= set(argv)
    direct = storage_bandwidth.argv(levels | {"fsync_interval": "direct"}, parameters, "/srv/f")
    assert {"--direct=1", "--numjobs=4"} <= set(direct)


def test_a_refused_method_is_not_measured_under_its_name():
    with pytest.raises(Exception, match="fsync_writethrough was asked for") as caught:
        operating_systems.check_method(
            {"wal_sync_method": {"setting": "fdatasync"}}, "fsync_writethrough"
        )
    assert caught.value.code == "setting_not_taken"


PG_TEST_FSYNC = registry.find("pg_test_fsync")


def test_every_printed_rate_is_a_measurement():
    text = sample("pg_test_fsync", "default.txt").decode()
    reading = read("pg_test_fsync", "default.txt")

    printed = [float(rate) for rate in re.findall(r"(\S+) ops/sec", text)]
    assert reading.status == "finished"
    assert [value.value for value in reading.measurements] == printed
    assert {value.direction for value in reading.measurements} == {"higher"}
    assert reading.levels == {"seconds_per_test": 1}
    assert reading.unknown_lines == ()


def test_a_method_is_named_by_its_test():
    found = figures(read("pg_test_fsync", "default.txt"))

    assert found["one_write_fdatasync"] == 1458.957
    assert found["two_writes_fdatasync"] == 1713.877
    assert found["sizes_16_1kb_open_sync_writes"] == 70.699
    assert found["other_descriptor_write_fsync_close"] == 1342.783
    assert found["unsynced_write"] == 988723.373


def test_a_method_that_is_not_available_has_no_measurement():
    assert not any("writethrough" in name for name in figures(read("pg_test_fsync", "default.txt")))


def test_an_output_that_was_cut_is_partial():
    text = sample("pg_test_fsync", "default.txt").partition(b"Non-sync")[0]

    reading = PG_TEST_FSYNC.read({"raw": text})

    assert (reading.status, codes(reading)) == ("partial", ["cut"])


def test_a_rate_that_was_cut_is_left_out():
    text = sample("pg_test_fsync", "default.txt").partition(b"498 ops/sec")[0]

    reading = PG_TEST_FSYNC.read({"raw": text})

    assert (reading.status, codes(reading)) == ("failed", ["no_result"])


def test_an_error_of_the_tool_is_told():
    reading = PG_TEST_FSYNC.read(
        {
            "stdout": sample("pg_test_fsync", "default.txt").partition(b"Compare file")[0],
            "stderr": "pg_test_fsync: error: could not open output file: Permission denied\n",
        }
    )

    assert (reading.status, codes(reading)) == ("failed", ["tool_error", "no_result"])


def test_the_rates_of_a_test_whose_heading_is_unknown_are_not_taken_for_another_ones():
    text = sample("pg_test_fsync", "default.txt").replace(b"using two 8kB", b"of tomorrow,")

    reading = PG_TEST_FSYNC.read({"raw": text})

    assert figures(reading)["one_write_fdatasync"] == 1458.957
    assert not any(name.startswith("two_writes") for name in figures(reading))
    assert len(reading.unknown_lines) == 5


PG_TEST_TIMING = registry.find("pg_test_timing")


def test_the_cost_is_the_printed_one():
    reading = read("pg_test_timing", "default.txt")

    assert reading.status == "finished"
    assert figures(reading) == {"clock_read_time": 81.76}
    assert reading.levels == {"duration": 2}
    assert reading.unknown_lines == ()


@pytest.mark.parametrize(
    ("line", "nanoseconds"),
    [
        ("Per loop time including overhead: 35.96 nsec\n", 35.96),
        ("Per loop time including overhead: 1.05 us\n", 1050),
        ("Average loop time including overhead: 16.42 ns\n", 16.42),
    ],
)
def test_other_versions_words_are_understood(line, nanoseconds):
    assert figures(PG_TEST_TIMING.read({"raw": line})) == {"clock_read_time": nanoseconds}


def test_without_its_result_it_failed():
    text = sample("pg_test_timing", "default.txt").partition(b"Per loop")[0]

    assert codes(PG_TEST_TIMING.read({"raw": text})) == ["no_result"]
