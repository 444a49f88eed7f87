"""Benchmarks of Go, of which real ones were recorded."""

import json
import re
import statistics

import pytest

from runs.tools import reader
from runs.tools.adapter import UnreadableOutput
from runs.tools.go_test.adapter import read
from tests.unit.tools.reading import sample


def text_of(name):
    return sample("go_test", name).decode()


def reading_of(name):
    return read({"stdout": text_of(name)})


def figures(reading):
    return {value.metric: value.value for value in reading.measurements}


def printed(text, name):
    """The times of a benchmark as its lines have them, in milliseconds."""
    found = re.findall(
        rf"^{re.escape(name)}\s+\d+\s+([\d.]+) ns/op", text, re.MULTILINE
    )
    return [float(value) / 1e6 for value in found]


def test_each_benchmark_has_its_time_in_milliseconds():
    text, reading = text_of("uuid_1.6.0.txt"), reading_of("uuid_1.6.0.txt")
    names = re.findall(r"^(Benchmark\S+)\s+\d+", text, re.MULTILINE)

    assert reading.status == "finished"
    assert reading.notes == ()
    assert len(figures(reading)) == len(names)
    assert figures(reading)["uuid_uuid_new_real_time"] == pytest.approx(
        printed(text, "BenchmarkUUID_New-2")[0]
    )
    assert {value.unit for value in reading.measurements} == {"ms"}


def test_a_figure_has_the_digits_that_were_printed():
    text = "BenchmarkA-8  500  2412345 ns/op  98.51 MB/s\nPASS\n"
    assert list(figures(read({"stdout": text})).values()) == [2.412345, 98_510_000.0]


def test_of_repeats_the_median_counts_and_other_units_have_their_direction():
    text, reading = text_of("plain.txt"), reading_of("plain.txt")
    times = printed(text, "BenchmarkSub/n=10-2")

    assert len(times) == 2
    found = {value.metric: value for value in reading.measurements}
    assert found["toy_sub_n_10_real_time"].value == pytest.approx(
        statistics.median(times)
    )
    directions = {
        "toy_sub_n_10_bytes_per_second": ("B/s", "higher"),
        "toy_sub_n_10_allocated_bytes": ("B", "lower"),
        "toy_sub_n_10_allocations": ("allocations", "lower"),
        "toy_sub_n_10_q_s": ("q/s", "higher"),
        "toy_sub_n_10_rows_op": ("rows/op", "neutral"),
    }
    for name, expected in directions.items():
        assert (found[name].unit, found[name].direction) == expected


def test_what_a_benchmark_prints_itself_does_not_hide_its_figures():
    text = text_of("plain.txt")

    assert re.search(r"^BenchmarkLoud-2\s+hello", text, re.MULTILINE)
    assert "toy_loud_real_time" in figures(reading_of("plain.txt"))
    assert "toy_log_real_time" in figures(reading_of("plain.txt"))
    assert not any("skip" in name for name in figures(reading_of("plain.txt")))


def test_the_events_of_json_are_the_text_in_them():
    reading = reading_of("events.json")
    text = "".join(
        json.loads(line).get("Output", "")
        for line in text_of("events.json").splitlines()
    )

    assert figures(reading) == figures(read({"stdout": text}))
    assert {"toy_add_real_time", "toy_loud_real_time"} <= figures(reading).keys()


def test_packages_and_processors_part_what_has_one_name():
    packages = figures(reading_of("packages.txt"))
    processors = figures(reading_of("processors.txt"))

    assert len(packages) == 4
    assert set(packages) == {
        f"{package}_{name}_real_time"
        for package in ("toy", "b")
        for name in ("add", "log")
    }
    assert set(processors) == {"toy_add_real_time", "toy_add_2_real_time"}


def test_a_benchmark_that_failed_leaves_the_others_partial():
    reading = reading_of("failed.txt")

    assert reading.status == "partial"
    assert [reason.message for reason in reading.reasons] == ["BenchmarkBad failed."]
    assert set(figures(reading)) == {"toy_add_real_time"}


@pytest.mark.parametrize("name", ["plain.txt", "events.json"])
def test_wherever_it_is_cut_no_figure_is_wrong(name):
    text = text_of(name)
    whole = set(figures(read({"stdout": text})))
    for length in range(1, len(text)):
        try:
            reading = read({"stdout": text[:length]})
        except UnreadableOutput:
            continue
        assert set(figures(reading)) <= whole, length
        assert set(figures(reading)) == whole or reading.reasons, length


def test_units_that_a_program_describes_are_believed():
    text = "Unit frags better=lower\nBenchmarkX-8 10 5 ns/op 7 frags\nPASS\n"
    _time, frags = read({"stdout": text}).measurements

    assert (frags.metric, frags.direction) == ("x_frags", "lower")


def test_a_panic_is_told():
    text = (
        "BenchmarkA-8 10 5 ns/op\nBenchmarkB-8 \npanic: no rows\n\ngoroutine 1 [x]:\n"
    )
    reading = read({"stdout": text})

    assert reading.status == "partial"
    assert reading.reasons[0].message == "It ended with: panic: no rows"


def test_it_is_recognised():
    for name in ("plain.txt", "events.json", "uuid_1.6.0.txt"):
        assert reader.tool_of({"stdout": text_of(name)}) == "go_test"


def test_text_of_another_kind_is_refused():
    with pytest.raises(UnreadableOutput):
        read({"stdout": "Benchmark results: fine\n"})


HEAD = "goos: linux\ngoarch: amd64\npkg: example.org/toy\n"
PLAIN = "BenchmarkPlain-2     \t10668069\t         0.5901 ns/op\n"
PASSED = "PASS\nok  \texample.org/toy\t0.037s\n"


@pytest.mark.parametrize("kind", ["text", "events"])
def test_packages_cut_in_a_later_one_have_no_end(kind):
    text = text_of("packages.txt")
    begin = text.index("pkg: example.org/toy/b")
    end = text.rindex("PASS")
    for length in (begin + 30, end - 100, end):
        cut = text[:length].rpartition("\n")[0] + "\n"
        if kind == "events":
            cut = events(cut)
        reading = read({"stdout": cut})
        assert "cut" in [reason.code for reason in reading.reasons], cut[-80:]
        assert reading.measurements == ()


def events(text):
    """As go test -json has it, where packages run side by side."""
    package, lines = "a", []
    for line in text.splitlines(keepends=True):
        package = "b" if "toy/b" in line else package
        lines.append(
            json.dumps({"Action": "output", "Package": package, "Output": line})
        )
    return "".join(f"{line}\n" for line in lines)


def test_a_package_that_was_cut_is_seen_before_one_that_ended():
    texts = {
        "a": f"{HEAD}{PLAIN}",
        "b": f"{HEAD.replace('toy', 'b')}{PLAIN}{PASSED}",
    }
    lines = [
        json.dumps({"Action": "output", "Package": package, "Output": line})
        for package, text in texts.items()
        for line in text.splitlines(keepends=True)
    ]

    reading = read({"stdout": "".join(f"{line}\n" for line in lines)})

    assert [reason.code for reason in reading.reasons] == ["cut"]


def test_what_is_no_number_is_left_out_alone():
    """As Go 1.26 prints ReportMetric of NaN, Inf and a unit that begins with a digit."""
    line = (
        "BenchmarkNaN-2       \t 5019243\t         1.113 ns/op\t        12.50 99p-ns\t"
        "      +Inf gain\t               NaN hit/op\n"
    )
    reading = read({"stdout": HEAD + line + PASSED})

    assert reading.status == "finished"
    assert figures(reading) == {
        "toy_nan_real_time": pytest.approx(1.113e-6),
        "toy_nan_99p_ns": 12.5,
    }


def test_a_text_before_a_name_costs_nothing():
    """Printed without an end of line, when the benchmark ran once."""
    text = f"{HEAD}loading...{PLAIN}{PASSED}"
    reading = read({"stdout": text})

    assert (reading.status, figures(reading)) == (
        "finished",
        {"toy_plain_real_time": pytest.approx(0.5901e-6)},
    )


@pytest.mark.parametrize(
    "lines",
    [
        ".BenchmarkDots-2      \t.... 5666326\t         1.050 ns/op\n",
        "BenchmarkDots-8    ....     100  12345678 ns/op\n",
        "BenchmarkDots-2      \tloading\n.... 5666326\t         1.050 ns/op\n",
        "BenchmarkDots-2      \t.... 5666326\t         7.500 q/s\n",
        "BenchmarkDots-2      \t 5666326\t         1.050 ns/op\t         3.000 50\n",
    ],
)
def test_figures_that_cannot_be_read_are_a_reason(lines):
    reading = read({"stdout": HEAD + PLAIN + lines + PASSED})

    assert reading.status == "partial"
    assert [reason.code for reason in reading.reasons] == ["unreadable_figure"]
    assert lines.splitlines()[-1].strip()[-20:] in reading.reasons[0].message
    assert set(figures(reading)) == {"toy_plain_real_time"}


def test_rates_that_a_benchmark_prints_itself_are_no_figures():
    text = f"{HEAD}BenchmarkLoud-2   \tread 5 MB/s\n  825584\t        98.48 ns/op\n{PASSED}"

    assert read({"stdout": text}).status == "finished"


def test_units_that_differ_by_case_stay_apart():
    line = "BenchmarkOwn-2  \t10108940\t  8.000 Rows/op\t  7.000 rows/op\n"

    assert sorted(figures(read({"stdout": HEAD + line + PASSED})).values()) == [
        7.0,
        8.0,
    ]
