"""Series side by side: their traces, axes and colours."""

import json
import math

import plotly.graph_objects as go
import pytest

from runs.charts import palette
from runs.charts.bars import bars
from runs.charts.comparison import Curve, Track, comparison
from runs.charts.forest import Branch, Words, forest
from runs.charts.scaling import Axes, Line, Point


def group(label="HDD", major="", scale=1.0):
    return Line(
        label=label,
        major=major,
        points=(
            Point("all on HDD", 198.5 * scale, 129.3 * scale, 210.5 * scale, 3),
            Point("all on SSD", 5996.6 * scale, 5923.7 * scale, 6160.4 * scale, 3),
        ),
    )


def figure(*groups, stacked=False, **options):
    made = bars(groups, Axes("placement", "tps", **options), stacked=stacked)
    go.Figure(made)
    json.dumps(made, allow_nan=False)
    return made


def test_each_group_is_a_trace_of_medians_over_names():
    made = figure(group(), group("SSD", scale=2))

    assert [trace["name"] for trace in made["data"]] == ["HDD", "SSD"]
    assert made["data"][0]["x"] == ["all on HDD", "all on SSD"]
    assert made["data"][1]["y"] == [397.0, 11993.2]
    assert made["layout"]["barmode"] == "group"


def test_whiskers_reach_from_the_least_to_the_greatest_repeat():
    whiskers = figure(group())["data"][0]["error_y"]

    assert whiskers["array"][0] == 210.5 - 198.5
    assert whiskers["arrayminus"][0] == 198.5 - 129.3


def test_single_values_have_no_whiskers():
    single = Line("single", "", (Point("a", 5.0, 5.0, 5.0, 1),))

    assert "error_y" not in figure(single)["data"][0]


def test_stacked_bars_have_no_whiskers_as_a_part_does_not_begin_at_zero():
    made = figure(group(), group("SSD"), stacked=True)

    assert made["layout"]["barmode"] == "stack"
    assert all("error_y" not in trace for trace in made["data"])


def test_a_logarithmic_axis_leaves_out_what_is_not_positive():
    made = figure(
        Line("io", "", (Point("a", 0.0, 0.0, 0.0, 1), Point("b", 10.0, 10.0, 10.0, 1))),
        log_y=True,
    )

    assert made["data"][0]["x"] == ["b"]
    assert made["layout"]["yaxis"]["type"] == "log"
    # A bar would stand on no zero.
    assert made["data"][0]["type"] == "scatter"
    assert made["layout"]["scattermode"] == "group"


def test_a_linear_axis_begins_at_zero():
    assert figure(group())["layout"]["yaxis"]["rangemode"] == "tozero"


def test_a_version_has_its_own_colour_and_other_groups_the_themes():
    made = figure(group("9.6", major="9.6"), group("other"))

    assert made["data"][0]["marker"]["color"] == palette.style("9.6").colour
    assert "marker" not in made["data"][1]


def test_a_group_without_bars_is_not_drawn():
    assert figure(group(), Line("empty", "", ()))["layout"]["showlegend"] is False


AXES = Axes("Clients", "tps")


def track(label, values, place=0, major="", **more):
    points = tuple(
        Point(x, y, y * 0.9, y * 1.2, 3, note="a machine", url=f"/runs/{number}/")
        for number, (x, y) in enumerate(values)
    )
    return Track(label, major, points, place=place, **more)


def test_numbers_make_lines_with_whiskers_addresses_and_conditions():
    (figure,) = comparison(
        [[track("9.2", [(1, 100.0), (2, 200.0)], major="9.2")]], AXES
    )

    (trace,) = figure["data"]
    assert (trace["x"], trace["y"]) == ([1, 2], [100, 200])
    assert trace["error_y"]["array"] == pytest.approx([20, 40])
    assert trace["line"]["color"] == palette.style("9.2").colour
    assert trace["meta"]["urls"] == ["/runs/0/", "/runs/1/"]
    assert trace["customdata"][0][2:] == [3, "a machine"]
    assert "customdata[3]" in trace["hovertemplate"]


def test_what_has_no_version_takes_the_themes_colours_in_turn():
    tracks = [track(str(place), [(1, 1.0), (2, 2.0)], place) for place in range(10)]

    (figure,) = comparison([tracks], AXES)

    assert [trace["meta"]["slot"] for trace in figure["data"]] == [*range(8), 0, 1]
    assert figure["data"][0]["line"]["dash"] != figure["data"][8]["line"]["dash"]


def test_all_facets_have_the_same_axes_which_begin_at_zero():
    low, high = track("low", [(1, 10.0)]), track("high", [(4, 100.0)], 1)

    one, other = comparison([[low], [high]], AXES)

    assert one["layout"]["xaxis"]["range"] == other["layout"]["xaxis"]["range"]
    assert one["layout"]["yaxis"]["range"] == other["layout"]["yaxis"]["range"]
    assert one["layout"]["yaxis"]["range"][0] == 0
    assert one["layout"]["yaxis"]["range"][1] > 120


def test_logarithmic_axes_hold_every_value():
    (figure,) = comparison(
        [[track("a", [(1, 10.0), (1000, 10000.0)])]],
        Axes("x", "y", log_x=True, log_y=True),
    )

    (left, right), (low, high) = (
        figure["layout"][axis]["range"] for axis in ("xaxis", "yaxis")
    )
    assert left <= 0
    assert right >= 3
    assert low <= math.log10(9)
    assert high >= math.log10(12000)


def test_ratios_have_a_line_at_one_and_do_not_begin_at_zero():
    (figure,) = comparison(
        [[track("a", [(1, 1.5), (2, 1.6)])]], Axes("x", "y", relative=True)
    )

    assert figure["layout"]["shapes"][0]["y0"] == 1
    assert figure["layout"]["yaxis"]["range"][0] > 0.5


def test_names_make_bars_and_no_axis_a_bar_for_each_series():
    (named,) = comparison([[track("a", [("hdd", 1.0), ("ssd", 30.0)])]], AXES)
    alone_tracks = [track("none · async", [(None, 5.0)]), track("b", [(None, 6.0)], 1)]
    (alone,) = comparison([alone_tracks], AXES)

    assert (named["data"][0]["type"], named["data"][0]["x"]) == ("bar", ["hdd", "ssd"])
    assert [trace["x"] for trace in alone["data"]] == [["none<br>async"], ["b"]]
    assert not alone["layout"]["showlegend"]


def test_a_fitted_law_is_drawn_in_the_colour_of_its_series():
    curve = Curve("a: Amdahl's law", ((1.0, 90.0), (2.0, 180.0)))

    (figure,) = comparison(
        [[track("a", [(1, 100.0), (2, 200.0)], 3, curve=curve)]], AXES
    )

    assert figure["data"][1]["y"] == [90, 180]
    assert figure["data"][1]["meta"] == {"slot": 3}


def test_nothing_at_all_is_an_empty_figure():
    (figure,) = comparison([[]], AXES)

    assert figure["data"] == []


WORDS = Words("ratio", "interval", {"faster": "faster!"})


def test_rows_stand_in_their_order_from_the_top_with_their_intervals():
    figure = forest(
        [
            Branch("a", "faster", 1.5, 1.4, 1.7, "/a/"),
            Branch("b", "undecided", 1.01, 0.9, 1.1),
            Branch("c", "faster", 1.2, 1.1, 1.3),
        ],
        minimum_effect=0.03,
        words=WORDS,
    )

    faster, unsure = figure["data"]
    assert (faster["name"], faster["text"], faster["y"]) == (
        "faster!",
        ["a", "c"],
        [3, 1],
    )
    assert faster["error_x"]["array"] == pytest.approx([0.2, 0.1])
    assert faster["error_x"]["arrayminus"] == pytest.approx([0.1, 0.1])
    assert faster["meta"]["urls"] == ["/a/", ""]
    assert unsure["y"] == [2]
    assert figure["layout"]["yaxis"]["ticktext"] == ["a", "b", "c"]


def test_a_ratio_without_an_interval_has_no_whiskers():
    figure = forest(
        [Branch("a", "too_few_runs", 0.9, None, None)], minimum_effect=0.03, words=WORDS
    )

    assert figure["data"][0]["error_x"]["array"] == [None]
    assert figure["data"][0]["marker"]["symbol"] == "circle-open"


@pytest.mark.parametrize("ratio", [0.009, 0.97, 1.0, 1.2, 107.0])
def test_the_axis_holds_one_and_the_ratio_and_names_both_ends(ratio):
    figure = forest(
        [Branch("a", "undecided", ratio, ratio * 0.9, ratio * 1.1)],
        minimum_effect=0.03,
        words=WORDS,
    )

    low, high = figure["layout"]["xaxis"]["range"]
    assert low < min(0, math.log10(ratio * 0.9))
    assert high > max(0, math.log10(ratio * 1.1))
    assert 1.0 in figure["layout"]["xaxis"]["tickvals"]
    assert len(figure["layout"]["xaxis"]["tickvals"]) > 2


def test_a_narrow_forest_has_a_tick_at_one_and_at_most_one_to_each_side():
    rows = [Branch("a", "faster", 1.6, 1.5, 1.7), Branch("b", "slower", 0.6, 0.49, 0.7)]

    narrow = forest(rows, minimum_effect=0.03, words=WORDS)["layout"]["meta"]["narrow"][
        "xaxis"
    ]

    assert narrow["ticktext"] == ["0.5", "1"]
    assert narrow["tickangle"] == 0


def test_the_band_shows_effects_below_the_minimum_alike_in_both_directions():
    figure = forest(
        [Branch("a", "slower", 0.5, 0.4, 0.6)], minimum_effect=0.25, words=WORDS
    )

    band = figure["layout"]["shapes"][0]
    assert (band["x0"], band["x1"]) == (0.8, 1.25)
