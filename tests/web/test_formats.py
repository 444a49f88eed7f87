"""How numbers, times and texts are written."""

from datetime import timedelta

import pytest

from runs.templatetags import formats


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0, "0"),
        (12345.6, "12,346"),
        (987.64, "987.6"),
        (12.346, "12.35"),
        (0.12346, "0.1235"),
        (4, "4"),
    ],
)
def test_a_quantity_has_the_digits_that_say_something(value, text):
    assert formats.quantity(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (-3, "0.0 s"),
        (4.24, "4.2 s"),
        (59, "59 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
        (timedelta(days=1, hours=2), "1 day 2 h"),
        (3 * 86400, "3 days 0 h"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds, text):
    assert formats.duration(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(None, "–"), (512, "512 B"), (8 * 2**30, "8 GiB"), (3 * 2**41, "6 TiB")],
)
def test_bytes_are_counted_in_binary_units(size, text):
    assert formats.bytesize(size) == text


def test_a_ratio_is_also_a_change():
    assert (formats.ratio(1.0826), formats.change(1.0826)) == ("1.083", "+8.3 %")
    assert (formats.ratio(None), formats.change(None)) == ("–", "–")


def test_a_command_is_written_as_one_would_type_it():
    assert formats.shell(["psql", "-c", "SELECT 1"]) == "psql -c 'SELECT 1'"


def test_a_short_text_stays_whole():
    assert formats.capped("short", 10) == "short"
