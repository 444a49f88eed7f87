"""Configurations and own scripts belong to a project: who reads, copies, uses and changes them."""

from importlib import import_module

import pytest
from django.db import connection
from django.test import Client

from runs.access.services import projects, tokens
from runs.campaigns.services import campaigns
from runs.configurations.services import configurations
from runs.configurations.services.contents import Content
from runs.execution.plan import WorkloadContent
from runs.models import Campaign, CampaignConfiguration, Configuration, Workload
from runs.scenarios import registry
from runs.shared.errors import ServiceError
from runs.tools.pgbench.scripts import GivenScript
from runs.workloads.services import scenarios, workloads
from tests import factories

pytestmark = pytest.mark.django_db
MARKER = "Nobody elses"


@pytest.fixture
def secret():
    return projects.create(slug="secret", is_public=False)


@pytest.fixture
def private(secret):
    """A configuration and a workload of a private project."""
    return make(secret, MARKER)


def make(project, name):
    content = WorkloadContent(scripts=(GivenScript("a", "SELECT 1;", 1),))
    return (
        configurations.create(
            name=name,
            description=name,
            content=Content({"work_mem": "8MB"}),
            project=project,
        ),
        workloads.create(
            name=name, description=name, content=content, project=project
        ).workload,
    )


def person(django_user_model, role, project):
    user = django_user_model.objects.create_user(f"{role}-of-{project.slug}")
    project.memberships.create(user=user, role=role)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def stranger(django_user_model):
    """A maintainer of another private project."""
    return person(
        django_user_model, "maintainer", projects.create(slug="beta", is_public=False)
    )


def written(**changed):
    return {
        "name": "Mine",
        "text": "work_mem = 4MB\n",
        "majors": ["18"],
        "scripts": "",
        "form-TOTAL_FORMS": "1",
        "form-INITIAL_FORMS": "0",
        "form-0-text": "SELECT 2;",
        "store": "1",
        **changed,
    }


def test_what_is_of_a_private_project_is_nowhere_for_others(private, stranger):
    for path in (
        "/configurations/",
        "/configurations/?q=work_mem",
        "/configurations/new/?from=nobody-elses--secret",
        "/configurations/diff/?a=configuration:nobody-elses--secret",
        "/workloads/",
        "/workloads/new/?from=nobody-elses--secret",
        "/api/v1/configurations/",
        "/api/v1/configurations/?setting=work_mem",
    ):
        answer = stranger.get(path)
        assert (answer.status_code, MARKER in answer.content.decode()) == (
            200,
            False,
        ), path


def test_a_campaign_uses_what_its_project_may_see(private, stranger, secret):
    factories.server("db1", versions=["18.4"])
    scenarios.sync()
    page = stranger.get("/campaigns/new/?scenario=pgbench&server=db1").content.decode()
    assert "PostgreSQL configuration" in page
    assert MARKER not in page
    body = {"title": "t", "scenario": "pgbench", "server": "db1", "versions": ["18"]}
    for field, hidden, absent in (
        ("configuration", "nobody-elses--secret", "absent--secret"),
        ("configurations", ["nobody-elses--secret"], ["absent--secret"]),
        (
            "levels",
            {"script": ["nobody-elses--secret@1"]},
            {"script": ["absent--secret@1"]},
        ),
    ):
        answers = [
            stranger.post(
                "/api/v1/campaigns/", {**body, field: value}, "application/json"
            )
            for value in (hidden, absent)
        ]
        told = [
            each.content.decode().replace("nobody-elses", "absent") for each in answers
        ]
        assert answers[0].status_code == 400, told
        assert told[0] == told[1]


def test_no_campaign_elsewhere_shows_what_is_private(private, secret):
    server = factories.server("db1")
    factories.installation(server, "18.4", has_psql=True, pgbench_version_num=180004)
    scenarios.sync()
    lab = projects.create(slug="lab", is_public=True)
    draft = factories.draft(server, configuration=private[0])
    pgbench = registry.get("pgbench")
    levels = {each.name: list(each.default) for each in pgbench.factors}
    scripted = factories.draft(
        server,
        scenario="pgbench",
        levels={**levels, "script": ["nobody-elses--secret@1"]},
        parameters={each.name: each.default for each in pgbench.parameters},
    )
    for each in (draft, scripted):
        with pytest.raises(ServiceError) as refused:
            campaigns.create(draft=each, project=lab)
        assert refused.value.code == "of_other_project"
    assert campaigns.create(draft=draft, project=secret).configuration == private[0]


def test_what_is_public_is_copied_by_all_and_changed_by_its_project(
    stranger, django_user_model
):
    lab = projects.create(slug="lab", is_public=True)
    make(lab, "Theirs")
    own = person(django_user_model, "operator", lab)
    for of, model in (("configurations", Configuration), ("workloads", Workload)):
        edit, new = f"/{of}/theirs/edit/", f"/{of}/new/?from=theirs"
        assert stranger.get(f"/{of}/theirs/").status_code == 200
        assert edit not in stranger.get(f"/{of}/theirs/").content.decode()
        assert "Theirs" in stranger.get(new).content.decode()
        assert stranger.post(edit, written()).status_code == 403
        assert model.objects.get(slug="theirs").name == "Theirs"
        assert edit in own.get(f"/{of}/theirs/").content.decode()
        assert own.post(edit, written(name="Changed")).status_code == 302
        assert model.objects.get(slug="theirs").name == "Changed"
        assert stranger.post(new, written()).status_code == 302
        assert model.objects.get(slug="mine--beta").project.slug == "beta"


def test_what_is_of_the_instance_needs_an_administrator(stranger, admin_client):
    Configuration.objects.update_or_create(slug="ours", defaults={"name": "Ours"})
    factories.workload("ours")
    for of, model in (("configurations", Configuration), ("workloads", Workload)):
        assert stranger.post(f"/{of}/ours/edit/", written()).status_code == 403
        assert admin_client.post(f"/{of}/ours/edit/", written()).status_code == 302
        assert model.objects.get(slug="ours").name == "Mine"


def test_nothing_is_made_in_a_project_of_others(stranger, secret):
    for of, model in (("configurations", Configuration), ("workloads", Workload)):
        assert (
            stranger.post(f"/{of}/new/", written(project="secret")).status_code == 200
        )
        assert not model.objects.exists()


def test_a_slug_does_not_depend_on_what_others_hide(private, client):
    made = tokens.create(name="t", scopes=["queue"], project=projects.default())
    header = {"Authorization": f"Bearer {made.text}"}
    for slug in ("nobody-elses", "absent"):
        body = {"name": "Mine", "slug": slug, "settings": {}}
        answers = [
            client.post(
                "/api/v1/configurations/", body, "application/json", headers=header
            )
            for _time in range(2)
        ]
        assert [answer.status_code for answer in answers] == [201, 422]
        assert answers[0].json()["slug"] == slug
        assert answers[0].json()["project"] == "default"
        assert answers[1].json()["code"] == "slug_taken"


def test_what_was_there_gets_the_project_that_uses_it(secret, django_user_model):
    default, lab = projects.default(), projects.create(slug="lab", is_public=True)
    author = django_user_model.objects.create_user("author")
    secret.memberships.create(user=author, role="operator")
    of = {
        name: factories.configuration(
            name, created_by=author if name == "unused" else None
        )
        for name in ("one", "both", "unused", "nobodys", "built", "varied", "loose")
    }
    Configuration.objects.filter(slug="built").update(origin="built_in")
    factories.campaign("a", configuration=of["one"], project=secret, repeats=0)
    factories.campaign("b", configuration=of["both"], project=secret, repeats=0)
    campaign = factories.campaign("c", configuration=of["both"], project=lab, repeats=0)
    factories.campaign("d", configuration=of["built"], project=secret, repeats=0)
    factories.campaign("e", configuration=of["loose"], repeats=0)
    revision = of["varied"].revisions.create(number=1, content_hash="x")
    CampaignConfiguration.objects.create(
        campaign=campaign, configuration=of["varied"], revision=revision, ordinal=1
    )
    workload = factories.workload("used")
    factories.workload("unused")
    cell = Campaign.objects.get(slug="a").cells.first()
    cell.workload_version = workload.versions.get()
    cell.save()

    module = import_module("runs.migrations.0058_configurations_of_projects")
    with connection.cursor() as cursor:
        cursor.execute(module.CONFIGURATIONS)
        cursor.execute(module.WORKLOADS)

    found = dict(Configuration.objects.values_list("slug", "project__slug"))
    assert found == {
        "one": "secret",
        "both": "default",
        "unused": "secret",
        "nobodys": "default",
        "built": None,
        "varied": "lab",
        "loose": default.slug,
    }
    assert dict(Workload.objects.values_list("slug", "project__slug")) == {
        "used": "secret",
        "unused": "default",
    }
