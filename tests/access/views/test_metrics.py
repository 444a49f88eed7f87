"""Metrics of uploads belong to a project: others neither wait for them nor learn of them."""

from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client

from runs.access.services import projects, tokens
from runs.campaigns.services import metric_corrections
from runs.models import AuditEntry, Metric, SealRequest
from runs.seals.services import seals
from runs.shared.errors import ServiceError
from runs.workloads.services import scenarios
from tests import factories
from tests.api import upload_bodies

pytestmark = pytest.mark.django_db


@pytest.fixture
def upload(db):
    """Upload a value of a metric into a project, in a campaign of its own."""

    def sent(slug, value=100.0, expect=201, *, name="qps_of_everyone", **said):
        project = projects.Project.objects.filter(slug=slug).first() or projects.create(
            slug=slug, is_public=False
        )
        token = tokens.create(
            name=slug, scopes=["read", "upload"], project=project
        ).text
        body = upload_bodies.run(
            campaign=f"of-{slug}",
            measurements=[{"metric": name, "value": value, **said}],
        )
        header = {"Authorization": f"Bearer {token}"}
        client = Client(headers=header)
        answer = client.post("/api/v1/uploads/", body, "application/json")
        assert answer.status_code == expect, answer.content
        return client, answer

    return sent


LOWER = {"unit": "ms", "direction": "lower"}
HIGHER = {"unit": "qps", "direction": "higher"}


def test_projects_name_the_same_metric_differently(upload):
    upload("beta", **LOWER)
    upload("gamma", **HIGHER)
    upload("beta")
    upload("beta", expect=422, **HIGHER)

    found = Metric.objects.filter(name="qps_of_everyone").values_list(
        "project__slug", "unit", "direction"
    )
    assert set(found) == {("beta", "ms", "lower"), ("gamma", "qps", "higher")}


def test_a_name_that_others_use_is_new(upload):
    _client, absent = upload("gamma", expect=422, name="of_nobody")
    upload("beta", name="of_beta", **LOWER)
    _client, private = upload("gamma", expect=422, name="of_beta")
    assert private.content == absent.content.replace(b"of_nobody", b"of_beta")
    upload("gamma", name="Of_beta", **LOWER)  # no metric_case either


def test_no_question_tells_of_a_metric_of_others(upload):
    upload("beta", **LOWER)
    client, _answer = upload("gamma", name="other", **HIGHER)
    told = [
        client.get(f"/api/v1/{path}&metric={name}")
        .content.decode()
        .replace(name, "NAME")
        for path in ("compare/?campaign=of-gamma", "history/?campaign=of-gamma")
        for name in ("qps_of_everyone", "absent")
    ]
    assert told[0] == told[1]
    assert told[2] == told[3]
    assert "unknown_metric" in told[0]


def test_what_benchlab_names_is_the_same_for_all(upload):
    scenarios.sync()
    for name, wrong in (("tps", LOWER), ("iops", LOWER), ("tpmc", LOWER)):
        _client, answer = upload("beta", expect=422, name=name, **wrong)
        assert "metric_conflict" in answer.content.decode()
        upload("beta", name=name)
    assert not Metric.objects.exclude(project=None).exists()


def test_projects_that_agree_are_compared_and_others_are_not(upload, admin_client):
    for slug, value, said in (
        ("beta", 100.0, HIGHER),
        ("gamma", 300.0, HIGHER),
        ("delta", 7.0, LOWER),
    ):
        for _repeat in range(3):
            upload(slug, value, **said)
    agreeing = admin_client.get(
        "/api/v1/compare/?base=campaign:of-beta--beta&head=campaign:of-gamma--gamma&metric=qps_of_everyone"
    ).json()
    (row,) = agreeing["rows"]
    assert (
        row["metric"],
        row["base"]["median"],
        row["head"]["median"],
        row["verdict"],
    ) == (
        "qps_of_everyone",
        100.0,
        300.0,
        "faster",
    )
    differing = admin_client.get(
        "/api/v1/compare/?base=campaign:of-beta--beta&head=campaign:of-delta--delta&metric=qps_of_everyone"
    ).json()
    assert not [row for row in differing["rows"] if row["base"] and row["head"]]
    page = "/compare/?s=of-beta--beta&s=of-{0}--{0}&metric=qps_of_everyone"
    assert "300" in admin_client.get(page.format("gamma")).content.decode()
    assert (
        "another unit or direction"
        in admin_client.get(page.format("delta")).content.decode()
    )


def test_a_maintainer_corrects_a_metric_of_the_project(upload, django_user_model):
    upload("beta", **LOWER)
    upload("gamma", **LOWER)
    user = django_user_model.objects.create_user("maintainer")
    projects.Project.objects.get(slug="beta").memberships.create(
        user=user, role="maintainer"
    )
    client = Client()
    client.force_login(user)
    seals.seal()

    page = client.get("/projects/beta/metrics/")
    assert "qps_of_everyone" in page.content.decode()
    path = "/projects/beta/metrics/qps_of_everyone/"
    assert client.post(path, {**HIGHER, "title": "Queries"}).status_code == 302
    assert client.post(path.replace("beta", "gamma"), HIGHER).status_code == 404
    assert client.post("/projects/beta/metrics/tps/", HIGHER).status_code == 404

    found = dict(
        Metric.objects.exclude(project=None).values_list("project__slug", "unit")
    )
    assert found == {"beta": "qps", "gamma": "ms"}
    entry = AuditEntry.objects.get(action="metric_changed")
    assert (entry.project.slug, entry.before["unit"], entry.after["unit"]) == (
        "beta",
        "ms",
        "qps",
    )
    assert [each.kind for each in SealRequest.objects.all()] == ["amended"]


def test_a_shared_metric_is_not_corrected():
    with pytest.raises(ServiceError) as refused:
        metric_corrections.correct(
            metric=factories.metric("tps"), unit="x", direction="lower", title=""
        )
    assert refused.value.code == "shared_metric"


def test_what_was_there_gets_the_project_that_uses_it(upload):
    scenarios.sync()
    upload("beta", name="one", **LOWER)
    upload("beta", name="both", **LOWER)
    upload("gamma", name="both", **LOWER)
    upload("beta", name="tps")
    both = list(Metric.objects.filter(name="both").order_by("pk"))
    with connection.cursor() as cursor:
        for table in ("runs_measurement", "runs_cellsummary"):
            cursor.execute(
                f"UPDATE {table} SET metric_id = %s WHERE metric_id = %s",
                [both[0].pk, both[1].pk],
            )
    both[1].delete()
    Metric.objects.update(project=None)

    with connection.schema_editor() as editor:
        import_module("runs.migrations.0061_metrics_of_projects").own(apps, editor)

    names = ("one", "both", "tps")
    found = Metric.objects.filter(name__in=names).values_list("name", "project__slug")
    assert dict(found) == {"one": "beta", "both": None, "tps": None}
