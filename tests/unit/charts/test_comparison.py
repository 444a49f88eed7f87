"""Series side by side: their traces, axes and colours."""

import math

import pytest

from runs.charts import palette
from runs.charts.comparison import Axes, Curve, Spot, Track, comparison

AXES = Axes("Clients", "tps")


def track(label, values, place=0, **more):
    spots = tuple(
        Spot(x, y, y * 0.9, y * 1.2, 3, f"/runs/{number}/", "a machine")
        for number, (x, y) in enumerate(values)
    )
    return Track(label, place, spots, **more)


def test_numbers_make_lines_with_whiskers_addresses_and_conditions():
    (figure,) = comparison([[track("9.2", [(1, 100.0), (2, 200.0)], major="9.2")]], AXES)

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
        [[track("a", [(1, 10.0), (1000, 10000.0)])]], Axes("x", "y", log_x=True, log_y=True)
    )

    (left, right), (low, high) = (figure["layout"][axis]["range"] for axis in ("xaxis", "yaxis"))
    assert left <= 0
    assert right >= 3
    assert low <= math.log10(9)
    assert high >= math.log10(12000)


def test_ratios_have_a_line_at_one_and_do_not_begin_at_zero():
    (figure,) = comparison([[track("a", [(1, 1.5), (2, 1.6)])]], Axes("x", "y", relative=True))

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

    (figure,) = comparison([[track("a", [(1, 100.0), (2, 200.0)], 3, curve=curve)]], AXES)

    assert figure["data"][1]["y"] == [90, 180]
    assert figure["data"][1]["meta"] == {"slot": 3}


def test_nothing_at_all_is_an_empty_figure():
    (figure,) = comparison([[]], AXES)

    assert figure["data"] == []
