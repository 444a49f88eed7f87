"""Runs over the API."""

from collections import Counter

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from runs.access.selectors.projects import NOBODY
from runs.access.services import projects
from runs.campaigns.selectors import campaigns
from runs.execution.errors import TargetProblem
from runs.execution.machine.identity import Identity
from runs.models import Campaign, Run, RunCount
from runs.models.campaigns import Origin
from runs.operations.services import doctor
from runs.queue.selectors import runs
from runs.queue.services import transitions
from runs.seals.services import seals
from runs.servers.services import shared_machines
from tests import factories
from tests.api.upload_bodies import run as upload

pytestmark = pytest.mark.django_db


def test_a_run_that_failed_says_why_and_what_to_do(get):
    run = factories.run(server=factories.server("lab"))
    Run.objects.filter(pk=run.pk).update(
        state="failed", code="disk_full", message="No space left.", remedy="Free some."
    )

    (row,) = get("runs/")["results"]

    assert (row["id"], row["campaign"], row["server"]) == (
        run.pk,
        run.campaign.slug,
        "lab",
    )
    assert row["levels"] == {"version": "16.14", "clients": 1, "repeat": 1}
    assert (row["state"], row["code"]) == ("failed", "disk_full")
    assert (row["message"], row["remedy"]) == ("No space left.", "Free some.")
    assert row["url"] == f"http://testserver/api/v1/runs/{run.pk}/"


def test_the_reason_is_told_in_the_readers_language(client):
    text = "Step %(name)s ended with exit status %(exit_status)s:\n%(lines)s"
    run = factories.run()
    fault = TargetProblem(text, name="load", exit_status=1, lines="no such table")
    Run.objects.filter(pk=run.pk).update(
        state="failed",
        message=fault.message,
        wording=fault.wording,
        remedy="Read the step's output on the run's page.",
    )
    for path in (f"/api/v1/runs/{run.pk}/", "/api/v1/runs/?state=failed"):
        found = {
            language: client.get(path, headers={"Accept-Language": language}).json()
            for language in ("en", "ja")
        }
        english, japanese = (each.get("results", [each])[0] for each in found.values())
        assert english["message"] == fault.message
        assert "終了ステータス 1 で終わりました:\nno such table" in japanese["message"]
        assert english["remedy"] != japanese["remedy"]


def test_runs_are_filtered_by_campaign_state_version_and_server(get):
    one, other = factories.server("one"), factories.server("other")
    wanted = factories.campaign("wanted", on=one)
    factories.campaign("unwanted", on=other)
    factories.finish(wanted.runs.filter(cell__version="18.4").first())

    assert len(get("runs/", campaign="wanted")["results"]) == 18
    assert len(get("runs/", server="other")["results"]) == 18
    assert len(get("runs/", state="finished")["results"]) == 1
    assert len(get("runs/", version="18")["results"]) == 18
    assert (
        len(
            get("runs/", version="18.4", state="finished", campaign="wanted")["results"]
        )
        == 1
    )
    assert get("runs/", version="17")["results"] == []


@pytest.mark.parametrize("name", ["campaign", "server"])
def test_a_name_that_nothing_has_is_refused_with_the_nearest_that_the_reader_sees(
    get, name
):
    factories.campaign("nightly")
    factories.server("nightly")
    hidden = projects.create(slug="secret", is_public=False)
    factories.campaign("nigthly-s", project=hidden)

    for wrong in ("nigthly", "nigthly-s"):
        answer = get("runs/", **{name: wrong}, expect=400)
        [fault] = answer["errors"]
        assert (fault["pointer"], fault["code"]) == (f"?{name}", "unknown_name")
        assert "did you mean nightly" in fault["message"]
        assert "nigthly" not in fault["message"]


def test_a_run_has_everything_that_it_left(get):
    run = factories.finish(factories.story(factories.run()), tps=1234.5)
    run.server_version, run.tool_name, run.tool_version = "16.14", "pgbench", "18.4"
    run.quality = [{"code": "short", "message": "Short."}]
    run.save()

    body = get(f"runs/{run.pk}/")

    assert body["versions"] == {
        "server": "16.14",
        "tool": "pgbench",
        "tool_version": "18.4",
    }
    assert body["measurements"] == [
        {"metric": "tps", "value": 1234.5, "unit": "tps", "n": 1, "statistic": "single"}
    ]
    assert body["series"] == [
        {"name": "tps", "unit": "tps", "start": 1, "interval": 1, "length": 2}
    ]
    assert [event["to_state"] for event in body["events"]] == ["claimed"]
    assert body["commands"][0]["argv"] == ["pgbench", "-n"]
    assert body["settings"]["work_mem"]["setting"] == "4096"
    assert body["quality"] == [{"code": "short", "message": "Short."}]
    assert (body["server"], body["hardware"], body["attempt"]) == (None, None, 1)


def test_the_values_of_a_series_come_in_parts(client, get, monkeypatch):
    run = factories.finish(factories.story(factories.run()), tps=1)
    address = f"runs/{run.pk}/series/tps/"
    run.series.filter(name="tps").update(values=[7, None, 9], start=0.5, interval=0.5)
    whole = get(address)
    assert whole == {
        "name": "tps",
        "unit": "tps",
        "start": 0.5,
        "interval": 0.5,
        "length": 3,
        "values": [7, None, 9],
        "next": None,
    }
    monkeypatch.setattr(runs, "MOST_VALUES", 2)
    first = get(address)
    last = get(address, skip=first["next"])
    assert (first["values"], last["start"], last["values"]) == ([7, None], 1.5, [9])
    assert (last["next"], get(address, skip=999_999)["values"]) == (None, [])

    answers = [
        client.get(f"/api/v1/{address}?skip={text}").status_code for text in ("-1", "x")
    ]
    assert answers == [400, 400]
    for other in (f"runs/{run.pk}/series/none/", "runs/0/series/tps/"):
        assert client.get(f"/api/v1/{other}").status_code == 404
    Campaign.objects.update(project=projects.create(slug="hidden", is_public=False))
    assert client.get(f"/api/v1/{address}").status_code == 404


def test_a_queued_run_has_neither_measurements_nor_settings(get):
    body = get(f"runs/{factories.run().pk}/")

    assert (body["measurements"], body["settings"], body["started_at"]) == (
        [],
        None,
        None,
    )


def test_neither_the_plan_nor_the_address_of_the_server_is_told(get, client):
    run = factories.run(server=factories.server(address="192.0.2.77"))
    Run.objects.filter(pk=run.pk).update(plan={"host": "192.0.2.77"})

    for path in ("runs/", f"runs/{run.pk}/"):
        get(path)
        assert "192.0.2.77" not in client.get(f"/api/v1/{path}").content.decode()


@pytest.mark.parametrize("number", [1, 6])
def test_the_list_takes_one_query_however_long(get, number, django_assert_num_queries):
    for _ in range(number):
        factories.run(server=factories.server())

    with django_assert_num_queries(1):
        assert len(get("runs/")["results"]) == number


@pytest.mark.parametrize("number", [1, 6])
def test_a_run_takes_seven_queries_whatever_it_left(
    get, number, django_assert_num_queries
):
    run = factories.story(factories.run())
    factories.finish(run, **{f"metric-{index}": index + 1 for index in range(number)})

    with django_assert_num_queries(7):
        assert len(get(f"runs/{run.pk}/")["measurements"]) == number


@pytest.fixture
def post(client):
    def sent(path, body, token):
        header = {"Authorization": f"Bearer {token}"}
        return client.post(f"/api/v1/{path}", body, "application/json", headers=header)

    return sent


def test_a_run_is_withdrawn_and_restored_with_a_reason(
    get, post, make_token, settings, tmp_path
):
    settings.SEAL_KEY = str(tmp_path / "seals" / "key.pem")
    run = factories.finish(factories.run(), tps=1000)
    seals.request(run=run.pk)
    token = make_token("admin")

    assert post(f"runs/{run.pk}/withdraw/", {}, token).status_code == 400
    assert (
        post(
            f"runs/{run.pk}/withdraw/", {"reason": "x"}, make_token("queue")
        ).status_code
        == 403
    )
    withdrawn = post(
        f"runs/{run.pk}/withdraw/", {"reason": "the disk was failing"}, token
    )
    assert withdrawn.status_code == 200, withdrawn.content
    assert (withdrawn.json()["state"], withdrawn.json()["message"]) == (
        "withdrawn",
        "the disk was failing",
    )
    assert get("measurements/", run=run.pk)["results"] == []
    again = post(f"runs/{run.pk}/withdraw/", {"reason": "x"}, token)
    assert (again.status_code, again.json()["code"]) == (409, "not_finished")
    assert (
        post(f"runs/{run.pk}/restore/", {"reason": "another disk"}, token).status_code
        == 200
    )
    seals.seal()

    body = get(f"runs/{run.pk}/")
    assert body["state"] == "finished"
    assert [
        (each["number"], each["kind"], each["reason"]) for each in body["seals"]
    ] == [
        (3, "restored", "another disk"),
        (2, "withdrawn", "the disk was failing"),
        (1, "sealed", ""),
    ]
    assert {len(each["hash"]) for each in body["seals"]} == {64}
    assert len(get("measurements/", run=run.pk)["results"]) == 1


@pytest.fixture
def server():
    return factories.server("db1")


@pytest.fixture
def campaign(server):
    factors = {"version": ["16.14"], "clients": [1]}
    return factories.campaign("first", on=server, factors=factors, repeats=2)


@pytest.fixture
def post_control(client, make_token):
    header = {"Authorization": f"Bearer {make_token('read', 'queue', 'admin')}"}

    def sent(path, body=None):
        return client.post(
            f"/api/v1/{path}", body or {}, "application/json", headers=header
        )

    return sent


def test_a_campaign_is_paused_and_resumed(post_control, campaign):
    assert post_control("campaigns/first/pause/").json()["is_paused"] is True
    assert post_control("campaigns/first/resume/").json()["is_paused"] is False
    answer = post_control("campaigns/first/resume/")
    assert (answer.status_code, answer.json()["code"]) == (409, "campaign_not_paused")


def test_a_priority_is_changed_within_its_bounds(post_control, campaign):
    assert (
        post_control("campaigns/first/priority/", {"priority": 7}).json()["priority"]
        == 7
    )
    answer = post_control("campaigns/first/priority/", {"priority": 101})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (
        400,
        "/priority",
    )


def test_all_that_failed_is_queued_again(post_control, campaign):
    Run.objects.update(state="failed", plan={})
    Campaign.objects.update(state="incomplete")
    body = post_control("campaigns/first/retry/").json()
    assert (body["state"], body["runs"]) == ("queued", {"queued": 2})
    assert post_control("campaigns/first/retry/").json()["code"] == "nothing_to_retry"


def test_a_server_is_maintained_and_released(post_control, server, client):
    given = {"reason": "new disks", "until": "2100-01-01T00:00:00Z"}
    assert post_control("servers/db1/maintain/", given).json()["maintenance"] == given
    assert client.get("/api/v1/servers/db1/").json()["maintenance"] == given
    assert post_control("servers/db1/release/").json()["maintenance"] is None


def test_registrations_of_one_machine_are_named_and_an_administrator_sets_one_apart(
    get, post_control
):
    identity = Identity(machine_id="a" * 32, boot_id="boot-1")
    for slug in ("rack", "rack-again"):
        shared_machines.keep(server_id=factories.server(slug).pk, identity=identity)
    assert get("servers/rack/")["takes_turns_with"] == ["rack-again"]
    apart = post_control("servers/rack/separate/").json()
    assert (apart["takes_turns_with"], apart["is_apart"]) == ([], True)
    assert get("servers/rack-again/")["takes_turns_with"] == []
    joined = post_control("servers/rack/join/").json()
    assert (joined["takes_turns_with"], joined["is_apart"]) == (["rack-again"], False)
    assert post_control("servers/rack/join/").json()["code"] == "not_apart"


def test_a_maintenance_that_is_over_is_refused_at_its_field(post_control, server):
    answer = post_control("servers/db1/maintain/", {"until": "2000-01-01T00:00:00Z"})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (
        422,
        "/until",
    )


def test_a_misspelt_end_makes_no_endless_maintenance(post_control, server):
    answer = post_control(
        "servers/db1/maintain/", {"reason": "disks", "untill": "2100-01-01T00:00:00Z"}
    )
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (
        400,
        "unknown_field",
    )
    server.refresh_from_db()
    assert server.maintenance_since is None


@pytest.mark.parametrize("act", ["maintain", "release"])
def test_only_an_administrators_token_maintains_a_server(
    client, make_token, server, act
):
    header = {"Authorization": f"Bearer {make_token('read', 'queue')}"}
    answer = client.post(f"/api/v1/servers/db1/{act}/", headers=header)
    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")


@pytest.mark.parametrize(
    "path",
    [
        "campaigns/first/pause/",
        "campaigns/first/cancel/",
        "campaigns/first/retry/",
        "runs/{}/retry/",
    ],
)
def test_a_token_steers_nothing_of_another_project(client, make_token, campaign, path):
    other = projects.create(slug="other", is_public=False)
    header = {"Authorization": f"Bearer {make_token('queue', 'admin', of=other)}"}
    run = campaign.runs.first()

    answer = client.post(f"/api/v1/{path.format(run.pk)}", headers=header)

    assert (answer.status_code, answer.json()["code"]) == (403, "other_project")
    campaign.refresh_from_db()
    assert (campaign.state, campaign.paused_at) == ("queued", None)


def test_a_token_writes_no_note_beside_a_campaign_of_another_project(
    client, make_token, campaign
):
    other = projects.create(slug="other", is_public=True)
    header = {"Authorization": f"Bearer {make_token(of=other)}"}
    path = "/api/v1/campaigns/first/annotations/"

    answer = client.post(path, {"text": "Mine."}, "application/json", headers=header)

    assert (answer.status_code, answer.json()["code"]) == (403, "other_project")
    assert client.get(path, headers=header).json() == []


def finished_here():
    """What the first page says."""
    return campaigns.recent_and_finished(limit=1, to=NOBODY)[1]


def assert_right():
    """What pages show is what is there, before rows are added up and after that."""
    stored = set(
        RunCount.objects.exclude(campaign=0).values_list("campaign", flat=True)
    )
    for _time in range(2):
        for campaign in {*stored, *Campaign.objects.values_list("pk", flat=True)}:
            counted = Counter(
                Run.objects.filter(campaign=campaign).values_list("state", flat=True)
            )
            assert campaigns.run_counts([campaign])[campaign] == counted
        here = Run.objects.filter(origin=Origin.EXECUTED, state=Run.State.FINISHED)
        assert finished_here() == here.count()
        transitions.add_up_counts()
    names = list(RunCount.objects.values_list("campaign", "origin", "state"))
    assert len(names) == len(set(names))
    assert not RunCount.objects.filter(number=0).exists()


def test_every_way_of_changing_runs_is_counted(client, bearer):
    one, other = (
        factories.campaign(slug, factors={"version": ["16.14", "18.4"]}, repeats=3)
        for slug in ("one", "other")
    )
    assert_right()

    bodies = {"runs": [upload(levels={"clients": number + 1}) for number in range(70)]}
    sent = {"content_type": "application/json", "headers": bearer}
    assert client.post("/api/v1/uploads/batch/", bodies, **sent).status_code == 201
    assert (
        client.post("/api/v1/uploads/", upload(status="partial"), **sent).status_code
        == 201
    )
    assert_right()

    first, *rest = one.runs.order_by("pk")
    assert transitions.transition(
        run_id=first.pk, to=Run.State.CANCELLED, code="cancelled"
    )
    Run.objects.filter(pk__in=[each.pk for each in rest]).update(
        state=Run.State.FINISHED
    )
    Run.objects.filter(pk=rest[0].pk).update(message="the state stays")
    assert_right()
    Run.objects.filter(pk=rest[0].pk).update(campaign=other)
    assert_right()

    rest[1].delete()
    Campaign.objects.get(slug="other").runs.all().delete()
    assert_right()
    one.delete()
    assert_right()
    assert finished_here() == 0


def test_what_is_rolled_back_is_not_counted():
    campaign = factories.campaign("one", factors={"version": ["16.14"]}, repeats=2)
    with transaction.atomic():
        campaign.runs.update(state=Run.State.LOST)
        transaction.set_rollback(True)
    assert_right()


@pytest.mark.django_db(transaction=True)
def test_a_request_reads_few_rows_however_many_uploads_came():
    campaign = factories.campaign("one", factors={"version": ["16.14"]}, repeats=2)
    run = campaign.runs.first()
    for state in 20 * (Run.State.LOST, Run.State.QUEUED):
        Run.objects.filter(pk=run.pk).update(state=state)
    assert RunCount.objects.filter(campaign=campaign.pk).count() > 20

    transitions.add_up_counts()

    assert RunCount.objects.filter(campaign=campaign.pk).count() == 1
    assert campaigns.run_counts([campaign.pk])[campaign.pk] == {"queued": 2}
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM runs_runcount WHERE NOT is_sum")
        assert cursor.fetchone()[0] == 0


def test_a_broken_number_is_reported_and_corrected():
    campaign = factories.campaign("one", factors={"version": ["16.14"]}, repeats=3)
    transitions.add_up_counts()
    assert transitions.drift_of_counts() == transitions.recount() == 0
    RunCount.objects.filter(campaign=campaign.pk).update(number=70)
    assert transitions.drift_of_counts() == 1
    told = next(each for each in doctor.examine() if each.check == "counts")
    assert (told.status, "recount_runs" in told.remedy) == ("warning", True)

    RunCount.objects.filter(campaign=0).delete()
    call_command("recount_runs")
    assert transitions.drift_of_counts() == 0
    assert_right()
