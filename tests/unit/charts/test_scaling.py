"""The chart of a metric against a factor, tested by its data."""

import itertools
import json
import re

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.charts import palette
from runs.charts.arrangement import Part, drawing
from runs.charts.scaling import (
    LINE_HEIGHT,
    PLOT_HEIGHT,
    Axes,
    Line,
    Point,
    Words,
    scaling,
    shifts,
)


def line(label="16.14", major="16", base=1000.0):
    return Line(
        label=label,
        major=major,
        points=(
            Point(x=1, value=base, low=base - 50, high=base + 80, n=3),
            Point(x=4, value=3 * base, low=3 * base - 20, high=3 * base + 10, n=2),
        ),
    )


def figure(*lines, **options):
    made = scaling(lines, Axes("clients", "transactions per second", **options))
    go.Figure(made)
    json.dumps(made, allow_nan=False)
    return made


def test_each_version_is_one_line_of_medians():
    made = figure(line(), line("18.4", "18", 1100.0))

    assert [trace["name"] for trace in made["data"]] == ["16.14", "18.4"]
    assert made["data"][0]["x"] == [1, 4]
    assert made["data"][0]["y"] == [1000, 3000]
    assert made["data"][1]["y"] == [1100, 3300]


def test_whiskers_reach_from_the_minimum_to_the_maximum():
    whiskers = figure(line())["data"][0]["error_y"]

    assert whiskers["array"] == [80, 10]
    assert whiskers["arrayminus"] == [50, 20]
    assert whiskers["symmetric"] is False


def test_the_hover_text_gives_median_range_and_number_of_runs_in_the_readers_words():
    made = figure(line(), words=Words(value="中央値", range="範囲", runs="試行"))

    trace = made["data"][0]
    assert trace["customdata"] == [[950, 1080, 3], [2980, 3010, 2]]
    for word in (
        "clients: %{x}",
        "中央値: %{y",
        "範囲: %{customdata[0]",
        "試行: %{customdata[2]}",
    ):
        assert word in trace["hovertemplate"]


def test_axes_carry_the_titles_given_and_y_starts_at_zero():
    made = figure(line())["layout"]

    assert made["xaxis"]["title"]["text"] == "clients"
    assert made["yaxis"]["title"]["text"] == "transactions per second"
    assert made["yaxis"]["rangemode"] == "tozero"


def test_a_line_is_labelled_at_its_end_in_its_own_colour():
    (label,) = figure(line())["layout"]["annotations"]

    assert (label["x"], label["y"], label["text"]) == (4, 3000, "16.14")
    assert label["font"]["color"] == palette.style("16").colour


def test_on_a_logarithmic_axis_the_ticks_are_the_levels_and_labels_stand_at_the_logarithm():
    made = figure(line(), log_x=True)["layout"]

    assert made["xaxis"]["type"] == "log"
    assert made["xaxis"]["tickvals"] == [1, 4]
    assert made["annotations"][0]["x"] == pytest.approx(0.60206)


@pytest.mark.parametrize(
    ("levels", "ticks"),
    [
        ((1, 2, 4), [1, 2, 4]),
        ((1, 16, 32), [1, 16, 32]),
        ((1, 90, 92, 99), None),
        ((8,), [8]),
    ],
)
def test_on_a_linear_axis_the_ticks_are_the_levels_where_they_have_room(levels, ticks):
    points = tuple(Point(level, 1, 1, 1, 1) for level in levels)

    axis = figure(Line(label="16.14", major="16", points=points))["layout"]["xaxis"]

    assert axis.get("tickvals") == ticks
    assert axis.get("type") is None


def test_a_logarithmic_axis_refuses_the_level_zero():
    nothing = Line(label="16", major="16", points=(Point(0, 1, 1, 1, 1),))

    with pytest.raises(ValueError, match="logarithmic"):
        scaling([nothing], Axes("workers", "tps", log_x=True))


def test_two_lines_of_one_major_version_share_the_colour_and_differ_in_their_dashes():
    made = figure(line("16.13"), line("16.14"), line("18.4", "18"))

    assert [trace["line"]["color"] for trace in made["data"]] == [
        palette.style("16").colour,
        palette.style("16").colour,
        palette.style("18").colour,
    ]
    assert [trace["line"]["dash"] for trace in made["data"]] == [
        "solid",
        "dash",
        "solid",
    ]


def test_a_version_without_points_is_left_out():
    made = figure(Line(label="17.1", major="17", points=()), line())

    assert [trace["name"] for trace in made["data"]] == ["16.14"]


def test_a_chart_without_any_line_is_an_empty_figure():
    assert figure()["data"] == []


def test_only_many_lines_get_a_legend():
    many = [line(f"{major}.1", str(major)) for major in range(12, 17)]

    assert figure(*many)["layout"]["showlegend"] is True
    assert figure(*many[:4])["layout"]["showlegend"] is False


def test_the_page_lends_the_chart_its_background_and_fonts():
    made = figure(line())["layout"]

    assert made["paper_bgcolor"] == made["plot_bgcolor"] == "rgba(0,0,0,0)"
    assert "font" not in made
    assert "template" not in made


def test_labels_that_are_far_apart_stay_at_their_lines():
    assert shifts([100, 500, 900], 1000) == [0, 0, 0]


def test_two_labels_at_one_place_move_apart_by_the_height_of_a_line():
    assert shifts([500, 500], 1000) == [-LINE_HEIGHT / 2, LINE_HEIGHT / 2]


def test_a_figure_of_zeros_has_labels_too():
    # Both stay inside the picture.
    assert shifts([0, 0], 0) == [0, LINE_HEIGHT]


# Subnormal numbers have no order of their own once they are scaled to a height.
ENDS = st.floats(min_value=0, max_value=1000, allow_subnormal=False)


@given(st.lists(ENDS, max_size=15))
def test_no_label_covers_another_and_none_overtakes_another(ends):
    moved = shifts(ends, 1000)

    places = [
        end * PLOT_HEIGHT / 1000 + shift for end, shift in zip(ends, moved, strict=True)
    ]
    in_order = [
        places[index] for index in sorted(range(len(ends)), key=ends.__getitem__)
    ]
    for lower, upper in itertools.pairwise(in_order):
        assert upper - lower >= LINE_HEIGHT - 0.2


MAJORS = ["9.2", "9.3", "9.4", "9.5", "9.6", *(str(major) for major in range(10, 20))]

# Machado, Oliveira and Fernandes 2009, full severity, on linear RGB.
SIGHTS = {
    "normal": np.eye(3),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
}
TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def linear(colour):
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(
        channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
    )


def contrast(one, other):
    weights = np.array([0.2126, 0.7152, 0.0722])
    light, dark = sorted(
        (float(linear(c) @ weights) for c in (one, other)), reverse=True
    )
    return (light + 0.05) / (dark + 0.05)


def oklab(colour, sight):
    return TO_LAB @ np.cbrt(TO_CONES @ np.clip(SIGHTS[sight] @ linear(colour), 0, 1))


def test_each_major_version_from_9_2_to_19_has_its_own_colour_and_marker():
    assert list(palette.STYLES) == MAJORS
    assert len({style.colour for style in palette.STYLES.values()}) == len(MAJORS)
    assert len({style.symbol for style in palette.STYLES.values()}) == len(MAJORS)


@pytest.mark.parametrize("style", [*palette.STYLES.values(), palette.OTHER])
@pytest.mark.parametrize("page", ["#ffffff", "#14181f"])
def test_a_line_is_readable_on_a_light_and_on_a_dark_page(style, page):
    assert re.fullmatch("#[0-9a-f]{6}", style.colour)
    assert contrast(style.colour, page) >= 3


@pytest.mark.parametrize("sight", SIGHTS)
def test_versions_near_each_other_look_different(sight):
    for one, other in itertools.combinations(range(len(MAJORS)), 2):
        if other - one <= 2:
            colours = [palette.style(MAJORS[index]).colour for index in (one, other)]
            distance = np.linalg.norm(
                oklab(colours[0], sight) - oklab(colours[1], sight)
            )
            least = 0.22 if sight == "normal" and other - one == 1 else 0.09
            assert distance >= least, (MAJORS[one], MAJORS[other])


def test_a_version_without_a_colour_is_grey():
    assert palette.style("42") == palette.OTHER


def test_dashes_repeat_when_they_run_out():
    assert palette.dash(0) == "solid"
    assert palette.dash(len(palette.DASHES)) == "solid"


def test_parts_of_a_machine_lie_in_its_frame_and_no_two_overlap():
    parts = [
        Part("load", "client", "pgbench", "load"),
        Part("database", "db", "main", "database"),
        Part("further", "db3", "standby2", "standby", "asynchronous"),
        Part("further", "db2", "standby1", "standby", "synchronous"),
        Part("further", "db2", "standby3", "standby", "asynchronous"),
    ]
    made = drawing(parts)
    boxes = {each.name: each for each in made.boxes}
    frames = {each.name: each for each in made.frames}
    for part in parts:
        box, frame = boxes[part.name], frames[part.machine]
        assert frame.x <= box.x
        assert box.x + box.width <= frame.x + frame.width <= made.width
        assert frame.y < box.y
        assert box.y + box.height <= frame.y + frame.height <= made.height
    placed = list(frames.values())
    for one in placed:
        for other in placed:
            apart = one.x + one.width <= other.x or other.x + other.width <= one.x
            below = one.y + one.height <= other.y or other.y + other.height <= one.y
            assert one is other or apart or below
    assert made.shared == ["db2"]
    assert sorted(each.label for each in made.arrows) == [
        "",
        "asynchronous",
        "asynchronous",
        "synchronous",
    ]
