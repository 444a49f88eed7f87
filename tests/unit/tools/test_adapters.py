"""What holds for every adapter and every text: one error at most, no wrong number, linear time."""

import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.tools import registry
from runs.tools.adapter import Adapter, Files, Reading, UnreadableOutput
from runs.tools.text import UNKNOWN_LINES
from tests.each import examples
from tests.unit.timing import cpu_seconds
from tests.unit.tools.pgbench.samples import all_samples, samples_with_log
from tests.unit.tools.reading import samples

ADAPTERS = registry.every()


def recorded_texts(adapter: Adapter) -> list[bytes]:
    """What the tool wrote, of every recorded run."""
    return list(samples(adapter.name).values())


PGBENCH = [run.stdout.encode() for run in all_samples()]
TEXTS = {each.name: recorded_texts(each) for each in ADAPTERS} | {"pgbench": PGBENCH}
LOGS = [text for run in samples_with_log() if run.version == "18.6" for text in run.logs.values()]
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
STRANGE = (b"nan", b"inf", b"-nan", b"1e999", b"\x00", b"\xff\xfe", b"99999999999999999999", b",5")
STRANGER = b"What no tool prints, ever.\n"
TEN_MEGABYTES = 10_000_000

each = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)


def reading_of(adapter: Adapter, files: Files) -> Reading | None:
    """The reading, which has to be sound; None where the adapter refuses the files."""
    try:
        reading = adapter.read(files)
    except UnreadableOutput as refused:
        said = (refused.code, refused.message, refused.remedy)
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
        [*reading.unknown_lines, *(reason.message for reason in reading.reasons + reading.notes)]
    )
    text += "".join([*reading.labels.values(), *(value.title for value in reading.measurements)])
    assert "\x00" not in text
    text.encode()


@each
@given(st.dictionaries(st.sampled_from(FILE_NAMES), st.binary() | st.text(), max_size=3))
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
    text = next(t for t in TEXTS[adapter.name] if (r := reading_of(adapter, {"raw": t})) and r)

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
    for number in ("9" * 5000, "1e999", "NaN", "-Infinity", "1e18"):
        for text in TEXTS[adapter.name][:5]:
            swapped = re.sub(rb"\d+\.\d+", number.encode(), text)
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
            found = reading is not None and STRANGER.decode().strip() in reading.unknown_lines
            assert found or reading is None or reading.status == "failed", (text[:200], place)
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
                        reading_of(adapter, {"stdout": json.dumps({**document, key: value})})
