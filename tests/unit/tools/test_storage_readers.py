"""What the storage scenarios take of the reports of fio and pg_test_fsync."""

import json
from pathlib import Path

import pytest

from runs.scenarios import operating_systems, storage_bandwidth
from runs.tools.fio.adapter import read_bandwidth
from runs.tools.pg_test_fsync.reader import one_write

SAMPLES = Path(__file__).parents[2] / "samples"


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
    told = one_write((SAMPLES / "pg_test_fsync" / "default.txt").read_text())
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
