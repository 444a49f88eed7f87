"""One question of many factors, asked in the browser in one form, and its answer by facets."""

import pytest
from playwright.sync_api import expect

from runs.models import Campaign
from tests import factories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def configurations():
    return [
        factories.configuration("small", name="Small", settings={"shared_buffers": "64MB"}),
        factories.configuration("large", name="Large", settings={"shared_buffers": "256MB"}),
    ]


def test_versions_and_configurations_are_queued_in_one_form(
    page, live_server, ready_server, configurations
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


def test_a_setting_that_a_version_lacks_is_shown_in_the_matrix(page, live_server, ready_server):
    page.goto(f"{live_server.url}/campaigns/new/")
    page.locator(".vary summary", has_text="Setting").click()
    page.get_by_label("Settings that vary").fill("io_method: sync, worker")
    matrix = page.locator(".matrix")
    expect(matrix.locator("tbody tr")).to_have_count(4)
    expect(matrix.locator("tbody tr", has_text="PostgreSQL 16.14").first).to_contain_text("✕")
    expect(matrix.locator("tbody tr", has_text="PostgreSQL 18.4").first).not_to_contain_text("✕")
    assert page.complaints == []


def test_cores_and_arrangements_are_drawn_and_queued_with_the_rest(page, live_server, ready_server):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{live_server.url}/campaigns/new/")
    page.get_by_label("Clients").fill("2, 4")
    page.locator(".vary summary", has_text="CPU cores").click()
    page.get_by_label("CPU cores").fill("1, 2")
    page.locator(".vary summary", has_text="Arrangement").click()
    for name in ("one cluster", "one synchronous standby", "a connection pool in front"):
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
    page.goto(f"{live_server.url}/compare/?s={campaign.slug}&facet=arrangement&x=clients")
    expect(page.locator("body")).to_contain_text("by arrangement")
    assert page.complaints == []
