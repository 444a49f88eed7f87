"""Flame graphs of a page: zoomed, searched, compared."""

from xml.etree import ElementTree

import pytest

from runs.charts.flame_view import CHANCE, FOUND, view
from runs.charts.stacks import changes, own_samples, tree_of

BEFORE = tree_of("main;read;copy 500\nmain;write 500\n")
AFTER = tree_of("main;read;copy 800\nmain;write 190\nmain;<new>&co 10\n")
SVG = "{http://www.w3.org/2000/svg}"


def link(zoom):
    return f"?zoom={'.'.join(map(str, zoom))}&q=a"


def boxes(svg):
    """Tooltip and colour of each box by its address."""
    root = ElementTree.fromstring(svg)
    return {
        each.get("href"): (each.find(f"{SVG}title").text, each.find(f"{SVG}rect").get("fill"))
        for each in root.iter(f"{SVG}a")
    }


def test_each_box_links_to_itself_and_a_zoom_shows_what_is_above_it():
    whole = view(AFTER, link=link)
    assert boxes(whole.svg)["?zoom=0.1.0&q=a"][0] == "copy: 800 samples, 80.00 %"
    zoomed = view(AFTER, link=link, zoom=(0, 1))
    assert [name for name, _zoom in zoomed.way] == ["all", "main", "read"]
    assert set(boxes(zoomed.svg)) == {"?zoom=0.1&q=a", "?zoom=0.1.0&q=a"}
    assert [name for name, _zoom in view(AFTER, link=link, zoom=(0, 99)).way] == ["all", "main"]


def test_what_is_searched_is_marked_and_counted_once():
    found = view(AFTER, link=link, search="COPY")
    assert found.found == pytest.approx(80.0)
    assert [fill for _title, fill in boxes(found.svg).values()].count(FOUND) == 1
    assert view(AFTER, link=link, search="main").found == pytest.approx(100.0)
    assert view(AFTER, link=link).found is None


def test_a_difference_is_coloured_where_chance_does_not_explain_it():
    drawn = boxes(view(AFTER, link=link, before=BEFORE).svg)
    title, grown = drawn["?zoom=0.1&q=a"]
    assert title == "read: 800 samples, 80.00 % (50.00 %, +30.00)"
    shrunk = drawn["?zoom=0.2&q=a"][1]
    assert grown.startswith("hsl(5,")
    assert shrunk.startswith("hsl(215,")
    assert drawn["?zoom=0&q=a"][1] == CHANCE
    same = boxes(view(BEFORE, link=link, before=BEFORE).svg)
    assert {fill for _title, fill in same.values()} == {CHANCE}


def test_functions_differ_by_their_own_samples():
    assert own_samples(AFTER) == {"copy": 800, "write": 190, "<new>&co": 10}
    first, *others = changes(BEFORE, AFTER)
    assert (first.name, first.points, first.is_sure) == ("write", pytest.approx(-31), True)
    assert {each.name for each in others} == {"copy", "<new>&co", "read", "main", "all"} - {
        "read", "main", "all",
    }  # fmt: skip
