"""Configurations over the API: reading, making, checking, and queueing with one."""

import pytest

from runs.configurations.services import configurations
from runs.models import Configuration, Run
from runs.workloads.services import scenarios as scenario_service
from tests import factories

pytestmark = pytest.mark.django_db

ADDRESS = "/api/v1/configurations/"


@pytest.fixture
def post(client, bearer):
    """POST JSON with a token that may queue, and give status and body."""

    def send(path, body, headers=bearer):
        response = client.post(
            f"/api/v1/{path}", body, content_type="application/json", headers=headers
        )
        return response.status_code, response.json()

    return send


def test_configurations_are_listed_and_filtered(get):
    configurations.sync()
    found = get("configurations/")["results"]
    assert [each["slug"] for each in found] == [
        "postgresql-defaults",
        "fixed-point-small",
    ]
    with_autovacuum = get("configurations/", setting="autovacuum")["results"]
    assert [each["slug"] for each in with_autovacuum] == ["fixed-point-small"]
    assert get("configurations/", origin="own")["results"] == []
    one = get("configurations/fixed-point-small/")
    assert (one["origin"], one["settings"]["shared_buffers"]) == ("built_in", "512MB")


def test_one_is_made(post):
    status, made = post(
        "configurations/",
        {
            "name": "From a script",
            "settings": {"work_mem": "8MB", "jit": False, "max_connections": 200},
            "initdb_options": ["--data-checksums"],
            "written_for": "17",
        },
    )
    assert status == 201
    assert made["slug"] == "from-a-script"
    assert made["settings"] == {
        "work_mem": "8MB",
        "jit": "off",
        "max_connections": "200",
    }
    stored = Configuration.objects.get()
    assert (stored.written_for, stored.initdb_options) == ("17", ["--data-checksums"])
    assert stored.revisions.count() == 1


def test_wrong_settings_are_refused_each_with_name_and_range(post):
    settings = {"work_mem": "1kB", "shared_bufers": "1GB"}
    body = {
        "name": "x",
        "settings": settings,
        "initdb_options": ["-D/x"],
        "written_for": "18",
    }
    status, problem = post("configurations/", body)
    assert status == 422
    assert {(each["pointer"], each["code"]) for each in problem["errors"]} == {
        ("/settings/work_mem", "out_of_range"),
        ("/settings/shared_bufers", "unknown_setting"),
        ("/initdb_options", "initdb_option_refused"),
    }
    assert "Choose a value from 64kB to 2TB." in str(problem["errors"])
    assert not Configuration.objects.exists()


def test_a_slug_is_taken_once(post):
    body = {"name": "x", "slug": "mine", "settings": {}}
    assert post("configurations/", body)[0] == 201
    status, problem = post("configurations/", body)
    assert (status, problem["code"]) == (422, "slug_taken")


@pytest.mark.parametrize(
    "body",
    [
        {"settings": {}},
        {"name": "x"},
        {"name": "x", "settings": ["work_mem"]},
        {"name": "x", "settings": {"work_mem": {"a": 1}}},
        {"name": "x", "settings": {}, "written_for": "7.4"},
        {"name": "x", "settings": {f"x.y{n}": "1" for n in range(501)}},
    ],
)
def test_a_body_of_another_shape_is_refused(post, body):
    status, problem = post("configurations/", body)
    assert (status, problem["code"]) == (400, "invalid")


@pytest.mark.parametrize(
    ("scope", "path", "expected"),
    [
        ("read", "configurations/", 403),
        ("upload", "configurations/", 403),
        ("queue", "configurations/", 201),
        ("admin", "configurations/", 201),
        ("read", "configurations/check/", 200),
    ],
)
def test_the_scope_decides(post, make_token, scope, path, expected):
    body = {"settings": {}} | (
        {"versions": ["18"]} if "check" in path else {"name": "x"}
    )
    headers = {"Authorization": f"Bearer {make_token(scope)}"}
    assert post(path, body, headers)[0] == expected


def test_a_visitor_makes_and_checks_nothing(post):
    for path in ("configurations/", "configurations/check/"):
        assert (
            post(path, {"name": "x", "settings": {}, "versions": ["18"]}, {})[0] == 401
        )


def test_the_check_tells_findings_and_translations(post):
    body = {
        "settings": {"checkpoint_segments": "16", "fsync": "x"},
        "versions": ["9.4", "18"],
    }
    status, found = post("configurations/check/", body)
    assert status == 200
    assert found["startable"] is False
    told = {
        (each["severity"], each["code"], each["name"]) for each in found["findings"]
    }
    assert ("error", "invalid_boolean", "fsync") in told
    assert ("info", "translated", "checkpoint_segments") in told
    newest = found["translated"][1]
    assert newest["version"] == "18"
    assert newest["settings"]["max_wal_size"] == "768MB"


def test_the_check_sums_up_memory(post):
    body = {
        "settings": {"shared_buffers": "8GB"},
        "versions": ["18"],
        "memory_bytes": 8 * 2**30,
    }
    assert post("configurations/check/", body)[1]["startable"] is False
    del body["memory_bytes"]
    assert post("configurations/check/", body)[1]["startable"] is True


def test_an_unknown_version_is_refused(post):
    status, problem = post(
        "configurations/check/", {"settings": {}, "versions": ["8.4"]}
    )
    assert (status, problem["errors"][0]["pointer"]) == (400, "/versions/0")


@pytest.fixture
def server(db):
    scenario_service.sync()
    made = factories.server("db1")
    for version in ("9.3.25", "18.4"):
        number = factories.version_num(version)
        factories.installation(made, version, has_psql=True, pgbench_version_num=number)
    return made


def queueing(configuration):
    return {
        "title": "matrix",
        "scenario": "fixed-point-read",
        "server": "db1",
        "levels": {"clients": [1]},
        "parameters": {"scale": 1, "duration": 5},
        "configuration": configuration.slug,
    }


def test_one_configuration_serves_a_matrix_of_versions(post, server):
    made = factories.configuration("old", settings={"checkpoint_segments": "16"})
    status, _campaign = post("campaigns/", queueing(made))
    assert status == 201
    plans = {run.plan["version_num"]: run.plan for run in Run.objects.all()}
    assert plans[90325]["settings"] == {"checkpoint_segments": "16"}
    assert plans[180004]["settings"] == {
        "max_wal_size": "768MB",
        "min_wal_size": "528MB",
    }
    assert [each["name_to"] for each in plans[180004]["translated"]] == [
        "max_wal_size",
        "min_wal_size",
    ]


def test_what_benchlab_sets_itself_is_left_out_and_told(post, server):
    made = factories.configuration("conf", settings={"port": "5433", "work_mem": "8MB"})
    assert post("campaigns/", queueing(made))[0] == 201
    plan = Run.objects.first().plan
    assert plan["settings"] == {"work_mem": "8MB"}
    assert [each["name_from"] for each in plan["translated"]] == ["port"]


def test_commands_of_a_published_configuration_stay_out_of_its_runs(post, server):
    settings = {
        "archive_mode": "on",
        "archive_command": "cp %p /x",
        "wal_level": "archive",
    }
    made = factories.configuration(
        "printed", settings=settings, origin=Configuration.Origin.PUBLISHED
    )
    assert post("campaigns/", queueing(made))[0] == 201
    plan = Run.objects.last().plan
    assert plan["settings"]["archive_command"] == "true"
    [told] = [
        each for each in plan["translated"] if each["name_from"] == "archive_command"
    ]
    assert told["value_from"] == "cp %p /x"
    made.refresh_from_db()
    assert made.settings == settings


def test_a_campaign_with_wrong_settings_is_refused(post, server):
    made = factories.configuration("bad", settings={"work_mem": "1kB"})
    status, problem = post("campaigns/", queueing(made))
    assert status == 422
    [fault] = problem["errors"]
    assert (fault["pointer"], fault["code"]) == ("/configuration", "out_of_range")
    assert "work_mem = 1kB" in fault["message"]
    assert "64kB to 2TB" in fault["message"]


def test_settings_that_the_memory_does_not_hold_are_refused(post, server):
    made = factories.configuration("big", settings={"shared_buffers": "8GB"})
    status, problem = post("campaigns/", queueing(made))
    assert (status, problem["errors"][0]["code"]) == (422, "shared_buffers_too_large")
