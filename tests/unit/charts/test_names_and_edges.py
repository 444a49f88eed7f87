"""Names beside lines, wild values at the edge, figures beside whiskers: whatever is drawn."""

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from runs.charts import looks, svg
from runs.charts.bars import bars
from runs.charts.figure import cut_within
from runs.charts.scaling import Axes, Line, Point, scaling

NAMESPACE = "{http://www.w3.org/2000/svg}"


def drawn(figure, look=looks.PAGE):
    return ET.fromstring(svg.render(figure, look=look))


def texts(picture, **attributes):
    return [
        element
        for element in picture.iter(f"{NAMESPACE}text")
        if all(element.get(name) == value for name, value in attributes.items())
    ]


def line(name, *values, major=""):
    points = (Point(2**at, value, value, value, 3) for at, value in enumerate(values))
    return Line(name, major, tuple(points))


ENDS = {
    "equal": lambda _index: 100.0,
    "at the top": lambda index: 100.0 - 0.01 * index,
    "at the bottom": lambda index: 100.0 if index == 0 else 0.5 + 0.01 * index,
    "spread": lambda index: 5.0 + 5.0 * index,
}


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("log_y", [False, True])
def test_each_name_stands_inside_the_picture_and_beside_its_line(kind, log_y):
    faults = []
    for number in range(2, 21):
        names = [
            f"PostgreSQL {index} with a configuration of its own"
            for index in range(number)
        ]
        ends = [ENDS[kind](index) for index in range(number)]
        lines = [
            line(name, 1.0, 2.0, end) for name, end in zip(names, ends, strict=True)
        ]
        picture = drawn(scaling(lines, Axes("Clients", "tps", log_y=log_y)))
        _left, _top, width, height = map(float, picture.get("viewBox").split())
        placed = texts(picture, **{"class": "name"})
        shown = {element.text.rstrip("…") for element in placed}
        if not all(any(name.startswith(text) for text in shown) for name in names):
            faults.append((number, "names", shown))
        heights = [float(element.get("y")) for element in placed]
        if not all(10 <= at <= height for at in heights):
            faults.append((number, "outside", heights))
        if not all(0 <= float(element.get("x")) < width for element in placed):
            faults.append((number, "beside the picture"))
        if any(after - before < 11 for before, after in pairwise(sorted(heights))):
            faults.append((number, "one covers the other", sorted(heights)))
        # The order of names is that of the ends of their lines.
        order = sorted(range(number), key=lambda index: (-ends[index], heights[index]))
        if [heights[index] for index in order] != sorted(heights):
            faults.append((number, "order", heights))
    assert not faults, "\n".join(map(str, faults))


def test_a_name_far_from_the_end_of_its_line_is_joined_to_it():
    lines = [line(f"PostgreSQL {index}", 1.0, 100.0) for index in range(9)]
    picture = drawn(scaling(lines, Axes("Clients", "tps")))
    joined = [
        element
        for element in picture.iter(f"{NAMESPACE}line")
        if element.get("y1") != element.get("y2")
        and element.get("x1") != element.get("x2")
    ]
    assert len(joined) >= 7


def bounds(picture):
    """The least and the greatest number at the y axis."""
    marks = texts(picture, **{"text-anchor": "end"})
    numbers = [float(element.text.replace(",", "")) for element in marks]
    return min(numbers), max(numbers)


def test_a_wild_run_is_an_arrow_with_its_value_and_not_the_axis():
    calm = (98.0, 100.0, 102.0)
    points = (
        Point(1, 100.0, 97.0, 103.0, 3, runs=calm),
        Point(2, 110.0, 107.0, 113.0, 3, runs=(*calm, 9254.0)),
    )
    picture = drawn(scaling([Line("16", "16", points)], Axes("Clients", "tps")))
    assert bounds(picture)[1] < 200
    arrows = [each for each in picture.iter() if each.get("class") == "beyond"]
    assert len(arrows) == 1
    assert [element.text for element in texts(picture) if element.text == "9,254"] == [
        "9,254"
    ]
    (faint,) = (each for each in picture.iter() if each.get("class") == "runs")
    assert len(list(faint)) == 6


def test_a_wild_interval_does_not_flatten_the_values():
    points = (Point(1, 100.0, 1.0, 9000.0, 2), Point(2, 104.0, 103.0, 105.0, 2))
    picture = drawn(scaling([Line("16", "16", points)], Axes("Clients", "tps")))
    assert bounds(picture)[1] < 200
    assert "9,000" in [element.text for element in texts(picture)]


@pytest.mark.parametrize("log_y", [False, True])
def test_no_whisker_strikes_through_a_figure(log_y):
    points = tuple(
        Point(name, value, value * 0.7, value * 1.4, 3, text=text)
        for name, value, text in (("HDD", 338.0, "338"), ("SSD", 1490.5, "1490.5"))
    )
    picture = drawn(bars([Line("", "", points)], Axes("Placement", "tps", log_y=log_y)))
    strokes = [
        tuple(map(float, stroke.groups()))
        for path in picture.iter(f"{NAMESPACE}path")
        for stroke in re.finditer(r"M([\d.]+) ([\d.]+)V([\d.]+)", path.get("d"))
    ]
    assert len(strokes) == 2
    for text in ("338", "1490.5"):
        (figure,) = (element for element in texts(picture) if element.text == text)
        x, y = float(figure.get("x")), float(figure.get("y"))
        for at, low, high in strokes:
            if abs(at - x) < 20:
                assert y <= min(low, high), text


def test_a_printed_figure_is_shown_as_it_is_printed():
    points = (
        Point("8 kB", 9254.0, 9254.0, 9254.0, None),
        Point("16 kB", 5996.6, 5996.6, 5996.6, 1),
    )
    shown = [
        element.text
        for element in texts(drawn(bars([Line("", "", points)], Axes("", "s"))))
    ]
    assert {"9,254", "5,996.6"} <= set(shown)


def test_a_logarithmic_axis_begins_at_a_value_that_is_named():
    for low, high in ((338, 37500), (0.3, 7), (12, 30), (1500, 9e6)):
        points = (Point("a", low, low, low, 1), Point("b", high, high, high, 1))
        picture = drawn(bars([Line("", "", points)], Axes("", "tps", log_y=True)))
        axis = [
            each
            for each in picture.iter(f"{NAMESPACE}line")
            if each.get("y1") == each.get("y2")
        ]
        bottom = max(float(each.get("y1")) for each in axis)
        marks = texts(picture, **{"text-anchor": "end"})
        assert max(float(mark.get("y")) for mark in marks) == pytest.approx(
            bottom + 4, abs=0.2
        ), low


@pytest.mark.parametrize("log_y", [False, True])
@pytest.mark.parametrize(("lines", "has_values"), [(1, True), (7, False)])
def test_values_are_printed_where_they_have_room(lines, has_values, log_y):
    """Eight levels: those of one line are read, and those of seven cover each other."""
    drawn_lines = [
        Line(
            f"line {number}",
            "",
            tuple(Point(f"load {at}", 1234.0, 1234.0, 1234.0, 1) for at in range(8)),
        )
        for number in range(lines)
    ]
    picture = drawn(bars(drawn_lines, Axes("Load", "tps", log_y=log_y)))

    printed = [element for element in texts(picture) if element.text == "1,234"]
    assert bool(printed) == has_values


def test_long_names_of_rows_keep_what_tells_them_apart():
    title = "17.7 : 12.22 · 2025 Writing with PostgreSQL 12 to 18, cached, {} clients"
    labels = [cut_within(title.format(number), 48) for number in (1, 40)]

    assert all(len(label) <= 48 for label in labels)
    assert all(label.startswith("17.7 : 12.22 · 2025 Wr") for label in labels)
    assert labels[0].endswith("cached, 1 clients")
    assert labels[1].endswith("cached, 40 clients")
    assert cut_within("short", 48) == "short"
