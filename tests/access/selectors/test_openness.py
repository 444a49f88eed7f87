"""Rows say whether everybody may see them: always as their project says, whatever changes."""

import pytest
from django.contrib.auth.models import User
from django.db import connection

from runs.access.selectors.projects import NOBODY, newest, visible
from runs.models import Campaign, Change, Measurement, Metric, Project, Run
from runs.queue.selectors.runs import latest
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def closed():
    return Project.objects.create(slug="closed", name="closed", is_public=False)


def finished(slug, project=None):
    campaign = factories.campaign(slug)
    campaign.project = project
    campaign.save()
    factories.finish_all(campaign)
    return campaign


def changed(campaign):
    run = campaign.runs.first()
    metric = Metric.objects.get(name="tps", project=None)
    return Change.objects.create(
        cell=run.cell,
        run=run,
        metric=metric,
        kind="step",
        ratio=0.9,
        before=1.0,
        after=0.9,
    )


def assert_open(campaign, is_open):
    assert Campaign.objects.get(pk=campaign.pk).is_public == is_open
    for model in (Run, Change):
        rows = model.objects.filter(campaign=campaign)
        said = set(rows.values_list("is_public", "private_project"))
        assert said == {(is_open, None if is_open else campaign.project_id)}
        seen = visible(model.objects.filter(campaign=campaign), to=NOBODY)
        assert seen.exists() == is_open


def test_a_run_and_a_change_have_it_from_the_project_and_follow_it(closed):
    campaign = finished("a", closed)
    changed(campaign)
    assert_open(campaign, is_open=False)
    Project.objects.filter(pk=closed.pk).update(is_public=True)
    assert_open(campaign, is_open=True)
    Project.objects.filter(pk=closed.pk).update(is_public=False)
    assert_open(campaign, is_open=False)
    Campaign.objects.filter(pk=campaign.pk).update(project=None)
    assert_open(campaign, is_open=True)


def test_a_private_row_says_whose_it_is_and_a_member_sees_it_among_public_ones(closed):
    other = Project.objects.create(slug="other", name="other", is_public=False)
    shown = [finished("a"), finished("b", closed)]
    hidden = finished("c", other)
    member = User.objects.create(username="member")
    closed.members.add(member)

    def seen(model):
        return list(newest(model.objects.order_by("-pk"), to=member, number=100))

    assert seen(Campaign) == shown[::-1]
    assert {run.campaign for run in seen(Run)} == set(shown)
    figures = Measurement.objects.order_by("-run_id", "-pk")
    of_shown = [each for each in figures if each.run.campaign in shown]
    for number in (7, 100):  # the private ones come first
        assert list(newest(figures, to=member, number=number)) == of_shown[:number]
    Campaign.objects.filter(pk=shown[1].pk).update(project=other)
    Campaign.objects.filter(pk=hidden.pk).update(project=closed)
    assert seen(Campaign) == [hidden, shown[0]]
    assert {run.campaign for run in seen(Run)} == {hidden, shown[0]}


def test_what_a_row_says_alone_opens_nothing(closed):
    campaign = finished("a", closed)
    Run.objects.update(is_public=True)
    assert not visible(campaign.runs.all(), to=NOBODY).exists()


def buffers(rows):
    query, values = rows.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query}", values)
        ((plan,),) = cursor.fetchall()
    node = plan[0]["Plan"]
    return node["Shared Hit Blocks"] + node["Shared Read Blocks"]


def test_newer_runs_of_private_projects_cost_a_public_list_nothing(closed):
    finished("public")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    before = (
        buffers(latest(5)),
        buffers(visible(Run.objects.order_by("-pk"), to=NOBODY)[:5]),
    )
    hidden = finished("hidden", closed)
    run = hidden.runs.filter(state="finished").first()
    for start in range(1000, 4000, 1000):
        Run.objects.bulk_create(
            Run(
                campaign=hidden,
                cell=run.cell,
                repeat=start + each,
                position=1,
                state="finished",
                finished_at=run.finished_at,
            )
            for each in range(1000)
        )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    after = (
        buffers(latest(5)),
        buffers(visible(Run.objects.order_by("-pk"), to=NOBODY)[:5]),
    )
    assert after[0] <= before[0] + 20
    assert after[1] <= before[1] + 20
