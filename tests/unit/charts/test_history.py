"""The charts of histories: every point, one scale, one axis of time."""

import random
import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import pytest

from runs.charts.history import LARGE, SMALL, Event, History, Mark, Point, axes, picture

NAMESPACE = "{http://www.w3.org/2000/svg}"
START = datetime(2026, 1, 1, tzinfo=UTC)


def day(number):
    return START + timedelta(days=number)


def history(*medians, marks=(), events=(), spread=1.0):
    points = [
        Point(day(number), median, median - spread, median + spread, 3, f"c{number}")
        for number, median in enumerate(medians)
    ]
    return History(points, marks, events)


def drawn(one, *others, size=SMALL):
    text = picture(one, axes([one, *others]), size, label="tps, <clients> 8")
    return ET.fromstring(text)


def dots(svg):
    """The places of all dots, from the left."""
    places = []
    for path in svg.iter(f"{NAMESPACE}path"):
        if path.get("class").startswith("history__dots"):
            found = re.findall(r"M([\d.]+) ([\d.]+)h0", path.get("d"))
            places += [(float(x), float(y)) for x, y in found]
    return sorted(places)


def of(svg, kind):
    return [element for element in svg.iter() if element.get("class") == kind]


@pytest.mark.parametrize(
    ("size", "number"), [(SMALL, 60), (LARGE, 2000), (LARGE, 5000)]
)
def test_every_point_is_drawn_at_its_time_and_value(size, number):
    generator = random.Random(3)
    levels = [1000 * generator.lognormvariate(0, 0.02) for _each in range(number)]
    levels[number // 3], levels[number // 2] = 300.0, 2500.0
    svg = drawn(history(*levels), size=size)
    places, arrows = dots(svg), of(svg, "history__beyond")
    assert len(places) + len(arrows) == number
    assert len(arrows) >= 2
    left, right = float(svg.get("data-left")), float(svg.get("data-right"))
    assert all(left <= x <= right for x, _y in places)
    # Higher values stand higher up.
    highest = max(level for level in levels if level < 1500)
    assert min(y for _x, y in places) == pytest.approx(place_of(svg, highest), abs=0.11)


def place_of(svg, value):
    """By the attributes that the script reads."""
    low, high, reference = (
        float(svg.get(f"data-{name}")) for name in ("low", "high", "reference")
    )
    top, bottom = float(svg.get("data-top")), float(svg.get("data-bottom"))
    return bottom - (value / reference - 1 - low) / (high - low) * (bottom - top)


def test_a_spike_is_an_arrow_with_its_value_and_the_scale_stays():
    calm = [100.0 + 0.3 * (number % 5) for number in range(60)]
    wild = [*calm[:30], 31.0, *calm[31:]]
    one, other = axes([history(*calm)]), axes([history(*wild)])
    assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=0.05)
    svg = drawn(history(*wild))
    (arrow,) = of(svg, "history__beyond")
    assert arrow.findtext(f"{NAMESPACE}title") == "c30: 31"
    assert "\N{MINUS SIGN}69 %" in [
        element.text for element in svg.iter(f"{NAMESPACE}text")
    ]


def test_all_charts_have_one_scale_and_one_axis_of_time():
    step = [Mark(day(4), 100.0, 93.0)]
    changed = history(*[100.0] * 4, *[93.0] * 4, marks=step)
    same = history(*[5000.0] * 8)
    both = axes([changed, same])
    pictures = [
        ET.fromstring(picture(one, both, SMALL, label="x")) for one in (changed, same)
    ]
    for name in ("data-from", "data-to", "data-low", "data-high"):
        assert len({svg.get(name) for svg in pictures}) == 1, name
    assert [float(svg.get("data-reference")) for svg in pictures] == [100.0, 5000.0]
    # 93 is 7 % below on both.
    assert place_of(pictures[0], 93.0) == pytest.approx(place_of(pictures[1], 4650.0))


def test_levels_stand_between_steps_and_points_after_a_change_look_otherwise():
    steps = [Mark(day(4), 9.0, 12.0), Mark(day(2), 10.0, 9.0)]
    svg = drawn(history(10, 10, 9, 9, 12, 12, marks=steps, spread=0.0))
    levels = of(svg, "history__level")
    assert [float(line.get("y1")) for line in levels] == [
        pytest.approx(place_of(svg, value), abs=0.06) for value in (10, 9, 12)
    ]
    assert len(of(svg, "history__change")) == 2
    (after,) = of(svg, "history__dots history__dots--after")
    assert after.get("d").count("h0") == 4


def test_an_alarm_is_a_mark_and_no_level():
    svg = drawn(history(10, 7, marks=[Mark(day(1), 10.0, 7.0, is_step=False)]))
    assert len(of(svg, "history__alarm")) == 1
    assert not of(svg, "history__change")


def test_another_machine_and_a_decision_are_lines_with_their_texts():
    events = [
        Event(day(1), "kernel <6.8>", "kernel\nmemory", is_machine=True),
        Event(day(2), "confirmed", "confirmed\nichiro"),
    ]
    svg = drawn(history(10, 11, 10, events=events), size=LARGE)
    assert len(of(svg, "history__machine")) == len(of(svg, "history__decision")) == 1
    titles = [element.text for element in svg.iter(f"{NAMESPACE}title")]
    assert titles == ["kernel\nmemory", "confirmed\nichiro"]
    assert "kernel <6.8>" in [element.text for element in svg.iter(f"{NAMESPACE}text")]


def test_a_history_of_one_point_or_of_zeros_is_drawn():
    for medians in ((10.0,), (0.0, 0.0), (0.0, 5.0)):
        svg = drawn(history(*medians, spread=0.0), size=LARGE)
        assert len(dots(svg)) + len(of(svg, "history__beyond")) == len(medians)
