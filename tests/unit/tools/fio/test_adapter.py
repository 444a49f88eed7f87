"""fio's recorded outputs give the figures in their JSON."""

import json

import pytest

from runs.tools import registry
from runs.tools.adapter import UnreadableOutput
from tests.unit.tools.reading import codes, figures, read, sample

ADAPTER = registry.find("fio")


def test_a_mixed_run_has_both_directions():
    reading = read("fio", "randrw8k_json.txt")

    found = figures(reading)
    assert (reading.status, reading.tool_version) == ("finished", "3.33")
    assert reading.levels == {"clients": 2, "iodepth": 16, "duration": 5}
    assert reading.labels["rw"] == "randrw"
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
    assert "--output-format=json" in refused.value.remedy


def test_json_that_was_cut_is_refused():
    with pytest.raises(UnreadableOutput) as refused:
        ADAPTER.read({"raw": sample("fio", "seqwrite_json.txt")[:-10]})

    assert refused.value.code == "not_fio_output"
