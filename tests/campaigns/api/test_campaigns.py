"""Campaigns over the API."""

import pytest

from runs.access.services import projects
from runs.models import Annotation, Run, Topology, Workload
from runs.scenarios import registry
from runs.shared.errors import Fault
from runs.workloads.services import scenarios, trials
from tests import factories
from tests.checks import carry_out

pytestmark = pytest.mark.django_db


def test_a_campaign_in_the_list_says_what_it_is_and_how_far(get):
    campaign = factories.campaign("first", title="16 and 18")
    factories.finish(campaign.runs.first(), tps=1)

    body = get("campaigns/")

    assert body["next"] is None
    (row,) = body["results"]
    assert row.pop("created_at").endswith("Z")
    assert row == {
        "slug": "first",
        "title": "16 and 18",
        "origin": "executed",
        "state": "queued",
        "is_paused": False,
        "priority": 0,
        "scenario": "fixed-point-read",
        "runs": {"finished": 1, "queued": 17},
        "url": "http://testserver/api/v1/campaigns/first/",
    }


@pytest.mark.parametrize(
    ("query", "slugs"),
    [
        ({}, ["uploaded", "finished", "plain"]),
        ({"origin": "uploaded"}, ["uploaded"]),
        ({"state": "finished"}, ["finished"]),
        ({"scenario": "other"}, ["finished"]),
        ({"origin": "executed", "state": "queued"}, ["plain"]),
    ],
)
def test_campaigns_are_filtered_newest_first(get, query, slugs):
    factories.campaign("plain", repeats=0)
    factories.campaign(
        "finished", repeats=0, state="finished", scenario=factories.scenario("other")
    )
    factories.campaign("uploaded", repeats=0, origin="uploaded")

    assert [row["slug"] for row in get("campaigns/", **query)["results"]] == slugs


def test_a_campaign_has_its_cells_with_levels_and_summaries(get):
    campaign = factories.campaign(
        "first",
        factors={"version": ["16.14"], "clients": [1, 2]},
        parameters={"scale": 10},
        seed=7,
    )
    campaign.configuration = factories.configuration("tuned")
    campaign.topology = Topology.objects.create(slug="single", name="s", kind="single")
    campaign.save()
    for run in campaign.runs.filter(cell__levels__clients=2):
        factories.finish(run, tps=1000 + run.repeat)

    body = get("campaigns/first/")

    assert body["factors"] == {"version": ["16.14"], "clients": [1, 2]}
    assert body["parameters"] == {"scale": 10}
    assert (body["repeats"], body["seed"], body["question"]) == (3, 7, "")
    assert (body["topology"], body["configuration"]) == ("single", "tuned")
    assert body["runs"] == {"finished": 3, "queued": 3}
    empty, measured = body["cells"]
    assert (empty["levels"], empty["summaries"]) == (
        {"version": "16.14", "clients": 1},
        [],
    )
    assert measured["version"] == "16.14"
    assert measured["summaries"] == [
        {
            "metric": "tps",
            "unit": "tps",
            "direction": "higher",
            "n": 3,
            "median": 1002,
            "minimum": 1001,
            "maximum": 1003,
            "mean": 1002,
        }
    ]


def test_a_campaign_of_published_figures_has_no_topology_and_no_configuration(get):
    factories.campaign("published", origin="published")

    body = get("campaigns/published/")

    assert (body["topology"], body["configuration"]) == (None, None)


@pytest.mark.parametrize("number", [1, 6])
def test_the_list_takes_two_queries_however_long(
    get, number, django_assert_num_queries
):
    for _ in range(number):
        campaign = factories.campaign(repeats=1)
        Run.objects.filter(pk=campaign.runs.first().pk).update(state="failed")

    with django_assert_num_queries(2):
        assert len(get("campaigns/")["results"]) == number


@pytest.mark.parametrize("clients", [[1], [1, 2, 4, 8]])
def test_a_campaign_takes_twelve_queries_however_many_cells(
    get, clients, django_assert_num_queries
):
    campaign = factories.campaign(
        "one", factors={"version": ["16.14"], "clients": clients}
    )
    factories.finish_all(campaign)

    with django_assert_num_queries(12):
        get("campaigns/one/")


@pytest.fixture
def campaign(project):
    made = factories.campaign("first", project=project)
    return factories.finish_all(made)


@pytest.fixture
def post(client, bearer):
    def sent(body, headers=bearer):
        return client.post(
            "/api/v1/campaigns/first/annotations/",
            body,
            "application/json",
            headers=headers,
        )

    return sent


@pytest.mark.parametrize(
    ("query", "media_type", "name"),
    [
        ("", "text/html; charset=utf-8", "first-en.html"),
        ("?format=md&lang=ja", "application/zip", "first-ja.md.zip"),
        ("?format=rst", "application/zip", "first-en.rst.zip"),
    ],
)
def test_a_report_is_a_file(client, campaign, query, media_type, name):
    answer = client.get(f"/api/v1/campaigns/first/report/{query}")
    assert answer.status_code == 200
    assert answer["Content-Type"] == media_type
    assert answer["Content-Disposition"] == f'attachment; filename="{name}"'


@pytest.mark.parametrize(
    ("query", "status"),
    [("?lang=fr", 400), ("?colour=red", 400), ("?format=docx", 400)],
)
def test_what_a_report_does_not_know_is_refused(client, campaign, query, status):
    assert client.get(f"/api/v1/campaigns/first/report/{query}").status_code == status


def test_an_annotation_is_created_and_listed(post, get, campaign):
    levels = campaign.cells.first().levels
    made = post({"text": "A dip.", "levels": levels})
    assert made.status_code == 201, made.content
    (listed,) = get("campaigns/first/annotations/")
    assert listed == made.json()
    assert (listed["kind"], listed["text"], listed["levels"]) == (
        "note",
        "A dip.",
        levels,
    )


def test_of_several_revisions_the_newest_is_annotated(post, campaign):
    first = campaign.cells.first()
    newest = factories.cell(campaign, {"clients": 99})
    type(newest).objects.filter(pk=newest.pk).update(levels=first.levels)
    assert post({"text": "A dip.", "levels": first.levels}).status_code == 201
    assert Annotation.objects.get().cell == newest


def test_a_conclusion_is_of_the_whole_campaign(post, campaign):
    assert post({"text": "18 wins.", "kind": "conclusion"}).json()["levels"] is None
    refused = post(
        {"text": "x", "kind": "conclusion", "levels": campaign.cells.first().levels}
    )
    assert refused.status_code == 422
    assert Annotation.objects.count() == 1


def test_unknown_levels_are_refused(post, campaign):
    answer = post({"text": "x", "levels": {"clients": 99}})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "/levels"


def test_writing_needs_the_scope(post, campaign, make_token):
    reading = {"Authorization": f"Bearer {make_token('read')}"}
    assert post({"text": "x"}, headers=reading).status_code == 403
    assert post({"text": "x"}, headers={}).status_code == 401


def test_a_measurement_says_what_was_measured_under_which_levels(get):
    run = factories.finish(factories.run(repeat=2), tps=1234.5)

    (row,) = get("measurements/")["results"]

    assert row.pop("id")
    assert row == {
        "campaign": run.campaign.slug,
        "run": run.pk,
        "levels": {"version": "16.14", "clients": 1, "repeat": 2},
        "metric": "tps",
        "value": 1234.5,
        "unit": "tps",
        "n": 1,
        "statistic": "single",
        "origin": "executed",
        "source": None,
        "table": None,
        "printed": None,
        "remark": None,
        "place": None,
        "said_by": None,
        "exact": None,
        "conditions": None,
        "recomputed": None,
        "disputed": None,
    }


def test_measurements_are_filtered(get):
    factories.metric("latency", "lower", "ms")
    wanted = factories.campaign("wanted")
    for run in wanted.runs.all():
        factories.finish(run, tps=1, latency=2)
    uploaded = factories.campaign(
        "uploaded", origin="uploaded", factors={"version": ["9.6.24"]}
    )
    factories.finish(uploaded.runs.first(), tps=3)

    def count(**query):
        return len(get("measurements/", **query)["results"])

    assert count() == 37
    assert count(campaign="wanted") == 36
    assert count(campaign="wanted", metric="tps") == 18
    assert count(campaign="wanted", metric="tps", version="16") == 9
    assert count(metric="latency", version="18.4") == 9
    assert count(version="18.5") == 0
    assert count(version="1") == 0
    assert count(version="9.6", origin="uploaded") == 1
    assert count(origin="published") == 0
    assert count(run=str(uploaded.runs.first().pk)) == 1


@pytest.mark.parametrize("version", ["sixteen", "16.", "16%", "latest"])
def test_what_is_no_version_is_refused(get, version):
    (fault,) = get("measurements/", expect=400, version=version)["errors"]

    assert fault["pointer"] == "?version"


@pytest.mark.parametrize("repeats", [1, 8])
def test_the_list_takes_four_queries_however_long(
    get, repeats, django_assert_num_queries
):
    factories.finish_all(factories.campaign(repeats=repeats))

    # The page; its cells, campaigns and printed figures by their keys.
    with django_assert_num_queries(4):
        assert len(get("measurements/")["results"]) == 6 * repeats


def test_a_result_that_is_stored_but_not_yet_finished_is_not_told(get):
    run = factories.finish(factories.run(), tps=1000)
    assert len(get("measurements/")["results"]) == 1
    run.state = "collecting"
    run.save()
    assert get("measurements/")["results"] == []


# Scenarios over the API.


@pytest.fixture
def known(db):
    scenarios.sync()


@pytest.mark.usefixtures("known")
def test_a_scenario_that_runs_says_what_a_draft_may_say(get):
    factories.campaign(repeats=0)

    body = get("scenarios/fixed-point-read/")

    definition = registry.get("fixed-point-read")
    assert (body["runnable"], body["campaigns"], body["writes"]) == (True, 1, False)
    assert [each["name"] for each in body["factors"]] == [
        each.name for each in definition.factors
    ]
    assert {each["name"] for each in body["parameters"]} >= {"scale", "duration"}
    assert body["primary_metric"] in [each["name"] for each in body["metrics"]]
    assert body["source"]
    clients = next(each for each in body["factors"] if each["name"] == "clients")
    assert clients["minimum"] == 1
    assert clients["choices"] == []
    assert clients["default"]
    assert body["quick"]["parameters"].items() <= definition.quick.parameters.items()
    assert body["quick"]["parameters"]["duration"] < 60


@pytest.mark.usefixtures("known")
def test_a_factor_without_numbers_has_choices(get):
    factors = get("scenarios/page-checksums/")["factors"]

    checksums = next(each for each in factors if each["choices"])
    assert (checksums["minimum"], checksums["maximum"]) == (None, None)
    assert set(checksums["default"]) <= set(checksums["choices"])


@pytest.mark.usefixtures("known")
def test_what_is_data_only_has_neither_factors_nor_metrics(get):
    factories.campaign(scenario=factories.scenario("tpcb-like"), repeats=0)

    body = get("scenarios/tpcb-like/")

    assert (body["runnable"], body["campaigns"], body["source"]) == (False, 1, None)
    assert body["factors"] == body["parameters"] == body["metrics"] == []


@pytest.mark.usefixtures("known")
def test_scenarios_are_filtered(get):
    runnable = {row["slug"] for row in get("scenarios/", runnable="true")["results"]}

    assert runnable == {each.slug for each in registry.runnable()}
    others = get("scenarios/", runnable="false")["results"]
    assert others
    assert runnable.isdisjoint(row["slug"] for row in others)


@pytest.mark.usefixtures("known")
def test_what_only_a_private_project_has_made_is_its_own(get, client, make_token):
    project = projects.create(slug="secret", is_public=False)
    factories.campaign(
        "c", scenario=factories.scenario("ours"), project=project, repeats=0
    )
    factories.campaign("d", project=project, repeats=0)

    rows = {row["slug"]: row["campaigns"] for row in get("scenarios/")["results"]}

    assert "ours" not in rows
    assert rows["fixed-point-read"] == 0
    get("scenarios/ours/", expect=404)
    token = {"Authorization": f"Bearer {make_token('read', of=project)}"}
    assert client.get("/api/v1/scenarios/ours/", headers=token).json()["campaigns"] == 1


@pytest.mark.usefixtures("known")
def test_an_unknown_scenario_is_not_found(get):
    get("scenarios/none/", expect=404)


@pytest.mark.usefixtures("known")
def test_the_list_takes_two_queries(get, django_assert_num_queries):
    with django_assert_num_queries(2):
        assert len(get("scenarios/", page_size=1000)["results"]) > 10


# Trials of own scripts over the API: faults at once, or what a server says of them.


GOOD = {
    "name": "insert",
    "text": "\\set aid random(1, 10)\nSELECT :aid;\n",
    "weight": 3,
}


@pytest.fixture
def trial(db):
    scenarios.sync()
    factories.server("db1", versions=["18.4"])
    return {"server": "db1", "scripts": [GOOD], "variables": {"most": "7"}}


def try_out(client, trial):
    return client.post("/api/v1/trials/", trial, content_type="application/json")


def test_what_the_server_says_comes_later_and_nothing_is_stored(
    client, trial, log_in_as, monkeypatch
):
    log_in_as("operator")
    tried = []

    def said(**given):
        tried.append(given["content"])
        return [Fault("/scripts/0", "sql_error", "Line 2: no such table")]

    monkeypatch.setattr(trials, "tried", said)
    asked = try_out(client, trial)
    assert (asked.status_code, asked.json()["state"]) == (202, "waiting")
    assert asked.headers["Location"] == asked.json()["url"]
    carry_out()
    done = client.get(asked.json()["url"]).json()
    assert (done["state"], done["problem"]) == ("done", None)
    assert done["answer"] == {"faults": ["insert: Line 2: no such table"]}
    (content,) = tried
    assert (content.scripts[0].weight, content.variables) == (3, {"most": "7"})
    assert not Workload.objects.exists()
    address = asked.json()["url"].replace("/trials/", "/preflight/")
    assert client.get(address).status_code == 404


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"scripts": [GOOD | {"text": "SELECT :nothing;"}]}, "/scripts/0"),
        ({"scripts": [GOOD | {"weight": 0}]}, "/scripts/0"),
        ({"scripts": [GOOD | {"text": "\\shell ls\nSELECT 1;"}]}, "/scripts/0"),
        ({"scripts": []}, "/scripts"),
        ({"init_sql": "\\! ls"}, "/init_sql"),
        ({"server": "nowhere"}, "/server"),
        ({"script": "x"}, "/script"),
    ],
)
def test_what_needs_no_server_is_refused_at_once(
    client, trial, log_in_as, changed, pointer
):
    log_in_as("operator")
    answer = try_out(client, trial | changed)
    assert answer.status_code == 400
    pointers = [each["pointer"] for each in answer.json()["errors"]]
    assert any(each.startswith(pointer) for each in pointers), answer.json()


def test_others_neither_try_nor_read(client, trial, log_in_as, django_user_model):
    assert try_out(client, trial).status_code == 401
    log_in_as("operator")
    address = try_out(client, trial).json()["url"]
    client.force_login(django_user_model.objects.create_superuser("jiro"))
    assert client.get(address).status_code == 404


def test_who_may_only_look_tries_nothing(client, trial, log_in_as):
    log_in_as("viewer")
    assert try_out(client, trial).status_code == 403
