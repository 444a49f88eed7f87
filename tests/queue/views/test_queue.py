"""The queue, and the plans of its runs."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.test import Client

import runs.published
from runs.archive.services import publications
from runs.execution.evidence.profiling import FOLDED
from runs.execution.machine.identity import Identity
from runs.execution.reporter import ArtifactData
from runs.models import Artifact, Campaign, Lease, Project, Run, Server
from runs.servers.services import shared_machines
from runs.workloads.services import topologies
from tests import factories

pytestmark = pytest.mark.django_db


# Steering the queue from the pages.


NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.fixture
def campaign(ready_server):
    factors = {"version": ["16.14"], "clients": [1]}
    return factories.campaign("first", on=ready_server, factors=factors, repeats=2)


def shown(client, path):
    return client.get(path).content.decode()


def test_a_campaign_is_paused_and_says_so(member, campaign):
    member.post("/campaigns/first/pause/")
    page = shown(member, "/campaigns/first/")
    assert "no further run starts" in page
    assert "/campaigns/first/resume/" in page
    assert "paused" in shown(member, "/campaigns/")
    member.post("/campaigns/first/resume/")
    assert "no further run starts" not in shown(member, "/campaigns/first/")


def test_a_priority_is_changed(member, campaign):
    member.post("/campaigns/first/priority/", {"priority": "5"})
    assert 'value="5"' in shown(member, "/campaigns/first/")
    page = member.post("/campaigns/first/priority/", {"priority": "500"}, follow=True)
    assert "from -100 to 100" in page.content.decode()
    page = member.post("/campaigns/first/priority/", {"priority": "high"}, follow=True)
    assert "whole number" in page.content.decode()
    assert Campaign.objects.get().priority == 5


def test_what_did_not_finish_is_queued_again(member, campaign):
    assert "/campaigns/first/retry/" not in shown(member, "/campaigns/first/")
    Run.objects.update(state="failed", plan={})
    assert "/campaigns/first/retry/" in shown(member, "/campaigns/first/")
    member.post("/campaigns/first/retry/")
    assert set(Run.objects.values_list("state", flat=True)) == {"queued"}


def test_a_single_run_is_queued_again(member, campaign):
    run = campaign.runs.first()
    assert f"/runs/{run.pk}/retry/" not in shown(member, f"/runs/{run.pk}/")
    Run.objects.filter(pk=run.pk).update(state="cancelled", plan={})
    assert f"/runs/{run.pk}/retry/" in shown(member, f"/runs/{run.pk}/")
    member.post(f"/runs/{run.pk}/retry/")
    assert Run.objects.get(pk=run.pk).attempt == 2


def test_maintenance_is_told_where_it_matters(member, campaign, ready_server):
    path = f"/servers/{ready_server.slug}/"
    member.post(
        f"{path}maintain/", {"reason": "new disks", "until": "2100-01-01T12:00"}
    )
    assert "until 2100-01-01 12:00 UTC: new disks" in shown(member, path)
    assert "new disks" in shown(member, "/campaigns/first/")
    assert "maintenance" in shown(member, "/servers/")
    member.post(f"{path}release/")
    assert "new disks" not in shown(member, path)
    assert not Server.objects.get().is_maintained


def test_a_server_says_which_other_registrations_of_its_machine_there_are(
    member, admin_client, ready_server
):
    identity = Identity(machine_id="a" * 32, boot_id="boot-1")
    twin = factories.server("twin")
    for server in (ready_server, twin):
        shared_machines.keep(server_id=server.pk, identity=identity)
    path = f"/servers/{ready_server.slug}/"
    assert "take turns" in shown(member, path)
    assert "/separate/" not in shown(member, path)
    assert f"{path}separate/" in shown(admin_client, path)
    admin_client.post(f"{path}separate/")
    assert "is a machine of its own" in shown(member, path)
    assert "somebody has set them apart" in shown(member, "/servers/twin/")
    admin_client.post(f"{path}join/")
    assert "take turns" in shown(member, "/servers/twin/")


def test_an_end_that_is_no_time_is_refused_in_words(member, ready_server):
    path = f"/servers/{ready_server.slug}/maintain/"
    page = member.post(path, {"until": "tomorrow"}, follow=True)
    assert "such as 2026-07-01 18:00" in page.content.decode()


@pytest.mark.parametrize(
    "path",
    [
        "campaigns/first/pause",
        "campaigns/first/resume",
        "campaigns/first/retry",
        "campaigns/first/priority",
        "servers/db1/maintain",
        "servers/db1/release",
    ],
)
def test_a_visitor_steers_nothing(client, campaign, path):
    assert client.post(f"/{path}/").url.startswith("/login/")
    assert f"/{path}/" not in shown(client, "/campaigns/first/")
    assert f"/{path}/" not in shown(client, "/servers/db1/")


def test_a_servers_page_and_the_form_say_what_repeats_can_show(
    member, finished_campaign
):
    Run.objects.update(hardware=Server.objects.get().hardware)
    page = shown(member, "/servers/db1/")
    assert "3 repeats can show" in page
    assert "Whole runs with 3 repeats, by how the last ones scatter" in page
    assert "Slices in turn: not known yet" in page
    assert "Finds a difference of" in shown(member, "/campaigns/new/?server=db1")


def test_a_server_that_has_measured_nothing_says_how_to_learn_its_noise(
    member, ready_server
):
    page = shown(member, "/servers/db1/")
    sentence = "It takes a finished campaign of whole runs with repeats"
    assert page.count(sentence) == 2  # the answer and the noise floor


def test_the_form_tells_the_least_and_the_most_runs(member, ready_server):
    path = "/campaigns/new/estimate/"
    given = {
        "title": "x",
        "scenario": "fixed-point-read",
        "server": "db1",
        "installations": [each.pk for each in ready_server.installations.all()],
        "clients": "1",
        "repeats": "3",
        "scale": "1",
        "duration": "5",
        "wanted_percent": "2",
    }
    assert "Also say when to stop" in member.get(path, given).content.decode()
    page = member.get(path, given | {"most_repeats": "10"}).content.decode()
    assert "up to 40" in page
    assert "scatter get further repeats, and doubtful runs are measured again" in page
    page = member.get(
        path, given | {"most_repeats": "10", "remeasures": "0"}
    ).content.decode()
    assert "up to 20" in page
    assert "doubtful runs are measured again" not in page
    page = member.get(path, given | {"wanted_percent": ""}).content.decode()
    assert re.search(r"up to 12 and [^,]+, as doubtful runs are measured again", page)
    page = member.get(
        path, given | {"wanted_percent": "", "remeasures": "0"}
    ).content.decode()
    assert "up to" not in page


@pytest.fixture
def generator(campaign, ready_server):
    """Another server, from which the load of the campaign is to come."""
    made = factories.server("load1", name="load1")
    campaign.topology = topologies.topology_of(server=ready_server, generators=[made])
    campaign.save()
    campaign.runs.update(plan={"generators": [{"server_id": made.pk}]})
    return made


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"maintenance_since": NOON, "maintenance_reason": "fan"},
            "load1 is being maintained: fan",
        ),
        (
            {"state": "unreachable", "problem": "No route."},
            "load1 is not ready: No route.",
        ),
        ({"state": "unconfirmed"}, "load1 is not ready: host key not confirmed"),
        ({"needs_sweep": True}, "load1 is being cleaned up, or will be soon"),
        (
            {"needs_sweep": True, "sweep_after": "2999-01-01T00:00Z"},
            "load1 could not be cleaned up yet",
        ),
    ],
)
def test_a_generator_that_cannot_be_had_is_told_where_runs_wait_for_it(
    client, campaign, generator, fields, told
):
    Server.objects.filter(pk=generator.pk).update(**fields)
    run = campaign.runs.first()
    assert told in shown(client, "/campaigns/first/")
    assert told in shown(client, f"/runs/{run.pk}/")
    Run.objects.update(state="finished")
    assert told not in shown(client, f"/runs/{run.pk}/")


def test_a_generator_that_another_run_has_is_told_on_the_page_of_a_run_that_waits(
    client, campaign, generator
):
    path = f"/runs/{campaign.runs.first().pk}/"
    assert "busy with another run" not in shown(client, path)
    Lease.objects.create(server=generator, run=factories.campaign("other").runs.first())
    assert "load1 is busy with another run" in shown(client, path)


@pytest.mark.parametrize("fields", [{"maintenance_since": NOON}, {"needs_sweep": True}])
def test_a_run_that_lost_its_worker_does_not_wait_for_the_end_of_a_maintenance_or_sweep(
    client, campaign, generator, fields
):
    Server.objects.filter(pk=generator.pk).update(**fields)
    run = campaign.runs.first()
    Run.objects.filter(pk=run.pk).update(state="lost")
    page = shown(client, f"/runs/{run.pk}/")
    assert "being maintained" not in page
    assert "being cleaned up" not in page


# What explains a run: the plans of its statements, and where its time went.


SOURCE = Path(runs.published.__file__).parent / "wg1-2017.yaml"
PLAN = """ Hash Join  (cost=1..2 rows=10 width=4) (actual time=1.000..900.000 rows=1000 loops=1)
   Hash Cond: (a.id = b.id)
   ->  Seq Scan on a  (cost=0..1 rows=5 width=4) (actual time=0.100..700.000 rows=5 loops=1)
   ->  Hash  (cost=1..1 rows=5 width=4) (never executed)
         ->  Seq Scan on b  (cost=0..1 rows=5 width=4) (never executed)
 Execution Time: 1000.000 ms
"""


@pytest.fixture
def kept(settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path
    campaign = factories.campaign(
        "Plans", factors={"version": ["16.14", "18.4"]}, repeats=1
    )
    runs = list(campaign.runs.order_by("pk"))
    for run in runs:
        factories.artifact(run=run, data=ArtifactData("plan-query.json", PLAN.encode()))
    return runs


def test_a_kept_plan_is_a_tree_with_time_rows_and_what_was_never_executed(client, kept):
    response = client.get(f"/plans/?left={kept[0].pk}/plan-query.json")
    page = response.content.decode()
    assert "Seq Scan on a" in page
    assert "(a.id = b.id)" in page
    assert "never executed" in page
    lines = response.context["lines"]
    assert [each.is_slow for each in lines] == [True, True, False, False]
    assert [each.is_misestimated for each in lines] == [True, False, False, False]
    assert f"{kept[1].pk}/plan-query.json" in page
    assert "as a tree" in client.get(f"/runs/{kept[0].pk}/").content.decode()


def test_two_kept_plans_stand_side_by_side(client, kept):
    places = [f"{run.pk}/plan-query.json" for run in kept]
    page = client.get(f"/plans/?left={places[0]}&right={places[1]}").content.decode()
    assert page.count("Seq Scan on a") == 2
    assert "Another branch was taken" not in page


def test_plans_of_a_private_project_are_its_own(client, kept):
    kept[0].campaign.project = Project.objects.create(
        slug="own", name="Own", is_public=False
    )
    kept[0].campaign.save()
    assert client.get(f"/plans/?left={kept[0].pk}/plan-query.json").status_code == 404
    assert client.get("/plans/?left=nothing").status_code == 404


def test_what_is_pasted_is_shown_and_not_stored(member):
    assert Client().post("/plans/", {"left": PLAN}).status_code == 302
    page = member.post("/plans/", {"left": PLAN, "right": "hello"}).content.decode()
    assert "Seq Scan on a" in page
    assert "No node of a plan" in page
    assert not Artifact.objects.exists()


def test_the_four_sub_plans_that_the_report_marks_are_marked(
    client, settings, tmp_path
):
    """Figure of 2017, 6.5: in 9.5 SubPlans 1 and 3 run thousands of times, in 9.6 2 and 4 once."""
    settings.ARTIFACTS_DIR = tmp_path
    publications.load(files=[SOURCE])
    found = {
        each.name: each for each in Artifact.objects.filter(name__startswith="plan-q10")
    }
    old, new = found["plan-q10-9.5.txt"], found["plan-q10-9.6.txt"]
    response = client.get(
        f"/plans/?left={old.run_id}/{old.name}&right={new.run_id}/{new.name}"
    )
    comparison = response.context["comparison"]
    assert [each.role for each in comparison["branches"]] == [
        f"SubPlan {n}" for n in range(1, 5)
    ]
    assert sum(row.opens_branch for row in comparison["rows"]) >= 4
    assert "Another branch was taken" in response.content.decode()


def test_evidence_of_a_run_is_shown_as_tables(client, kept):
    text = '{"columns": ["call", "calls"], "rows": [["futex<b>", "40000"]]}'
    factories.artifact(
        run=kept[0], data=ArtifactData("evidence-syscalls.json", text.encode())
    )
    factories.artifact(run=kept[0], data=ArtifactData("evidence-waits.json", b"broken"))
    page = client.get(f"/runs/{kept[0].pk}/").content.decode()
    assert "System calls (strace -c)" in page
    assert '<td class="is-number">40000</td>' in page
    assert "futex&lt;b&gt;" in page
    assert "Wait events" not in page


@pytest.fixture
def profiled(settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path
    campaign = factories.campaign(
        "Profiles", factors={"version": ["14.19", "18.4"]}, repeats=1
    )
    runs = list(campaign.runs.order_by("cell__ordinal"))
    texts = (
        "postgres;read 500\npostgres;<b>write</b> 500\n",
        "postgres;read 900\npostgres;x 100\n",
    )
    for run, text in zip(runs, texts, strict=True):
        factories.artifact(run=run, data=ArtifactData(FOLDED, text.encode()))
    return runs


def test_a_profile_is_searched_and_zoomed_by_its_address(client, profiled):
    page = client.get(f"/runs/{profiled[0].pk}/profile/?q=READ&zoom=0").content.decode()
    assert "50 %" in page
    assert "all</a>" in page
    assert "&lt;b&gt;write" in page
    assert "<b>write" not in page


def test_two_profiles_of_a_campaign_become_a_difference(client, profiled):
    old, new = profiled
    assert (
        f'value="{old.pk}"' in client.get(f"/runs/{new.pk}/profile/").content.decode()
    )
    response = client.get(f"/runs/{new.pk}/profile/?against={old.pk}")
    differing = {
        each.name: round(each.points) for each in response.context["functions"]
    }
    assert differing == {"read": 40, "<b>write</b>": -50, "x": 10}
    assert "red has grown" in response.content.decode()


def test_a_profile_that_is_not_there_or_private_is_not_found(client, profiled):
    assert client.get(f"/runs/{factories.run().pk}/profile/").status_code == 404
    assert (
        client.get(f"/runs/{profiled[0].pk}/profile/?against=999999").status_code == 404
    )
    profiled[0].campaign.project = Project.objects.create(
        slug="own", name="Own", is_public=False
    )
    profiled[0].campaign.save()
    assert client.get(f"/runs/{profiled[0].pk}/profile/").status_code == 404
