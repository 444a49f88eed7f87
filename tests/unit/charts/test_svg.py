"""Still pictures: well-formed, with everything of the figure at its place."""

import xml.etree.ElementTree as ET

import pytest

from runs.charts import svg
from runs.charts.bars import Bar, Group, bars
from runs.charts.comparison import Axes, Spot, Track, comparison
from runs.charts.forest import Branch, Words, forest
from runs.charts.palette import STYLES
from runs.charts.scale import Categories, Linear, Logarithmic, nice
from runs.charts.scaling import Line, Point, scaling

NAMESPACE = "{http://www.w3.org/2000/svg}"


def drawn(figure, **more):
    return ET.fromstring(svg.render(figure, **more))


def texts(picture):
    return [element.text for element in picture.iter(f"{NAMESPACE}text")]


def line(version, *medians, spread=0.0):
    points = tuple(
        Point(2**at, median, median - spread, median + spread, 3)
        for at, median in enumerate(medians)
    )
    return Line(f"PostgreSQL {version}", version, points)


def lines(*drawn_lines, **more):
    return scaling(drawn_lines, x_title="Clients", y_title="tps", **more)


def points(picture):
    return [
        tuple(tuple(map(float, pair.split(","))) for pair in each.get("points").split())
        for each in picture.iter(f"{NAMESPACE}polyline")
        if len(each.get("points").split()) > 2
    ]


def test_a_line_goes_through_its_points_higher_values_higher_up():
    ((first, second, third),) = points(drawn(lines(line("16", 100, 300, 200))))
    assert first[0] < second[0] < third[0]
    assert second[1] < third[1] < first[1]


def test_logarithmic_steps_are_equally_wide():
    figure = lines(line("16", 10, 100, 1000), log_x=True, log_y=True)
    ((first, second, third),) = points(drawn(figure))
    assert second[0] - first[0] == pytest.approx(third[0] - second[0], abs=0.2)
    assert first[1] - second[1] == pytest.approx(second[1] - third[1], abs=0.2)


def test_whiskers_are_there_only_where_there_is_a_range():
    def whiskers(spread):
        picture = drawn(lines(line("16", 100, 300, spread=spread)))
        return len(list(picture.iter(f"{NAMESPACE}path")))

    assert (whiskers(0), whiskers(10)) == (0, 2)


def test_twelve_versions_have_a_legend_within_the_picture():
    figure = lines(*(line(version, 1, 2, 3) for version in list(STYLES)[:12]))
    picture = drawn(figure, title="tps & clients")
    assert [text for text in texts(picture) if text.startswith("PostgreSQL")] == [
        f"PostgreSQL {version}" for version in list(STYLES)[:12]
    ]
    assert picture.find(f"{NAMESPACE}title").text == "tps & clients"
    right = max(float(each.get("x")) for each in picture.iter(f"{NAMESPACE}text"))
    assert right < svg.WIDTH


def test_one_line_needs_no_legend():
    assert "PostgreSQL 16" not in texts(drawn(lines(line("16", 1, 2))))


@pytest.mark.parametrize("name", ["<script>", "a & b", '"quoted"', "日本語"])
def test_what_people_wrote_is_text(name):
    figure = bars([Group("g", (Bar(name, 1, 1, 1, 1),))], x_title=name, y_title=name)
    assert texts(drawn(figure, title=name)).count(name) == 3


def test_bars_stand_side_by_side_and_their_heights_are_their_values():
    groups = [
        Group(label, (Bar("a", value, value, value, 1),)) for label, value in (("x", 1), ("y", 2))
    ]
    figure = bars(groups, x_title="", y_title="s")
    low, high = list(drawn(figure).iter(f"{NAMESPACE}rect"))[:2]
    assert float(high.get("height")) == pytest.approx(2 * float(low.get("height")), abs=0.2)
    assert float(high.get("x")) >= float(low.get("x")) + float(low.get("width")) - 0.2


def test_piled_bars_begin_where_the_one_below_ends():
    groups = [Group(label, (Bar("a", 1, 1, 1, 1),)) for label in "xy"]
    figure = bars(groups, x_title="", y_title="s", stacked=True)
    lower, upper = list(drawn(figure).iter(f"{NAMESPACE}rect"))[:2]
    assert float(upper.get("y")) + float(upper.get("height")) == pytest.approx(
        float(lower.get("y")), abs=0.2
    )


def test_a_forest_has_its_rows_from_the_top_and_the_band_of_small_effects():
    rows = [Branch(name, "faster", 1.2, 1.1, 1.3) for name in ("first", "second")]
    picture = drawn(forest(rows, minimum_effect=0.03, words=Words()))
    at = {each.text: float(each.get("y")) for each in picture.iter(f"{NAMESPACE}text")}
    assert at["first"] < at["second"]
    assert any(each.get("fill") == svg.BAND for each in picture.iter(f"{NAMESPACE}rect"))


def test_what_the_compare_page_draws_can_be_drawn():
    tracks = [
        Track("16", 0, (Spot(1, 1.0, 0.9, 1.1, 3), Spot(8, 2.0, 1.9, 2.1, 3)), "16"),
        Track("other", 1, (Spot(1, 1.0, 0.9, 1.1, 3),)),
    ]
    (figure,) = comparison([tracks], Axes("Clients", "ratio", relative=True))
    assert "ratio" in texts(drawn(figure))


def test_an_empty_figure_is_a_picture_still():
    assert drawn(lines()).tag == f"{NAMESPACE}svg"


def test_an_unknown_kind_of_trace_is_refused():
    with pytest.raises(ValueError, match="heatmap"):
        svg.render({"data": [{"type": "heatmap"}], "layout": {}})


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (0, 1.0, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (950, 1060, [960, 980, 1000, 1020, 1040, 1060]),
        (-5, 5, [-4, -2, 0, 2, 4]),
        (3, 3, [3]),
    ],
)
def test_ticks_are_round(low, high, ticks):
    assert nice(low, high) == ticks


@pytest.mark.parametrize(
    ("scale", "value", "place"),
    [
        (Linear(0, 10), 5, 0.5),
        (Linear(0, 10), "name", None),
        (Logarithmic(1, 100), 10, 0.5),
        (Logarithmic(1, 100), 0, None),
        (Categories(("a", "b")), "b", 0.75),
        (Categories(("a", "b")), "c", None),
        (Categories(("a", "b")), -0.5, 0.0),
    ],
)
def test_values_have_their_places(scale, value, place):
    assert scale.place(value) == place
