"""A publication in a real browser: drafted, previewed, and accepted by somebody else."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from runs.published import reading
from runs.services.access import projects

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_publication_is_drafted_previewed_and_accepted_by_a_second_person(
    page, live_server, known, log_in, monkeypatch
):
    # Only what the browser brings: the repository's own files have their own tests.
    monkeypatch.setattr(reading, "files", list)
    text = (Path(__file__).parents[2] / "samples/published/harbour-2020.yaml").read_text()
    for name in ("writer", "second"):
        user = User.objects.create_user(name)
        projects.default().memberships.create(user=user, role="maintainer")
    log_in(page.context, "writer")

    page.goto(f"{live_server.url}/archive/later/")
    page.get_by_role("link", name="Drafts", exact=True).click()
    page.get_by_role("link", name="New draft").click()
    page.get_by_label("Name in addresses").fill("harbour-2020")
    page.get_by_label("Data file (YAML)").fill(text.replace("98.25 %", "98.25 ms"))
    page.get_by_role("button", name="Keep and check").click()
    expect(page.get_by_text("has the unit “ms”")).to_be_visible()
    page.get_by_label("Data file (YAML)").fill(text)
    page.get_by_role("button", name="Keep and check").click()
    expect(page.get_by_role("cell", name="98.25 %")).to_be_visible()
    page.get_by_role("button", name="Take it into the archive").click()
    expect(page.get_by_text("Another person has to accept it")).to_be_visible()

    log_in(page.context, "second")
    page.goto(f"{live_server.url}/archive/drafts/harbour-2020/")
    page.get_by_role("button", name="Take it into the archive").click()
    expect(page.locator("h1")).to_have_text("Harbour report")
    page.get_by_role("link", name="Reading").first.click()
    expect(page.get_by_role("link", name="98.25 %")).to_be_visible()
