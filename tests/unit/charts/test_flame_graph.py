"""Flame graphs: folded stacks as a picture that anybody can open."""

from xml.etree import ElementTree

import pytest

from runs.charts import flame_graph, stacks
from runs.charts.flame_view import CHANCE, FOUND, view
from runs.charts.stacks import changes, own_samples, tree_of

SVG = "{http://www.w3.org/2000/svg}"
FOLDED = "postgres;main;ExecScan 60\npostgres;main;ExecAgg 30\nswapper;idle_[k] 10\n"


def drawn(folded: str, title: str = "Run 7"):
    return ElementTree.fromstring(flame_graph.render(folded, title=title))


def boxes(folded: str) -> dict[str, ElementTree.Element]:
    """Boxes by the first word of their tooltips."""
    groups = drawn(folded).iter(f"{SVG}g")
    return {group.find(f"{SVG}title").text.partition(": ")[0]: group for group in groups}


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
    (left, bottom, width), (x, top, narrow) = rect(found["main"]), rect(found["ExecAgg"])
    assert top < bottom
    assert left <= x
    assert x + narrow <= left + width + 0.5


def test_each_box_tells_its_samples_and_share():
    assert boxes(FOLDED)["ExecAgg"].find(f"{SVG}title").text == "ExecAgg: 30 samples, 30.00 %"


def test_the_same_function_of_the_same_caller_is_one_box():
    found = boxes("a;b 1\na;c 1\na;b 3\n")
    assert found["b"].find(f"{SVG}title").text.startswith("b: 4 samples")


def test_names_cannot_break_the_picture():
    evil = '<script>alert("x")</script>&\x00\x1b'
    text = flame_graph.render(f"{evil} 5\n", title=evil + '"')
    assert "<script" not in text
    assert any("alert" in title.text for title in ElementTree.fromstring(text).iter(f"{SVG}title"))


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
    text = flame_graph.render(FOLDED, title="x").replace("http://www.w3.org/2000/svg", "")
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
        each.get("href"): (each.find(f"{SVG}title").text, each.find(f"{SVG}rect").get("fill"))
        for each in root.iter(f"{SVG}a")
    }


def test_each_box_links_to_itself_and_a_zoom_shows_what_is_above_it():
    whole = view(AFTER, link=link)
    assert view_boxes(whole.svg)["?zoom=0.1.0&q=a"][0] == "copy: 800 samples, 80.00 %"
    zoomed = view(AFTER, link=link, zoom=(0, 1))
    assert [name for name, _zoom in zoomed.way] == ["all", "main", "read"]
    assert set(view_boxes(zoomed.svg)) == {"?zoom=0.1&q=a", "?zoom=0.1.0&q=a"}
    assert [name for name, _zoom in view(AFTER, link=link, zoom=(0, 99)).way] == ["all", "main"]


def test_what_is_searched_is_marked_and_counted_once():
    found = view(AFTER, link=link, search="COPY")
    assert found.found == pytest.approx(80.0)
    assert [fill for _title, fill in view_boxes(found.svg).values()].count(FOUND) == 1
    assert view(AFTER, link=link, search="main").found == pytest.approx(100.0)
    assert view(AFTER, link=link).found is None


def test_a_difference_is_coloured_where_chance_does_not_explain_it():
    drawn = view_boxes(view(AFTER, link=link, before=BEFORE).svg)
    title, grown = drawn["?zoom=0.1&q=a"]
    assert title == "read: 800 samples, 80.00 % (50.00 %, +30.00)"
    shrunk = drawn["?zoom=0.2&q=a"][1]
    assert grown.startswith("hsl(5,")
    assert shrunk.startswith("hsl(215,")
    assert drawn["?zoom=0&q=a"][1] == CHANCE
    same = view_boxes(view(BEFORE, link=link, before=BEFORE).svg)
    assert {fill for _title, fill in same.values()} == {CHANCE}


def test_functions_differ_by_their_own_samples():
    assert own_samples(AFTER) == {"copy": 800, "write": 190, "<new>&co": 10}
    first, *others = changes(BEFORE, AFTER)
    assert (first.name, first.points, first.is_sure) == ("write", pytest.approx(-31), True)
    assert {each.name for each in others} == {"copy", "<new>&co", "read", "main", "all"} - {
        "read", "main", "all",
    }  # fmt: skip
