"""What every page must be, at every size and in every theme."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

DRAWN = "[data-chart][data-drawn=true]"

# Of a test with the fixture `page`. Size and theme do not depend on each other: each is seen once.
at_every_size_and_theme = pytest.mark.parametrize(
    "context",
    [(1280, "light"), (360, "dark")],
    indirect=True,
    ids=["desktop-light", "phone-dark"],
)


def assert_faultless(page):
    """All charts drawn; no finding of axe, no complaint of the browser, nothing wider than it."""
    path = page.url
    charts = page.locator("[data-chart]").count()
    expect(page.locator(DRAWN)).to_have_count(charts)
    found = [
        f"{path}: {violation['id']} {violation['nodes'][0]['html'][:160]}"
        for violation in Axe().run(page).response["violations"]
    ]
    assert not found, "\n".join(found)
    assert not page.complaints, page.complaints
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"], (
        path
    )
