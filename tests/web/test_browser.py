"""The pages in a real browser: accessible, without faults, at every size, in every theme."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from runs.models import Campaign, Run
from runs.services import archive
from tests import factories
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
        state="failed", code="disk_full", message="The disk is full.", remedy="Free space."
    )
    archive.load(files=[SAMPLE])
    finished_campaign.runs.update(hardware=ready_server.hardware)
    return factories.story(finished_campaign.runs.first())


def test_every_page_is_accessible_and_faultless(page, live_server, lab):
    keys = {"run": lab.pk, "hardware": lab.server.hardware_id}
    for number, path in enumerate(PAGES):
        address = live_server.url + path.format(**keys)
        looks.assert_faultless_in_every_look(page, address, number)


def test_a_text_of_low_contrast_is_found_among_many_that_look_alike(tab):
    rows = "".join(f"<tr><td><b>number {each}</b></td></tr>" for each in range(30))
    style = "<style>{} b {{ color: #bbb }}</style><table>" + rows + "</table>"
    tab.goto("about:blank")
    for place in ("", "tr:nth-child(20)", "tr:first-child"):
        tab.set_content(style.format(place))
        (found,) = [each for each in looks.broken_rules(tab) if each.startswith("color-contrast")]
        assert "number 19" in found if "20" in place else "number 0" in found
    tab.set_content(style.format("tr:nth-child(31)"))
    assert not [each for each in looks.broken_rules(tab) if each.startswith("color-contrast")]


def test_a_live_campaign_grows_and_stops_asking_when_it_ends(page, live_server, lab):
    campaign = Campaign.objects.get(slug="live")
    page.goto(f"{live_server.url}/campaigns/live/")
    expect(page.locator(DRAWN)).to_have_count(1)
    page.locator("#order > summary").click()
    page.evaluate("document.getElementById('scaling-plot').dataset.same = 'yes'")
    for run in campaign.runs.filter(state="queued").select_related("cell"):
        factories.finish(run, tps=1000)
    Campaign.objects.filter(pk=campaign.pk).update(state="incomplete")
    expect(page.get_by_text("18 of 18 runs").first).to_be_visible(timeout=10_000)
    expect(page.locator("#live")).not_to_have_attribute("hx-trigger", "every 2s")
    expect(page.locator("#scaling-plot[data-same=yes] .scatterlayer .trace")).to_have_count(2)
    expect(page.locator("#order")).to_have_attribute("open", "")
    assert page.complaints == []


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


def test_a_campaign_is_queued_and_cancelled_by_keyboard_and_mouse(page, live_server, ready_server):
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
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 18, 23)"


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


def test_pages_work_without_javascript(chromium, log_in, live_server, lab):
    context = chromium.new_context(java_script_enabled=False, locale="en")
    log_in(context)
    page = context.new_page()
    page.goto(f"{live_server.url}/campaigns/new/")
    page.get_by_role("button", name="Queue the campaign").click()
    expect(page.locator("h1")).to_have_text("Fixed-point read on db1")
    page.goto(f"{live_server.url}/campaigns/finished/")
    expect(page.locator("#cells")).to_contain_text("4,400")
    context.close()
