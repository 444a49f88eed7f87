"""Slices: what can be measured in turn, how it is planned, and when more rounds are added."""

import math
from dataclasses import replace

import pytest
from django.db import transaction

from runs.campaigns.services import campaigns, estimates, repeats
from runs.campaigns.services.campaign_limits import MOST_IN_TURN
from runs.campaigns.services.designs import resolve
from runs.compare.selectors.judge.ratios import Tables
from runs.execution.machine.treatment import Treatment
from runs.execution.plan import RunPlan
from runs.models import Campaign, Lease, Run, Series
from runs.scenarios import registry
from runs.shared.errors import ServiceError
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db
GIB = 2**30


@pytest.fixture
def server():
    scenarios.sync()
    server = factories.server("db1")
    for version in ("16.14", "18.4"):
        number = 10000 * int(version[:2]) + int(version[3:])
        factories.installation(
            server, version, has_psql=True, pgbench_version_num=number
        )
    Lease.objects.get_or_create(server=server)
    return server


@pytest.fixture
def draft(server):
    return factories.draft(
        server, parameters={"scale": 1, "duration": 12}, slice_seconds=1, repeats=2
    )


def codes(draft):
    return {problem.code for problem in estimates.estimate(draft).problems}


def test_a_steady_load_is_measured_in_turn(draft):
    assert codes(draft) == set()


def test_a_scenario_that_offers_no_slices_says_so(draft):
    sliced = {scenario.slug for scenario in registry.every() if scenario.offers_slices}

    assert sliced == {
        "fixed-point-read",
        "fixed-point-update",
        "page-checksums",
        "pgbench",
    }
    other = registry.get("long-run-stability")
    parameters = {parameter.name: parameter.default for parameter in other.parameters}
    levels = {factor.name: list(factor.default) for factor in other.factors}
    asked = replace(draft, scenario=other.slug, parameters=parameters, levels=levels)
    assert "no_slices" in codes(asked)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"slice_seconds": 11}, "out_of_range"),
        ({"slice_seconds": 0}, "out_of_range"),
        ({"parameters": {"scale": 1, "duration": 3}}, "out_of_range"),
        ({"slice_seconds": 5}, "out_of_range"),
        ({"parameters": {"scale": 1, "duration": 1000}, "levels": {"clients": [1, 2]}},
         "out_of_range"),
        ({"levels": {"clients": list(range(1, MOST_IN_TURN))}}, "too_many_in_turn"),
        ({"treatment": Treatment(cold_cache=True)}, "slices_untreated"),
        ({"levels": {"clients": [1], "arrangement": ["single"]}}, "slices_on_one_machine"),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_in_turn_is_refused(draft, change, code):
    assert code in codes(replace(draft, **change))


def test_memory_for_one_cluster_only_is_too_little(server, draft):
    """Each has 512 MB of shared buffers."""
    hardware = factories.hardware()
    hardware.memory_bytes = GIB
    hardware.save()
    server.hardware = hardware
    server.save()

    assert "memory_too_small" in codes(draft)
    assert "memory_too_small" not in codes(replace(draft, slice_seconds=None))
    hardware.memory_bytes = 64 * GIB
    assert "memory_too_small" not in codes(draft)


def test_each_run_has_a_cluster_of_its_own_from_a_template(draft):
    campaign = campaigns.create(draft=replace(draft, is_a_a=True))

    plans = [RunPlan.from_json(run.plan) for run in campaign.runs.all()]
    assert {plan.slice_s for plan in plans} == {1}
    assert {plan.cluster_key for plan in plans} == {""}
    # Both sides of an A/A campaign are copies of the same.
    assert len({plan.template_key for plan in plans}) == 2


def test_a_queued_campaign_can_be_asked_for_again(draft):
    campaign = campaigns.create(draft=draft)

    assert type(draft).of_campaign(campaign).slice_seconds == 1
    assert type(draft).from_json(draft.to_json()).slice_seconds == 1


def test_a_design_in_turn_needs_room_for_all_clusters(draft):
    part_of = resolve(draft).parts[0]
    whole = resolve(replace(draft, slice_seconds=None))

    assert resolve(draft).needed_bytes(part_of) > whole.needed_bytes(whole.parts[0])


def measured(campaign, scatter):
    """Finish all runs with slices that scatter so much; the second cell is no faster."""
    for run in campaign.runs.exclude(state=Run.State.FINISHED).select_related("cell"):
        at = [2.0 * number for number in range(12)]
        side = 1 if run.cell.ordinal % 2 else -1
        values = [
            100 * math.exp(side * scatter * (-1) ** number) for number in range(12)
        ]
        for name, row in (("slice_at", at), ("slice_tps", values)):
            Series.objects.create(run=run, name=name, start=1e9, interval=1, values=row)
        Run.objects.filter(pk=run.pk).update(state=Run.State.FINISHED)


@pytest.mark.parametrize(("scatter", "more"), [(0.2, 2), (0.001, 0)])
def test_rounds_of_slices_are_added_until_the_interval_is_narrow(draft, scatter, more):
    asked = replace(draft, wanted_half_width=0.03, most_repeats=4)
    campaign = campaigns.create(draft=asked)
    measured(campaign, scatter)

    with transaction.atomic():
        added = repeats.add_round(campaign=campaign)

    assert added == more
    assert campaign.runs.filter(repeat=3).count() == more
    for run in campaign.runs.filter(repeat=3):
        assert RunPlan.from_json(run.plan).slice_s == 1


def test_no_run_in_turn_is_measured_again_alone(draft):
    campaign = campaigns.create(draft=replace(draft, remeasures=1))
    campaign.runs.update(
        state=Run.State.FINISHED, validity="doubtful", certificate={"is_curable": True}
    )

    with transaction.atomic():
        assert repeats.add_remeasured(campaign=campaign) == 0
    Campaign.objects.update(slice_seconds=None)
    campaign.refresh_from_db()
    with transaction.atomic():
        assert repeats.add_remeasured(campaign=campaign) > 0


def test_what_is_wrong_is_said_with_its_remedy(draft):
    with pytest.raises(ServiceError) as refused:
        campaigns.create(draft=replace(draft, slice_seconds=11))

    assert refused.value.code == "out_of_range"
    assert refused.value.remedy


def test_a_condition_alone_has_nobody_to_take_turns_with(server, draft):
    newest = [server.installations.order_by("version_num").last()]

    assert "slices_alone" in codes(replace(draft, installations=newest))
    assert "slices_alone" not in codes(
        replace(draft, installations=newest, is_a_a=True)
    )


def test_the_estimate_of_slices_has_no_run_that_is_measured_again(draft):
    in_turn, whole = (
        estimates.estimate(replace(draft, slice_seconds=seconds, remeasures=2))
        for seconds in (1, None)
    )

    assert in_turn.most_runs == in_turn.runs
    assert whole.most_runs == 3 * whole.runs


@pytest.mark.parametrize("hours_apart", [0, 1])
def test_runs_that_took_no_turns_are_compared_with_nothing(draft, hours_apart):
    """However many repeats there are: the machine may have drifted in between."""
    campaign = campaigns.create(draft=draft)
    measured(campaign, 0.001)
    for run in campaign.runs.select_related("cell"):
        factories.finish(run, tps=1000 + run.cell.ordinal)
        start = 1e9 + 3600 * hours_apart * run.cell.ordinal
        run.series.filter(name="slice_at").update(start=start)

    (row,) = Tables(campaign, "tps").list_rows()

    reasons = ("no_shared_rounds",) if hours_apart else ()
    assert row.comparison.reasons == reasons
    assert (row.comparison.low is None) == bool(hours_apart)
