"""The chart of a metric against a factor, tested by its data."""

import json

import plotly.graph_objects as go
import pytest

from runs.charts import palette
from runs.charts.scaling import Line, Point, Words, scaling


def line(label="16.14", major="16", base=1000.0):
    return Line(
        label=label,
        major=major,
        points=(
            Point(x=1, median=base, minimum=base - 50, maximum=base + 80, n=3),
            Point(x=4, median=3 * base, minimum=3 * base - 20, maximum=3 * base + 10, n=2),
        ),
    )


def figure(*lines, **options):
    made = scaling(lines, x_title="clients", y_title="transactions per second", **options)
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
    made = figure(line(), words=Words(median="中央値", range="範囲", runs="試行"))

    trace = made["data"][0]
    assert trace["customdata"] == [[950, 1080, 3], [2980, 3010, 2]]
    for word in ("clients: %{x}", "中央値: %{y", "範囲: %{customdata[0]", "試行: %{customdata[2]}"):
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
    [((1, 2, 4), [1, 2, 4]), ((1, 4, 16), [1, 4, 16]), ((1, 2, 4, 128), None), ((8,), None)],
)
def test_on_a_linear_axis_the_ticks_are_the_levels_where_they_have_room(levels, ticks):
    points = tuple(Point(level, 1, 1, 1, 1) for level in levels)

    axis = figure(Line(label="16.14", major="16", points=points))["layout"]["xaxis"]

    assert axis.get("tickvals") == ticks
    assert axis.get("type") is None


def test_a_logarithmic_axis_refuses_the_level_zero():
    nothing = Line(label="16", major="16", points=(Point(0, 1, 1, 1, 1),))

    with pytest.raises(ValueError, match="logarithmic"):
        scaling([nothing], x_title="workers", y_title="tps", log_x=True)


def test_two_lines_of_one_major_version_share_the_colour_and_differ_in_their_dashes():
    made = figure(line("16.13"), line("16.14"), line("18.4", "18"))

    assert [trace["line"]["color"] for trace in made["data"]] == [
        palette.style("16").colour,
        palette.style("16").colour,
        palette.style("18").colour,
    ]
    assert [trace["line"]["dash"] for trace in made["data"]] == ["solid", "dash", "solid"]


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
