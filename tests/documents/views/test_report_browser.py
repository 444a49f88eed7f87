"""A report as a file: opened offline in a real browser, on screen and on paper."""

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from runs.campaigns.services import annotations
from runs.charts.palette import STYLES
from runs.documents.selectors import reports
from runs.reports import html
from tests import factories
from tests.web.looks import assert_accessible

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MOST_BYTES = 300_000
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
    annotations.add(
        campaign=campaign, text="<b>18</b> & more", by=None, kind="conclusion"
    )
    made = reports.make_report(
        campaign, language="en", address="http://x/", today=timezone.localdate()
    )
    path = tmp_path / "report.html"
    path.write_text(html.page(made))
    return path


@pytest.fixture(scope="module")
def offline(chromium):
    """A page of a browser without a network."""
    context = chromium.new_context(offline=True)
    yield context.new_page()
    context.close()


@pytest.fixture
def page(offline):
    """That page, which keeps what it asks for and what the browser complains about."""
    offline.emulate_media(color_scheme="light", media="screen")
    offline.asked, offline.complaints = [], []
    listeners = {
        "request": lambda request: offline.asked.append(request.url),
        "pageerror": lambda error: offline.complaints.append(str(error)),
        "console": lambda said: (
            offline.complaints.append(said.text) if said.type == "error" else None
        ),
    }
    for event, listener in listeners.items():
        offline.on(event, listener)
    yield offline
    for event, listener in listeners.items():
        offline.remove_listener(event, listener)


def test_a_report_of_twelve_versions_opens_offline_is_accessible_and_prints(
    page, report
):
    assert report.stat().st_size < MOST_BYTES
    page.goto(report.as_uri())
    assert page.locator("blockquote").inner_text().startswith("<b>18</b> & more")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        expect(page.locator(".chart svg polyline")).to_have_count(12)
        assert_accessible(
            page, rules={"scrollable-region-focusable": {"enabled": True}}
        )
    assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in page.asked if url.startswith("file:")]) == 1
    assert page.complaints == []

    page.emulate_media(media="print")
    expect(page.locator(".chart svg")).to_be_visible()
