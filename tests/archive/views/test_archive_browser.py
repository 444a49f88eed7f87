"""The archive in a real browser: looked at, filtered, searched, and reproduced from."""

import re

import pytest
from django.core.management import call_command
from django.db import connections
from playwright.sync_api import expect

from runs.archive.services import load
from runs.published import reading
from runs.workloads.services import scenarios
from tests.web import looks

pytestmark = pytest.mark.browser

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
    "/topics/",
    "/topics/storage/",
    "/help/",
)


@pytest.fixture(scope="module")
def archive(django_db_setup, django_db_blocker):
    """Every publication, stored once for all tests of this module, which only add to it."""
    with django_db_blocker.unblock():
        scenarios.sync()
        load(files=reading.files())
        yield
        call_command("flush", interactive=False, verbosity=0)
        # The browser's loop has connections of its own, and the database is dropped without it.
        connections.close_all()


@pytest.fixture
def transactional_db(archive):
    """What a live server asks for: what is stored stays after the test."""


@pytest.fixture
def db(archive):
    """What other fixtures ask for: the same."""


def test_every_page_of_the_archive_is_accessible_and_faultless(page, live_server):
    for number, path in enumerate(PAGES):
        looks.assert_faultless_in_every_look(page, live_server.url + path, number)


def test_the_archive_is_filtered_and_searched_while_one_types(page, live_server):
    page.goto(f"{live_server.url}/archive/")

    page.get_by_label("Theme").select_option("replication")
    expect(page.locator("#shelves a[href='/campaigns/wg1-2013-2-2/']")).to_have_count(0)
    expect(page.locator("#shelves a[href='/campaigns/wg1-2017-8-8/']")).to_be_visible()
    expect(page).to_have_url(re.compile("theme=replication"))

    page.get_by_label("Search", exact=True).fill("asynchronous mixed")
    expect(page.locator("#shelves tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Three standbys").click()
    expect(page.locator("h1")).to_contain_text("Three standbys")


def test_a_point_of_the_line_leads_to_its_campaign(page, live_server):
    page.goto(f"{live_server.url}/versions/")
    expect(page.locator(looks.DRAWN)).to_have_count(1)

    page.locator(".chart__wide a").nth(1).click()

    expect(page.locator("h1")).to_contain_text("9.2 against 9.3")


def test_the_filters_count_anew_what_the_other_filters_leave(page, live_server):
    page.goto(f"{live_server.url}/archive/")
    page.get_by_label("Version").focus()
    page.get_by_label("Version").select_option("13")

    expect(page.locator("#archive-theme option[value='replication']")).to_have_text(
        re.compile(r"\(0\)")
    )
    # The filter that was used keeps the choice and the focus.
    expect(page.get_by_label("Version")).to_have_value("13")
    expect(page.get_by_label("Version")).to_be_focused()


def test_three_questions_are_answered_on_a_phone_in_one_tap_each(page, live_server):
    page.context.clear_cookies()  # who works here sees first what runs
    page.set_viewport_size({"width": 360, "height": 800})
    for question, answer in (
        (
            "Was 14 slower than 13 for reads in 2021?",
            "Yes, as printed: 2.0 to 5.6 % slower, over all conditions of its table",
        ),
        ("What do page checksums cost?", "To 32 clients the cost is 1 to 4 %"),
        (
            "What does a synchronous standby cost?",
            "One synchronous standby leaves 50.4 %",
        ),
    ):
        page.goto(live_server.url)
        link = page.get_by_role("link", name=question)
        expect(link).to_be_in_viewport()
        expect(link).to_contain_text(answer)
        link.click()
        expect(
            page.get_by_role("heading", name="The publication concludes")
        ).to_be_in_viewport()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_results_and_steps_are_read_on_a_phone_without_scrolling_sideways(
    page, live_server
):
    for path in ("/archive/", "/versions/"):
        looks.assert_nothing_is_beside_a_phone(
            page, live_server.url + path, "#content .table"
        )


def test_back_from_a_search_is_a_whole_page(page, live_server):
    page.goto(f"{live_server.url}/archive/")
    words = page.locator("#archive-search input[type=search]")
    for each in ("checksum", "parallel"):
        words.fill(each)
        words.press("Enter")
        page.wait_for_url(f"**/archive/?*{each}*")
    page.go_back()
    page.wait_for_url("**/archive/?*checksum*")
    expect(page.locator("nav .nav__link").first).to_be_visible()
    expect(words).to_have_value("checksum")


def test_a_published_design_is_reproduced(page, live_server, ready_server):
    page.goto(f"{live_server.url}/campaigns/wg1-2013-2-2/")
    page.get_by_role("link", name="Reproduce", exact=True).click()

    expect(page.locator("#reproduced")).to_contain_text("1, 2, 3")
    expect(page.get_by_label("Clients")).to_have_value("1, 2, 3")
    page.get_by_role("button", name="Queue the campaign").click()
    expect(page.locator("h1")).to_contain_text("PostgreSQL 16.14, 18.4, designed as")
