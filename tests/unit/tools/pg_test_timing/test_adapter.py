"""pg_test_timing's output gives what reading the clock costs."""

import pytest

from runs.tools import registry
from tests.unit.tools.reading import codes, figures, read, sample

ADAPTER = registry.find("pg_test_timing")


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
    assert figures(ADAPTER.read({"raw": line})) == {"clock_read_time": nanoseconds}


def test_without_its_result_it_failed():
    text = sample("pg_test_timing", "default.txt").partition(b"Per loop")[0]

    assert codes(ADAPTER.read({"raw": text})) == ["no_result"]
