"""What every page must be, at every size and in every theme."""

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

DRAWN = "[data-chart][data-drawn=true]"

# Of a test with the fixture `page`. Size and theme do not depend on each other: each is seen once.
at_every_size_and_theme = pytest.mark.parametrize(
    "page",
    [(1280, "light"), (360, "dark")],
    indirect=True,
    ids=["desktop-light", "phone-dark"],
)


# The rules of axe that are broken, each with the first element that breaks it. The full answer
# names every element of the page, which takes as long to send as to find.
BROKEN = """options => axe.run({resultTypes: ["violations"], ...options}).then(
    found => found.violations.map(rule => `${rule.id} ${rule.nodes[0].html.slice(0, 160)}`))"""


def assert_accessible(page, **options):
    """No finding of axe."""
    page.evaluate(AXE_SCRIPT)
    assert page.evaluate(BROKEN, options) == [], page.url


def assert_faultless(page):
    """All charts drawn; no finding of axe, no complaint of the browser, nothing wider than it."""
    charts = page.locator("[data-chart]").count()
    expect(page.locator(DRAWN)).to_have_count(charts)
    assert_accessible(page)
    assert not page.complaints, page.complaints
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= page.viewport_size["width"], page.url
