"""What explains a run: the plans of its statements, and where its time went."""

import json
from pathlib import Path

import pytest
from django.test import Client
from playwright.sync_api import expect

import runs.published
from runs.execution import evidence
from runs.execution.profiling import FOLDED
from runs.execution.reporter import ArtifactData
from runs.models import Artifact, Project
from runs.services.archive import publications
from runs.services.runs import artifacts
from tests import factories

pytestmark = pytest.mark.django_db

SOURCE = Path(runs.published.__file__).parent / "wg1-2017.yaml"
PLAN = """ Hash Join  (cost=1..2 rows=10 width=4) (actual time=1.000..900.000 rows=1000 loops=1)
   Hash Cond: (a.id = b.id)
   ->  Seq Scan on a  (cost=0..1 rows=5 width=4) (actual time=0.100..700.000 rows=5 loops=1)
   ->  Hash  (cost=1..1 rows=5 width=4) (never executed)
 Execution Time: 1000.000 ms
"""


@pytest.fixture
def kept(settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path
    campaign = factories.campaign("Plans", factors={"version": ["16.14", "18.4"]}, repeats=1)
    runs = list(campaign.runs.order_by("pk"))
    for run in runs:
        artifacts.store(run=run, data=ArtifactData("plan-query.json", PLAN.encode()))
    return runs


def test_a_kept_plan_is_a_tree_with_time_rows_and_what_was_never_executed(client, kept):
    response = client.get(f"/plans/?left={kept[0].pk}/plan-query.json")
    page = response.content.decode()
    assert "Seq Scan on a" in page
    assert "(a.id = b.id)" in page
    assert "never executed" in page
    lines = response.context["lines"]
    assert [each.is_slow for each in lines] == [True, True, False]
    assert [each.is_misestimated for each in lines] == [True, False, False]
    assert f"{kept[1].pk}/plan-query.json" in page
    assert "as a tree" in client.get(f"/runs/{kept[0].pk}/").content.decode()


def test_two_kept_plans_stand_side_by_side(client, kept):
    places = [f"{run.pk}/plan-query.json" for run in kept]
    page = client.get(f"/plans/?left={places[0]}&right={places[1]}").content.decode()
    assert page.count("Seq Scan on a") == 2
    assert "Another branch was taken" not in page


def test_plans_of_a_private_project_are_its_own(client, kept):
    kept[0].campaign.project = Project.objects.create(slug="own", name="Own", is_public=False)
    kept[0].campaign.save()
    assert client.get(f"/plans/?left={kept[0].pk}/plan-query.json").status_code == 404
    assert client.get("/plans/?left=nothing").status_code == 404


def test_what_is_pasted_is_shown_and_not_stored(member):
    assert Client().post("/plans/", {"left": PLAN}).status_code == 302
    page = member.post("/plans/", {"left": PLAN, "right": "hello"}).content.decode()
    assert "Seq Scan on a" in page
    assert "No node of a plan" in page
    assert not Artifact.objects.exists()


def test_the_four_sub_plans_that_the_report_marks_are_marked(client, settings, tmp_path):
    """Figure of 2017, 6.5: in 9.5 SubPlans 1 and 3 run thousands of times, in 9.6 2 and 4 once."""
    settings.ARTIFACTS_DIR = tmp_path
    publications.load(files=[SOURCE])
    found = {each.name: each for each in Artifact.objects.filter(name__startswith="plan-q10")}
    old, new = found["plan-q10-9.5.txt"], found["plan-q10-9.6.txt"]
    response = client.get(f"/plans/?left={old.run_id}/{old.name}&right={new.run_id}/{new.name}")
    comparison = response.context["comparison"]
    assert [each.role for each in comparison.branches] == [f"SubPlan {n}" for n in range(1, 5)]
    assert sum(row.opens_branch for row in comparison.rows) >= 4
    assert "Another branch was taken" in response.content.decode()


def test_evidence_of_a_run_is_shown_as_tables(client, kept):
    text = '{"columns": ["call", "calls"], "rows": [["futex<b>", "40000"]]}'
    artifacts.store(run=kept[0], data=ArtifactData("evidence-syscalls.json", text.encode()))
    artifacts.store(run=kept[0], data=ArtifactData("evidence-waits.json", b"broken"))
    page = client.get(f"/runs/{kept[0].pk}/").content.decode()
    assert "System calls (strace -c)" in page
    assert '<td class="is-number">40000</td>' in page
    assert "futex&lt;b&gt;" in page
    assert "Wait events" not in page


STATEMENTS = [["9", "812.5", "0.1", "9", "SELECT count(*) FROM pgbench_accounts WHERE aid = 1"]]
IO = [["client backend", "relation", "normal", "120", "3", "0", "90000", "0"]]


@pytest.fixture
def explained(kept):
    """A run with what the server said of its statements and its I/O."""
    told = {
        "statements": (["calls", "total_ms", "mean_ms", "rows", "query"], STATEMENTS),
        "io": ([*evidence._IO_COLUMNS], IO),
        "waits": (["type", "event", "samples", "share"], [["LWLock", "WALWrite", "75", "75.0"]]),
    }
    for name, (columns, rows) in told.items():
        text = json.dumps({"columns": columns, "rows": rows})
        data = ArtifactData(f"evidence-{name}.json", text.encode())
        artifacts.store(run=kept[0], data=data)
    return kept[0]


def test_statements_io_and_waits_are_shown_as_charts(client, explained):
    tables = client.get(f"/runs/{explained.pk}/").context["evidence"]
    figures = {each.name: each.figure for each in tables}
    statements, io = figures["statements"]["data"], figures["io"]["data"]
    assert [(each["name"], each["x"]) for each in statements] == [("Total (ms)", [812.5])]
    assert statements[0]["customdata"] == [STATEMENTS[0][-1]]
    assert statements[0]["y"][0].endswith("…")
    assert {each["name"]: each["x"] for each in io} == {
        "Hits": [90000.0], "Reads": [120.0], "Writes": [3.0], "Extends": [0.0],
    }  # fmt: skip
    assert figures["waits"]["data"][0]["y"] == ["1. LWLock · WALWrite"]


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_what_explains_a_run_is_drawn(page, live_server, explained):
    page.goto(f"{live_server.url}/runs/{explained.pk}/")
    for name in ("statements", "io", "waits"):
        chart = page.locator(f"#{name} .chart__plot")
        chart.scroll_into_view_if_needed()
        expect(chart.locator("path").first).to_be_attached()
    assert page.complaints == []


@pytest.fixture
def profiled(settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path
    campaign = factories.campaign("Profiles", factors={"version": ["14.19", "18.4"]}, repeats=1)
    runs = list(campaign.runs.order_by("cell__ordinal"))
    texts = (
        "postgres;read 500\npostgres;<b>write</b> 500\n",
        "postgres;read 900\npostgres;x 100\n",
    )
    for run, text in zip(runs, texts, strict=True):
        artifacts.store(run=run, data=ArtifactData(FOLDED, text.encode()))
    return runs


def test_a_profile_is_searched_and_zoomed_by_its_address(client, profiled):
    page = client.get(f"/runs/{profiled[0].pk}/profile/?q=READ&zoom=0").content.decode()
    assert "50 %" in page
    assert "all</a>" in page
    assert "&lt;b&gt;write" in page
    assert "<b>write" not in page


def test_two_profiles_of_a_campaign_become_a_difference(client, profiled):
    old, new = profiled
    assert f'value="{old.pk}"' in client.get(f"/runs/{new.pk}/profile/").content.decode()
    response = client.get(f"/runs/{new.pk}/profile/?against={old.pk}")
    differing = {each.name: round(each.points) for each in response.context["functions"]}
    assert differing == {"read": 40, "<b>write</b>": -50, "x": 10}
    assert "red has grown" in response.content.decode()


def test_a_profile_that_is_not_there_or_private_is_not_found(client, profiled):
    assert client.get(f"/runs/{factories.run().pk}/profile/").status_code == 404
    assert client.get(f"/runs/{profiled[0].pk}/profile/?against=999999").status_code == 404
    profiled[0].campaign.project = Project.objects.create(slug="own", name="Own", is_public=False)
    profiled[0].campaign.save()
    assert client.get(f"/runs/{profiled[0].pk}/profile/").status_code == 404
