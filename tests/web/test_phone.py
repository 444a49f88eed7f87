"""Every list on a phone: neither the page nor a table in it scrolls sideways."""

import pytest
from django.utils import timezone

from runs.access.services import projects, tokens
from runs.archive import services
from runs.configurations.services import configurations
from runs.execution.plan import WorkloadContent
from runs.histories.services import webhooks
from runs.models import (
    AuditEntry,
    Change,
    SavedComparison,
    Schedule,
    WebhookDelivery,
)
from runs.tools.pgbench.scripts import GivenScript
from runs.workloads.services import workloads
from tests import factories
from tests.each import some
from tests.web.test_browser import SAMPLE

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LISTS = (
    "/campaigns/",
    "/servers/",
    "/configurations/",
    "/hardware/",
    "/topologies/",
    "/workloads/",
    "/loads/",
    "/schedules/",
    "/changes/",
    "/webhooks/",
    "/audit/",
    "/tokens/",
    "/projects/",
    "/scenarios/",
    "/compare/saved/",
    "/archive/",
    "/archive/discrepancies/",
    "/servers/keys/",
)
WIDER_THAN_THEIR_PLACE = """
    [document.documentElement, ...document.querySelectorAll(".table-scroll")]
    .filter(place => place.scrollWidth > place.clientWidth)
    .map(place => `${place.ariaLabel || "page"}: ${place.scrollWidth} of ${place.clientWidth}`)"""
HAS_ROWS = "!!document.querySelector('main :is(tbody tr, .list > li, .card, article)')"


@pytest.fixture
def rows(finished_campaign, ready_server):
    """A row in every list, each with texts of usual length."""
    project, run = projects.default(), finished_campaign.runs.first()
    services.load(files=[SAMPLE])
    configurations.sync()
    for version in ("9.6.24", "10.23", "11.22", "12.22", "13.23", "14.20"):
        factories.installation(ready_server, version)
    factories.campaign(
        "live", title="Fixed-point update on db1", on=ready_server, state="running"
    )
    script = GivenScript("a", "SELECT 1;")
    content = WorkloadContent(scripts=(script,))
    workloads.create(
        name="Orders of a shop", description="One row each.", content=content
    )
    factories.load("orders", project)
    told = {"kind": "step", "ratio": 0.9, "before": 1000, "after": 900}
    Change.objects.create(cell=run.cell, run=run, metric=factories.metric(), **told)
    Schedule.objects.create(
        title="Nightly comparison of two versions",
        server=ready_server,
        draft={},
        project=project,
        weekdays=[1],
        next_at=timezone.now(),
    )
    webhook = webhooks.create(
        project=project, url="https://ci.example.org/benchlab"
    ).webhook
    problem = "The address answered 503 Service Unavailable."
    WebhookDelivery.objects.create(
        webhook=webhook, event="changed", payload="", problem=problem
    )
    tokens.create(
        name="Continuous integration", scopes=["read", "upload"], project=project
    )
    AuditEntry.objects.create(
        actor="hanako",
        by_way_of="page",
        action="server_changed",
        subject="server db1",
        project=project,
        before={"base_dir": "/srv/benchlab"},
        after={"base_dir": "/var/lib/benchlab/data"},
    )
    SavedComparison.objects.create(slug="kept", title="16 and 18", query="s=finished")


@pytest.mark.parametrize(("language", "lists"), [("en", LISTS), ("ja", LISTS[1:])])
def test_no_list_scrolls_sideways_on_a_phone(page, live_server, rows, language, lists):
    """Each list in one of the languages, and by script/test --all in both."""
    page.set_viewport_size({"width": 390, "height": 844})
    chosen = {"name": "django_language", "value": language, "url": live_server.url}
    page.context.add_cookies([chosen])
    wide, empty = [], []
    for path in some(lists, 2):
        page.goto(live_server.url + path)
        assert page.get_attribute("html", "lang") == language
        wide += [f"{path} {each}" for each in page.evaluate(WIDER_THAN_THEIR_PLACE)]
        empty += [] if page.evaluate(HAS_ROWS) else [path]
    assert (wide, empty) == ([], [])
    assert not page.complaints
