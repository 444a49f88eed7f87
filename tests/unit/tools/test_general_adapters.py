"""Lines of any tool, and the JSON of Google Benchmark, hyperfine and pytest-benchmark."""

import json
import statistics

import pytest

from runs.tools import registry
from runs.tools.adapter import UnreadableOutput
from tests.unit.tools.reading import sample, samples


def read(tool, name):
    text = sample(tool, name).decode()
    return registry.find(tool).read({"stdout": text}), text


def figures(reading):
    return {each.metric: (each.value, each.unit, each.direction) for each in reading.measurements}


def test_lines_are_read_among_others():
    reading, _text = read("lines", "three.txt")

    assert reading.status == "finished"
    assert figures(reading) == {
        "tps": (14203.5, "tps", "higher"),
        "latency_p99": (3.25, "ms", "lower"),
        "wal_size": (81.0, "MiB", "lower"),
    }
    assert reading.unknown_lines == ("starting the load", "done")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("score=7 points\n", "no_direction"),
        ("tps=1 tps\ntps=2 tps\n", "several_results"),
        ("tps=1e99 tps\n", "not_a_number"),
        ("tps=1.2.3 tps\n", "not_a_number"),
        ("tps=1 tps\nlatency=1", "cut"),
        ("".join(f"m{number}=1 ms\n" for number in range(901)), "too_many"),
    ],
)
def test_lines_that_leave_a_doubt_have_no_figures(text, code):
    reading = registry.find("lines").read({"stdout": text})

    assert (reading.status, reading.measurements) == ("failed", ())
    assert code in [reason.code for reason in reading.reasons]


def test_google_benchmark_gives_each_time_in_milliseconds():
    reading, text = read("google_benchmark", "plain.json")
    printed = json.loads(text)["benchmarks"]

    found = figures(reading)
    assert reading.tool_version == "1.9.5"
    assert len(found) == 2 * len(printed) + sum("items_per_second" in each for each in printed)
    (first,) = [each for each in printed if each["name"] == "sum_million"]
    unit = {"ns": 1e-6, "us": 1e-3, "ms": 1.0}[first["time_unit"]]
    assert found["sum_million_real_time"] == pytest.approx(
        (first["real_time"] * unit, "ms", "lower")
    )


def test_of_repetitions_of_google_benchmark_the_median_counts():
    reading, text = read("google_benchmark", "repeated.json")
    printed = [
        each["cpu_time"] * {"ns": 1e-6, "us": 1e-3, "ms": 1.0}[each["time_unit"]]
        for each in json.loads(text)["benchmarks"]
        if each["run_name"] == "sum_million" and each["run_type"] == "iteration"
    ]

    assert len(printed) == 3
    assert figures(reading)["sum_million_cpu_time"][0] == pytest.approx(statistics.median(printed))


def test_hyperfine_gives_the_median_of_each_command():
    reading, text = read("hyperfine", "two.json")
    printed = {each["command"]: each["median"] for each in json.loads(text)["results"]}

    assert figures(reading)["sleep_0_01_elapsed"] == (printed["sleep 0.01"], "s", "lower")
    assert figures(read("hyperfine", "parameters.json")[0]).keys() >= {"n_1_elapsed", "n_2_elapsed"}


def test_a_command_that_failed_leaves_no_figure():
    reading, _text = read("hyperfine", "failed.json")

    assert (reading.status, reading.measurements) == ("failed", ())
    assert reading.reasons[0].code == "command_failed"


def test_pytest_benchmark_gives_the_median_of_each_test():
    reading, text = read("pytest_benchmark", "three.json")
    printed = {each["name"]: each["stats"]["median"] for each in json.loads(text)["benchmarks"]}

    assert reading.tool_version == "5.3.1"
    assert len(figures(reading)) == 3
    assert figures(reading)["test_sum_time"] == (printed["test_sum"] * 1000, "ms", "lower")


def test_one_is_not_taken_for_the_other():
    tools = ("google_benchmark", "hyperfine", "pytest_benchmark")
    for tool in tools:
        for other in tools:
            for text in samples(other).values():
                if other != tool:
                    with pytest.raises(UnreadableOutput):
                        registry.find(tool).read({"stdout": text.decode()})
