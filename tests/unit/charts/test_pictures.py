"""Flame graphs and still pictures: well-formed, with everything at its place."""

import xml.etree.ElementTree as ET
from xml.etree import ElementTree

import pytest

from runs.charts import (
    flame_graph,
    looks,
    point_words,
    stacks,
    svg,
    timeline,
)
from runs.charts.bars import bars, draw_single_points, ranking
from runs.charts.comparison import Track, comparison
from runs.charts.flame_graph import CHANCE, FOUND, view
from runs.charts.forest import Branch, Words, forest
from runs.charts.palette import STYLES
from runs.charts.scale import Categories, Linear, Logarithmic, Time, nice
from runs.charts.scaling import Axes, Line, Point, grow_by_factors, scaling
from runs.charts.stacks import changes, own_samples, tree_of

# Still pictures: well-formed, with everything of the figure at its place.


NAMESPACE = "{http://www.w3.org/2000/svg}"


def drawn(figure, **more):
    return ET.fromstring(svg.render(figure, **more))


def texts(picture):
    return [element.text for element in picture.iter(f"{NAMESPACE}text")]


def line(version, *medians, spread=0.0):
    points = tuple(
        Point(2**at, median, median - spread, median + spread, 3)
        for at, median in enumerate(medians)
    )
    return Line(f"PostgreSQL {version}", version, points)


def lines(*drawn_lines, **more):
    return scaling(drawn_lines, Axes("Clients", "tps", **more))


def points(picture):
    return [
        tuple(tuple(map(float, pair.split(","))) for pair in each.get("points").split())
        for each in picture.iter(f"{NAMESPACE}polyline")
        if len(each.get("points").split()) > 2
    ]


def test_a_line_goes_through_its_points_higher_values_higher_up():
    ((first, second, third),) = points(drawn(lines(line("16", 100, 300, 200))))
    assert first[0] < second[0] < third[0]
    assert second[1] < third[1] < first[1]


def test_logarithmic_steps_are_equally_wide():
    figure = lines(line("16", 10, 100, 1000), log_x=True, log_y=True)
    ((first, second, third),) = points(drawn(figure))
    assert second[0] - first[0] == pytest.approx(third[0] - second[0], abs=0.2)
    assert first[1] - second[1] == pytest.approx(second[1] - third[1], abs=0.2)


def test_whiskers_are_there_only_where_there_is_a_range():
    def whiskers(spread):
        picture = drawn(lines(line("16", 100, 300, spread=spread)))
        # All of a line are one path.
        return [path.get("d").count("V") for path in picture.iter(f"{NAMESPACE}path")]

    assert (whiskers(0), whiskers(10)) == ([], [2])


def test_twelve_versions_have_a_legend_within_the_picture():
    figure = lines(*(line(version, 1, 2, 3) for version in list(STYLES)[:12]))
    picture = drawn(figure, title="tps & clients")
    assert [text for text in texts(picture) if text.startswith("PostgreSQL")] == [
        f"PostgreSQL {version}" for version in list(STYLES)[:12]
    ]
    assert picture.find(f"{NAMESPACE}title").text == "tps & clients"
    right = max(float(each.get("x")) for each in picture.iter(f"{NAMESPACE}text"))
    assert right < svg.PAPER.width


def test_a_long_title_of_the_y_axis_keeps_its_end():
    title = f"{'suite.' * 20}time_of_a_query (s)"
    figure = scaling([line("16", 1, 2)], Axes("Clients", title))
    (shown,) = (each for each in texts(drawn(figure)) if "…" in each)
    assert shown.endswith("time_of_a_query (s)")
    assert len(shown) < 60


def test_a_line_is_named_at_its_end_once():
    picture = drawn(lines(line("16", 1, 2), line("17", 1, 3)))
    assert texts(picture).count("PostgreSQL 16") == 1
    assert (
        texts(drawn(lines(line("16", 1, 2)), look=looks.PHONE)).count("PostgreSQL 16")
        == 0
    )


def test_a_phone_has_the_names_of_lines_in_a_legend_within_the_picture():
    picture = drawn(lines(line("16", 1, 2), line("17", 1, 3)), look=looks.PHONE)
    (name,) = (
        each
        for each in picture.iter(f"{NAMESPACE}text")
        if each.text == "PostgreSQL 17"
    )
    assert float(name.get("x")) + 60 < looks.PHONE.width


def test_a_point_of_a_page_has_words_and_a_link_and_few_enough_stops():
    spots = tuple(
        Point(at, 2.0, 1.9, 2.1, 3, url=f"/runs/{at}/") for at in range(1, 61)
    )
    (figure,) = comparison([[Track("16", "16", spots)]], Axes("Clients", "tps"))
    links = list(drawn(figure, look=looks.PAGE).iter(f"{NAMESPACE}a"))
    assert [link.get("href") for link in links] == [spot.url for spot in spots]
    words = links[0].findtext(f"{NAMESPACE}title").replace("\n", ", ")
    assert words == "16, Clients: 1, median: 2, range: 1.9 – 2.1, runs: 3"
    assert {link.get("tabindex") for link in links} == {None}
    more = (*spots, Point(61, 2.0, 1.9, 2.1, 3, url="/runs/61/"))
    (figure,) = comparison([[Track("16", "16", more)]], Axes("Clients", "tps"))
    links = drawn(figure, look=looks.PAGE).iter(f"{NAMESPACE}a")
    assert {link.get("tabindex") for link in links} == {"-1"}
    assert not list(drawn(figure).iter(f"{NAMESPACE}a"))


@pytest.mark.parametrize("url", ['"><script>alert(1)</script>', "/a&b"])
def test_an_address_stays_an_address(url):
    spots = (Point(1, 2.0, 1.9, 2.1, 3, url=url, note="<script>"),)
    (figure,) = comparison([[Track("<b>x", "", spots)]], Axes("<i>", "tps"))
    picture = drawn(figure, look=looks.PAGE)
    (link,) = picture.iter(f"{NAMESPACE}a")
    assert link.get("href") == url
    assert not list(picture.iter(f"{NAMESPACE}script"))


def test_panels_have_an_axis_each_and_stand_one_below_the_other():
    tracks = [
        timeline.Track(name, unit, 1.0, 1.0, [1.0, 2.0, 3.0, 2.0])
        for name, unit in (("Latency", "ms"), ("Throughput", "tps"))
    ]
    upper, lower = points(drawn(timeline.timeline(tracks, x_title="s")))
    assert max(y for _x, y in upper) < min(y for _x, y in lower)


def test_bars_that_lie_begin_at_the_left_and_are_as_long_as_their_values():
    figure = ranking(["a", "b"], {"s": [1.0, 2.0]}, x_title="s")
    first, second = list(drawn(figure).iter(f"{NAMESPACE}rect"))
    assert first.get("x") == second.get("x")
    assert float(second.get("width")) == pytest.approx(
        2 * float(first.get("width")), abs=0.2
    )
    assert float(first.get("y")) < float(second.get("y"))


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (8361.518, ",.6~g", "8,361.52"),
        (0.000012345, ",.6~g", "1.2345e-05"),
        (6913.6, ",.3~s", "6.91k"),
        (40e9, ",.3~s", "40G"),
        (0.97812, ".3f", "0.978"),
        (3, "", "3"),
        (0, ",.6~g", "0"),
        (123456789, ",.6~g", "123,456,789"),
        (None, ".3f", ""),
        ("unknown", "", "unknown"),
    ],
)
def test_numbers_of_points_are_as_the_figure_says(value, form, text):
    assert point_words.number(value, form) == text


@pytest.mark.parametrize(
    ("levels", "grow"),
    [
        ([1, 2, 4, 8, 16, 32, 64, 128, 256, 512], True),
        ([1, 10, 100], True),
        ([1, 16, 32, 64, 96, 128, 160, 192], False),
        ([1, 2, 3, 4], False),
        ([1, 2, 4], False),
        ([0, 1, 100], False),
        ([1, 512], False),
    ],
)
def test_levels_that_grow_by_factors_get_a_logarithmic_axis(levels, grow):
    assert grow_by_factors(levels) == grow


@pytest.mark.parametrize(
    ("first", "last", "texts_of_ticks"),
    [
        ("2026-11-25T10:00", "2026-11-25T15:00", ["11-25 10:00", "11-25 11:00"]),
        ("2026-11-25T10:01:20", "2026-11-25T10:03:10", ["10:01:30", "10:02:00"]),
        ("2026-11-25T10:01", "2026-11-25T10:29", ["11-25 10:00", "11-25 10:10"]),
        ("2026-11-01", "2026-11-11", ["2026-11-01", "2026-11-03"]),
        ("2012-01-01", "2026-01-01", ["2015", "2020"]),
        ("2026-11-25", "2026-11-25", ["11-24 12:00", "11-24 18:00"]),
    ],
)
def test_an_axis_of_time_has_round_dates(first, last, texts_of_ticks):
    found = [text for _at, text in Time.over([first, last]).ticks()]
    assert found[:2] == texts_of_ticks
    assert len(found) <= 10


@pytest.mark.parametrize("name", ["<script>", "a & b", '"quoted"', "日本語"])
def test_what_people_wrote_is_text(name):
    figure = bars([Line("g", "", (Point(name, 1, 1, 1, 1),))], Axes(name, name))
    assert texts(drawn(figure, title=name)).count(name) == 3


def test_bars_stand_side_by_side_and_their_heights_are_their_values():
    groups = [
        Line(label, "", (Point("a", value, value, value, 1),))
        for label, value in (("x", 1), ("y", 2))
    ]
    figure = bars(groups, Axes("", "s"))
    low, high = list(drawn(figure).iter(f"{NAMESPACE}rect"))[:2]
    assert float(high.get("height")) == pytest.approx(
        2 * float(low.get("height")), abs=0.2
    )
    assert float(high.get("x")) >= float(low.get("x")) + float(low.get("width")) - 0.2


@pytest.mark.parametrize(
    ("levels", "names"),
    [((8, 8), ["16", "18"]), ((0, 3), ["0", "3"])],
    ids=["one", "own"],
)
def test_single_points_have_the_name_of_their_line_or_a_level_of_their_own(
    levels, names
):
    lines = [
        Line(major, major, (Point(level, 5.0, 4.0, 6.0, 3),))
        for major, level in zip(("16", "18"), levels, strict=True)
    ]
    groups, title = draw_single_points(lines, by_name="Version", by_level="Clients")
    assert [bar.x for bar in groups[0].points] == names
    assert title == ("Version" if levels[0] == levels[1] else "Clients")


def test_piled_bars_begin_where_the_one_below_ends():
    groups = [Line(label, "", (Point("a", 1, 1, 1, 1),)) for label in "xy"]
    figure = bars(groups, Axes("", "s"), stacked=True)
    lower, upper = list(drawn(figure).iter(f"{NAMESPACE}rect"))[:2]
    assert float(upper.get("y")) + float(upper.get("height")) == pytest.approx(
        float(lower.get("y")), abs=0.2
    )


def test_a_forest_has_its_rows_from_the_top_and_the_band_of_small_effects():
    rows = [Branch(name, "faster", 1.2, 1.1, 1.3) for name in ("first", "second")]
    picture = drawn(forest(rows, minimum_effect=0.03, words=Words()))
    at = {each.text: float(each.get("y")) for each in picture.iter(f"{NAMESPACE}text")}
    assert at["first"] < at["second"]
    assert any(
        each.get("fill") == svg.PAPER.band for each in picture.iter(f"{NAMESPACE}rect")
    )


def test_what_the_compare_page_draws_can_be_drawn():
    tracks = [
        Track("16", "16", (Point(1, 1.0, 0.9, 1.1, 3), Point(8, 2.0, 1.9, 2.1, 3))),
        Track("other", "", (Point(1, 1.0, 0.9, 1.1, 3),), place=1),
    ]
    (figure,) = comparison([tracks], Axes("Clients", "ratio", relative=True))
    assert "ratio" in texts(drawn(figure))


def test_an_empty_figure_is_a_picture_still():
    assert drawn(lines()).tag == f"{NAMESPACE}svg"


def test_an_unknown_kind_of_trace_is_refused():
    with pytest.raises(ValueError, match="heatmap"):
        svg.render({"data": [{"type": "heatmap"}], "layout": {}})


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (0, 1.0, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (950, 1060, [960, 980, 1000, 1020, 1040, 1060]),
        (-5, 5, [-4, -2, 0, 2, 4]),
        (3, 3, [3]),
    ],
)
def test_ticks_are_round(low, high, ticks):
    assert nice(low, high) == ticks


@pytest.mark.parametrize(
    ("scale", "value", "place"),
    [
        (Linear(0, 10), 5, 0.5),
        (Linear(0, 10), "name", None),
        (Logarithmic(1, 100), 10, 0.5),
        (Logarithmic(1, 100), 0, None),
        (Categories(("a", "b")), "b", 0.75),
        (Categories(("a", "b")), "c", None),
        (Categories(("a", "b")), -0.5, 0.0),
    ],
)
def test_values_have_their_places(scale, value, place):
    assert scale.place(value) == place


# Flame graphs: folded stacks as a picture that anybody can open.


SVG = "{http://www.w3.org/2000/svg}"
FOLDED = "postgres;main;ExecScan 60\npostgres;main;ExecAgg 30\nswapper;idle_[k] 10\n"


def root_of(folded: str, title: str = "Run 7"):
    return ElementTree.fromstring(flame_graph.render(folded, title=title))


def boxes(folded: str) -> dict[str, ElementTree.Element]:
    """Boxes by the first word of their tooltips."""
    groups = root_of(folded).iter(f"{SVG}g")
    return {
        group.find(f"{SVG}title").text.partition(": ")[0]: group for group in groups
    }


def rect(group: ElementTree.Element) -> tuple[float, float, float]:
    found = group.find(f"{SVG}rect")
    return tuple(float(found.get(name)) for name in ("x", "y", "width"))


def test_a_box_is_as_wide_as_its_share_of_the_samples():
    found = boxes(FOLDED)
    whole = rect(found["all"])[2]
    assert rect(found["postgres"])[2] / whole == pytest.approx(0.9, abs=0.01)
    assert rect(found["ExecScan"])[2] / whole == pytest.approx(0.6, abs=0.01)


def test_what_was_called_stands_on_its_caller():
    found = boxes(FOLDED)
    (left, bottom, width), (x, top, narrow) = (
        rect(found["main"]),
        rect(found["ExecAgg"]),
    )
    assert top < bottom
    assert left <= x
    assert x + narrow <= left + width + 0.5


def test_each_box_tells_its_samples_and_share():
    assert (
        boxes(FOLDED)["ExecAgg"].find(f"{SVG}title").text
        == "ExecAgg: 30 samples, 30.00 %"
    )


def test_the_same_function_of_the_same_caller_is_one_box():
    found = boxes("a;b 1\na;c 1\na;b 3\n")
    assert found["b"].find(f"{SVG}title").text.startswith("b: 4 samples")


def test_names_cannot_break_the_picture():
    evil = '<script>alert("x")</script>&\x00\x1b'
    text = flame_graph.render(f"{evil} 5\n", title=evil + '"')
    assert "<script" not in text
    assert any(
        "alert" in title.text
        for title in ElementTree.fromstring(text).iter(f"{SVG}title")
    )


def test_what_would_be_narrower_than_a_pixel_is_left_out():
    found = boxes("wide 100000\nnarrow 1\n")
    assert "narrow" not in found
    assert "wide" in found


def test_a_stack_of_thousands_does_not_end_the_drawing():
    deep = ";".join(f"f{depth}" for depth in range(5000))
    assert len(boxes(f"{deep} 3\n")) == stacks.MOST_ROWS


@pytest.mark.parametrize("folded", ["", "no number\n", "12\n", "a;b -3\n", "a 0\n"])
def test_without_samples_there_is_no_picture(folded):
    with pytest.raises(ValueError, match="no folded stacks"):
        flame_graph.render(folded, title="")


def test_the_same_stacks_give_the_same_picture():
    lines = FOLDED.splitlines()
    again = "\n".join(reversed(lines))
    assert flame_graph.render(FOLDED, title="x") == flame_graph.render(again, title="x")


def test_nothing_is_fetched_from_elsewhere():
    text = flame_graph.render(FOLDED, title="x").replace(
        "http://www.w3.org/2000/svg", ""
    )
    assert "http" not in text
    assert "<script" not in text


BEFORE = tree_of("main;read;copy 500\nmain;write 500\n")
AFTER = tree_of("main;read;copy 800\nmain;write 190\nmain;<new>&co 10\n")


def link(zoom):
    return f"?zoom={'.'.join(map(str, zoom))}&q=a"


def view_boxes(svg):
    """Tooltip and colour of each box by its address."""
    root = ElementTree.fromstring(svg)
    return {
        each.get("href"): (
            each.find(f"{SVG}title").text,
            each.find(f"{SVG}rect").get("fill"),
        )
        for each in root.iter(f"{SVG}a")
    }


def test_each_box_links_to_itself_and_a_zoom_shows_what_is_above_it():
    whole = view(AFTER, link=link)
    assert view_boxes(whole.svg)["?zoom=0.1.0&q=a"][0] == "copy: 800 samples, 80.00 %"
    zoomed = view(AFTER, link=link, zoom=(0, 1))
    assert [name for name, _zoom in zoomed.way] == ["all", "main", "read"]
    assert set(view_boxes(zoomed.svg)) == {"?zoom=0.1&q=a", "?zoom=0.1.0&q=a"}
    assert [name for name, _zoom in view(AFTER, link=link, zoom=(0, 99)).way] == [
        "all",
        "main",
    ]


def test_what_is_searched_is_marked_and_counted_once():
    found = view(AFTER, link=link, search="COPY")
    assert found.found == pytest.approx(80.0)
    assert [fill for _title, fill in view_boxes(found.svg).values()].count(FOUND) == 1
    assert view(AFTER, link=link, search="main").found == pytest.approx(100.0)
    assert view(AFTER, link=link).found is None


def test_a_difference_is_coloured_where_chance_does_not_explain_it():
    root_of = view_boxes(view(AFTER, link=link, before=BEFORE).svg)
    title, grown = root_of["?zoom=0.1&q=a"]
    assert title == "read: 800 samples, 80.00 % (50.00 %, +30.00)"
    shrunk = root_of["?zoom=0.2&q=a"][1]
    assert grown.startswith("hsl(5,")
    assert shrunk.startswith("hsl(215,")
    assert root_of["?zoom=0&q=a"][1] == CHANCE
    same = view_boxes(view(BEFORE, link=link, before=BEFORE).svg)
    assert {fill for _title, fill in same.values()} == {CHANCE}


def test_functions_differ_by_their_own_samples():
    assert own_samples(AFTER) == {"copy": 800, "write": 190, "<new>&co": 10}
    first, *others = changes(BEFORE, AFTER)
    assert (first.name, first.points, first.is_sure) == (
        "write",
        pytest.approx(-31),
        True,
    )
    assert {each.name for each in others} == {
        "copy",
        "<new>&co",
        "read",
        "main",
        "all",
    } - {
        "read",
        "main",
        "all",
    }
