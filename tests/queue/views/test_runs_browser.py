"""Series, evidence and failures of runs, as a browser shows them."""

import json
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from runs.execution.evidence import evidence
from runs.execution.reporter import ArtifactData
from runs.models import Campaign, Series
from tests import factories

# Series of 48 hours: little is sent for all of it, and every second of a part.


SECONDS, NAMES = 172_800, ("tps", "table_bytes")


@pytest.fixture
def long_run(db):
    run = factories.run()
    for name in NAMES:
        values = [float(100 + second % 7) for second in range(SECONDS)]
        values[100_000] = 0.0
        Series.objects.create(
            run=run, name=name, unit="", start=1.0, interval=1.0, values=values
        )
    return run


def drawn(response):
    return [(trace["x"], trace["y"]) for trace in response.context["figure"]["data"]]


@pytest.mark.django_db
def test_two_days_are_sent_as_few_points_and_zoom_to_single_seconds(client, long_run):
    address = f"/runs/{long_run.pk}/series/"
    whole = client.get(address)
    assert len(whole.content) < 100_000 * len(NAMES)
    assert [len(x) <= 2000 for x, _y in drawn(whole)] == [True] * len(NAMES)
    assert all(0.0 in y for _x, y in drawn(whole))
    part = client.get(f"{address}?from=99995&to=100005")
    seconds = [float(second) for second in range(99_995, 100_006)]
    assert [x for x, _y in drawn(part)] == [seconds] * len(NAMES)
    assert [y.index(0.0) for _x, y in drawn(part)] == [6] * len(NAMES)


@pytest.mark.django_db
def test_a_span_that_is_none_is_the_whole_and_a_run_without_series_has_no_page(
    client, long_run
):
    address = f"/runs/{long_run.pk}/series/"
    whole = client.get(address).context["shown"]
    for query in ("?from=9&to=3", "?from=x&to=nan"):
        assert client.get(f"{address}{query}").context["shown"] == whole
    assert client.get(f"/runs/{factories.run().pk}/series/").status_code == 404


def processor_seconds(page, address):
    """What the page's thread computes to draw it, once its scripts are compiled; unlike the clock
    it does not count what other tests do meanwhile.
    """
    page.devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(address)
    expect(page.locator(".chart__wide polyline").last).to_be_visible()
    metrics = page.devtools.send("Performance.getMetrics")["metrics"]
    page.devtools.send("Performance.disable")
    return next(each["value"] for each in metrics if each["name"] == "TaskDuration")


@pytest.mark.django_db
@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_a_reader_zooms_from_two_days_to_single_seconds(page, live_server, long_run):
    address = f"{live_server.url}/runs/{long_run.pk}/series/"
    page.goto(address)
    assert processor_seconds(page, address) < 1
    points = "lines => lines.map(line => line.points.numberOfItems)"
    assert max(page.locator(".chart__wide polyline").evaluate_all(points)) <= 2000
    for _closer in range(4):  # a tenth each time: 17,280, 1,728, 173, 17 seconds
        page.locator(".chips a").nth(5).click()
        expect(page.locator(".chart__wide svg")).to_be_visible()
    page.get_by_role("button", name="Zoom and hide lines").click()
    expect(page.locator(".js-plotly-plot")).to_be_visible()
    shown = page.evaluate("document.querySelector('.js-plotly-plot').data[0].x")
    assert 10 <= len(shown) <= 20
    assert {after - before for before, after in pairwise(shown)} == {1}
    assert page.complaints == []


# Where a run's time went.


STATEMENTS = [
    ["9", "812.5", "0.1", "9", "SELECT count(*) FROM pgbench_accounts WHERE aid = 1"]
]
IO = [["client backend", "relation", "normal", "120", "3", "0", "90000", "0"]]


@pytest.fixture
def explained(db):
    """A run with what the server said of its statements and its I/O."""
    run = factories.run()
    told = {
        "statements": (["calls", "total_ms", "mean_ms", "rows", "query"], STATEMENTS),
        "io": ([*evidence._IO_COLUMNS], IO),
        "waits": (
            ["type", "event", "asleep", "runnable"],
            [["LWLock", "WALWrite", "75", "5"]],
        ),
    }
    for name, (columns, rows) in told.items():
        text = json.dumps({"columns": columns, "rows": rows})
        data = ArtifactData(f"evidence-{name}.json", text.encode())
        factories.artifact(run=run, data=data)
    return run


@pytest.mark.django_db
def test_statements_io_and_waits_are_shown_as_charts(client, explained):
    tables = client.get(f"/runs/{explained.pk}/").context["evidence"]
    figures = {each["name"]: each["figure"] for each in tables}
    statements, io = figures["statements"]["data"], figures["io"]["data"]
    assert [(each["name"], each["x"]) for each in statements] == [
        ("Total (ms)", [812.5])
    ]
    assert statements[0]["customdata"] == [STATEMENTS[0][-1]]
    assert statements[0]["y"][0].endswith("…")
    assert {each["name"]: each["x"] for each in io} == {
        "Hits": [90000.0],
        "Reads": [120.0],
        "Writes": [3.0],
        "Extends": [0.0],
    }
    assert figures["waits"]["data"][0]["y"] == ["1. LWLock · WALWrite"]


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_what_explains_a_run_is_drawn(page, live_server, explained):
    page.goto(f"{live_server.url}/runs/{explained.pk}/")
    for name in ("statements", "io", "waits"):
        expect(page.locator(f"#{name} .chart__wide rect").first).to_be_attached()
    assert page.complaints == []


# What a reader sees and keeps when the session ends, the network fails, or the page goes back.


@pytest.fixture
def live(ready_server):
    """A campaign that is being measured."""
    campaign = factories.campaign("live", on=ready_server, state="running")
    factories.finish(campaign.runs.first(), tps=1000)
    return campaign


@pytest.mark.django_db(transaction=True)
@pytest.mark.browser
def test_what_was_typed_outlives_the_session(page, live_server, finished_campaign):
    page.goto(f"{live_server.url}/campaigns/finished/")
    page.locator("#annotation-new > summary").click()
    page.locator("#annotation-new textarea").fill("18 is faster.")
    page.context.clear_cookies(name="sessionid")
    page.locator("#annotation-new button[type=submit]").click()
    expect(page.get_by_role("alert")).to_contain_text("you are logged out")
    expect(page.locator("#annotation-new textarea")).to_have_value("18 is faster.")
    assert not finished_campaign.annotations.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.browser
def test_an_act_after_the_session_leads_back_to_its_page(page, live_server, live):
    page.goto(f"{live_server.url}/campaigns/live/")
    page.locator("#cancel > summary").click()
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Cancel the campaign").click()
    expect(page.locator(".messages")).to_contain_text("Nothing was done")
    assert page.url == f"{live_server.url}/login/?next=/campaigns/live/"
    assert Campaign.objects.get(slug="live").state == "running"


@pytest.mark.django_db(transaction=True)
@pytest.mark.browser
def test_a_live_page_says_that_nobody_answers_until_somebody_does(
    page, live_server, live
):
    page.goto(f"{live_server.url}/campaigns/live/")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.context.set_offline(True)
    expect(page.get_by_role("alert")).to_contain_text("does not answer", timeout=10_000)
    page.context.set_offline(False)
    expect(page.get_by_role("alert")).to_have_count(0, timeout=20_000)


@pytest.mark.django_db(transaction=True)
@pytest.mark.browser
def test_an_answer_that_is_new_takes_nobodys_place(page, live_server, live):
    page.goto(f"{live_server.url}/campaigns/live/")
    page.locator("#order > summary").focus()
    page.locator("#live").evaluate("element => (element.dataset.before = 'yes')")
    factories.finish(
        live.runs.filter(state="queued").select_related("cell").first(), tps=900
    )
    expect(page.locator("#live[data-before]")).to_have_count(0, timeout=10_000)
    expect(page.locator("#order > summary")).to_be_focused()


@pytest.mark.django_db(transaction=True)
@pytest.mark.browser
def test_an_answer_that_is_the_same_changes_nothing(page, live_server, live):
    page.goto(f"{live_server.url}/campaigns/live/")
    for mark in ("first", "second", "second"):
        with page.expect_response("**/campaigns/live/"):
            pass
        page.wait_for_timeout(200)
        if page.locator("#live[data-same]").count() == 0:
            page.locator("#live").evaluate(
                f"element => (element.dataset.same = '{mark}')"
            )
    assert page.locator("#live[data-same]").count() == 1
