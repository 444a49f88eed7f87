"""The chart of a run over its seconds, tested by its data."""

import json

import plotly.graph_objects as go
import pytest

from runs.charts import palette
from runs.charts.timeline import Track, timeline

TPS = Track(label="tps", y_title="tps", start=1, interval=1, values=[900.0, None, 1000.0])
LATENCY = Track(
    label="latency", y_title="latency (ms)", start=1, interval=1, values=[1.1, 1.2, 1.0]
)


def figure(*tracks, **options):
    made = timeline(tracks, x_title="seconds", **options)
    go.Figure(made)
    json.dumps(made, allow_nan=False)
    return made


def test_values_stand_at_their_seconds_and_a_gap_stays_a_gap():
    (trace,) = figure(TPS)["data"]

    assert trace["x"] == [1, 2, 3]
    assert trace["y"] == [900, None, 1000]
    assert trace["connectgaps"] is False


def test_tps_and_latency_get_a_panel_each_over_the_same_seconds():
    made = figure(TPS, LATENCY)

    assert [trace["yaxis"] for trace in made["data"]] == ["y", "y2"]
    upper, lower = made["layout"]["yaxis"]["domain"], made["layout"]["yaxis2"]["domain"]
    assert upper[1] == 1
    assert lower[0] == 0
    assert lower[1] < upper[0]
    assert made["layout"]["xaxis"]["anchor"] == "y2"
    assert made["layout"]["yaxis2"]["title"]["text"] == "latency (ms)"


def test_the_line_has_the_colour_of_its_version():
    (trace,) = figure(TPS, major="18")["data"]

    assert trace["line"]["color"] == palette.style("18").colour


def test_a_run_without_series_is_an_empty_figure():
    assert figure()["data"] == []


def test_a_long_series_is_thinned():
    long = Track(label="tps", y_title="tps", start=0, interval=0.5, values=[1.0] * 172_799 + [9.0])

    (trace,) = figure(long)["data"]

    assert len(trace["x"]) <= 2000
    assert trace["y"][-1] == 9
    assert trace["x"][-1] == pytest.approx(86_399.5)


def test_each_panel_bears_its_name():
    tracks = [Track("CPU idle", "%", 0, 1, [1.0]), Track("Disk busy", "%", 0, 1, [2.0])]

    names = timeline(tracks, x_title="s")["layout"]["annotations"]

    assert [name["text"] for name in names] == ["CPU idle", "Disk busy"]
    assert names[0]["y"] > names[1]["y"]


def test_many_panels_keep_some_height_each():
    tracks = [Track(str(number), "", 0, 1, [1.0]) for number in range(20)]

    layout = timeline(tracks, x_title="s")["layout"]

    low, high = layout["yaxis20"]["domain"]
    assert high - low > 0.02
