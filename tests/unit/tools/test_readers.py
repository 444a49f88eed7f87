"""What is read from the reports of fio, pg_test_fsync, sysstat and vmstat."""

import json
import re

import pytest

from runs.scenarios import operating_systems, storage_bandwidth
from runs.tools import registry
from runs.tools.adapter import UnreadableOutput
from runs.tools.fio.adapter import read_bandwidth
from runs.tools.host_reading import MOST_DEVICES, metric_of
from runs.tools.pg_test_fsync.adapter import one_write
from runs.tools.sar import reader as sar_reader
from runs.tools.vmstat import reader as vmstat_reader
from runs.wording import put
from tests.unit.tools.reading import codes, figures, read, sample, samples

# fio's recorded outputs give the figures in their JSON.


ADAPTER = registry.find("fio")


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("size", ("1g", "16g")),
        ("rwmixwrite", ("30", "70")),
        ("bssplit", ("4k/60:8k/40", "4k/50:8k/50")),
    ],
)
def test_fio_with_other_data_is_no_repeat(option, values):
    """A file that fits into memory is another measurement than one that does not."""

    def levels(value):
        direction = {"iops": 100.0, "bw": 400, "io_bytes": 4096, "runtime": 1000}
        job = {
            "jobname": "a",
            "error": 0,
            "job options": {option: value},
            "read": direction,
        }
        report = {
            "fio version": "fio-3.33",
            "global options": {"rw": "randread"},
            "jobs": [job],
        }
        return ADAPTER.read({"stdout": json.dumps(report)}).levels

    one, other = map(levels, values)
    assert one != other
    assert one.keys() == other.keys() >= {"rw", option}


def test_a_mixed_run_has_both_directions():
    reading = read("fio", "randrw8k_json.txt")

    found = figures(reading)
    assert (reading.status, reading.tool_version) == ("finished", "3.33")
    asked_for = {
        "clients": 2,
        "iodepth": 16,
        "duration": 5,
        "direct": 1,
        "rwmixread": 70,
    }
    assert reading.levels == {
        **asked_for,
        "rw": "randrw",
        "bs": "8k",
        "size": "256M",
        "ioengine": "libaio",
    }
    assert found["read_iops"] == 32554.489102
    assert found["write_iops"] == 13968.006399
    assert found["read_bandwidth"] == 266686374 / 1048576
    assert found["read_latency_average"] == pytest.approx(0.60252638)
    assert found["read_latency_p50"] == 0.485376
    assert "sync_latency_average" not in found


def test_a_sync_run_has_the_latency_of_syncs():
    found = figures(read("fio", "fsync8k_jsonplus.txt"))

    assert found["write_iops"] == 695.076231
    assert found["sync_latency_average"] == pytest.approx(1.380759142)
    assert found["sync_latency_p99"] == 9.109504
    assert not any(name.startswith("read") for name in found)


def test_an_error_that_is_printed_as_text_is_a_failure():
    reading = read("fio", "error_enospc_or_dir.txt")

    assert (reading.status, codes(reading)) == ("failed", ["tool_error", "no_result"])
    assert reading.reasons[0].message == "fio: /nonexistent is not a directory"


def test_a_message_before_the_json_makes_it_partial():
    text = b"fio: io_u error on file /x: No space left on device\n"

    reading = ADAPTER.read({"raw": text + sample("fio", "seqwrite_json.txt")})

    assert (reading.status, codes(reading)) == ("partial", ["tool_error"])
    assert figures(reading)["write_iops"] == 11415.716857


def report(**changes):
    document = json.loads(sample("fio", "seqwrite_json.txt"))
    document["jobs"][0].update(changes)
    return document


def test_a_job_that_failed_has_no_figures():
    reading = ADAPTER.read({"raw": json.dumps(report(error=28))})

    assert reading.status == "failed"
    assert codes(reading) == ["job_failed"]
    assert reading.measurements == ()


def test_one_of_two_jobs_that_failed_makes_it_partial():
    document = report()
    document["jobs"].append({**document["jobs"][0], "jobname": "other", "error": 5})

    reading = ADAPTER.read({"raw": json.dumps(document)})

    assert (reading.status, codes(reading)) == ("partial", ["job_failed"])
    assert figures(reading)["job_1_seqwrite_write_iops"] == 11415.716857
    assert not any(name.startswith("job_2") for name in figures(reading))


def test_microseconds_of_version_2_become_milliseconds():
    document = report()
    write = document["jobs"][0]["write"]
    write["lat"] = {"mean": 700.5, "max": 17124}
    del write["lat_ns"]

    found = figures(ADAPTER.read({"raw": json.dumps(document)}))

    assert found["write_latency_average"] == pytest.approx(0.7005)


@pytest.mark.parametrize("name", ["fsync8k_text.txt", "randrw8k_text.txt", "terse.txt"])
def test_output_for_people_is_refused_with_the_option_to_use(name):
    with pytest.raises(UnreadableOutput) as refused:
        read("fio", name)

    assert refused.value.code == "fio_not_json"
    assert "--output-format=json" in put(refused.value.remedy)


def test_json_that_was_cut_is_refused():
    with pytest.raises(UnreadableOutput) as refused:
        ADAPTER.read({"raw": sample("fio", "seqwrite_json.txt")[:-10]})

    assert refused.value.code == "not_fio_output"


# What the storage scenarios take of the reports of fio and pg_test_fsync.


def short_report(**job):
    found = {
        "read": {"bw": 0, "iops": 0},
        "write": {"bw": 1000, "iops": 125},
        "job_runtime": 2000,
    }
    return json.dumps({"fio version": "fio-3.33", "jobs": [found | job]})


def test_bandwidth_is_told_in_millions_of_bytes():
    told = read_bandwidth("note: both iodepth >= 1\n" + short_report())
    assert (told.write_mb, told.read_mb, told.seconds) == (1.024, 0.0, 2.0)
    assert (told.fsync_ms, told.version) == (None, "3.33")


def test_the_mean_of_the_flushes_is_told_in_milliseconds():
    assert (
        read_bandwidth(
            short_report(sync={"lat_ns": {"mean": 2_500_000, "N": 3}})
        ).fsync_ms
        == 2.5
    )


@pytest.mark.parametrize(
    "text",
    [
        "fio: engine does not support direct",
        "",
        "{",
        '{"jobs": []}',
        short_report(error=5),
    ],
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
    direct = storage_bandwidth.argv(
        levels | {"fsync_interval": "direct"}, parameters, "/srv/f"
    )
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
    assert not any(
        "writethrough" in name for name in figures(read("pg_test_fsync", "default.txt"))
    )


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
            "stdout": sample("pg_test_fsync", "default.txt").partition(b"Compare file")[
                0
            ],
            "stderr": "pg_test_fsync: error: could not open output file: Permission denied\n",
        }
    )

    assert (reading.status, codes(reading)) == ("failed", ["tool_error", "no_result"])


def test_the_rates_of_a_test_whose_heading_is_unknown_are_not_taken_for_another_ones():
    text = sample("pg_test_fsync", "default.txt").replace(
        b"using two 8kB", b"of tomorrow,"
    )

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
    assert figures(PG_TEST_TIMING.read({"raw": line})) == {
        "clock_read_time": nanoseconds
    }


def test_without_its_result_it_failed():
    text = sample("pg_test_timing", "default.txt").partition(b"Per loop")[0]

    assert codes(PG_TEST_TIMING.read({"raw": text})) == ["no_result"]


# Recordings of sysstat: figures as printed, under one name each.


def sar_recording(name: str) -> str:
    return samples("sar")[name].decode()


def interval(time: str, **parts) -> dict:
    return {"timestamp": {"date": "2026-11-21", "time": time, "interval": 1}, **parts}


def printed(*samples: dict) -> str:
    return json.dumps({"sysstat": {"hosts": [{"statistics": samples}]}})


@pytest.mark.parametrize("name", ["json_all.txt", "json_cpu_mem_disk.txt"])
def test_the_processors_parts_add_up_to_the_whole(name):
    columns = sar_reader.read(sar_recording(name)).columns
    parts = zip(
        *(
            columns[f"cpu_{part}"]
            for part in ("user", "system", "iowait", "steal", "idle")
        ),
        strict=True,
    )
    assert [round(sum(values)) for values in parts] == [100, 100, 100]


def test_figures_are_those_printed():
    reading = sar_reader.read(sar_recording("json_all.txt"))
    assert reading.seconds == (1.0, 2.0, 3.0)
    assert reading.columns["cpu_user"][0] == pytest.approx(60.10 + 23.23)
    assert reading.columns["disk_util_vda"] == (6.0, 6.8, 6.4)
    assert reading.columns["disk_write_vda"][0] == 99380.0
    assert reading.columns["memory_free"][0] == pytest.approx(16579212 / 1024)


def test_devices_on_which_nothing_happened_are_left_out():
    columns = sar_reader.read(sar_recording("json_all.txt")).columns
    assert "network_receive_lo" in columns
    assert "network_receive_ifb0" not in columns
    assert "network_receive_eth0" not in columns


def test_of_many_devices_the_busiest_are_kept():
    cards = [{"iface": f"veth{number}", "rxkB": number} for number in range(200)]
    text = printed(interval("10:00:00", network={"net-dev": cards}))
    columns = sar_reader.read(text).columns
    assert len(columns) == MOST_DEVICES
    assert columns["network_receive_veth199"] == (199.0,)


def test_a_device_gives_a_name_of_letters_and_digits():
    disk = {"disk-device": "mapper/vg-data.1", "rkB": 1.0}
    columns = sar_reader.read(printed(interval("10:00:00", disk=[disk]))).columns
    assert list(columns) == ["disk_read_mapper_vg_data_1"]


def test_sectors_of_older_versions_become_kilobytes():
    disk = {"disk-device": "sda", "wr_sec": 100.0}
    columns = sar_reader.read(printed(interval("10:00:00", disk=[disk]))).columns
    assert columns["disk_write_sda"] == (50.0,)


def test_a_sample_over_midnight_is_a_second_after_the_one_before():
    first = interval("23:59:59", queue={"runq-sz": 1})
    second = interval("00:00:00", queue={"runq-sz": 2})
    second["timestamp"]["date"] = "2026-11-22"
    assert sar_reader.read(printed(first, second)).seconds == (1.0, 2.0)


def test_what_an_interval_skips_is_no_sample():
    reading = sar_reader.read(
        printed({}, interval("10:00:00", queue={"runq-sz": 1}), {})
    )
    assert reading.columns == {"run_queue": (1.0,)}


@pytest.mark.parametrize(
    "text", ["", "{}", '{"sysstat": {"hosts": []}}', "[1]", "Linux 6.1 (vm)"]
)
def test_a_text_that_is_not_of_sadf_is_refused(text):
    with pytest.raises(UnreadableOutput) as told:
        sar_reader.read(text)
    assert told.value.code == "not_sadf_output"


def test_a_recording_that_was_cut_off_is_refused():
    with pytest.raises(UnreadableOutput):
        sar_reader.read(sar_recording("json_all.txt")[:-200])


def test_of_some_processors_only_their_own_means_are_taken():
    loads = [{"cpu": "all", "user": 25.0, "idle": 75.0}]
    loads += [
        {"cpu": str(number), "user": 25.0 * number, "idle": 75.0} for number in range(4)
    ]
    text = printed(interval("10:00:00", **{"cpu-load": loads}))
    assert sar_reader.read(text, cpus={1, 2}).columns["cpu_user"] == (37.5,)
    assert sar_reader.read(text).columns["cpu_user"] == (25.0,)


# vmstat's lines: the columns by name, without the first line's averages since the start.


OLD = """procs -----------memory---------- ---swap-- -----io---- --system-- -----cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
 2  0      0 204800   8580 102400    0    0  3348 10827 1389 6948  1  1 98  0  0
 3  0      0 102400   8580 204800    0    0    10    20 1389 6948 50 20 25  4  1
"""


@pytest.mark.parametrize("name", ["1_4.txt", "t_w.txt"])
def test_the_first_line_counts_since_the_start_and_is_left_out(name):
    reading = vmstat_reader.read(sample("vmstat", name).decode())
    assert reading.seconds == (1.0, 2.0, 3.0)
    assert reading.columns["cpu_idle"] == (0, 0, 0)
    assert reading.columns["disk_read"][1:] == (64, 572)


def test_each_column_is_found_by_its_name():
    columns = vmstat_reader.read(OLD).columns
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
    assert all(metric_of(name) for name in columns)


def test_a_last_line_that_was_cut_is_left_out():
    assert len(vmstat_reader.read(OLD + " 3  0      0 102400").seconds) == 1
    assert len(vmstat_reader.read(OLD + OLD.splitlines()[-1][:-1]).seconds) == 1


def test_headers_that_come_again_are_no_samples():
    reading = vmstat_reader.read(OLD + OLD)
    assert reading.columns["cpu_idle"] == (25, 98, 25)


@pytest.mark.parametrize("text", ["", "sh: vmstat: not found\n"])
def test_a_text_that_is_not_of_vmstat_is_refused(text):
    with pytest.raises(UnreadableOutput) as told:
        vmstat_reader.read(text)
    assert told.value.code == "not_vmstat_output"
