"""The pages in a real browser: accessible, without faults, at every size, in every theme."""

import re
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import expect

from runs.archive import services
from runs.configurations.services import configurations
from runs.configurations.services.configurations import Content
from runs.models import Campaign, Configuration, Run, SavedComparison
from tests import factories
from tests.each import some
from tests.web import looks
from tests.web.looks import DRAWN

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SAMPLE = Path(__file__).parents[1] / "samples/published/harbour-2020.yaml"

PAGES = (
    "/",
    "/campaigns/",
    "/campaigns/new/",
    "/campaigns/finished/",
    "/campaigns/live/",
    "/runs/{run}/",
    "/servers/",
    "/servers/new/",
    "/servers/db1/",
    "/servers/offered/",
    "/hardware/",
    "/hardware/?q=nothing+like+it",
    "/hardware/{hardware}/",
    "/topologies/",
    "/topologies/harbour-2020-client-two-machines/",
    "/scenarios/",
    "/scenarios/fixed-point-read/",
    "/styleguide/",
    "/login/",
)


@pytest.fixture
def lab(finished_campaign, ready_server):
    """A campaign of each kind; the run whose page is looked at."""
    factories.server(
        "offered", state="unconfirmed", host_key="", offered_host_key=factories.HOST_KEY
    )
    live = factories.campaign("live", on=ready_server, state="running")
    factories.finish(live.runs.first(), tps=1000)
    Run.objects.filter(pk=live.runs.last().pk).update(
        state="failed",
        code="disk_full",
        message="The disk is full.",
        remedy="Free space.",
    )
    services.load(files=[SAMPLE])
    finished_campaign.runs.update(hardware=ready_server.hardware)
    return factories.story(finished_campaign.runs.first())


def test_every_page_is_accessible_and_faultless(page, live_server, lab):
    keys = {"run": lab.pk, "hardware": lab.server.hardware_id}
    for number, path in enumerate(PAGES):
        address = live_server.url + path.format(**keys)
        looks.assert_faultless_in_every_look(page, address, number)


def test_the_whole_navigation_is_on_a_phone_without_scripts(chromium, live_server, lab):
    context = chromium.new_context(
        java_script_enabled=False, locale="en", viewport={"width": 360, "height": 740}
    )
    page = context.new_page()
    page.goto(f"{live_server.url}/servers/")
    places = [link.bounding_box() for link in page.locator(".nav__link").all()]
    assert len(places) == 7
    assert min(place["x"] for place in places) >= 0
    assert max(place["x"] + place["width"] for place in places) <= 360
    expect(page.locator(".nav__link[aria-current]")).to_have_text("Lab")
    expect(page.locator(".places__link[aria-current]")).to_have_text("Servers")
    context.close()


def test_ratios_and_settings_are_read_on_a_phone_without_scrolling_sideways(
    page, live_server, lab
):
    for path, table in (
        ("/campaigns/finished/", "#ratios .table"),
        (f"/runs/{lab.pk}/", "#settings .table"),
    ):
        looks.assert_nothing_is_beside_a_phone(page, live_server.url + path, table)


# A word of this length is wider than every page.
LONG = "w" * 200
WIDTHS = (380, 1280)
PAGES_WITH_TEXT_OF_PEOPLE = (
    "/",
    "/campaigns/",
    "/campaigns/long/",
    "/compare/?s=long",
    "/compare/?q=www",
    "/compare/saved/",
    "/runs/{run}/",
    "/servers/",
    "/servers/long/",
    "/configurations/",
    "/configurations/{configuration}/",
)


WIDTHS_OF_TITLES = """[...document.querySelectorAll(".table :has(> .list__title)")].map(
    cell => cell.getBoundingClientRect().width)"""


def test_a_long_word_of_a_person_widens_neither_a_page_nor_a_list(
    page, live_server, known
):
    server = factories.server("long", name=LONG[:100], versions=("16.14", "18.4"))
    kept = configurations.create(
        name=LONG[:100],
        description=LONG,
        content=Content({"work_mem": "8MB"}, (), "16"),
    )
    campaign = factories.campaign("long", title=LONG, on=server)
    factories.finish_all(campaign, gain={"18.4": 1.1})
    campaign.annotations.create(text=LONG)
    SavedComparison.objects.create(slug="long", title=LONG, note=LONG, query="s=long")
    keys = {"run": campaign.runs.first().pk, "configuration": kept.slug}
    wide = []
    for path, width in product(PAGES_WITH_TEXT_OF_PEOPLE, WIDTHS):
        page.set_viewport_size({"width": width, "height": 800})
        if width == WIDTHS[0]:
            page.goto(live_server.url + path.format(**keys))
            assert LONG[:100] in page.content()
        shown = [page.evaluate("document.documentElement.scrollWidth")]
        shown += page.evaluate(WIDTHS_OF_TITLES)
        if max(shown) > width:
            wide.append(f"{path} at {width}: {max(shown)}")
    assert wide == []


def test_a_text_of_low_contrast_is_found_among_many_that_look_alike(tab):
    rows = "".join(f"<tr><td><b>number {each}</b></td></tr>" for each in range(30))
    style = "<style>{} b {{ color: #bbb }}</style><table>" + rows + "</table>"
    tab.goto("about:blank")
    for place in ("", "tr:nth-child(20)", "tr:first-child"):
        tab.set_content(style.format(place))
        (found,) = [
            each
            for each in looks.broken_rules(tab)
            if each.startswith("color-contrast")
        ]
        assert "number 19" in found if "20" in place else "number 0" in found
    tab.set_content(style.format("tr:nth-child(31)"))
    assert not [
        each for each in looks.broken_rules(tab) if each.startswith("color-contrast")
    ]


def test_a_live_campaign_grows_and_stops_asking_when_it_ends(page, live_server, lab):
    campaign = Campaign.objects.get(slug="live")
    page.goto(f"{live_server.url}/campaigns/live/")
    expect(page.locator(DRAWN)).to_have_count(1)
    page.locator("#order > summary").click()
    page.get_by_role("button", name="Zoom and hide lines").click()
    expect(page.locator("#scaling-plot .scatterlayer .trace").first).to_be_visible()
    page.evaluate("document.getElementById('scaling-plot').dataset.same = 'yes'")
    for run in campaign.runs.filter(state="queued").select_related("cell"):
        factories.finish(run, tps=1000)
    Campaign.objects.filter(pk=campaign.pk).update(state="incomplete")
    expect(page.get_by_text("17 of 18 runs finished").first).to_be_visible(
        timeout=10_000
    )
    expect(page.locator("#live")).not_to_have_attribute("hx-trigger", "every 2s")
    expect(
        page.locator("#scaling-plot[data-same=yes] .scatterlayer .trace")
    ).to_have_count(2)
    expect(page.locator("#order")).to_have_attribute("open", "")
    expect(page.locator("#cancel")).to_have_count(0)
    assert page.complaints == []


def test_a_chart_can_be_read_before_the_library_that_explores_it_is_asked_for(
    page, live_server, lab
):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{live_server.url}/campaigns/live/")
    expect(page.locator("#chart .chart__wide")).to_contain_text("18.4")
    assert not [url for url in asked if "plotly" in url]
    page.get_by_role("button", name="Zoom and hide lines").press("Enter")
    expect(page.locator("#scaling-plot .scatterlayer .trace").first).to_be_visible()
    expect(page.locator("#chart .chart__still")).to_be_hidden()
    assert [url for url in asked if "plotly" in url]
    assert page.complaints == []


def test_a_page_on_paper_has_no_navigation_and_no_forms_but_all_it_says(
    page, live_server, lab
):
    page.goto(f"{live_server.url}/campaigns/live/")
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 794, "height": 1123})
    for hidden in (".topbar", ".footer", "#cancel form", "[data-chart-explore]"):
        expect(page.locator(hidden).first).to_be_hidden()
    expect(page.locator("#chart .chart__wide svg")).to_be_visible()
    expect(page.locator("#order li").first).to_be_visible()
    assert (
        page.evaluate("getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 794
    # A table in a form is what the page says; what is beside a sheet would be lost.
    page.goto(f"{live_server.url}/compare/?s=finished")
    page.emulate_media(media="print")
    expect(page.locator(".compare-values td").first).to_be_visible()
    expect(page.locator(".compare-values input").first).to_be_hidden()
    expect(page.locator(".compare-form")).to_be_hidden()
    beyond = """[...document.querySelectorAll(".table-scroll")]
        .filter(place => place.scrollWidth > place.clientWidth)
        .map(place => [place.ariaLabel, place.scrollWidth, place.clientWidth])"""
    assert page.evaluate(beyond) == []


def test_an_ended_campaign_that_its_reader_may_not_cancel_ends_without_an_error(
    page, live_server, log_in, lab
):
    log_in(page.context, "reader")
    page.goto(f"{live_server.url}/campaigns/live/")
    expect(page.locator("#cancel")).to_have_count(0)
    campaign = Campaign.objects.get(slug="live")
    campaign.runs.filter(state="queued").update(state="cancelled")
    Campaign.objects.filter(pk=campaign.pk).update(state="cancelled")
    expect(page.get_by_text("1 of 18 runs finished").first).to_be_visible(
        timeout=10_000
    )
    assert page.complaints == []


def choose_scenario(page, title):
    """By its name among all, as one looks for it."""
    page.locator("#chosen").click()
    page.get_by_label("Find a scenario").fill(title)
    expect(page.locator("#questions .question:visible")).to_have_count(1)
    page.get_by_label(title).click()
    expect(page.locator("#questions")).not_to_be_visible()


def test_the_estimate_follows_the_form(page, live_server, ready_server):
    page.goto(f"{live_server.url}/campaigns/new/")
    expect(page.locator("#estimate .stat__value").first).to_have_text("18")
    page.get_by_label("Clients").fill("1, 2")
    expect(page.locator("#estimate .stat__value").first).to_have_text("12")
    page.get_by_label("Clients").fill("many")
    expect(page.locator("#estimate")).to_contain_text("many is not a whole number.")
    assert page.complaints == []


def test_another_server_brings_its_installations(page, live_server, ready_server):
    other = factories.server("other", name="other")
    factories.installation(other, "9.6.24")
    page.goto(f"{live_server.url}/campaigns/new/")
    page.get_by_label("Clients").fill("7")
    page.get_by_label("Server", exact=True).select_option("other")
    expect(page.get_by_label("PostgreSQL 9.6.24")).to_be_checked()
    expect(page.get_by_label("Clients")).to_have_value("7")
    expect(page.locator("#estimate .stat__value").first).to_have_text("3")
    assert page.complaints == []


def test_of_two_quick_choices_the_last_one_is_shown(page, live_server, ready_server):
    factories.installation(factories.server("other", name="other"), "9.6.24")
    page.goto(f"{live_server.url}/campaigns/new/")
    held = []

    def hold(route):
        held.append(route)

    page.route("**/campaigns/new/?*", hold, times=1)
    with page.expect_request("**/campaigns/new/?*"):
        choose_scenario(page, "Fixed-point update")
    page.get_by_label("Server", exact=True).select_option("other")
    newest = page.get_by_label("PostgreSQL 9.6.24")
    expect(newest).to_be_checked()
    (first,) = held
    first.continue_()
    page.evaluate("fetch('/campaigns/new/').then(answer => answer.text())")
    expect(page.get_by_label("PostgreSQL 16.14")).to_have_count(0)
    expect(newest).to_be_checked()
    expect(page.get_by_label("Title")).to_have_value("Fixed-point update on other")


@pytest.mark.parametrize(
    ("language", "name", "message"),
    [
        ("en", "clients", "99999 is out of range. Choose from 1 to 10,000."),
        ("ja", "clients", "99999"),
        ("en", "repeats", "Ensure this value is less than or equal to"),
    ],
)
def test_a_number_out_of_its_range_is_marked_when_its_field_is_left(
    page, live_server, ready_server, language, name, message
):
    cookie = {"name": "django_language", "value": language, "url": live_server.url}
    page.context.add_cookies([cookie])
    page.goto(f"{live_server.url}/campaigns/new/")
    field, error = page.locator(f"#id_{name}"), page.locator(f"#id_{name}_error")
    field.fill("99999")
    expect(page.locator("#estimate")).to_contain_text(
        "99999" if name == "clients" else message
    )
    expect(error).to_have_count(0)  # somebody is still typing
    field.blur()
    expect(error).to_contain_text(message)
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_attribute(
        "aria-describedby", re.compile(rf"\bid_{name}_error$")
    )
    assert error.inner_text().strip() in page.locator("#estimate").inner_text()
    looks.assert_accessible(page)
    field.fill("2")
    expect(error).to_have_count(0)
    expect(field).not_to_have_attribute("aria-invalid", "true")
    assert page.complaints == []


def test_a_title_follows_the_choices_until_it_is_typed(page, live_server, ready_server):
    other = factories.server("other", name="other")
    factories.installation(other, "9.6.24")
    page.goto(f"{live_server.url}/campaigns/new/")
    title = page.get_by_label("Title")
    expect(title).to_have_value("Fixed-point read on db1")
    choose_scenario(page, "Fixed-point update")
    expect(title).to_have_value("Fixed-point update on db1")
    page.get_by_label("Server", exact=True).select_option("other")
    expect(title).to_have_value("Fixed-point update on other")
    title.fill("My own")
    # An estimate follows the choices that came.
    with page.expect_response(lambda answer: "/campaigns/new/estimate/" in answer.url):
        page.get_by_label("Server", exact=True).select_option("db1")
        expect(page.get_by_label("PostgreSQL 16.14")).to_be_checked()
    expect(title).to_have_value("My own")
    assert page.complaints == []


def test_a_campaign_is_queued_and_cancelled_by_keyboard_and_mouse(
    page, live_server, ready_server
):
    page.goto(f"{live_server.url}/campaigns/new/")
    page.get_by_role("button", name="Queue the campaign").press("Enter")
    expect(page.locator("h1")).to_have_text("Fixed-point read on db1")
    page.locator("#cancel > summary").press("Enter")
    page.get_by_role("button", name="Cancel the campaign").click()
    expect(page.get_by_text("what has finished is kept")).to_be_visible()
    assert Campaign.objects.get().runs.filter(state="cancelled").count() == 18


def test_the_theme_is_switched_and_kept(page, live_server):
    page.goto(f"{live_server.url}/styleguide/")
    expect(page.locator(DRAWN)).to_have_count(1)
    switch = page.locator("[data-theme-switch]")
    switch.click()
    switch.click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert (
        page.evaluate("getComputedStyle(document.body).backgroundColor")
        == "rgb(14, 18, 23)"
    )


def test_settings_are_filtered(page, live_server, lab):
    page.goto(f"{live_server.url}/runs/{lab.pk}/")
    page.get_by_label("Filter").fill("no such setting")
    expect(page.locator("#settings-table tbody tr").first).to_be_hidden()
    page.get_by_label("Filter").fill("WORK")
    expect(page.locator("#settings-table tbody tr").first).to_be_visible()


def test_the_skip_link_leads_to_the_content(page, live_server, ready_server):
    page.goto(f"{live_server.url}/servers/")
    page.keyboard.press("Tab")
    expect(page.locator(".skip-link")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()


# The forms of other rooms.
FORMS = (
    "/compare/",
    "/configurations/new/",
    "/configurations/diff/",
    "/workloads/new/",
    "/loads/new/?sample=1",
    "/plans/",
    "/tokens/",
    "/webhooks/",
    "/projects/",
    "/projects/default/people/",
    "/uploads/new/",
    "/observations/new/",
    "/schedules/",
    "/campaigns/finished/schedule/",
    "/servers/keys/",
    "/servers/db1/edit/",
    "/changes/",
    "/audit/",
    "/search/?q=9",
    "/accounts/2fa/",
    "/accounts/password/change/",
    "/accounts/password/reset/",
    "/accounts/email/",
)

# Buttons that send no form, forms that nothing sends (Enter sends one of a single field), and empty
# charts.
WITHOUT_SCRIPTS = """() => {
    const seen = element => element.checkVisibility({visibilityProperty: true});
    const named = selector => [...document.querySelectorAll(selector)].filter(seen);
    const fields = form => [...form.elements].filter(
        each => seen(each) && !/^(hidden|button|submit|fieldset)$/.test(each.type));
    const senders = form => [...form.elements].filter(each => each.type === "submit");
    return [
        ...named("button[type=button], a[href='#']"),
        ...named("form").filter(form => fields(form).length > 1 && !senders(form).length),
        ...named("[data-chart]").filter(chart => !chart.querySelector("svg")),
    ].map(element => element.outerHTML.slice(0, 160));
}"""


def test_pages_work_without_javascript(chromium, log_in, live_server, lab):
    context = chromium.new_context(java_script_enabled=False, locale="en")
    log_in(context)
    page = context.new_page()
    page.goto(f"{live_server.url}/campaigns/new/")
    page.get_by_role("button", name="Queue the campaign").click()
    expect(page.locator("h1")).to_have_text("Fixed-point read on db1")
    page.goto(f"{live_server.url}/campaigns/finished/")
    expect(page.locator("#cells")).to_contain_text("4,400")
    # What needs a script is not shown, and each chart is drawn. The style guide has samples.
    keys = {"run": lab.pk, "hardware": lab.server.hardware_id}
    found = {
        path: page.evaluate(WITHOUT_SCRIPTS)
        for path in (each.format(**keys) for each in some((*PAGES, *FORMS), 2))
        if path != "/styleguide/" and page.goto(live_server.url + path)
    }
    context.close()
    assert {path: each for path, each in found.items() if each} == {}


# One question of many factors, asked in one form, and its answer by facets.


@pytest.fixture
def two_configurations():
    return [
        factories.configuration(
            "small", name="Small", settings={"shared_buffers": "64MB"}
        ),
        factories.configuration(
            "large", name="Large", settings={"shared_buffers": "256MB"}
        ),
    ]


def test_versions_and_configurations_are_queued_in_one_form(
    page, live_server, ready_server, two_configurations
):
    page.goto(f"{live_server.url}/campaigns/new/")
    page.get_by_label("Clients").fill("1, 2, 4, 8")
    page.get_by_label("PostgreSQL configuration").select_option(label="Small")
    page.locator(".vary summary", has_text="Configuration").click()
    page.get_by_label("Large").check()
    matrix = page.locator(".matrix")
    expect(matrix.locator("tbody tr")).to_have_count(4)
    expect(page.locator("#preflight")).not_to_be_empty(
        timeout=20_000
    )  # below the estimate, not instead of it
    expect(matrix).to_contain_text("PostgreSQL 16.14 · Large")
    expect(page.locator("#estimate .stat").first).to_contain_text("48")
    page.get_by_role("button", name="Queue the campaign").click()
    expect(page.locator("h1")).to_contain_text("Fixed-point read on db1")

    campaign = Campaign.objects.get()
    assert campaign.runs.count() == 2 * 2 * 4 * 3
    assert campaign.factors["configuration"] == ["small", "large"]
    expect(page.locator("body")).to_contain_text("16.14 · Large")

    factories.finish_all(campaign, gain={"18.4": 1.1})
    page.goto(f"{live_server.url}/compare/?s={campaign.slug}&facet=configuration")
    expect(page.locator("body")).to_contain_text("by configuration")
    charts = page.locator("[data-figure], .chart")
    expect(charts.first).to_be_visible()
    expect(page.locator("body")).to_contain_text("Small")
    expect(page.locator("body")).to_contain_text("Large")
    assert page.complaints == []


def test_a_setting_that_a_version_lacks_is_shown_in_the_matrix(
    page, live_server, ready_server
):
    page.goto(f"{live_server.url}/campaigns/new/")
    page.locator(".vary summary", has_text="Setting").click()
    page.get_by_label("Settings that vary").fill("io_method: sync, worker")
    matrix = page.locator(".matrix")
    expect(matrix.locator("tbody tr")).to_have_count(4)
    expect(
        matrix.locator("tbody tr", has_text="PostgreSQL 16.14").first
    ).to_contain_text("✕")
    expect(
        matrix.locator("tbody tr", has_text="PostgreSQL 18.4").first
    ).not_to_contain_text("✕")
    assert page.complaints == []


def test_cores_and_arrangements_are_drawn_and_queued_with_the_rest(
    page, live_server, ready_server
):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{live_server.url}/campaigns/new/")
    page.get_by_label("Clients").fill("2, 4")
    page.locator(".vary summary", has_text="CPU cores").click()
    page.get_by_role("textbox", name="CPU cores").fill("1, 2")
    page.locator(".vary summary", has_text="Arrangement").click()
    for name in (
        "one cluster",
        "one synchronous standby",
        "a connection pool in front",
    ):
        page.get_by_label(name).check()
    expect(page.locator(".matrix tbody tr")).to_have_count(2 * 2 * 3)
    drawings = page.locator(".arrangement__figure")
    expect(drawings).to_have_count(3)
    expect(drawings.nth(1)).to_contain_text("standby1")
    expect(drawings.nth(1)).to_contain_text("Several clusters share db1")
    expect(drawings.nth(2)).to_contain_text("PgBouncer")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.get_by_role("button", name="Queue the campaign").click()
    expect(page.locator("h1")).to_contain_text("Fixed-point read on db1")
    campaign = Campaign.objects.get()
    assert campaign.runs.count() == 2 * 2 * 3 * 2 * 3
    factories.finish_all(campaign, gain={"18.4": 1.1})
    page.goto(
        f"{live_server.url}/compare/?s={campaign.slug}&facet=arrangement&x=clients"
    )
    expect(page.locator("body")).to_contain_text("by arrangement")
    assert page.complaints == []


# Configurations: their pages, and what the editor does.


@pytest.fixture
def stored(transactional_db):
    """Built-in configurations, and an old one with a history."""
    configurations.sync()
    made = configurations.create(
        name="Fixed-point observation 2013",
        description="In the words of 9.3.",
        content=Content(
            {"checkpoint_segments": "16", "shared_buffers": "4GB"}, (), "9.3"
        ),
    )
    return configurations.edit(
        configuration=made,
        name=made.name,
        description=made.description,
        content=Content(
            {"checkpoint_segments": "32", "shared_buffers": "4GB", "autovacuum": "off"},
            ("--data-checksums",),
            "9.3",
        ),
    )


OLD = "fixed-point-observation-2013"
CONFIGURATIONS = [
    "/configurations/",
    f"/configurations/{OLD}/?version=18",
    f"/configurations/{OLD}/edit/",
    f"/configurations/diff/?a=configuration:fixed-point-small&b=configuration:{OLD}",
]


def test_every_page_of_configurations_is_accessible_and_faultless(
    page, live_server, stored
):
    factories.server("db1", name="db1", versions=("9.3.25", "18.4"))
    for number, path in enumerate(CONFIGURATIONS):
        looks.assert_faultless_in_every_look(page, live_server.url + path, number)
        expect(page.locator("h1")).to_be_visible()


def test_a_name_is_completed_checked_and_stored(page, live_server, known):
    page.goto(f"{live_server.url}/configurations/new/")
    text = page.get_by_label("Settings", exact=False).first
    text.click()
    page.keyboard.type("shared_bu")
    expect(page.locator("#setting-names [aria-selected=true]")).to_contain_text(
        "shared_buffers"
    )
    page.keyboard.press("Tab")
    page.keyboard.type("1kB")
    expect(page.locator("#check")).to_contain_text(
        "shared_buffers = 1kB is outside the range"
    )
    expect(page.locator("#check")).to_contain_text("Line 1")
    page.keyboard.press("Control+A")
    page.keyboard.type("shared_buffers = 1GB")
    expect(page.locator("#check")).to_contain_text(
        "a server starts with this file as it is."
    )
    page.get_by_label("Name", exact=True).fill("By hand")
    page.get_by_role("button", name="Save").click()
    expect(page).to_have_url(re.compile("/configurations/by-hand/$"))
    assert Configuration.objects.get().settings == {"shared_buffers": "1GB"}
    assert not page.complaints


@pytest.mark.parametrize("key", ["Escape", "Enter"])
def test_a_line_goes_on_as_it_was_typed(page, live_server, known, key):
    page.goto(f"{live_server.url}/configurations/new/")
    page.locator("#id_text").click()
    page.keyboard.type("work")
    expect(page.locator("#setting-names")).to_be_visible()
    page.keyboard.press(key)
    page.keyboard.type("er")
    expect(page.locator("#id_text")).to_have_value(
        "worker" if key == "Escape" else "work\ner"
    )
