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


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("2.2", "Table 2.2"),
        ("図 3.7", "Figure 3.7"),
        ("9.4.2", "Section 9.4.2"),
        ("3.1.2-1", "Section 3.1.2 (1)"),
        ("flame-graph", "flame-graph"),
    ],
)
def test_a_place_of_a_publication_is_a_table_a_figure_or_a_section(number, text):
    assert formats.place(number) == text


def test_what_is_not_printed_is_unknown_and_a_range_of_ratios_is_told_in_its_own_measure():
    assert (formats.repeats(None), formats.repeats(3)) == ("n unknown", "n = 3")
    assert formats.ratio_range([0.98, 0.944]) == "-5.6 % – -2.0 %"
    assert formats.ratio_range([1.416, 111.2]) == "×1.416 – ×111"
    assert formats.ratio_range([]) == "–"


@pytest.mark.parametrize(
    ("value", "shown"), [(["read", "upload"], "read, upload"), ([], None), ("read", "read")]
)
def test_several_values_are_one_line(value, shown):
    assert formats.listed(value) == shown
