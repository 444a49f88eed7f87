"""What holds for every adapter and every text: one error at most, no wrong number, linear time."""

import json
import math
import re
import statistics
from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.tools import known_metrics, registry
from runs.tools.adapter import Adapter, Files, Reading, UnreadableOutput
from runs.tools.metrics import interval_of, regular
from runs.tools.output import UNKNOWN_LINES, document_of, documents_in, number
from runs.wording import Marked, put
from tests.each import examples
from tests.unit.timing import cpu_seconds
from tests.unit.tools.pgbench.samples import all_samples, samples_with_log
from tests.unit.tools.reading import sample, samples

ADAPTERS = registry.every()


def recorded_texts(adapter: Adapter) -> list[bytes]:
    """What the tool wrote, of every recorded run."""
    return list(samples(adapter.name).values())


PGBENCH = [run.stdout.encode() for run in all_samples()]
TEXTS = {each.name: recorded_texts(each) for each in ADAPTERS} | {"pgbench": PGBENCH}
LOGS = [
    text
    for run in samples_with_log()
    if run.version == "18.6"
    for text in run.logs.values()
]
FILE_NAMES = (
    "stdout",
    "stderr",
    "raw",
    "log",
    "pgbench_log.17",
    "exit_status",
    "summary",
    "timing",
)
STRANGE = (
    b"nan",
    b"inf",
    b"-nan",
    b"1e999",
    b"\x00",
    b"\xff\xfe",
    b"99999999999999999999",
    b",5",
)
STRANGER = b"What no tool prints, ever.\n"
TEN_MEGABYTES = 10_000_000

each = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)


def reading_of(adapter: Adapter, files: Files) -> Reading | None:
    """The reading, which has to be sound; None where the adapter refuses the files."""
    try:
        reading = adapter.read(files)
    except UnreadableOutput as refused:
        said = (refused.code, refused.message, put(refused.remedy))
        assert all(said), "a refusal says what was found and what to do"
        return None
    assert_sound(reading)
    return reading


def assert_sound(reading: Reading) -> None:
    assert all(math.isfinite(value.value) for value in reading.measurements)
    assert (reading.status == "finished") == (not reading.reasons)
    assert bool(reading.measurements) or reading.status != "finished"
    assert not (reading.measurements and reading.status == "failed")
    assert len(reading.unknown_lines) <= UNKNOWN_LINES
    said = (*reading.reasons, *reading.notes)
    assert all(
        isinstance(each.wording["text"], Marked) for each in said
    )  # for other languages
    names = [value.metric for value in reading.measurements]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9_]{1,80}", name) for name in names)
    assert all(0 < len(value.title) <= 200 for value in reading.measurements)
    in_time = [found.name for found in reading.series]
    assert len(set(in_time)) == len(in_time)
    for found in reading.series:
        assert re.fullmatch(r"[a-z0-9_]{1,80}", found.name)
        assert found.interval > 0
        assert all(value is None or math.isfinite(value) for value in found.values)
    assert_storable(reading)


def assert_storable(reading: Reading) -> None:
    """PostgreSQL takes neither NUL nor half a surrogate pair."""
    text = repr(reading) + "".join(
        [
            *reading.unknown_lines,
            *(reason.message for reason in reading.reasons + reading.notes),
        ]
    )
    text += "".join(
        [*reading.labels.values(), *(value.title for value in reading.measurements)]
    )
    assert "\x00" not in text
    text.encode()


@each
@given(
    st.dictionaries(st.sampled_from(FILE_NAMES), st.binary() | st.text(), max_size=3)
)
@settings(max_examples=examples(100), deadline=None)
def test_any_files_give_a_reading_or_the_one_error(adapter, files):
    reading_of(adapter, files)


@each
@given(st.data())
@settings(max_examples=examples(100), deadline=None)
def test_a_disturbed_output_gives_a_reading_or_the_one_error(adapter, data):
    text = data.draw(st.sampled_from(TEXTS[adapter.name]))
    for _ in range(data.draw(st.integers(1, 4))):
        begin = data.draw(st.integers(0, len(text)))
        end = min(len(text), begin + data.draw(st.integers(0, 40)))
        text = text[:begin] + data.draw(st.sampled_from(STRANGE)) + text[end:]

    reading_of(adapter, {"stdout": text})


@each
@given(st.data())
@settings(max_examples=examples(60), deadline=None)
def test_interleaved_outputs_give_a_reading_or_the_one_error(adapter, data):
    lines = [
        line
        for text in data.draw(
            st.lists(st.sampled_from(TEXTS[adapter.name]), min_size=2, max_size=3)
        )
        for line in text.splitlines(keepends=True)[:400]
    ]
    mixed = data.draw(st.randoms(use_true_random=False)).sample(lines, len(lines))

    reading_of(adapter, {"stdout": b"".join(mixed)})


@each
@given(st.data())
@settings(max_examples=examples(200), deadline=None)
def test_a_cut_output_gives_no_number_that_the_whole_one_does_not_give(adapter, data):
    text = data.draw(st.sampled_from(TEXTS[adapter.name]))

    assert_no_other_number(adapter, text, text[: data.draw(st.integers(0, len(text)))])


def assert_no_other_number(adapter: Adapter, whole: bytes, part: bytes) -> None:
    full, less = (reading_of(adapter, {"stdout": text}) for text in (whole, part))
    # Lines are independent of each other: what a whole text spoils, its beginning need not.
    if less is None or (adapter.name == "lines" and full and full.status == "failed"):
        return
    known = {(v.metric, v.value) for v in full.measurements} if full else set()
    assert {(v.metric, v.value) for v in less.measurements} <= known
    series = {found.name: found.values for found in full.series} if full else {}
    for found in less.series:
        assert series[found.name][: len(found.values)] == found.values


@each
def test_the_same_run_twice_is_not_taken_for_one(adapter):
    for text in TEXTS[adapter.name]:
        once = reading_of(adapter, {"stdout": text})
        if once and once.status == "finished" and adapter.name != "hammerdb":
            twice = reading_of(adapter, {"stdout": text + b"\n" + text})
            assert twice
            assert twice.status == "failed"


@each
@pytest.mark.parametrize("codec", ["utf-16", "utf-8-sig"])
def test_the_byte_order_mark_of_windows_is_understood(adapter, codec):
    text = next(
        t for t in TEXTS[adapter.name] if (r := reading_of(adapter, {"raw": t})) and r
    )

    assert reading_of(adapter, {"raw": text.decode().encode(codec)}) == reading_of(
        adapter, {"raw": text}
    )


@each
def test_a_single_line_of_ten_megabytes_takes_no_time(adapter):
    def read_all() -> None:
        for line in (b"x", b" ", b"1 ", b"(", b"tps = 1", b"[{", b'"', b"1.5\t", b"a:"):
            reading_of(adapter, {"stdout": line * (TEN_MEGABYTES // len(line))})

    assert cpu_seconds(read_all, tries=1) < 20


@each
@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[\n" * 50_000])
def test_deeply_nested_json_is_no_trouble(adapter, text):
    reading_of(adapter, {"stdout": text})


@each
def test_numbers_too_large_for_python_are_no_trouble(adapter):
    for digits in ("9" * 5000, "1e999", "NaN", "-Infinity", "1e18"):
        for text in TEXTS[adapter.name][:5]:
            swapped = re.sub(rb"\d+\.\d+", digits.encode(), text)
            reading = reading_of(adapter, {"stdout": swapped})
            assert reading is None or all(v.value < 1e19 for v in reading.measurements)


@each
def test_a_line_that_the_tool_never_prints_is_reported_or_spoils_the_run(adapter):
    reported = []
    for text in TEXTS[adapter.name]:
        lines = text.splitlines(keepends=True)
        for place in {0, len(lines) // 2, len(lines)}:
            mixed = b"".join([*lines[:place], STRANGER, *lines[place:]])
            reading = reading_of(adapter, {"stdout": mixed})
            found = (
                reading is not None
                and STRANGER.decode().strip() in reading.unknown_lines
            )
            assert found or reading is None or reading.status == "failed", (
                text[:200],
                place,
            )
            reported.append(found)
    # JSON with a stranger in it is no JSON.
    assert any(reported) or not any(map(_is_lines, TEXTS[adapter.name]))


def _is_lines(text: bytes) -> bool:
    return not text.lstrip().startswith((b"{", b"["))


@each
def test_no_output_is_refused_with_a_remedy(adapter):
    for files in ({}, {"stdout": b""}, {"raw": "\n\n"}):
        with pytest.raises(UnreadableOutput) as refused:
            adapter.read(files)

        assert refused.value.remedy


@each
def test_another_tools_output_is_refused_or_failed(adapter):
    for name, texts in TEXTS.items():
        if name == adapter.name:
            continue
        for text in texts[:10]:
            reading = reading_of(adapter, {"stdout": text})
            assert reading is None or reading.status == "failed", name


@given(st.data())
@settings(max_examples=examples(150), deadline=None)
def test_disturbed_logs_give_a_reading_or_the_one_error(data):
    adapter = registry.find("pgbench")
    assert adapter
    text = data.draw(st.sampled_from(LOGS))
    begin = data.draw(st.integers(0, len(text)))
    end = min(len(text), begin + data.draw(st.integers(0, 40)))
    strange = data.draw(st.sampled_from(STRANGE) | st.binary(max_size=20))

    reading_of(adapter, {"log": text[:begin] + strange + text[end:], "log.1": text})


def test_json_with_wrong_types_everywhere_is_no_trouble():
    def wrong(value):
        if isinstance(value, dict):
            return {key: wrong(inner) for key, inner in value.items()}
        return [1, "x", None] if isinstance(value, int | float) else {"x": []}

    for adapter in ADAPTERS:
        for text in TEXTS[adapter.name]:
            try:
                document = json.loads(text)
            except ValueError:
                continue
            reading_of(adapter, {"stdout": json.dumps(wrong(document))})
            if isinstance(document, dict):
                for key in document:
                    for value in (None, [], {}, "x", 1, [[]], [1], True):
                        reading_of(
                            adapter, {"stdout": json.dumps({**document, key: value})}
                        )


# Adapters are found by their folders.


NAMES = {
    "benchbase",
    "fio",
    "go_test",
    "go_tpc",
    "hammerdb",
    "pg_test_fsync",
    "pg_test_timing",
    "pgbench",
    "google_benchmark",
    "hyperfine",
    "lines",
    "pytest_benchmark",
    "sysbench",
}


def test_every_tool_with_an_adapter_is_found():
    assert {adapter.name for adapter in registry.every()} == NAMES


@pytest.mark.parametrize("adapter", registry.every(), ids=lambda adapter: adapter.name)
def test_an_adapter_is_found_by_the_name_of_its_folder(adapter):
    assert import_module(f"runs.tools.{adapter.name}.adapter").ADAPTER is adapter
    assert registry.find(adapter.name) is adapter
    assert adapter.title
    assert adapter.takes


@pytest.mark.parametrize("name", ["go-tpc", "go_tpc", " Go-TPC "])
def test_a_name_may_be_written_in_several_ways(name):
    assert registry.find(name) is registry.find("go_tpc")


@pytest.mark.parametrize(
    "name", ["", "adapter", "oracle", "../pgbench", "pgbench.adapter"]
)
def test_a_tool_without_an_adapter_is_none(name):
    assert registry.find(name) is None


def test_documents_are_found_among_other_lines():
    found = documents_in('fio: warning\n{"a": 1}\nRESULT\n[\n "x"\n]\nend')

    assert found.found == ({"a": 1}, ["x"])
    assert found.other_text == "fio: warning\n\nRESULT\n\nend"


def test_a_document_may_begin_behind_other_text_on_its_line():
    """As pytest prints its progress, and pytest-benchmark its JSON to standard output."""
    text = 'tests ..   [100%]{\n    "a": [\n        1\n    ]\n}\nrest {\nbehind\n'
    documents = documents_in(text)

    assert documents.found == ({"a": [1]},)
    assert documents.other_text == "tests ..   [100%]\nrest {\nbehind\n"


def test_a_document_that_is_not_whole_stays_text():
    assert documents_in('{"a": 1').found == ()
    assert documents_in('{"a": 1').other_text == '{"a": 1'


def test_after_many_failures_no_more_are_looked_for():
    assert documents_in("[1,x\n" * 50 + "{}\n").found == ()
    assert documents_in('{"a\n' * 50 + "{}\n").found == ()


@pytest.mark.parametrize(
    "line",
    [
        "[Current] 1",
        "[  1%] Building CXX object CMakeFiles/bench.dir/bench.cc.o",
        "[1/153] Compiling bench v0.1.0",
        "[ 1s ] thds: 8 tps: 14203.50 qps: 284070.00",
        "[2025-03-04 05:06:07] INFO: loading",
        "[05:06:07.123] loading",
        "[007] loading",
        "[-] loading",
        "[truenas] loading",
        "[[ -n $x ]] && echo",
        "{{ template }}",
    ],
)
def test_lines_of_a_log_in_brackets_are_no_documents(line):
    log = f"{line}\n" * 50
    documents = documents_in(f'{log}{{"a": [1]}}\n')

    assert documents.found == ({"a": [1]},)
    assert documents.other_text == f"{log}\n"


@pytest.mark.parametrize("text", ["[]", "[ 1 ]", "[[1, 2], []]", "[-1.5e3,2]", "[{}]"])
def test_documents_begin_with_any_value(text):
    assert documents_in(f"{text}\n").found == (json.loads(text),)


def test_the_json_of_a_tool_is_found_behind_the_log_of_its_build():
    log = "".join(f"[{share:3d}%] Building CXX object a.o\n" for share in range(100))
    text = sample("google_benchmark", "plain.json").decode()
    adapter = registry.find("google_benchmark")

    assert adapter.read({"stdout": log + text}).measurements == (
        adapter.read({"stdout": text}).measurements
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1.0),
        ("1.5", 1.5),
        (" 2 ", 2.0),
        (True, None),
        (None, None),
        ("nan", None),
        ("inf", None),
        (10**400, None),
        ([], None),
        ("12%", None),
    ],
)
def test_a_number_is_finite_or_none(value, expected):
    assert number(value) == expected


def test_a_line_is_a_document_only_as_a_whole():
    assert document_of('{"a": NaN}') == {"a": None}
    assert document_of("{} x") is None


def values(points, interval):
    return [
        found.values for found in regular(known_metrics.TPS, points, interval=interval)
    ]


def test_points_are_put_at_their_intervals():
    (found,) = regular(
        known_metrics.TPS, [(1.0, 10.0), (2.01, 20.0), (2.99, 30.0)], interval=1.0
    )

    assert (found.start, found.interval, found.values) == (1.0, 1.0, (10.0, 20.0, 30.0))


def test_an_interval_without_a_point_is_a_gap():
    assert values([(1.0, 1.0), (3.0, 3.0)], 1.0) == [(1.0, None, 3.0)]


def test_points_may_come_in_any_order_and_the_later_counts():
    assert values([(2.0, 2.0), (1.0, 1.0), (2.0, 5.0)], 1.0) == [(1.0, 5.0)]


@pytest.mark.parametrize(
    ("points", "interval"),
    [
        ([], 1.0),
        ([(1.0, 1.0)], None),
        ([(1.0, 1.0)], 0.0),
        ([(1.0, None), (2.0, None)], 1.0),
        ([(1.0, 1.0), (1e15, 2.0)], 1.0),
    ],
)
def test_points_that_are_no_series_give_none(points, interval):
    assert values(points, interval) == []


@pytest.mark.parametrize(
    ("seconds", "interval"),
    [
        ([1.0, 2.0, 3.0], 1.0),
        ([5.0, 10.0, 15.1, 20.0, 25.0], 5.0),
        ([1.0], None),
        ([], None),
        ([2, 2], None),
    ],
)
def test_the_interval_is_the_usual_distance(seconds, interval):
    assert interval_of(seconds) == interval


# Lines of any tool, and the JSON of Google Benchmark, hyperfine and pytest-benchmark.


def read(tool, name):
    text = sample(tool, name).decode()
    return registry.find(tool).read({"stdout": text}), text


def figures(reading):
    return {
        each.metric: (each.value, each.unit, each.direction)
        for each in reading.measurements
    }


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
        ("".join(f"m{place}=1 ms\n" for place in range(901)), "too_many"),
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
    assert len(found) == 2 * len(printed) + sum(
        "items_per_second" in each for each in printed
    )
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
    assert figures(reading)["sum_million_cpu_time"][0] == pytest.approx(
        statistics.median(printed)
    )


def test_hyperfine_gives_the_median_of_each_command():
    reading, text = read("hyperfine", "two.json")
    printed = {each["command"]: each["median"] for each in json.loads(text)["results"]}

    assert figures(reading)["sleep_0_01_elapsed"] == (
        printed["sleep 0.01"],
        "s",
        "lower",
    )
    assert figures(read("hyperfine", "parameters.json")[0]).keys() >= {
        "n_1_elapsed",
        "n_2_elapsed",
    }


def of_commands(*rows):
    results = [
        {"command": command, "mean": 1.0, "median": place + 1.0, "parameters": values}
        for place, (command, values) in enumerate(rows)
    ]
    reading = registry.find("hyperfine").read(
        {"stdout": json.dumps({"results": results})}
    )
    return reading, {name: value for name, (value, _u, _d) in figures(reading).items()}


def test_several_commands_of_the_same_parameters_are_named_by_both():
    """As of hyperfine -L n 1,2 './old {n}' './new {n}'."""
    rows = [(f"./{name} {n}", {"n": n}) for n in "12" for name in ("old", "new")]
    reading, found = of_commands(*rows)

    assert reading.status == "finished"
    assert found == {
        "old_1_n_1_elapsed": 1.0,
        "new_1_n_1_elapsed": 2.0,
        "old_2_n_2_elapsed": 3.0,
        "new_2_n_2_elapsed": 4.0,
    }


def test_commands_named_by_hand_keep_their_parameters():
    """As of hyperfine -n old -n new -L n 1,2 './a {n}' './b {n}'."""
    rows = [(name, {"n": n}) for n in "12" for name in ("old", "new")]

    assert of_commands(*rows)[1].keys() == {
        f"{name}_n_{n}_elapsed" for name in ("old", "new") for n in "12"
    }


def test_a_command_that_is_there_twice_is_refused():
    reading, found = of_commands(("./a 1", {"n": "1"}), ("./a 1", {"n": "1"}))

    assert (reading.status, found) == ("failed", {})


def test_commands_that_differ_by_case_stay_apart():
    """As of hyperfine 'rg -u x' 'rg -U x'."""
    reading, found = of_commands(("rg -u x", {}), ("rg -U x", {}))

    assert reading.status == "finished"
    assert sorted(found.values()) == [1.0, 2.0]


def test_counters_that_differ_by_case_stay_apart():
    row = {"name": "scan", "real_time": 1.0, "time_unit": "ms", "rows": 5, "Rows": 7}
    document = {"context": {"num_cpus": 2}, "benchmarks": [row]}
    reading = registry.find("google_benchmark").read({"stdout": json.dumps(document)})

    names = {value.metric for value in reading.measurements if value.value in {5, 7}}
    assert len(names) == 2


def test_a_command_that_failed_leaves_no_figure():
    reading, _text = read("hyperfine", "failed.json")

    assert (reading.status, reading.measurements) == ("failed", ())
    assert reading.reasons[0].code == "command_failed"


def test_pytest_benchmark_gives_the_median_of_each_test():
    reading, text = read("pytest_benchmark", "three.json")
    printed = {
        each["name"]: each["stats"]["median"] for each in json.loads(text)["benchmarks"]
    }

    assert reading.tool_version == "5.3.1"
    assert len(figures(reading)) == 3
    assert figures(reading)["test_sum_time"] == (
        printed["test_sum"] * 1000,
        "ms",
        "lower",
    )


def test_one_is_not_taken_for_the_other():
    tools = ("go_test", "google_benchmark", "hyperfine", "pytest_benchmark")
    for tool in tools:
        for other in tools:
            for text in samples(other).values():
                if other != tool:
                    with pytest.raises(UnreadableOutput):
                        registry.find(tool).read({"stdout": text.decode()})
