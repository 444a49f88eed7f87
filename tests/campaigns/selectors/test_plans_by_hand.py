"""The plan of a campaign that another machine repeats."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.campaigns.selectors.plans_by_hand import plan_by_hand
from runs.campaigns.services import campaigns
from runs.models import Run
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db


def queued(versions, clients, *, repeats=1):
    scenarios.sync()
    server = factories.server("lab")
    for version in versions:
        factories.installation(
            server, version, has_psql=True, pgbench_version_num=180004
        )
    levels = {"clients": list(clients)}
    return campaigns.create(
        draft=factories.draft(server, levels=levels, repeats=repeats)
    )


@pytest.fixture
def campaign():
    return queued(["16.14", "18.4"], [1, 8], repeats=3)


def change(run, **fields):
    Run.objects.filter(pk=run.pk).update(plan=run.plan | fields)


def test_the_order_is_that_of_the_queue_and_each_cell_is_told_once(campaign):
    found = plan_by_hand(campaign)
    order = list(campaign.runs.order_by("position").values_list("cell_id", "repeat"))
    assert [(each["cell"], each["round"]) for each in found["order"]] == order
    assert len(found["order"]) == 12
    first_of_each = list(dict.fromkeys(cell for cell, _repeat in order))
    assert [each["cell"] for each in found["cells"]] == first_of_each
    of_cells = {
        cell.pk: (cell.version, cell.levels["clients"]) for cell in campaign.cells.all()
    }
    told = {
        each["cell"]: (each["version"], each["levels"]["clients"])
        for each in found["cells"]
    }
    assert told == of_cells


def test_a_cell_has_the_settings_of_its_last_run(campaign):
    cell = campaign.cells.first()
    *others, last = cell.runs.order_by("position")
    for run in others:
        change(run, settings={"work_mem": "1MB"})
    change(last, settings={"work_mem": "2MB"})
    (told,) = [
        each for each in plan_by_hand(campaign)["cells"] if each["cell"] == cell.pk
    ]
    assert told["settings"] == {"work_mem": "2MB"}


def test_runs_without_a_plan_are_left_out(campaign):
    cell = campaign.cells.first()
    cell.runs.update(plan=None)
    found = plan_by_hand(campaign)
    assert len(found["order"]) == 9
    assert cell.pk not in [each["cell"] for each in found["cells"]]


@pytest.mark.parametrize("changed", [{"cores": 2}, {"of_a_later_version": True}])
def test_what_no_other_machine_can_repeat_has_no_plan(campaign, changed):
    change(campaign.runs.order_by("position").last(), **changed)
    assert plan_by_hand(campaign) is None


def test_a_campaign_without_plans_has_none(campaign):
    campaign.runs.update(plan=None)
    assert plan_by_hand(campaign) is None


@pytest.mark.parametrize("number", [1, 4])
def test_two_queries_however_many_cells(number, django_assert_num_queries):
    campaign = queued(["18.4"], range(1, number + 1))
    with django_assert_num_queries(2):
        assert len(plan_by_hand(campaign)["cells"]) == number


@pytest.mark.parametrize("action", ["plan", "annotations"])
def test_the_api_reads_no_cells_and_summaries_of_the_campaign(campaign, action, client):
    factories.finish_all(campaign)
    with CaptureQueriesContext(connection) as asked:
        assert (
            client.get(f"/api/v1/campaigns/{campaign.slug}/{action}/").status_code
            == 200
        )
    assert [each["sql"] for each in asked if "runs_cellsummary" in each["sql"]] == []
