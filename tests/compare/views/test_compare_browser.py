"""The compare page in a real browser: twelve versions, facets, forest and all pairs, everywhere."""

import re
from collections import Counter
from xml.etree import ElementTree as ET

import pytest
from playwright.sync_api import expect

from runs.models import Topology
from tests import factories
from tests.web import looks
from tests.web.looks import DRAWN

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

VERSIONS = [
    "9.2.24",
    "9.3.25",
    "9.4.26",
    "9.5.25",
    "9.6.24",
    "10.23",
    "11.22",
    "12.22",
    "13.22",
    "14.19",
    "15.14",
    "16.10",
]
# Addresses, each with the number of its charts.
PAGES = (
    ("", 0),
    ("?s=twelve", 1),  # the plot of 33 ratios is folded
    ("?s=single&s=streaming&facet=os&ignore=environment&relative=1", 3),
    ("?s=single&s=streaming&facet=topology", 3),
    ("?s=twelve~version%3D9.2.24&fit=usl", 1),
    ("saved/", 0),
    ("cells/?a={a}&b={b}", 0),
)


@pytest.fixture
def lab(db):
    """Twelve versions on one machine, and two versions on two systems and two topologies."""
    gain = {
        version: 1 + number / 20 for number, version in enumerate([*VERSIONS, "18.4"])
    }
    twelve = factories.campaign(
        "twelve", factors={"version": VERSIONS, "clients": [1, 4, 16]}
    )
    factories.finish_all(twelve, gain=gain)
    for slug, system in (("single", "Debian 13"), ("streaming", "Windows 2022")):
        made = factories.campaign(slug)
        made.topology = Topology.objects.create(slug=slug, name=slug, kind=slug)
        factories.finish_all(made, gain=gain)
        made.runs.update(
            environment=factories.environment(system), hardware=factories.hardware()
        )
    return twelve


def test_every_comparison_is_accessible_and_faultless(page, live_server, lab):
    a, b = lab.cells.values_list("pk", flat=True)[:2]
    for number, (query, charts) in enumerate(PAGES):
        address = f"{live_server.url}/compare/{query.format(a=a, b=b)}"
        looks.assert_faultless_in_every_look(page, address, number)
        expect(page.locator(DRAWN)).to_have_count(charts)


def test_twelve_versions_have_a_line_each_and_two_of_them_a_colour(
    page, live_server, lab
):
    page.goto(f"{live_server.url}/compare/?s=twelve")

    lines = page.locator("#chart .chart__wide polyline")
    expect(lines).to_have_count(12)
    colours = lines.evaluate_all(
        "lines => lines.map(line => line.getAttribute('stroke'))"
    )
    # Those that are asked about; the others are grey.
    assert sorted(Counter(colours).values()) == [1, 1, 10]
    expect(page.locator(".heat tbody tr")).to_have_count(12)
    # Of so many the table comes first, open.
    assert page.locator("#heat").bounding_box()["y"] < lines.first.bounding_box()["y"]


def test_ratios_and_their_forest_are_as_wide_as_a_phone(page, live_server, lab):
    address = f"{live_server.url}/compare/?s=single"
    looks.assert_nothing_is_beside_a_phone(page, address, ".compare-ratios")

    expect(page.locator(DRAWN)).to_have_count(2)
    assert page.locator(".forest").evaluate(
        "each => each.scrollWidth <= each.clientWidth"
    )


def test_the_comparison_follows_each_choice_and_so_does_the_address(
    page, live_server, lab
):
    page.goto(f"{live_server.url}/compare/?s=single")
    page.get_by_text("How it is drawn").click()
    page.get_by_label("Relative to the baseline").check()

    expect(page.locator("#compared")).to_contain_text(
        "Ratio to the baseline with its 95 %"
    )
    expect(page.locator(DRAWN)).to_have_count(2)
    assert "relative=1" in page.url
    page.reload()
    expect(page.get_by_label("Relative to the baseline")).to_be_checked()


def test_a_series_is_searched_for_and_added(page, live_server, lab):
    page.goto(f"{live_server.url}/compare/")
    page.get_by_label("Search", exact=True).first.fill("streaming")
    expect(page.locator("#candidates .list__title")).to_have_count(1)
    page.get_by_role("link", name="+ PostgreSQL 18.4").click()

    expect(page.locator(".chosen__item")).to_have_count(1)
    expect(page.locator(DRAWN)).to_have_count(1)
    assert page.complaints == []


def test_two_points_are_ticked_and_compared_by_keyboard(page, live_server, lab):
    page.goto(f"{live_server.url}/compare/?s=single")
    for name in ("PostgreSQL 16.14 1", "PostgreSQL 18.4 1"):
        page.get_by_label(name, exact=True).press("Space")
    page.get_by_role("button", name="Compare the two").press("Enter")

    expect(page.locator("h1")).to_have_text("A against B")
    expect(page.locator("#metrics")).to_contain_text("Ratio")


def test_a_point_says_its_figures_and_leads_to_its_runs_by_mouse_and_keyboard(
    page, live_server, lab
):
    for press in ("click", "Enter"):
        page.goto(f"{live_server.url}/compare/?s=single")
        point = page.locator("#chart .chart__wide a").last
        expect(point).to_have_accessible_name(
            re.compile(r"18\.4.*the model's value: [\d,.]+.*runs: 3")
        )
        if press == "click":
            point.click()
        else:
            point.focus()
            page.keyboard.press(press)
        page.wait_for_url("**/campaigns/single/")


def test_a_chart_is_explored_by_a_library_and_its_points_lead_on(
    page, live_server, lab
):
    page.goto(f"{live_server.url}/compare/?s=single")
    page.locator("#chart").get_by_role("button", name="Zoom and hide lines").click()
    expect(page.locator("#compare-1-plot .scatterlayer .trace")).to_have_count(
        2, timeout=30_000
    )
    page.locator("#compare-1-plot .points path").last.hover(force=True)
    page.mouse.down()
    page.mouse.up()

    page.wait_for_url("**/campaigns/single/")


def test_what_is_zoomed_and_hidden_is_kept_in_the_address(page, live_server, lab):
    page.goto(f"{live_server.url}/compare/?s=single")
    page.locator("#chart").get_by_role("button", name="Zoom and hide lines").click()
    expect(page.locator("#compare-1-plot .main-svg").first).to_be_visible(
        timeout=30_000
    )
    page.evaluate("""() => {
        const plot = document.getElementById("compare-1-plot");
        return Plotly.relayout(plot, {"xaxis.range[0]": 0.1, "xaxis.range[1]": 0.5})
            .then(() => Plotly.restyle(plot, {visible: "legendonly"}, [1]));
    }""")
    expect(page).to_have_url(
        re.compile(r"\?s=single#compare-1\.x=0\.1%2C0\.5&compare-1\.hide=1$")
    )
    page.reload()
    expect(page.locator("#compare-1-plot .main-svg").first).to_be_visible(
        timeout=30_000
    )
    left = page.evaluate("""() => {
        const plot = document.getElementById("compare-1-plot");
        return [plot.layout.xaxis.range, plot.data.map(trace => trace.visible)];
    }""")
    assert left == [[0.1, 0.5], [None, "legendonly"]]
    assert page.complaints == []


@pytest.mark.parametrize("kind", ["SVG", "PNG"])
def test_a_chart_is_saved_as_a_picture(page, live_server, lab, kind):
    page.goto(f"{live_server.url}/compare/?s=single")
    expect(page.locator(DRAWN)).to_have_count(2)
    with page.expect_download() as download:
        page.locator("#chart").get_by_role("button", name=kind).click()

    assert download.value.suggested_filename == f"compare-1.{kind.lower()}"
    saved = download.value.path().read_bytes()
    if kind == "SVG":
        assert ET.fromstring(saved).tag.endswith("svg")
        # What only the page knows would have no colour elsewhere.
        assert b"var(" not in saved
        # It says what it shows, and where it is from.
        told = "".join("".join(ET.fromstring(saved).itertext()).split())
        assert "".join(page.locator("h1").inner_text().split()) in told
        assert b"/compare/?s=single" in saved
    else:
        assert saved.startswith(b"\x89PNG")
        assert len(saved) > 5000


def test_everything_but_the_charts_works_without_scripts(
    chromium, log_in, live_server, lab
):
    context = chromium.new_context(java_script_enabled=False, locale="en")
    log_in(context)
    page = context.new_page()
    page.goto(f"{live_server.url}/compare/?q=streaming")
    page.get_by_role("link", name="Add all 2").click()
    page.get_by_text("How it is drawn").click()
    page.get_by_label("Only significant differences").check()
    page.get_by_role("button", name="Show").click()
    assert "matters=1" in page.url
    expect(page.locator("#ratio-rows")).to_contain_text("faster")
    page.locator("#save summary").click()
    page.get_by_label("Title").fill("Kept")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".list__title")).to_have_text("Kept")
    context.close()
