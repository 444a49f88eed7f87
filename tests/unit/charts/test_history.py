"""The chart of a history: points with ranges, levels between steps, and marks."""

from datetime import UTC, datetime, timedelta

from runs.charts.history import HostMark, Mark, Point, history

START = datetime(2026, 1, 1, tzinfo=UTC)


def day(number):
    return START + timedelta(days=number)


def points(*medians):
    return [
        Point(day(number), median, median - 1, median + 2, 3, f"r{number}", f"/runs/{number}/")
        for number, median in enumerate(medians)
    ]


def traces(figure):
    return {trace["name"]: trace for trace in figure["data"]}


def test_each_point_has_its_range_and_leads_to_its_run():
    (trace,) = history(points(10, 11), [], y_title="tps")["data"]

    assert trace["x"] == [day(0).isoformat(), day(1).isoformat()]
    assert trace["y"] == [10, 11]
    assert (trace["error_y"]["array"], trace["error_y"]["arrayminus"]) == ([2, 2], [1, 1])
    assert trace["meta"]["urls"] == ["/runs/0/", "/runs/1/"]


def test_levels_are_drawn_between_steps_with_gaps():
    steps = [Mark(day(4), 9.0, 12.0), Mark(day(2), 10.0, 9.0)]

    figure = history(points(10, 10, 9, 9, 12, 12), steps, y_title="tps")

    levels = traces(figure)["level"]
    assert levels["y"] == [10.0, 10.0, None, 9.0, 9.0, None, 12.0, 12.0, None]
    assert levels["x"][0:2] == [day(0).isoformat(), day(2).isoformat()]
    assert levels["x"][-3:-1] == [day(4).isoformat(), day(5).isoformat()]
    assert [shape["x0"] for shape in figure["layout"]["shapes"]] == [
        day(2).isoformat(),
        day(4).isoformat(),
    ]


def test_an_alarm_is_a_mark_and_no_level():
    figure = history(points(10, 7), [Mark(day(1), 10.0, 7.0, is_step=False)], y_title="tps")

    assert set(traces(figure)) == {"median", "alarm"}
    assert traces(figure)["alarm"]["y"] == [7.0]
    assert figure["layout"]["shapes"] == []


def test_a_history_without_points_is_an_empty_chart():
    assert history([], [Mark(day(1), 1.0, 2.0)], y_title="tps")["data"][0]["x"] == []


def test_another_machine_is_a_dashed_line_with_its_label_and_the_whole_text_on_hovering():
    hosts = [HostMark(day(1), "kernel 6.1 → <6.8>", "kernel\nmemory")]

    layout = history(points(10, 11), [Mark(day(1), 10.0, 11.0)], y_title="tps", hosts=hosts)[
        "layout"
    ]

    assert [shape["line"]["dash"] for shape in layout["shapes"]] == ["dot", "dash"]
    assert layout["shapes"][1]["x0"] == layout["shapes"][1]["x1"] == day(1).isoformat()
    (label,) = layout["annotations"]
    assert (label["x"], label["yref"]) == (day(1).isoformat(), "paper")
    assert label["text"] == "kernel 6.1 → &lt;6.8&gt;"
    assert label["hovertext"] == "kernel<br>memory"
    assert "color" not in label["font"]
