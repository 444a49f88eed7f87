"""Bars of a metric over levels that are names, tested by their data."""

import json

import plotly.graph_objects as go

from runs.charts import palette
from runs.charts.bars import Bar, Group, bars


def group(label="HDD", major="", scale=1.0):
    return Group(
        label=label,
        major=major,
        bars=(
            Bar("all on HDD", 198.5 * scale, 129.3 * scale, 210.5 * scale, 3),
            Bar("all on SSD", 5996.6 * scale, 5923.7 * scale, 6160.4 * scale, 3),
        ),
    )


def figure(*groups, **options):
    made = bars(groups, x_title="placement", y_title="tps", **options)
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
    single = Group("single", (Bar("a", 5.0, 5.0, 5.0, 1),))

    assert "error_y" not in figure(single)["data"][0]


def test_stacked_bars_have_no_whiskers_as_a_part_does_not_begin_at_zero():
    made = figure(group(), group("SSD"), stacked=True)

    assert made["layout"]["barmode"] == "stack"
    assert all("error_y" not in trace for trace in made["data"])


def test_a_logarithmic_axis_leaves_out_what_is_not_positive():
    made = figure(
        Group("io", (Bar("a", 0.0, 0.0, 0.0, 1), Bar("b", 10.0, 10.0, 10.0, 1))), log_y=True
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
    assert figure(group(), Group("empty", ()))["layout"]["showlegend"] is False
