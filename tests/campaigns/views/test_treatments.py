"""Treatments and own workloads in a campaign's form."""

import re

import pytest

from runs.execution.plan import WorkloadContent
from runs.models import Artifact, Campaign, Run, ServerCheck, Workload, WorkloadVersion
from runs.tools.pgbench.scripts import GivenScript
from runs.workloads.services import workloads
from tests.campaigns.views.test_campaigns import draft

pytestmark = pytest.mark.django_db


# What is done to the machines of a campaign: in its form, and on the pages of its results.


PAGE = "/campaigns/new/"


@pytest.fixture
def permitting(ready_server):
    """The server lets BenchLab do what needs root, and has a governor."""
    ready_server.privileges = ["drop_caches", "governor"]
    ready_server.environment.facts = {"governor": "powersave"}
    ready_server.environment.save()
    ready_server.save()
    return ready_server


def test_what_is_not_ticked_is_not_offered(administrator, ready_server):
    page = administrator.get(PAGE).content.decode()
    assert 'name="cold_cache"' not in page
    assert 'name="governor"' not in page
    assert f"/servers/{ready_server.slug}/edit/" in page
    assert 'name="server_cpus"' in page
    assert 'name="profile"' in page


def test_what_is_ticked_is_offered(member, permitting):
    page = member.get(PAGE).content.decode()
    assert 'name="cold_cache"' in page
    assert 'name="governor"' in page
    assert "need root" not in page


def test_what_is_not_ticked_is_not_accepted_either(member, ready_server):
    response = member.post(PAGE, draft(ready_server, cold_cache="on"))
    assert "Tick it on" in response.context["form"].errors["cold_cache"][0]
    assert "Tick it on" in response.content.decode()
    assert not Campaign.objects.exists()


def test_the_estimate_says_what_stands_against_it(member, ready_server):
    data = draft(ready_server, governor="performance")
    page = member.get("/campaigns/new/estimate/", data).content.decode()
    assert "privilege_missing" in page


def test_what_is_asked_for_is_queued_and_shown(member, permitting):
    asked = draft(
        permitting,
        cold_cache="on",
        governor="performance",
        server_cpus="1, 0",
        pgbench_cpus="1",
        profile="on",
    )
    response = member.post(PAGE, asked)
    campaign = Campaign.objects.get()
    assert campaign.treatment == {
        "cold_cache": True,
        "governor": "performance",
        "server_cpus": "0-1",
        "pgbench_cpus": "1",
        "profile": True,
    }
    for address in (response.url, f"/runs/{campaign.runs.first().pk}/"):
        page = member.get(address).content.decode()
        assert "emptied before each measurement" in page
        assert "by perf, while the load is on" in page


@pytest.mark.parametrize("field", ["server_cpus", "pgbench_cpus"])
def test_a_list_of_cpus_that_is_none_is_said_at_its_field(member, ready_server, field):
    response = member.post(PAGE, draft(ready_server, **{field: "0-3; reboot"}))
    assert "is not a list of CPUs" in response.context["form"].errors[field][0]
    assert not Campaign.objects.exists()


def test_another_choice_of_server_keeps_what_was_typed(member, permitting):
    page = member.get(f"{PAGE}?server=db1&server_cpus=0-1&profile=on").content.decode()
    assert 'value="0-1"' in page
    assert re.search(r'<input type="checkbox" name="profile"[^>]* checked', page)


def test_a_flame_graph_is_shown_on_the_page_of_its_run(client, finished_campaign):
    run = finished_campaign.runs.first()
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert "flame-graph" not in page
    Artifact.objects.create(
        run=run,
        name="flame-graph.svg",
        media_type="image/svg+xml",
        size=5,
        sha256="0" * 64,
    )
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert re.search(r'<img class="flame-graph"\s+src="[^"]*flame-graph.svg/"', page)


def test_a_campaign_without_any_shows_nothing_of_it(client, finished_campaign):
    page = client.get(f"/campaigns/{finished_campaign.slug}/").content.decode()
    assert "CPU governor" not in page


def test_reports_tell_what_was_done(client, finished_campaign):
    finished_campaign.treatment = {"cold_cache": True}
    finished_campaign.save()
    page = client.get(f"/campaigns/{finished_campaign.slug}/report/").content.decode()
    assert "emptied before each measurement" in page


# Own scripts in the browser: written, checked, stored in versions, and queued in a campaign.


# pgbench-tools' insert.sql.
INSERT = """\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)
VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
"""


def sent(*scripts, **changed):
    """What the editor sends: scripts as (name, weight, text)."""
    found = {"name": "Inserts", "description": "", "variables": "", "init_options": ""}
    found |= {"init_sql": "", "form-TOTAL_FORMS": len(scripts), "form-INITIAL_FORMS": 0}
    for place, (name, weight, text) in enumerate(scripts):
        found |= {f"form-{place}-name": name, f"form-{place}-weight": weight}
        found[f"form-{place}-text"] = text
    return {**found, "store": "1", **changed}


@pytest.fixture
def stored(db):
    content = WorkloadContent(scripts=(GivenScript("insert", INSERT),))
    return workloads.create(name="Inserts", description="", content=content)


def test_a_visitor_reads_and_does_not_write(client, stored):
    assert "Inserts" in client.get("/workloads/").content.decode()
    page = client.get("/workloads/inserts/").content.decode()
    assert "inserts@1" in page
    assert "pgbench_history" in page
    assert client.get("/workloads/new/").status_code == 302
    assert (
        client.post("/workloads/inserts/edit/", sent(("a", 1, "SELECT 1;"))).status_code
        == 302
    )


def test_each_change_is_a_version_and_none_of_it_changes(member):
    made = member.post("/workloads/new/", sent(("insert", 1, INSERT), ("", 1, "")))
    assert made.url == "/workloads/inserts/"
    again = sent(("insert", 1, INSERT), name="Renamed")
    member.post("/workloads/inserts/edit/", again)
    assert WorkloadVersion.objects.count() == 1
    member.post(
        "/workloads/inserts/edit/",
        sent(("insert", 2, INSERT), ("read", 1, "SELECT 1;")),
    )
    versions = WorkloadVersion.objects.order_by("number")
    assert [[each["weight"] for each in one.scripts] for one in versions] == [
        [1],
        [2, 1],
    ]
    assert "inserts@1" in member.get("/workloads/inserts/?version=1").content.decode()


def test_what_is_wrong_stands_at_its_script_and_nothing_is_stored(member):
    wrong = sent(
        ("a", 0, "SELECT :nothing;"),
        ("b", 1, "\\shell rm -r x\nSELECT 1;"),
        variables="a = 1",
        init_options="--steal",
    )
    page = member.post("/workloads/new/", wrong).content.decode()
    for sentence in (
        "A weight of 0",
        "Line 1: The variable :nothing is not set",
        "an administrator has to allow that",
        "is no option that may be given here",
    ):
        assert sentence in page
    assert not Workload.objects.exists()


def test_a_script_is_added_without_losing_what_was_typed(member):
    page = member.post(
        "/workloads/new/", sent(("a", 3, "SELECT 17;"), more="1")
    ).content.decode()
    assert "SELECT 17;" in page
    assert 'name="form-1-text"' in page


def pgbench_tools(server, **changed):
    """pgbench-tools' default set as its users would write it in the form."""
    return {
        "title": "pgbench-tools",
        "scenario": "pgbench",
        "server": server.slug,
        "installations": [server.installations.first().pk],
        "script": ["select-only", "tpcb-like", "inserts@1"],
        "scale": "1, 2, 3, 4",
        "clients": "1, 2, 4, 8, 16, 32",
        "query_mode": ["simple"],
        "connection": ["kept"],
        "repeats": "3",
        "duration": "1",
        "warm_up": "0",
        "rate": "0",
        "max_tries": "0",
        "random_seed": "0",
        "fillfactor": "100",
        **changed,
    }


def test_pgbench_tools_default_set_is_one_campaign(member, ready_server, stored):
    response = member.post("/campaigns/new/", pgbench_tools(ready_server))
    campaign = Campaign.objects.get()
    assert response.url == f"/campaigns/{campaign.slug}/"
    assert campaign.cells.count() == 3 * 4 * 6
    own = campaign.cells.filter(levels__script="inserts@1")
    assert {each.workload_version_id for each in own} == {stored.pk}
    plan = Run.objects.filter(cell__in=own).first().plan
    assert plan["workload"]["scripts"][0]["text"] == INSERT
    reading = Run.objects.filter(cell__levels__script="select-only")
    keys = {
        (each.plan["levels"]["scale"], each.plan["cluster_key"]) for each in reading
    }
    assert len(keys) == 4
    assert all(key for _scale, key in keys)


def test_a_form_that_is_opened_runs_no_own_script_and_a_click_does(
    member, ready_server, stored
):
    given = pgbench_tools(ready_server)
    for address, tries in (("?unasked=1", False), ("", True)):
        member.post(f"/campaigns/new/preflight/{address}", given)
        check = ServerCheck.objects.get()
        assert check.given["tries_scripts"] is tries
        check.delete()
    member.post("/campaigns/new/preflight/", given | {"script": ["select-only"]})
    assert ServerCheck.objects.get().given["tries_scripts"] is False


def test_unsaved_scripts_stay_open_beside_their_trial(member, ready_server):
    given = sent(("a", 1, "SELECT 1;"), server=ready_server.pk, **{"try": "1"})
    page = member.post("/workloads/new/", given).content.decode()
    link = re.search(
        rf'<a href="/servers/checks/{ServerCheck.objects.get().pk}/"[^>]*>', page
    )
    assert 'target="_blank"' in link[0]


def test_a_workload_that_is_not_there_is_told_before_queueing(member, ready_server):
    page = member.post("/campaigns/new/", pgbench_tools(ready_server)).content.decode()
    assert "inserts@1" in page
    assert not Campaign.objects.exists()
