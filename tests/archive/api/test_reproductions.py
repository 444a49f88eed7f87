"""Every place of the archive, full and quick: the question stays the one that was printed."""

import pytest

from runs.archive.selectors.reproduction import printed, reproduction, scenario_of
from runs.archive.selectors.side_by_side import side_by_side
from runs.models import Campaign, Environment, HardwareProfile
from runs.scenarios.definition import Place
from tests import factories
from tests.archive.api.test_sources import places

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("whole_archive")]


def designs(server, *, is_quick):
    for campaign in places():
        found = reproduction(campaign, [server], is_quick=is_quick)
        if found is not None:
            yield (
                campaign,
                found.choice.scenario.places.get(campaign.slug, Place()),
                found,
            )


def as_texts(levels):
    return {str(each) for each in levels}


@pytest.mark.parametrize("is_quick", [False, True])
def test_each_factor_of_each_place_keeps_levels_that_are_printed(server, is_quick):
    faults, seen = [], 0
    for campaign, place, found in designs(server, is_quick=is_quick):
        known = printed.levels(campaign)
        for factor in found.choice.scenario.factors:
            told = printed.list_levels(campaign, place, factor.name, known)
            wanted = place.levels.get(factor.name, told)
            accepted = as_texts(each for each in wanted if factor.accepts(each))
            chosen = as_texts(found.levels[factor.name])
            seen += bool(accepted)
            # The full form has as many clients a core as the print.
            is_scaled = factor.name == "clients" and not is_quick
            # One printed scale is a size of the data, as a parameter of that name is.
            is_scaled |= factor.name == "scale" and len(accepted) == 1
            if accepted and not (chosen & accepted) and not is_scaled:
                faults.append(
                    (campaign.slug, factor.name, sorted(accepted), sorted(chosen))
                )
            # The machine has fewer cores, and less memory: its own size stands for a larger one.
            is_scaled |= factor.name in {"cores", "shared_buffers"}
            if accepted and not chosen <= accepted and not is_scaled:
                faults.append(
                    (campaign.slug, factor.name, "replaced", sorted(chosen - accepted))
                )
    assert not faults, "\n".join(map(str, faults))
    assert seen > 100


@pytest.mark.parametrize(
    ("slug", "factor", "levels"),
    [
        # 9.5 has no parallel query; the print has it without, and its successors with 2 workers.
        ("wg1-2017-6-8", "workers", [0, 2]),
        # 38GB do not fit: the largest that does.
        ("wg1-2017-windows-shared-buffers", "shared_buffers", ["64MB", "1GB"]),
    ],
)
def test_a_factor_keeps_two_levels_although_one_cannot_run_everywhere(
    server, slug, factor, levels
):
    factories.installation(server, "9.5.25")
    found = reproduction(Campaign.objects.get(slug=slug), [server], is_quick=True)
    assert found.levels[factor] == levels


def test_a_quick_form_has_the_first_and_the_last_level_of_what_can_run(server):
    faults = []
    full = {
        campaign.slug: found
        for campaign, _place, found in designs(server, is_quick=False)
    }
    for campaign, place, found in designs(server, is_quick=True):
        known = printed.levels(campaign)
        alone = (place.quick or found.choice.scenario.quick).on_one_machine
        for factor in found.choice.scenario.factors:
            told = printed.list_levels(campaign, place, factor.name, known)
            is_size_of_data = factor.name == "scale" and len(told) == 1
            if not told or factor.name in alone or is_size_of_data:
                continue
            every = full[campaign.slug].levels[factor.name]
            if factor.name == "clients":
                most = found.choice.most_clients
                every = factor.ordered(
                    [each for each in told if factor.accepts(each) and each <= most]
                )
            chosen = found.levels[factor.name]
            if every and (chosen[0], chosen[-1]) != (every[0], every[-1]):
                faults.append((campaign.slug, factor.name, every, chosen))
    assert not faults, "\n".join(map(str, faults))


def test_rows_of_each_printed_table_meet_rows_of_ours(server):
    """By the factors of the table's own columns: a row of ours for at least one that is printed."""
    faults = []
    for campaign, _place, found in designs(server, is_quick=True):
        heads = [
            each["factor"]
            for each in campaign.published.columns
            if each.get("factor") not in (None, "metric", "version")
        ]
        rows = campaign.cells.values_list("levels", flat=True)
        heads = [name for name in heads if name in found.levels]
        if not heads or not rows:
            continue
        met = [
            levels
            for levels in rows
            if all(
                name not in levels or str(levels[name]) in as_texts(found.levels[name])
                for name in heads
            )
        ]
        if not met:
            faults.append(
                (campaign.slug, heads, {name: found.levels[name] for name in heads})
            )
    assert not faults, "\n".join(map(str, faults))


def test_the_headline_is_the_metric_that_the_place_prints_first(server):
    faults = []
    for campaign, _place, found in designs(server, is_quick=True):
        known = {each.name for each in found.choice.scenario.metrics}
        heads = [each.get("metric") for each in campaign.published.columns]
        first = next((name for name in heads if name in known), None)
        headline = found.choice.scenario.headline(campaign.slug)
        if first and first != headline:
            faults.append((campaign.slug, first, headline))
        if headline not in known:
            faults.append((campaign.slug, headline))
    assert not faults, "\n".join(map(str, faults))


def test_the_quick_form_of_reads_reads(server):
    for slug, wanted in (
        ("wg1-2017-windows-linux-read", "read"),
        ("wg1-2017-windows-linux-update", "update"),
        ("wg1-2017-windows-shared-buffers", "read"),
        ("wg1-2017-windows-wal-sync-method", "update"),
    ):
        campaign = Campaign.objects.get(slug=slug)
        for is_quick in (False, True):
            found = reproduction(campaign, [server], is_quick=is_quick)
            assert found.levels["operation"] == [wanted], slug
            assert "operation" not in {each.code for each in found.changes}


def test_a_configuration_that_is_too_large_names_the_rule(server, asked):
    HardwareProfile.objects.update(memory_bytes=8 * 2**30)
    reasons = {
        each["code"]: each["reason"]
        for each in asked("wg1-2017-6-10").json()["changes"]
    }
    assert "more than 40 % of 8 GiB memory" in reasons["configuration"]


def test_a_method_that_linux_does_not_have_is_left_out_and_said(server, asked):
    Environment.objects.update(kernel="Linux 6.1.0")
    answer = asked("wg1-2017-5-3", "true").json()
    assert "fsync_writethrough" not in answer["campaign"]["levels"]["wal_sync_method"]
    reasons = {each["code"]: each["reason"] for each in answer["changes"]}
    assert reasons["wal_sync_method"] == "Linux does not have that method"


def test_what_nobody_knows_of_a_print_is_said_to_be_unknown(server, asked):
    for quick in ("true", "false"):
        changes = {
            each["code"]: each
            for each in asked("wg1-2021-update", quick).json()["changes"]
        }
        assert changes["clients"]["printed"] == (
            "192, 288, 432 (ten numbers of clients were measured; the others are not printed)"
        )


def test_every_scenario_of_a_place_is_found(server):
    found = [campaign for campaign in places() if scenario_of(campaign)]
    why_not = [
        campaign for campaign in places() if campaign.published.reproduce.get("why_not")
    ]
    assert len(places()) == len(found) + len(why_not)
    assert len(found) > 75


@pytest.mark.parametrize("is_quick", [False, True])
def test_one_printed_scale_becomes_one_that_fits(server, is_quick):
    campaign = Campaign.objects.get(slug="vonng-2022-metal")
    server.hardware = factories.hardware("small")
    server.hardware.memory_bytes = 4 * 10**9

    found = reproduction(campaign, [server], is_quick=is_quick)

    (scale,) = found.levels["scale"]
    assert scale == (10 if is_quick else 62)
    assert found.keeps_question


def test_a_design_has_no_more_clients_than_its_configuration_has_connections(
    server, post
):
    campaign = Campaign.objects.get(slug="vonng-2022-metal")
    server.hardware = factories.hardware("small")
    server.hardware.memory_bytes = 4 * 10**9

    found = reproduction(campaign, [server], is_quick=True)

    # The print's own configuration has 800, and too large buffers.
    assert found.levels["clients"] == [1, 384]
    assert found.keeps_question
    assert post(found.body).status_code == 201


def test_a_printed_figure_is_met_at_another_size_of_the_data(server, post):
    published = Campaign.objects.get(slug="vonng-2022-metal")
    found = reproduction(published, [server], is_quick=True)
    campaign = Campaign.objects.get(slug=post(found.body).json()["slug"])
    for run in campaign.runs.select_related("cell"):
        factories.finish(run, tps=5.0)

    met = side_by_side(campaign)

    assert [line.printed for line in met.lines] == ["2947", "66557", "21583", "646750"]
    assert "Scale factor" in {change.name for change in met.far_apart}


def test_threads_of_a_print_are_no_cores(server):
    campaign = Campaign.objects.get(slug="vonng-2022-metal")

    found = reproduction(campaign, [server], is_quick=True)

    (hardware,) = (each for each in found.changes if each.code == "hardware")
    assert hardware.printed_text == "96 threads, 192 GB"


def test_a_factor_that_the_scenario_does_not_vary_is_said_with_its_reason(server):
    campaign = Campaign.objects.get(slug="postgresbench-2026-standbys")

    found = reproduction(campaign, [server], is_quick=True)

    (change,) = (each for each in found.changes if each.code == "vcpus")
    assert (change.name, change.printed_text, change.chosen_text) == (
        "vCPU",
        "4, 16",
        "–",
    )
    assert change.reason == "what the scenario does not vary"
