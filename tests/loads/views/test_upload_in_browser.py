"""The page's script that sends a dump in parts, in a real browser."""

import pytest
from playwright.sync_api import expect

from runs.access.services import projects
from runs.loads.services import dumps, loads, results
from runs.loads.services.loads import Brought
from runs.models import LoadPart

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

DUMP = (
    b"CREATE TABLE t (a integer);\nCOPY t (a) FROM stdin;\n" + b"1\n" * 4000 + b"\\.\n"
)


@pytest.fixture
def waiting(monkeypatch):
    """A load that waits for its dump, whose parts are small."""
    monkeypatch.setattr(dumps, "PART_BYTES", 1000)
    return loads.create(
        name="Shop",
        brought=Brought(statements="SELECT count(*) FROM t", data_kind="dump"),
        project=projects.default(),
        by=None,
    )


def choose(page, name, content):
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    page.locator("input[type=file]").set_input_files([file])
    page.get_by_role("button", name="Upload the dump").click()


def test_a_dump_is_sent_in_parts_and_a_refusal_is_shown(page, live_server, waiting):
    page.goto(f"{live_server.url}/loads/{waiting.slug}/")
    choose(page, "bad.sql", DUMP + b"\\! touch /tmp/never\n")
    expect(page.get_by_role("alert")).to_contain_text("is a command of psql")
    assert LoadPart.objects.count() == 0
    # The browser's own line about the status of the refusal.
    page.complaints.clear()
    choose(page, "shop.sql", DUMP)
    expect(page.get_by_text("The dump was read, and is kept.")).to_be_visible()
    expect(page.get_by_text("Tables with rows: 1; other objects: 1.")).to_be_visible()
    waiting.refresh_from_db()
    assert results.opened(waiting).data.tables == 1


def test_a_part_that_gets_lost_is_sent_once_more(page, live_server, waiting):
    lost = []

    def lose(route):
        if len(lost) < 2:
            lost.append(route.request.url)
            route.abort()
        else:
            route.continue_()

    page.route("**/dump/", lose)
    page.goto(f"{live_server.url}/loads/{waiting.slug}/")
    choose(page, "shop.sql", DUMP)
    expect(page.get_by_text("The dump was read, and is kept.")).to_be_visible(
        timeout=20_000
    )
    assert len(lost) == 2
    page.complaints.clear()
