"""The archive in a real browser: looked at, filtered, searched, and reproduced from."""

import re

import pytest
from playwright.sync_api import expect

from runs.published import reading
from runs.services.archive import load
from runs.services.campaigns import scenarios
from tests.web import looks

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# One campaign of each kind: lines, logarithmic bars, two languages' plans, pictures only.
PAGES = (
    "/archive/",
    "/archive/wg1-2013/",
    "/archive/discrepancies/",
    "/campaigns/wg1-2013-2-4/",
    "/campaigns/wg1-2013-4-8/",
    "/campaigns/wg1-2013-3-search/",
    "/campaigns/wg1-2017-6-12/",
    "/campaigns/wg1-2017-9-3/",
    "/versions/",
)


@pytest.fixture
def archive(known):
    scenarios.sync()
    load(files=reading.files())


@looks.at_every_size_and_theme
def test_every_page_of_the_archive_is_accessible_and_faultless(page, live_server, archive):
    for path in PAGES:
        page.goto(live_server.url + path)
        looks.assert_faultless(page)


def test_the_archive_is_filtered_and_searched_while_one_types(page, live_server, archive):
    page.goto(f"{live_server.url}/archive/")

    page.get_by_label("Theme").select_option("replication")
    expect(page.locator("#shelves a[href='/campaigns/wg1-2013-2-2/']")).to_have_count(0)
    expect(page.locator("#shelves a[href='/campaigns/wg1-2017-8-8/']")).to_be_visible()
    expect(page).to_have_url(re.compile("theme=replication"))

    page.get_by_label("Search").fill("asynchronous mixed")
    expect(page.locator("#shelves tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Three standbys").click()
    expect(page.locator("h1")).to_contain_text("Three standbys")


def test_a_published_design_is_reproduced(page, live_server, ready_server, archive):
    page.goto(f"{live_server.url}/campaigns/wg1-2013-2-2/")
    page.get_by_role("link", name="Reproduce", exact=True).click()

    expect(page.locator("#reproduced")).to_contain_text("1, 2, 3")
    expect(page.get_by_label("Clients")).to_have_value("1, 2, 3")
    page.get_by_role("button", name="Queue the campaign").click()
    expect(page.locator("h1")).to_contain_text("reproduced on db1")


def test_a_point_of_the_line_leads_to_its_campaign(page, live_server, archive):
    page.goto(f"{live_server.url}/versions/")
    expect(page.locator(looks.DRAWN)).to_have_count(1)

    page.locator(".scatterlayer .trace .point").nth(1).click(force=True)

    expect(page.locator("h1")).to_contain_text("9.2 against 9.3")
