"""Files of vmstat, iostat and sar beside an output become series of the machine."""

import pytest

from runs.tools import monitors, reader, registry
from tests.unit.tools.pgbench.samples import sample as pgbench_sample
from tests.unit.tools.reading import sample

OUTPUT = pgbench_sample("18.6/a_tpcb").stdout


def series_of(**files):
    reading = reader.read(registry.find("pgbench"), {"stdout": OUTPUT, **files})
    return {each.name: each for each in reading.series}, reading


@pytest.mark.parametrize("name", ["json.txt", "xk_1_3.txt", "xk_dates.txt"])
def test_iostat_is_read_without_its_first_report(name):
    found, reading = series_of(iostat=sample("iostat", name))

    assert reading.status == "finished"
    assert {"cpu_user", "cpu_idle", "disk_read_vda", "disk_write_vda", "disk_util_vda"} <= set(
        found
    )
    assert len(found["disk_write_vda"].values) == 2
    assert found["disk_write_vda"].unit == "kB/s"


def test_the_figures_are_those_printed():
    found, _reading = series_of(iostat=sample("iostat", "xk_1_3.txt"))

    assert found["disk_write_vda"].values == (98752.0, 72518.81)
    assert found["cpu_user"].values == (83.34, 78.92)
    assert found["disk_util_vda"].values == (6.0, 6.34)


def test_vmstat_and_sar_come_too_and_no_log_is_taken_for_one_of_pgbench():
    files = {"db1-vmstat.log": sample("vmstat", "1_4.txt"), "pidstat.txt": b"# Time UID PID\n"}
    found, reading = series_of(**files)
    of_sar, _reading = series_of(sar=sample("sar", "json_all.txt"))

    assert found["run_queue"].interval == 1
    assert "cpu_idle" in of_sar
    assert reading.status == "finished"
    assert [each.message for each in reading.notes] == ["pidstat.txt is kept, and not read."]


def test_a_monitor_that_cannot_be_read_costs_no_figure():
    found, reading = series_of(vmstat="nothing", iostat="{", sar="{}")

    assert reading.status == "finished"
    assert len(reading.notes) == 3
    assert "cpu_idle" not in found


@pytest.mark.parametrize(
    ("name", "tool"),
    [("vmstat", "vmstat"), ("raw/vmstat.1", "vmstat"), ("IOSTAT.json", "iostat"), ("log", "")],
)
def test_a_file_is_known_by_a_word_of_its_name(name, tool):
    assert monitors.tool_of(name) == tool
