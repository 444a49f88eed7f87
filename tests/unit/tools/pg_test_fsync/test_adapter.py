"""pg_test_fsync's recorded output gives the rates that it prints."""

import re

from runs.tools import registry
from tests.unit.tools.reading import codes, figures, read, sample

ADAPTER = registry.find("pg_test_fsync")


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

    reading = ADAPTER.read({"raw": text})

    assert (reading.status, codes(reading)) == ("partial", ["cut"])


def test_a_rate_that_was_cut_is_left_out():
    text = sample("pg_test_fsync", "default.txt").partition(b"498 ops/sec")[0]

    reading = ADAPTER.read({"raw": text})

    assert (reading.status, codes(reading)) == ("failed", ["no_result"])


def test_an_error_of_the_tool_is_told():
    reading = ADAPTER.read(
        {
            "stdout": sample("pg_test_fsync", "default.txt").partition(b"Compare file")[0],
            "stderr": "pg_test_fsync: error: could not open output file: Permission denied\n",
        }
    )

    assert (reading.status, codes(reading)) == ("failed", ["tool_error", "no_result"])


def test_the_rates_of_a_test_whose_heading_is_unknown_are_not_taken_for_another_ones():
    text = sample("pg_test_fsync", "default.txt").replace(b"using two 8kB", b"of tomorrow,")

    reading = ADAPTER.read({"raw": text})

    assert figures(reading)["one_write_fdatasync"] == 1458.957
    assert not any(name.startswith("two_writes") for name in figures(reading))
    assert len(reading.unknown_lines) == 5
