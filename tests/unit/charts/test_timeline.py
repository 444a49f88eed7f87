"""The chart of a run over its seconds, tested by its data."""

import json

import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.analysis.trend import Link, trend
from runs.charts import palette
from runs.charts.timeline import Track, thin, timeline
from runs.charts.version_line import Minor, Origin, version_line

TPS = Track(
    label="tps", y_title="tps", start=1, interval=1, values=[900.0, None, 1000.0]
)
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
    long = Track(
        label="tps",
        y_title="tps",
        start=0,
        interval=0.5,
        values=[1.0] * 172_799 + [9.0],
    )

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


def test_a_short_series_is_left_alone():
    assert thin([1.0, None, 3.0]) == [0, 1, 2]


def test_a_single_spike_in_48_hours_is_kept():
    values = [1000.0] * 172_800
    values[123_456] = 3.0

    kept = thin(values)

    assert 123_456 in kept
    assert len(kept) <= 2000


def test_a_stretch_without_values_stays_visible_as_a_gap():
    values = [1.0] * 100 + [None] * 100 + [1.0] * 100

    assert None in [values[index] for index in thin(values, 30)]


@given(
    st.lists(
        st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=300
    ),
    st.integers(min_value=2, max_value=50),
)
def test_the_highest_and_the_lowest_value_survive_in_order(values, maximum):
    kept = thin(values, maximum)

    assert len(kept) <= maximum
    assert kept == sorted(set(kept))
    known = [value for value in values if value is not None]
    if known:
        drawn = [values[index] for index in kept if values[index] is not None]
        assert (min(drawn), max(drawn)) == (min(known), max(known))


VERSIONS = {"9.2": 2012, "9.3": 2013, "9.6": 2016, "13": 2020, "14": 2021}


def link(base, head, ratio, error=0.01, freedom=4.0):
    return Link(base, head, ratio, error, freedom, source=f"{base}-{head}")


def line_figure(*links, base="9.2", urls=None):
    found = trend(links, versions=list(VERSIONS), base=base)
    origin = Origin("published", found.chains, urls or {})
    made = version_line([origin], VERSIONS, x_title="version", y_title="index")
    go.Figure(made)
    json.dumps(made, allow_nan=False)
    return made


def test_chains_that_nothing_joins_are_lines_of_their_own():
    made = line_figure(link("9.2", "9.3", 0.98), link("13", "14", 0.97))

    assert [trace["x"] for trace in made["data"]] == [["9.2", "9.3"], ["13", "14"]]
    assert [trace["y"][0] for trace in made["data"]] == [1.0, 1.0]


def test_every_version_has_its_place_on_the_axis_though_nothing_measured_it():
    assert line_figure(link("9.2", "9.3", 0.98))["layout"]["xaxis"][
        "categoryarray"
    ] == list(VERSIONS)


def test_a_narrow_axis_has_its_labels_in_two_lines_without_years():
    layout = line_figure(link("9.2", "9.3", 0.98))["layout"]

    assert layout["xaxis"]["ticktext"][:2] == ["9.2<br>2012", "9.3<br>2013"]
    assert layout["meta"]["narrow"]["xaxis"] == {
        "title": {"text": "version"},
        "ticktext": ["9.2", "<br>9.3", "9.6", "<br>13", "14"],
        "tickangle": 0,
    }


def test_a_line_of_one_origin_needs_no_room_for_a_legend():
    found = trend([link("9.2", "9.3", 0.98)], versions=list(VERSIONS), base="9.2")
    published, executed = (
        Origin(name, found.chains, {}) for name in ("published", "executed")
    )

    tops = [
        version_line(origins, VERSIONS, x_title="version", y_title="index")["layout"][
            "margin"
        ]["t"]
        for origins in ([published], [published, executed])
    ]

    assert tops == [16, 32]


def test_an_interval_is_drawn_where_all_steps_have_one():
    (trace,) = line_figure(link("9.2", "9.3", 0.98), link("9.3", "9.6", 1.2))["data"]

    assert trace["error_y"]["array"][0] == pytest.approx(0)
    assert trace["error_y"]["array"][2] > trace["error_y"]["array"][1] > 0


def test_no_interval_is_drawn_where_a_step_has_none():
    (trace,) = line_figure(link("9.2", "9.3", 0.98, error=None, freedom=None))["data"]

    assert "error_y" not in trace
    assert "%{customdata[0]" not in trace["hovertemplate"]


def test_other_releases_are_small_points_beside_that_of_the_line():
    found = trend([link("9.2", "9.3", 0.5)], versions=list(VERSIONS), base="9.2")
    minors = (Minor("9.3.2", "9.3", 1.1, "/campaigns/a/"), Minor("14.1", "14", 1.1, ""))
    origin = Origin("here", found.chains, {}, minors=minors)

    _line, small = version_line([origin], VERSIONS, x_title="version", y_title="index")[
        "data"
    ]

    # 14 is not in the line, so nothing says where its releases are.
    assert (small["x"], small["y"]) == (["9.3"], [pytest.approx(0.55)])
    assert small["marker"]["size"] < _line["marker"]["size"]
    assert small["meta"]["urls"] == ["/campaigns/a/"]


def test_a_point_leads_to_the_campaign_that_measured_it():
    (trace,) = line_figure(link("9.2", "9.3", 0.98), urls={"9.3": "/campaigns/a/"})[
        "data"
    ]

    assert trace["meta"]["urls"] == ["", "/campaigns/a/"]


def test_the_base_alone_is_no_line():
    assert line_figure(link("13", "14", 0.97), base="9.2")["data"][0]["x"] == [
        "13",
        "14",
    ]
