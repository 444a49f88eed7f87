"""Own scripts in the browser: written, checked, stored in versions, and queued in a campaign."""

import re

import pytest

from runs.models import Campaign, Run, ServerCheck, Workload, WorkloadVersion
from runs.services.campaigns import workloads
from runs.services.campaigns.workloads import WorkloadContent
from runs.tools.pgbench.script_check import GivenScript

pytestmark = pytest.mark.django_db

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
    assert client.post("/workloads/inserts/edit/", sent(("a", 1, "SELECT 1;"))).status_code == 302


def test_each_change_is_a_version_and_none_of_it_changes(member):
    made = member.post("/workloads/new/", sent(("insert", 1, INSERT), ("", 1, "")))
    assert made.url == "/workloads/inserts/"
    again = sent(("insert", 1, INSERT), name="Renamed")
    member.post("/workloads/inserts/edit/", again)
    assert WorkloadVersion.objects.count() == 1
    member.post("/workloads/inserts/edit/", sent(("insert", 2, INSERT), ("read", 1, "SELECT 1;")))
    versions = WorkloadVersion.objects.order_by("number")
    assert [[each["weight"] for each in one.scripts] for one in versions] == [[1], [2, 1]]
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
    page = member.post("/workloads/new/", sent(("a", 3, "SELECT 17;"), more="1")).content.decode()
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
    keys = {(each.plan["levels"]["scale"], each.plan["cluster_key"]) for each in reading}
    assert len(keys) == 4
    assert all(key for _scale, key in keys)


def test_a_form_that_is_opened_runs_no_own_script_and_a_click_does(member, ready_server, stored):
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
    link = re.search(rf'<a href="/servers/checks/{ServerCheck.objects.get().pk}/"[^>]*>', page)
    assert 'target="_blank"' in link[0]


def test_a_workload_that_is_not_there_is_told_before_queueing(member, ready_server):
    page = member.post("/campaigns/new/", pgbench_tools(ready_server)).content.decode()
    assert "inserts@1" in page
    assert not Campaign.objects.exists()
