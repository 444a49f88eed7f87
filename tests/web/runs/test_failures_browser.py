"""What a reader sees and keeps when the session ends, the network fails, or the page goes back."""

import pytest
from playwright.sync_api import expect

from runs.models import Campaign
from tests import factories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def live(ready_server):
    """A campaign that is being measured."""
    campaign = factories.campaign("live", on=ready_server, state="running")
    factories.finish(campaign.runs.first(), tps=1000)
    return campaign


def test_what_was_typed_outlives_the_session(page, live_server, finished_campaign):
    page.goto(f"{live_server.url}/campaigns/finished/")
    page.locator("#annotation-new > summary").click()
    page.locator("#annotation-new textarea").fill("18 is faster.")
    page.context.clear_cookies(name="sessionid")
    page.locator("#annotation-new button[type=submit]").click()
    expect(page.get_by_role("alert")).to_contain_text("you are logged out")
    expect(page.locator("#annotation-new textarea")).to_have_value("18 is faster.")
    assert not finished_campaign.annotations.exists()


def test_an_act_after_the_session_leads_back_to_its_page(page, live_server, live):
    page.goto(f"{live_server.url}/campaigns/live/")
    page.locator("#cancel > summary").click()
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Cancel the campaign").click()
    expect(page.locator(".messages")).to_contain_text("Nothing was done")
    assert page.url == f"{live_server.url}/login/?next=/campaigns/live/"
    assert Campaign.objects.get(slug="live").state == "running"


def test_a_live_page_says_that_nobody_answers_until_somebody_does(page, live_server, live):
    page.goto(f"{live_server.url}/campaigns/live/")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.context.set_offline(True)
    expect(page.get_by_role("alert")).to_contain_text("does not answer", timeout=10_000)
    page.context.set_offline(False)
    expect(page.get_by_role("alert")).to_have_count(0, timeout=20_000)


def test_an_answer_that_is_new_takes_nobodys_place(page, live_server, live):
    page.goto(f"{live_server.url}/campaigns/live/")
    page.locator("#order > summary").focus()
    page.locator("#live").evaluate("element => (element.dataset.before = 'yes')")
    factories.finish(live.runs.filter(state="queued").select_related("cell").first(), tps=900)
    expect(page.locator("#live[data-before]")).to_have_count(0, timeout=10_000)
    expect(page.locator("#order > summary")).to_be_focused()


def test_an_answer_that_is_the_same_changes_nothing(page, live_server, live):
    page.goto(f"{live_server.url}/campaigns/live/")
    for mark in ("first", "second", "second"):
        with page.expect_response("**/campaigns/live/"):
            pass
        page.wait_for_timeout(200)
        if page.locator("#live[data-same]").count() == 0:
            page.locator("#live").evaluate(f"element => (element.dataset.same = '{mark}')")
    assert page.locator("#live[data-same]").count() == 1
