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
