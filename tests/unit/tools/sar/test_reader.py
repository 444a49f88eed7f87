"""Recordings of sysstat: figures as printed, under one name each."""

import json

import pytest

from runs.tools.adapter import UnreadableOutput
from runs.tools.host_reading import MOST_DEVICES
from runs.tools.sar import reader
from tests.unit.tools.reading import samples


def recorded(name: str) -> str:
    return samples("sar")[name].decode()


def sample(time: str, **parts) -> dict:
    return {"timestamp": {"date": "2026-11-21", "time": time, "interval": 1}, **parts}


def printed(*samples: dict) -> str:
    return json.dumps({"sysstat": {"hosts": [{"statistics": samples}]}})


@pytest.mark.parametrize("name", ["json_all.txt", "json_cpu_mem_disk.txt"])
def test_the_processors_parts_add_up_to_the_whole(name):
    columns = reader.read(recorded(name)).columns
    parts = zip(
        *(columns[f"cpu_{part}"] for part in ("user", "system", "iowait", "steal", "idle")),
        strict=True,
    )
    assert [round(sum(values)) for values in parts] == [100, 100, 100]


def test_figures_are_those_printed():
    reading = reader.read(recorded("json_all.txt"))
    assert reading.seconds == (1.0, 2.0, 3.0)
    assert reading.columns["cpu_user"][0] == pytest.approx(60.10 + 23.23)
    assert reading.columns["disk_util_vda"] == (6.0, 6.8, 6.4)
    assert reading.columns["disk_write_vda"][0] == 99380.0
    assert reading.columns["memory_free"][0] == pytest.approx(16579212 / 1024)


def test_devices_on_which_nothing_happened_are_left_out():
    columns = reader.read(recorded("json_all.txt")).columns
    assert "network_receive_lo" in columns
    assert "network_receive_ifb0" not in columns
    assert "network_receive_eth0" not in columns


def test_of_many_devices_the_busiest_are_kept():
    cards = [{"iface": f"veth{number}", "rxkB": number} for number in range(200)]
    text = printed(sample("10:00:00", network={"net-dev": cards}))
    columns = reader.read(text).columns
    assert len(columns) == MOST_DEVICES
    assert columns["network_receive_veth199"] == (199.0,)


def test_a_device_gives_a_name_of_letters_and_digits():
    disk = {"disk-device": "mapper/vg-data.1", "rkB": 1.0}
    columns = reader.read(printed(sample("10:00:00", disk=[disk]))).columns
    assert list(columns) == ["disk_read_mapper_vg_data_1"]


def test_sectors_of_older_versions_become_kilobytes():
    disk = {"disk-device": "sda", "wr_sec": 100.0}
    columns = reader.read(printed(sample("10:00:00", disk=[disk]))).columns
    assert columns["disk_write_sda"] == (50.0,)


def test_a_sample_over_midnight_is_a_second_after_the_one_before():
    first = sample("23:59:59", queue={"runq-sz": 1})
    second = sample("00:00:00", queue={"runq-sz": 2})
    second["timestamp"]["date"] = "2026-11-22"
    assert reader.read(printed(first, second)).seconds == (1.0, 2.0)


def test_what_an_interval_skips_is_no_sample():
    reading = reader.read(printed({}, sample("10:00:00", queue={"runq-sz": 1}), {}))
    assert reading.columns == {"run_queue": (1.0,)}


@pytest.mark.parametrize("text", ["", "{}", '{"sysstat": {"hosts": []}}', "[1]", "Linux 6.1 (vm)"])
def test_another_text_is_refused(text):
    with pytest.raises(UnreadableOutput) as told:
        reader.read(text)
    assert told.value.code == "not_sadf_output"


def test_a_recording_that_was_cut_off_is_refused():
    with pytest.raises(UnreadableOutput):
        reader.read(recorded("json_all.txt")[:-200])


def test_of_some_processors_only_their_own_means_are_taken():
    loads = [{"cpu": "all", "user": 25.0, "idle": 75.0}]
    loads += [{"cpu": str(number), "user": 25.0 * number, "idle": 75.0} for number in range(4)]
    text = printed(sample("10:00:00", **{"cpu-load": loads}))
    assert reader.read(text, cpus={1, 2}).columns["cpu_user"] == (37.5,)
    assert reader.read(text).columns["cpu_user"] == (25.0,)
