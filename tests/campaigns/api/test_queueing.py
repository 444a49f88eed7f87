"""Queueing, cancelling and retrying over the API."""

import pytest

from runs.access.services import projects
from runs.models import Campaign, Run
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db

GIVEN = {
    "title": "16 and 18",
    "scenario": "fixed-point-read",
    "server": "db1",
    "levels": {"clients": [1, 2]},
    "parameters": {"scale": 1, "duration": 2},
    "repeats": 2,
}


@pytest.fixture
def server(db):
    scenarios.sync()
    made = factories.server("db1")
    for version in ("16.14", "18.4"):
        number = factories.version_num(version)
        factories.installation(made, version, has_psql=True, pgbench_version_num=number)
    return made


@pytest.fixture
def post(client, bearer):
    def sent(path, body=None):
        return client.post(
            f"/api/v1/{path}", body or {}, "application/json", headers=bearer
        )

    return sent


def test_a_campaign_is_queued(post, server, project):
    answer = post("campaigns/", GIVEN)

    assert answer.status_code == 201, answer.content
    body = answer.json()
    campaign = Campaign.objects.get(slug=body["slug"])
    assert (body["state"], body["runs"]) == ("queued", {"queued": 8})
    assert campaign.factors["version"] == ["16.14", "18.4"]
    assert campaign.project == project


def test_a_private_projects_campaign_is_hidden_from_its_first_moment(
    client, make_token, server
):
    private = projects.create(slug="secret", is_public=False)
    bearer = {"Authorization": f"Bearer {make_token(of=private)}"}

    with factories.campaigns_made() as made:
        answer = client.post(
            "/api/v1/campaigns/", GIVEN, "application/json", headers=bearer
        )

    assert answer.status_code == 201
    assert made == [private]


def test_versions_are_chosen(post, server):
    body = post("campaigns/", GIVEN | {"versions": ["18"]}).json()

    assert body["factors"]["version"] == ["18.4"]


def test_factors_and_parameters_have_defaults(post, server):
    given = {name: GIVEN[name] for name in ("title", "scenario", "server")}

    body = post("campaigns/", given).json()

    assert body["repeats"] == 3
    assert body["parameters"]
    assert body["factors"]["clients"]


@pytest.mark.parametrize(
    ("changes", "status", "pointer", "code"),
    [
        ({"title": ""}, 400, "/title", "blank"),
        ({"scenario": "none"}, 400, "/scenario", "invalid_choice"),
        ({"server": "none"}, 400, "/server", "does_not_exist"),
        ({"clients": [1]}, 400, "/clients", "unknown_field"),
        ({"repeats": 0}, 400, "/repeats", "min_value"),
        ({"levels": {"clients": [1.5]}}, 400, "/levels/clients/0", "not_a_level"),
        ({"levels": {"clients": []}}, 422, "/levels/clients", "no_level"),
        ({"levels": {"clients": [0]}}, 422, "/levels/clients", "out_of_range"),
        ({"levels": {"clients": ["many"]}}, 422, "/levels/clients", "unknown_level"),
        (
            {
                "scenario": "command",
                "levels": {"command": ["bench.sh", "x/bench.sh"]},
                "parameters": {},
            },
            422,
            "/levels/command",
            "unknown_level",
        ),
        ({"levels": {"nothing": [1]}}, 422, "/levels", "unknown_factor"),
        ({"parameters": {"scale": 0}}, 422, "/parameters/scale", "out_of_range"),
        ({"parameters": {"sclae": 1}}, 422, "/parameters/sclae", "unknown_parameter"),
        ({"versions": ["9.2"]}, 422, "/versions/0", "installation_missing"),
        ({"bindirs": ["/nowhere"]}, 422, "/bindirs/0", "installation_missing"),
        ({"versions": []}, 422, "/versions", "no_installation"),
    ],
)
def test_a_draft_that_is_wrong_is_pointed_at(
    post, server, changes, status, pointer, code
):
    answer = post("campaigns/", GIVEN | changes)

    assert answer.status_code == status, answer.content
    found = [(fault["pointer"], fault["code"]) for fault in answer.json()["errors"]]
    assert (pointer, code) in found
    assert not Campaign.objects.exists()


@pytest.mark.parametrize(
    "path", ["campaigns/", "campaigns/first/cancel/", "runs/{run}/retry/"]
)
def test_a_token_needs_the_scope_to_queue(client, make_token, server, path):
    run = factories.campaign("first").runs.first()
    header = {"Authorization": f"Bearer {make_token('read', 'upload')}"}

    answer = client.post(f"/api/v1/{path.format(run=run.pk)}", headers=header)

    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    assert "“queue”" in answer.json()["detail"]


def test_a_campaign_is_cancelled_once(post, server):
    slug = post("campaigns/", GIVEN).json()["slug"]

    cancelled = post(f"campaigns/{slug}/cancel/")
    again = post(f"campaigns/{slug}/cancel/")

    assert (cancelled.status_code, cancelled.json()["runs"]) == (200, {"cancelled": 8})
    assert (again.status_code, again.json()["code"]) == (409, "campaign_has_ended")


def test_a_failed_run_is_queued_again(post, server):
    slug = post("campaigns/", GIVEN).json()["slug"]
    run = Run.objects.filter(campaign__slug=slug).first()
    Run.objects.filter(pk=run.pk).update(
        state="failed", code="disk_full", message="No space."
    )

    body = post(f"runs/{run.pk}/retry/").json()

    assert (body["state"], body["attempt"], body["code"]) == ("queued", 2, "")
    assert body["events"][-1]["code"] == "queued_again"
    assert "test" in body["events"][-1]["message"]


@pytest.mark.parametrize("state", ["queued", "measuring", "lost", "finished"])
def test_only_a_run_that_ended_without_success_is_queued_again(post, server, state):
    slug = post("campaigns/", GIVEN).json()["slug"]
    run = Run.objects.filter(campaign__slug=slug).first()
    Run.objects.filter(pk=run.pk).update(state=state)

    answer = post(f"runs/{run.pk}/retry/")

    assert (answer.status_code, answer.json()["code"]) == (409, "run_not_failed")


def test_a_failed_run_that_was_uploaded_cannot_be_queued(post):
    run = factories.run()
    Run.objects.filter(pk=run.pk).update(state="failed", origin="uploaded")

    assert post(f"runs/{run.pk}/retry/").status_code == 409


SEVERAL = {
    "title": "Two machines",
    "scenario": "fixed-point-read",
    "servers": ["db1", "db2"],
    "levels": {"clients": [1, 2]},
    "parameters": {"scale": 1, "duration": 2},
    "repeats": 2,
}


def machine(slug, versions):
    made = factories.server(slug, name=slug.upper(), address=f"{slug}.example.org")
    for version in versions:
        number = factories.version_num(version)
        factories.installation(made, version, has_psql=True, pgbench_version_num=number)
    return made


@pytest.fixture
def servers(db):
    scenarios.sync()
    return machine("db1", ("16.14", "18.4")), machine("db2", ("17.2", "16.14", "18.4"))


def test_a_campaign_is_queued_on_both_with_the_releases_that_both_have(post, servers):
    answer = post("campaigns/", SEVERAL)

    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert body["factors"]["server"] == ["db1", "db2"]
    assert body["factors"]["version"] == ["16.14", "18.4"]
    assert body["runs"] == {"queued": 16}
    assert body["cells"][0]["levels"] == {
        "version": "16.14",
        "server": "db1",
        "clients": 1,
    }


def test_one_server_in_a_list_is_one_server(post, servers):
    body = post("campaigns/", SEVERAL | {"servers": ["db1", "db1"]}).json()

    assert "server" not in body["factors"]


def test_versions_are_chosen_for_all(post, servers):
    body = post("campaigns/", SEVERAL | {"versions": ["18"]}).json()

    assert body["factors"]["version"] == ["18.4"]


@pytest.mark.parametrize(
    ("changes", "status", "pointer", "code"),
    [
        ({"servers": ["db1", "none"]}, 400, "/servers/1", "does_not_exist"),
        ({"servers": []}, 400, "/servers", "min_length"),
        ({"server": "db1"}, 400, "/servers", "contradicts"),
        ({"versions": ["9.2"]}, 422, "/versions/0", "installation_missing"),
        ({"versions": ["17.2"]}, 422, "/versions", "version_missing"),
    ],
)
def test_what_is_wrong_is_pointed_at(post, servers, changes, status, pointer, code):
    answer = post("campaigns/", SEVERAL | changes)

    assert answer.status_code == status, answer.content
    found = [(fault["pointer"], fault["code"]) for fault in answer.json()["errors"]]
    assert (pointer, code) in found
    assert not Campaign.objects.exists()


def test_a_server_must_be_given(post, servers):
    given = {name: value for name, value in SEVERAL.items() if name != "servers"}
    answer = post("campaigns/", given)

    assert answer.status_code == 400
    assert [fault["pointer"] for fault in answer.json()["errors"]] == ["/server"]


def test_a_server_that_is_not_ready_is_told_at_the_servers(post, servers):
    servers[1].state = "unreachable"
    servers[1].save()
    answer = post("campaigns/", SEVERAL)

    assert answer.status_code == 422
    (fault,) = answer.json()["errors"]
    assert fault["pointer"] == "/servers"
    assert "DB2" in fault["message"]


def test_the_verdict_between_servers_says_that_the_hardware_differs(
    client, post, servers
):
    servers[1].hardware = factories.hardware("other")
    servers[1].save()
    slug = post("campaigns/", SEVERAL).json()["slug"]
    for run in Campaign.objects.get().runs.select_related("cell"):
        factories.finish(run, tps=1000 + run.repeat)
    sides = f"base=campaign:{slug}~server%3Ddb1&head=campaign:{slug}~server%3Ddb2"

    rows = client.get(f"/api/v1/compare/?{sides}").json()["rows"]
    assert {row["verdict"] for row in rows} == {"same"}
    assert {row["despite"][0]["code"] for row in rows} == {"hardware_differs"}
    assert len(rows) == 4


# A campaign's treatment over the API.


@pytest.fixture
def treated_server(db):
    scenarios.sync()
    made = factories.server("db1")
    factories.installation(made, "18.4", has_psql=True, pgbench_version_num=180004)
    return made


@pytest.fixture
def permitting(treated_server):
    treated_server.privileges = ["drop_caches"]
    treated_server.save()
    return treated_server


def test_it_is_queued_and_told(post, permitting):
    given = {"cold_cache": True, "server_cpus": "0,1", "profile": True}
    answer = post("campaigns/", GIVEN | {"treatment": given})
    assert answer.status_code == 201, answer.content
    kept = {"cold_cache": True, "server_cpus": "0-1", "profile": True}
    assert answer.json()["treatment"] == kept
    assert Campaign.objects.get().runs.first().plan["treatment"]["cold_cache"] is True


def test_without_it_nothing_is_done(post, treated_server):
    assert post("campaigns/", GIVEN).json()["treatment"] == {}


@pytest.mark.parametrize(
    ("treatment", "pointer", "code"),
    [
        ({"cold_cache": True}, "/treatment/cold_cache", "privilege_missing"),
        ({"server_cpus": "x"}, "/treatment/server_cpus", "not_a_cpu_list"),
        ({"governor": "performance"}, "/treatment/governor", "privilege_missing"),
        ({"governor": "turbo"}, "/treatment/governor", "invalid_choice"),
        ({"hot": True}, "/treatment/hot", "unknown_field"),
    ],
)
def test_what_cannot_be_done_is_refused_at_its_place(
    post, treated_server, treatment, pointer, code
):
    answer = post("campaigns/", GIVEN | {"treatment": treatment})
    assert answer.status_code in {400, 422}, answer.content
    assert [(each["pointer"], each["code"]) for each in answer.json()["errors"]] == [
        (pointer, code)
    ]
    assert not Campaign.objects.exists()
