"""vmstat's lines: the columns by name, without the first line's averages since the start."""

import pytest

from runs.tools.adapter import UnreadableOutput
from runs.tools.host_reading import unit_of
from runs.tools.vmstat import reader
from tests.unit.tools.reading import sample

OLD = """procs -----------memory---------- ---swap-- -----io---- --system-- -----cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
 2  0      0 204800   8580 102400    0    0  3348 10827 1389 6948  1  1 98  0  0
 3  0      0 102400   8580 204800    0    0    10    20 1389 6948 50 20 25  4  1
"""


@pytest.mark.parametrize("name", ["1_4.txt", "t_w.txt"])
def test_the_first_line_counts_since_the_start_and_is_left_out(name):
    reading = reader.read(sample("vmstat", name).decode())
    assert reading.seconds == (1.0, 2.0, 3.0)
    assert reading.columns["cpu_idle"] == (0, 0, 0)
    assert reading.columns["disk_read"][1:] == (64, 572)


def test_each_column_is_found_by_its_name():
    columns = reader.read(OLD).columns
    assert {name: values[0] for name, values in columns.items()} == {
        "cpu_user": 50,
        "cpu_system": 20,
        "cpu_iowait": 4,
        "cpu_steal": 1,
        "cpu_idle": 25,
        "memory_free": 100,
        "memory_cached": 200,
        "run_queue": 3,
        "disk_read": 10,
        "disk_write": 20,
    }
    assert all(unit_of(name) for name in columns)


def test_a_last_line_that_was_cut_is_left_out():
    assert len(reader.read(OLD + " 3  0      0 102400").seconds) == 1
    assert len(reader.read(OLD + OLD.splitlines()[-1][:-1]).seconds) == 1


def test_headers_that_come_again_are_no_samples():
    reading = reader.read(OLD + OLD)
    assert reading.columns["cpu_idle"] == (25, 98, 25)


@pytest.mark.parametrize("text", ["", "sh: vmstat: not found\n"])
def test_another_text_is_refused(text):
    with pytest.raises(UnreadableOutput) as told:
        reader.read(text)
    assert told.value.code == "not_vmstat_output"
