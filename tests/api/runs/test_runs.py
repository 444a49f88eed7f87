"""Runs over the API."""

import pytest

from runs.models import Run
from runs.services.seals import sealing
from tests import factories

pytestmark = pytest.mark.django_db


def test_a_run_that_failed_says_why_and_what_to_do(get):
    run = factories.run(server=factories.server("lab"))
    Run.objects.filter(pk=run.pk).update(
        state="failed", code="disk_full", message="No space left.", remedy="Free some."
    )

    (row,) = get("runs/")["results"]

    assert (row["id"], row["campaign"], row["server"]) == (run.pk, run.campaign.slug, "lab")
    assert row["levels"] == {"version": "16.14", "clients": 1, "repeat": 1}
    assert (row["state"], row["code"]) == ("failed", "disk_full")
    assert (row["message"], row["remedy"]) == ("No space left.", "Free some.")
    assert row["url"] == f"http://testserver/api/v1/runs/{run.pk}/"


def test_runs_are_filtered_by_campaign_state_version_and_server(get):
    one, other = factories.server("one"), factories.server("other")
    wanted = factories.campaign("wanted", on=one)
    factories.campaign("unwanted", on=other)
    factories.finish(wanted.runs.filter(cell__version="18.4").first())

    assert len(get("runs/", campaign="wanted")["results"]) == 18
    assert len(get("runs/", server="other")["results"]) == 18
    assert len(get("runs/", state="finished")["results"]) == 1
    assert len(get("runs/", version="18")["results"]) == 18
    assert len(get("runs/", version="18.4", state="finished", campaign="wanted")["results"]) == 1
    assert get("runs/", version="17")["results"] == []


def test_a_run_has_everything_that_it_left(get):
    run = factories.finish(factories.story(factories.run()), tps=1234.5)
    run.server_version, run.tool_name, run.tool_version = "16.14", "pgbench", "18.4"
    run.quality = [{"code": "short", "message": "Short."}]
    run.save()

    body = get(f"runs/{run.pk}/")

    assert body["versions"] == {"server": "16.14", "tool": "pgbench", "tool_version": "18.4"}
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


def test_a_queued_run_has_neither_measurements_nor_settings(get):
    body = get(f"runs/{factories.run().pk}/")

    assert (body["measurements"], body["settings"], body["started_at"]) == ([], None, None)


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
def test_a_run_takes_seven_queries_whatever_it_left(get, number, django_assert_num_queries):
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


def test_a_run_is_withdrawn_and_restored_with_a_reason(get, post, make_token, settings, tmp_path):
    settings.SEAL_KEY = str(tmp_path / "seals" / "key.pem")
    run = factories.finish(factories.run(), tps=1000)
    sealing.request(run=run.pk)
    token = make_token("admin")

    assert post(f"runs/{run.pk}/withdraw/", {}, token).status_code == 400
    assert post(f"runs/{run.pk}/withdraw/", {"reason": "x"}, make_token("queue")).status_code == 403
    withdrawn = post(f"runs/{run.pk}/withdraw/", {"reason": "the disk was failing"}, token)
    assert withdrawn.status_code == 200, withdrawn.content
    assert (withdrawn.json()["state"], withdrawn.json()["message"]) == (
        "withdrawn",
        "the disk was failing",
    )
    assert get("measurements/", run=run.pk)["results"] == []
    again = post(f"runs/{run.pk}/withdraw/", {"reason": "x"}, token)
    assert (again.status_code, again.json()["code"]) == (409, "not_finished")
    assert post(f"runs/{run.pk}/restore/", {"reason": "another disk"}, token).status_code == 200
    sealing.seal()

    body = get(f"runs/{run.pk}/")
    assert body["state"] == "finished"
    assert [(each["number"], each["kind"], each["reason"]) for each in body["seals"]] == [
        (3, "restored", "another disk"),
        (2, "withdrawn", "the disk was failing"),
        (1, "sealed", ""),
    ]
    assert {len(each["hash"]) for each in body["seals"]} == {64}
    assert len(get("measurements/", run=run.pk)["results"]) == 1
