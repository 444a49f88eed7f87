"""Of many lines those that nobody asks about are grey, and stand behind."""

from runs.charts import palette, svg
from runs.charts.comparison import Track, comparison
from runs.charts.scaling import Axes, Line, Point, scaling


def line(major, value, **fields):
    points = tuple(
        Point(x, value, value * 0.9, value * 1.1, 3, runs=(value,)) for x in (1, 8, 64)
    )
    return Line(f"{major}.1", major, points, **fields)


def test_a_quiet_line_is_grey_without_whiskers_and_runs():
    lines = [
        *(line(f"{number}", 1.0, is_quiet=True) for number in range(10, 17)),
        line("18", 1.2),
    ]

    figure = scaling(lines, Axes("clients", "ratio", from_zero=False))

    *quiet, asked = figure["data"]
    assert {trace["line"]["color"] for trace in quiet} == {palette.OTHER.colour}
    assert asked["line"]["color"] == palette.style("18").colour
    assert all(
        "error_y" not in trace and "runs" not in trace.get("meta", {})
        for trace in quiet
    )
    assert asked["meta"]["runs"] == [[1.2]] * 3
    # Each has its name beside its line, and so there is no legend.
    assert [note["text"] for note in figure["layout"]["annotations"]] == [
        one.label for one in lines
    ]
    assert figure["layout"]["showlegend"] is False
    assert svg.render(figure).count(f'stroke="{palette.OTHER.colour}"') >= len(quiet)


def test_bars_stand_in_the_order_of_the_series_whichever_are_asked_about():
    majors = [str(number) for number in range(11, 19)]
    tracks = [
        Track(
            f"{major}.1",
            major,
            (Point(None, 1.0, 0.9, 1.1, 3),),
            is_quiet=major not in {"11", "18"},
        )
        for major in majors
    ]

    (figure,) = comparison([tracks], Axes("", "tps"))

    assert [trace["x"] for trace in figure["data"]] == [
        [f"{major}.1"] for major in majors
    ]


def test_lines_that_are_asked_about_are_drawn_over_the_others():
    tracks = [
        Track(
            f"{number}.1",
            str(number),
            line(str(number), 1.0).points,
            is_quiet=number != 11,
        )
        for number in range(11, 14)
    ]

    (figure,) = comparison([tracks], Axes("clients", "tps"))

    assert [trace["name"] for trace in figure["data"]] == ["12.1", "13.1", "11.1"]
