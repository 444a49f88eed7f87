"""The API in the browser: with the session of the pages, and its CSRF token."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from runs.models import Run

pytestmark = pytest.mark.django_db

RUN = {
    "campaign": "nightly",
    "scenario": "tpcb-like",
    "status": "finished",
    "started_at": "2026-01-31T02:00:00Z",
    "measurements": [{"metric": "tps", "value": 1.5, "unit": "tps", "direction": "higher"}],
}


@pytest.fixture
def browser(admin_user):
    """A browser that has logged in, and knows the page's CSRF token."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin_user)
    client.get("/campaigns/new/")
    return client


def token(browser):
    return {"X-CSRFToken": browser.cookies["csrftoken"].value}


def test_a_session_uploads_with_its_csrf_token(browser):
    answer = browser.post("/api/v1/uploads/", RUN, "application/json", headers=token(browser))

    assert answer.status_code == 201, answer.content
    assert Run.objects.count() == 1


def test_a_session_uploads_files_with_its_csrf_token(browser):
    printed = b"tps = 7.5 (without initial connection time)\n"
    sent = {
        "run": '{"campaign": "nightly", "tool": "pgbench"}',
        "stdout": SimpleUploadedFile("o", printed),
    }

    answer = browser.post("/api/v1/uploads/", sent, headers=token(browser))

    assert answer.json()["code"] != "broken_off", answer.content


def test_a_session_without_the_csrf_token_changes_nothing(browser):
    answer = browser.post("/api/v1/uploads/", RUN, "application/json")

    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    assert not Run.objects.exists()
