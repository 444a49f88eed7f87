"""Further repeats: whole rounds, because cells scatter or because somebody asks for them."""

from dataclasses import replace

import pytest
from django.db import transaction

from runs.campaigns.services import campaigns, estimates, repeats
from runs.cells.services import summaries
from runs.execution.plan import RunPlan
from runs.models import Campaign, Lease, Measurement, Run
from runs.queue.services import attempts, leases, transitions
from runs.shared.errors import ServiceError
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db
S = Run.State


@pytest.fixture
def server():
    scenarios.sync()
    made = factories.server("db1")
    factories.installation(made, "18.4", has_psql=True, pgbench_version_num=180004)
    Lease.objects.get_or_create(server=made)
    return made


@pytest.fixture
def draft(server):
    return factories.draft(
        server,
        title="adaptive",
        levels={"clients": [1, 2]},
        repeats=2,
        seed=7,
        wanted_half_width=0.05,
        most_repeats=4,
    )


def work_off(server, measured) -> list[Run]:
    """Finish run after run, each with what `measured` gives it, until nothing waits."""
    done = []
    while claim := leases.claim(server_id=server.pk, holder="worker"):
        run = Run.objects.select_related("cell").get(pk=claim.run_id)
        value = measured(run)
        if value is not None:
            Measurement.objects.create(
                run=run, metric=factories.metric("tps"), value=value
            )
        ends = (
            (S.FAILED,)
            if value is None
            else (S.PREPARING, S.MEASURING, S.COLLECTING, S.FINISHED)
        )
        for state in ends:
            assert transitions.transition(
                run_id=run.pk, to=state, code=state, token=claim.token
            )
        done.append(run)
    return done


def scattering(run):
    """Cells of one client are calm, those of two are not."""
    return (
        1000.0 + run.repeat if run.cell.levels["clients"] == 1 else 1000.0 * run.repeat
    )


def test_one_cell_that_scatters_brings_whole_rounds_and_no_more_than_the_cap(
    server, draft
):
    campaign = campaigns.create(draft=draft)
    work_off(server, scattering)
    made = {
        cell.levels["clients"]: sorted(cell.runs.values_list("repeat", flat=True))
        for cell in campaign.cells.all()
    }
    assert made == {1: [1, 2, 3, 4], 2: [1, 2, 3, 4]}
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.FINISHED


def test_added_runs_are_planned_like_the_others_and_say_why(server, draft):
    campaign = campaigns.create(draft=draft)
    work_off(server, scattering)
    added = campaign.runs.filter(repeat=3).order_by("position").first()
    first = campaign.runs.get(cell=added.cell, repeat=1)
    assert added.position == 5
    planned, before = RunPlan.from_json(added.plan), RunPlan.from_json(first.plan)
    assert planned == replace(before, run_id=added.pk)
    assert "±5.0 % was asked for" in added.events.first().message


def test_a_round_begins_only_when_all_before_it_has_ended(server, draft):
    campaign = campaigns.create(draft=draft)
    order = [run.repeat for run in work_off(server, lambda run: 1000.0 * run.repeat)]
    assert order == sorted(order)
    assert campaign.runs.count() == 8


def test_each_round_is_shuffled_anew_and_the_same_for_the_same_seed(server, draft):
    orders = []
    for _time in range(2):
        many = replace(draft, levels={"clients": list(range(1, 6))}, most_repeats=4)
        campaigns.create(draft=many)
        done = work_off(server, lambda run: 1000.0 * run.repeat)
        clients = [run.cell.levels["clients"] for run in done]
        orders.append([clients[start : start + 5] for start in range(0, 20, 5)])
    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders[0]}) == 4
    assert all(sorted(order) == list(range(1, 6)) for order in orders[0])


def test_a_cell_of_which_no_run_finished_gets_none(server, draft):
    campaign = campaigns.create(draft=draft)
    work_off(server, lambda run: None)
    assert campaign.runs.count() == 4
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.INCOMPLETE


def test_a_cell_whose_last_run_did_not_finish_gets_none_until_that_is_tried_again(
    server, draft
):
    campaign = campaigns.create(draft=draft)
    done = work_off(server, lambda run: 1000.0 * run.repeat if run.repeat < 3 else None)
    assert [run.repeat for run in done] == [1, 1, 2, 2, 3, 3]
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.INCOMPLETE
    campaigns.retry(campaign=campaign)
    again = work_off(server, lambda run: 1000.0 * run.repeat)
    assert sorted(run.repeat for run in again) == [3, 3, 4, 4]


def test_a_cancelled_campaign_gets_none(server, draft):
    campaign = campaigns.create(draft=draft)
    claim = leases.claim(server_id=server.pk, holder="worker")
    transitions.transition(
        run_id=claim.run_id, to=S.FAILED, code="x", token=claim.token
    )
    campaigns.cancel(campaign=campaign)
    assert campaign.runs.count() == 4


def test_repeats_stay_fixed_where_nothing_else_is_asked(server, draft):
    campaign = campaigns.create(draft=replace(draft, wanted_half_width=None))
    work_off(server, lambda run: 1000.0 * run.repeat)
    assert campaign.runs.count() == 4


def test_calm_cells_bring_no_further_round(server, draft):
    campaign = campaigns.create(draft=draft)
    work_off(server, lambda run: 1000.0 + run.repeat)
    assert campaign.runs.count() == 4


def test_rounds_are_added_by_hand_and_the_look_is_remembered(server, draft):
    campaign = campaigns.create(draft=replace(draft, wanted_half_width=None))
    work_off(server, scattering)

    campaign.refresh_from_db()
    assert repeats.add_rounds(campaign=campaign, rounds=2) == 4

    assert (campaign.state, campaign.looks) == (Campaign.State.QUEUED, [2, 4])
    done = work_off(server, scattering)
    assert [run.repeat for run in done] == [3, 3, 4, 4]
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.FINISHED


def test_a_plan_of_another_version_is_told_and_nothing_is_queued(server, draft):
    campaign = campaigns.create(draft=draft)
    work_off(server, lambda run: 1000.0)
    campaign.runs.update(plan={"of_the_future": 1})
    before = campaign.runs.count()
    with pytest.raises(ServiceError) as told, transaction.atomic():
        repeats.add_rounds(campaign=Campaign.objects.get(), rounds=1)
    assert told.value.code == "plan_of_other_version"
    assert campaign.runs.count() == before


@pytest.mark.parametrize("rounds", [0, -1, 99])
def test_rounds_out_of_range_are_refused(server, draft, rounds):
    campaign = campaigns.create(draft=replace(draft, wanted_half_width=None))
    work_off(server, scattering)
    campaign.refresh_from_db()

    with pytest.raises(ServiceError) as refused:
        repeats.add_rounds(campaign=campaign, rounds=rounds)
    assert refused.value.code == "out_of_range"


def test_rounds_are_added_only_when_a_campaign_has_ended(server, draft):
    campaign = campaigns.create(draft=draft)

    with pytest.raises(ServiceError) as refused:
        repeats.add_rounds(campaign=campaign, rounds=1)
    assert refused.value.code == "campaign_not_ended"


def test_the_estimate_tells_the_least_and_the_most(draft):
    draft = replace(draft, remeasures=0)
    found = estimates.estimate(draft)
    assert (found.runs, found.most_runs) == (4, 8)
    assert found.most_seconds > found.seconds
    fixed = estimates.estimate(replace(draft, wanted_half_width=None))
    assert (fixed.most_runs, fixed.most_seconds) == (fixed.runs, fixed.seconds)


@pytest.mark.parametrize(("wanted", "most"), [(None, 12), (0.01, 24)])
def test_the_estimate_counts_that_every_run_may_be_doubtful(draft, wanted, most):
    found = estimates.estimate(replace(draft, wanted_half_width=wanted, remeasures=2))
    assert (found.runs, found.most_runs) == (4, most)
    assert found.most_seconds > found.seconds


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"wanted_half_width": 0.0001}, "wanted_half_width"),
        ({"wanted_half_width": 0.9}, "wanted_half_width"),
        ({"most_repeats": None}, "most_repeats"),
        ({"most_repeats": 2}, "most_repeats"),
        ({"most_repeats": 101}, "most_repeats"),
        (
            {
                "levels": {"clients": list(range(1, 101))},
                "repeats": 1,
                "most_repeats": 101,
            },
            "levels",
        ),
    ],
)
def test_wishes_out_of_range_are_refused_at_their_field(draft, changes, field):
    with pytest.raises(ServiceError):
        campaigns.create(draft=replace(draft, **changes))
    assert field in {
        problem.field
        for problem in estimates.estimate(replace(draft, **changes)).problems
    }


def test_an_a_a_campaign_measures_everything_twice_under_two_labels(draft):
    made = campaigns.create(draft=replace(draft, is_a_a=True, wanted_half_width=None))
    assert made.factors == {"version": ["18.4"], "clients": [1, 2], "side": ["A", "B"]}
    assert [cell.levels["side"] for cell in made.cells.order_by("ordinal")] == [
        "A",
        "B",
    ] * 2
    plans = [RunPlan.from_json(run.plan) for run in made.runs.all()]
    assert len(plans) == estimates.estimate(replace(draft, is_a_a=True)).runs == 8
    assert len({plan.cluster_key for plan in plans}) == 1


def test_a_last_run_that_is_begun_anew_does_not_end_the_campaign(server, draft):
    campaign = campaigns.create(draft=replace(draft, levels={"clients": [2]}))
    first, last = campaign.runs.order_by("pk")
    Measurement.objects.create(run=first, metric=factories.metric("tps"), value=1000.0)
    Run.objects.filter(pk=first.pk).update(state=S.FINISHED)
    summaries.refresh(cell_id=first.cell_id)
    claim = leases.claim(server_id=server.pk, holder="worker")
    again = attempts.start_again(
        run_id=last.pk, token=claim.token, code="target_restarted", message="x"
    )
    assert again
    assert set(campaign.runs.values_list("pk", flat=True)) == {first.pk, last.pk}
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.RUNNING


def test_a_plan_of_another_version_is_told_and_ends_no_campaign_in_an_error(
    draft, server
):
    campaign = campaigns.create(draft=draft)
    Run.objects.filter(campaign=campaign).update(state=S.FINISHED)
    campaign.refresh_from_db()
    for run in campaign.runs.all():
        run.plan = run.plan | {"of_a_later_version": 1}
        run.save(update_fields=["plan"])

    # Each cell is still undecided, as nothing was measured; the campaign ends all the same.
    with transaction.atomic():
        transitions.refresh_campaign(campaign_id=campaign.pk)
    campaign.refresh_from_db()
    assert (campaign.state, campaign.runs.count()) == (Campaign.State.FINISHED, 4)

    wanted = {campaign.runs.order_by("pk").first(): "why"}
    with pytest.raises(ServiceError) as refused, transaction.atomic():
        repeats.remeasure(campaign=campaign, reason_of=wanted)
    assert (refused.value.code, campaign.runs.count()) == ("plan_of_other_version", 4)
