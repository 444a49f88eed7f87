"""Configurations in a browser: every page at every size and theme, and the editor's ways."""

import re

import pytest
from playwright.sync_api import expect

from runs.models import Configuration
from runs.services.configurations import configurations
from runs.services.configurations.configurations import Content
from tests import factories
from tests.web import looks

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def stored(transactional_db):
    """Built-in configurations, and an old one with a history."""
    configurations.sync()
    made = configurations.create(
        name="Fixed-point observation 2013",
        description="In the words of 9.3.",
        content=Content({"checkpoint_segments": "16", "shared_buffers": "4GB"}, (), "9.3"),
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
PATHS = [
    "/configurations/",
    f"/configurations/{OLD}/?version=18",
    f"/configurations/{OLD}/edit/",
    f"/configurations/diff/?a=configuration:fixed-point-small&b=configuration:{OLD}",
]


def test_every_page_is_faultless(page, live_server, stored):
    factories.server("db1", name="db1", versions=("9.3.25", "18.4"))
    for number, path in enumerate(PATHS):
        looks.assert_faultless_in_every_look(page, live_server.url + path, number)
        expect(page.locator("h1")).to_be_visible()


def test_a_name_is_completed_checked_and_stored(page, live_server, known):
    page.goto(f"{live_server.url}/configurations/new/")
    text = page.get_by_label("Settings", exact=False).first
    text.click()
    page.keyboard.type("shared_bu")
    expect(page.locator("#setting-names [aria-selected=true]")).to_contain_text("shared_buffers")
    page.keyboard.press("Tab")
    page.keyboard.type("1kB")
    expect(page.locator("#check")).to_contain_text("shared_buffers = 1kB is outside the range")
    expect(page.locator("#check")).to_contain_text("Line 1")
    page.keyboard.press("Control+A")
    page.keyboard.type("shared_buffers = 1GB")
    expect(page.locator("#check")).to_contain_text("These versions start with the settings.")
    page.get_by_label("Name", exact=True).fill("By hand")
    page.get_by_role("button", name="Store").click()
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
    expect(page.locator("#id_text")).to_have_value("worker" if key == "Escape" else "work\ner")
