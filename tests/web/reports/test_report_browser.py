"""A report as a file: opened offline in a real browser, on screen and on paper."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.utils import timezone
from playwright.sync_api import expect

from runs.charts.palette import STYLES
from runs.reports import html
from runs.selectors.reports import reports
from runs.services.campaigns import annotations
from tests import factories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MOST_BYTES = 6_000_000
VERSIONS = list(STYLES)[:12]


@pytest.fixture
def report(known, tmp_path):
    """The file of a campaign of 12 versions and 8 levels of clients."""
    campaign = factories.campaign(
        "twelve",
        title="Twelve versions",
        factors={"version": VERSIONS, "clients": [1, 2, 4, 8, 16, 32, 64, 128]},
        question="Which is the fastest?",
    )
    gains = {version: 1 + place / 20 for place, version in enumerate(VERSIONS)}
    factories.finish_all(campaign, gain=gains)
    annotations.add(campaign=campaign, text="<b>18</b> & more", by=None, kind="conclusion")
    made = reports.of_campaign(
        campaign, language="en", address="http://x/", today=timezone.localdate()
    )
    path = tmp_path / "report.html"
    path.write_text(html.page(made))
    return path


@pytest.fixture(params=["light", "dark"])
def page(request, chromium):
    context = chromium.new_context(offline=True, color_scheme=request.param)
    opened = context.new_page()
    opened.asked, opened.complaints = [], []
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.on(
        "console",
        lambda said: opened.complaints.append(said.text) if said.type == "error" else None,
    )
    yield opened
    context.close()


def test_a_report_of_twelve_versions_opens_offline(page, report):
    assert report.stat().st_size < MOST_BYTES
    page.goto(report.as_uri())
    expect(page.locator("[data-chart][data-drawn=true]")).to_have_count(1)
    expect(page.locator(".chart__plot .scatterlayer .trace")).to_have_count(12)
    assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in page.asked if url.startswith("file:")]) == 1
    assert page.complaints == []
    assert page.locator("blockquote").inner_text().startswith("<b>18</b> & more")


def test_a_report_is_accessible(page, report):
    page.goto(report.as_uri())
    expect(page.locator("[data-chart][data-drawn=true]")).to_have_count(1)
    found = Axe().run(page, options={"rules": {"scrollable-region-focusable": {"enabled": True}}})
    assert found.violations_count == 0, found.generate_report()


def test_paper_gets_the_still_pictures(page, report):
    page.goto(report.as_uri())
    page.emulate_media(media="print")
    expect(page.locator(".chart__still svg")).to_be_visible()
    expect(page.locator(".chart__plot")).to_be_hidden()
