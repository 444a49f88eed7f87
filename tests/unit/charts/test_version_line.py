"""The line through versions, tested by its data."""

import json

import plotly.graph_objects as go
import pytest

from runs.analysis.trend import Link, trend
from runs.charts.version_line import Origin, version_line

VERSIONS = {"9.2": 2012, "9.3": 2013, "9.6": 2016, "13": 2020, "14": 2021}


def link(base, head, ratio, error=0.01, freedom=4.0):
    return Link(base, head, ratio, error, freedom, source=f"{base}-{head}")


def figure(*links, base="9.2", urls=None):
    found = trend(links, versions=list(VERSIONS), base=base)
    origin = Origin("published", found.chains, urls or {})
    made = version_line([origin], VERSIONS, x_title="version", y_title="index")
    go.Figure(made)
    json.dumps(made, allow_nan=False)
    return made


def test_chains_that_nothing_joins_are_lines_of_their_own():
    made = figure(link("9.2", "9.3", 0.98), link("13", "14", 0.97))

    assert [trace["x"] for trace in made["data"]] == [["9.2", "9.3"], ["13", "14"]]
    assert [trace["y"][0] for trace in made["data"]] == [1.0, 1.0]


def test_every_version_has_its_place_on_the_axis_though_nothing_measured_it():
    assert figure(link("9.2", "9.3", 0.98))["layout"]["xaxis"]["categoryarray"] == list(VERSIONS)


def test_an_interval_is_drawn_where_all_steps_have_one():
    (trace,) = figure(link("9.2", "9.3", 0.98), link("9.3", "9.6", 1.2))["data"]

    assert trace["error_y"]["array"][0] == pytest.approx(0)
    assert trace["error_y"]["array"][2] > trace["error_y"]["array"][1] > 0


def test_no_interval_is_drawn_where_a_step_has_none():
    (trace,) = figure(link("9.2", "9.3", 0.98, error=None, freedom=None))["data"]

    assert "error_y" not in trace
    assert "%{customdata[0]" not in trace["hovertemplate"]


def test_a_point_leads_to_the_campaign_that_measured_it():
    (trace,) = figure(link("9.2", "9.3", 0.98), urls={"9.3": "/campaigns/a/"})["data"]

    assert trace["meta"]["urls"] == ["", "/campaigns/a/"]


def test_the_base_alone_is_no_line():
    assert figure(link("13", "14", 0.97), base="9.2")["data"][0]["x"] == ["13", "14"]
