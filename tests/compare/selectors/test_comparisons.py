"""The comparison of series: rows, verdicts, all against all, and what prevents it."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import QueryDict

from runs.archive.selectors import version_line
from runs.compare.selectors.address import head_and_base as sides
from runs.compare.selectors.address import state as compare_state
from runs.compare.selectors.describe import summary
from runs.compare.selectors.judge import comparisons, gate
from runs.compare.selectors.judge.cells import compared_cells
from runs.compare.selectors.judge.comparisons import compared
from runs.compare.selectors.judge.ratios import ratios
from runs.compare.selectors.load import comparability
from runs.models import Environment, HardwareProfile, Run, SettingsSnapshot, Topology
from tests import factories

pytestmark = pytest.mark.django_db


def compare(query):
    state, faults = compare_state.read(QueryDict(query))
    assert faults == []
    return compared(state, reader=AnonymousUser())


def finished(slug="c", gain=None, repeats=3, on=None, under=None, **factors):
    campaign = factories.campaign(slug, factors=factors or None, repeats=repeats)
    campaign.runs.update(hardware=on, environment=under)
    return factories.finish_all(campaign, gain=gain)


def verdicts_on(page):
    return [row.comparison.verdict for row in page.rows]


def test_every_series_is_compared_with_the_first_at_each_level():
    finished(gain={"18.4": 1.1})

    page = compare("s=c")

    assert page.labels == ("PostgreSQL 16.14", "PostgreSQL 18.4")
    assert [(row.head_label, row.base_label, row.x) for row in page.rows] == [
        ("PostgreSQL 18.4", "PostgreSQL 16.14", clients) for clients in (1, 2, 4)
    ]
    assert verdicts_on(page) == ["faster"] * 3
    assert page.rows[0].comparison.ratio == pytest.approx(1.1)
    assert page.rows[0].comparison.adjusted_p_value >= page.rows[0].comparison.p_value


def test_another_baseline_turns_the_ratios_round():
    finished(gain={"18.4": 1.1})

    page = compare("s=c&base=c~version%3D18.4")

    assert verdicts_on(page) == ["slower"] * 3
    assert page.rows[0].comparison.ratio == pytest.approx(1 / 1.1)


def test_an_effect_within_the_minimum_asked_for_is_the_same():
    finished(gain={"18.4": 1.1})

    assert verdicts_on(compare("s=c&effect=20")) == ["same"] * 3


def test_the_forest_goes_by_effect_and_shows_only_what_matters_if_asked():
    finished(
        gain={"17.1": 0.5, "18.4": 1.2}, version=["16.14", "17.1", "18.4"], clients=[1]
    )
    finished("same", version=["16.14"], clients=[1])

    page = compare("s=c&s=same&matters=1")

    assert [row.head_label for row in page.forest] == [
        "PostgreSQL 17.1",
        "PostgreSQL 18.4",
    ]
    assert len(page.rows) == 3


def test_other_hardware_is_not_comparable_until_that_is_overridden():
    finished("here", on=factories.hardware("a"), version=["16.14"], clients=[1])
    finished("there", on=factories.hardware("b"), version=["16.14"], clients=[1])

    page = compare("s=here&s=there")
    assert verdicts_on(page) == ["not_comparable"]
    assert page.reasons == ("hardware_differs",)

    page = compare("s=here&s=there&ignore=hardware")
    assert verdicts_on(page) == ["same"]
    assert page.reasons == ()
    assert page.despite == ("hardware_differs", "environment_unknown")


def test_series_of_one_version_are_told_apart_by_their_system_or_machine():
    debian, windows = (
        factories.environment("Debian 13"),
        factories.environment("Windows 2022"),
    )
    finished("a", under=debian, version=["16.14"], clients=[1])
    finished("b", under=windows, version=["16.14"], clients=[1])

    page = compare("s=a&s=b&facet=os&ignore=environment")

    assert page.labels == (
        "PostgreSQL 16.14 · Debian 13",
        "PostgreSQL 16.14 · Windows 2022",
    )
    assert [value for value, _series in page.facets] == ["Debian 13", "Windows 2022"]


def test_facets_by_topology_part_the_series():
    for kind in ("single", "streaming"):
        campaign = finished(kind, version=["16.14"], clients=[1])
        campaign.topology = Topology.objects.create(slug=kind, name=kind, kind=kind)
        campaign.save()

    page = compare("s=single&s=streaming&facet=topology")

    assert [value for value, _series in page.facets] == [
        "single server",
        "streaming replication",
    ]


def test_each_is_compared_with_each_at_its_peak():
    finished(gain={"18.4": 1.1}, version=["16.14", "17.1", "18.4"], clients=[1, 4])

    heat = compare("s=c").heat

    assert {cell.x for row in heat.rows for cell in row if cell} == {4}
    assert [
        [found and found.comparison.verdict for found in row] for row in heat.rows
    ] == [
        [None, "same", "slower"],
        ["same", None, "slower"],
        ["faster", "faster", None],
    ]
    one, other = heat.rows[0][2].comparison, heat.rows[2][0].comparison
    assert one.ratio == pytest.approx(1 / other.ratio)
    assert one.low == pytest.approx(1 / other.high)


def test_a_pair_at_its_peak_has_the_answer_of_its_row():
    finished(gain={"18.4": 1.1}, version=["16.14", "17.1", "18.4"], clients=[1, 4])

    page = compare("s=c")

    (row,) = [row for row in page.rows if (row.head.version, row.x) == ("18.4", 4)]
    assert page.heat.rows[2][0].comparison == row.comparison


def test_the_level_of_a_pair_is_chosen_by_both_together():
    campaign = factories.campaign(
        "c", factors={"version": ["16.14", "18.4"], "clients": [1, 2, 4]}
    )
    levels = {
        ("16.14", 1): 300,
        ("16.14", 2): 290,
        ("16.14", 4): 100,
        ("18.4", 1): 100,
        ("18.4", 2): 290,
        ("18.4", 4): 310,
    }
    for run in campaign.runs.select_related("cell"):
        value = levels[run.cell.version, run.cell.levels["clients"]]
        factories.finish(run, tps=value * (1 + run.position / 1e5))

    assert compare("s=c").heat.rows[1][0].x == 2


def test_each_is_compared_with_each_at_a_level():
    finished(clients=[1, 4], version=["16.14", "18.4"])

    heat = compare("s=c&at=1").heat

    assert (heat.level, heat.rows[1][0].x) == ("1", 1)


def test_for_a_latency_the_least_is_the_peak():
    factories.metric("latency_average", "lower", "ms")
    campaign = factories.campaign(
        "c", factors={"version": ["16.14", "18.4"], "clients": [1, 2]}
    )
    for run in campaign.runs.select_related("cell"):
        factories.finish(run, latency_average=10 * run.cell.levels["clients"])

    assert compare("s=c").heat.rows[1][0].x == 1


def test_settings_and_machines_in_which_series_differ_are_told():
    small, large = factories.hardware("small"), factories.hardware("large")
    large.memory_bytes = 2**35
    large.save()
    finished("a", on=small, version=["16.14"], clients=[1], scale=[10])
    finished("b", on=large, version=["16.14"], clients=[1])
    for slug, buffers in (("a", "16384"), ("b", "32768")):
        settings = {
            "shared_buffers": {"setting": buffers, "unit": "8kB"},
            "jit": {"setting": "on"},
            "port": {"setting": buffers},
            f"only_{slug}": {"setting": "1"},
        }
        snapshot = SettingsSnapshot.objects.create(content_hash=slug, settings=settings)
        Run.objects.filter(campaign__slug=slug).update(settings=snapshot)

    found = {
        (each.kind, each.name): each.values for each in compare("s=a&s=b").differences
    }

    assert found == {
        ("hardware", "name"): ("small", "large"),
        ("hardware", "cpu_model"): ("EPYC small", "EPYC large"),
        ("hardware", "memory_bytes"): (2**33, 2**35),
        ("settings", "shared_buffers"): ("128MB", "256MB"),
    }


def test_laws_of_scalability_are_fitted_when_asked_for():
    finished(version=["16.14"], clients=[1, 2, 4, 8])

    page = compare("s=c&fit=usl")
    (found,) = page.fits

    assert summary.summarise_comparison(page) == [
        f"{found.label}: up to 8 no peak is proven."
    ]
    assert found.fit.gamma == pytest.approx(1000, rel=0.01)
    assert found.fit.r_squared == pytest.approx(1)
    assert compare("s=c").fits == ()


def test_a_state_without_series_is_an_empty_page():
    page = compare("")

    assert (page.rows, page.heat, page.labels) == ((), None, ())


def test_what_was_done_to_the_machines_of_one_side_only_is_a_difference():
    for slug, treatment in (
        ("plain", {}),
        ("cold", {"cold_cache": True, "server_cpus": "0-3"}),
    ):
        campaign = finished(slug)
        campaign.treatment = treatment
        campaign.save()

    found = compare("s=plain&s=cold").differences

    told = {each.name: set(each.values) for each in found if each.kind == "treatment"}
    assert told == {"cold_cache": {"no", "yes"}, "server_cpus": {"no", "0-3"}}


def test_each_level_compares_the_newer_version_with_the_older():
    campaign = factories.finish_all(factories.campaign(), gain={"18.4": 1.1})

    rows = ratios(campaign, "tps")

    assert [row.levels for row in rows] == [
        {"clients": 1},
        {"clients": 2},
        {"clients": 4},
    ]
    assert {(row.base_label, row.head_label) for row in rows} == {("16.14", "18.4")}
    for row in rows:
        assert row.comparison.ratio == pytest.approx(1.1)
        assert row.comparison.low < 1.1 < row.comparison.high
        assert row.comparison.verdict == "faster"
    assert (rows[0].base.median, rows[0].head.median) == pytest.approx((1000, 1100))


def test_the_lowest_version_is_the_baseline_whatever_its_text():
    campaign = factories.campaign(
        factors={"version": ["10.1", "9.6.24"], "clients": [1]}
    )
    factories.finish_all(campaign)

    (row,) = ratios(campaign, "tps")

    assert (row.base_label, row.head_label) == ("9.6.24", "10.1")


def test_a_pair_waits_until_both_sides_have_a_result():
    campaign = factories.campaign(
        factors={"version": ["16.14", "18.4"], "clients": [1]}
    )
    old, new = (
        campaign.runs.filter(cell__version=version) for version in ("16.14", "18.4")
    )
    factories.finish(old[0], tps=100)
    assert ratios(campaign, "tps") == []

    factories.finish(new[0], tps=110)
    (row,) = ratios(campaign, "tps")
    assert row.comparison.verdict == "too_few_runs"
    assert row.comparison.ratio == pytest.approx(1.1)


def test_for_a_latency_less_is_faster():
    factories.metric("latency_average", "lower", "ms")
    campaign = factories.campaign(
        factors={"version": ["16.14", "18.4"], "clients": [1]}
    )
    for run in campaign.runs.all():
        latency = 10 if run.cell.version == "16.14" else 8
        factories.finish(run, latency_average=latency * (1 + run.repeat / 1000))

    (row,) = ratios(campaign, "latency_average")

    assert row.comparison.verdict == "faster"
    assert row.comparison.ratio == pytest.approx(0.8)


def test_two_builds_of_one_version_are_compared_under_their_folders():
    campaign = factories.campaign(
        factors={"version": ["16.14"], "bindir": ["/opt/a", "/opt/b"], "clients": [1]}
    )
    factories.finish_all(campaign)

    (row,) = ratios(campaign, "tps")

    assert (row.base_label, row.head_label) == ("16.14 · /opt/a", "16.14 · /opt/b")
    assert row.levels == {"clients": 1}


def test_a_metric_that_nobody_measured_has_no_rows():
    assert ratios(factories.campaign(), "tpz") == []


@pytest.mark.parametrize("clients", [[1], [1, 2, 4, 8, 16]])
def test_ratios_take_seven_queries_however_many_cells(
    clients, django_assert_num_queries
):
    campaign = factories.campaign(
        factors={"version": ["16.14", "18.4"], "clients": clients}
    )
    factories.finish_all(campaign)

    with django_assert_num_queries(7):
        ratios(campaign, "tps")


def test_levels_that_have_names_are_compared_within_each_version():
    factors = {
        "version": ["16.14", "18.4"],
        "checksums": ["off", "on"],
        "clients": [1, 2],
    }
    campaign = factories.finish_all(factories.campaign(factors=factors))

    rows = ratios(campaign, "tps")

    assert {(row.subject, row.base_label, row.head_label) for row in rows} == {
        ("checksums", "off", "on")
    }
    assert [row.levels for row in rows] == [
        {"version": version, "clients": clients}
        for version in ("16.14", "18.4")
        for clients in (1, 2)
    ]


# Stored conditions are judged alike by every page and program, whatever rows they are in.


FACTS = {
    "governor": "performance",
    "tools": {"sysstat": "12.6"},
    "limits": {"open_files": 1024},
}
LINUX = {"os_name": "Debian GNU/Linux 13 (trixie)", "kernel": "Linux 6.12.41"}
XEON = {"name": "rack", "cpu_model": "Xeon", "cores": 8}


@pytest.fixture
def campaign():
    made = factories.campaign(
        "c", factors={"version": ["16.14", "18.4"], "clients": [2]}
    )
    environment = Environment.objects.create(fingerprint="a", **LINUX, facts=FACTS)
    hardware = HardwareProfile.objects.create(
        fingerprint="a", **XEON, facts={"numa_nodes": 1}
    )
    made.runs.update(environment=environment, hardware=hardware)
    return factories.finish_all(made, gain={"18.4": 1.2})


def change(campaign, **fields):
    """Give the runs of the newer version other conditions, and return both cells."""
    base, head = campaign.cells.order_by("ordinal")
    Run.objects.filter(cell=head).update(**fields)
    return base.pk, head.pk


def snapshot(name, **values):
    rows = {
        key: {"setting": value, "unit": "", "source": "configuration file"}
        for key, value in values.items()
    }
    return SettingsSnapshot.objects.create(content_hash=name, settings=rows)


def judged(cells):
    return comparability.read_comparability(cells).judgement(*cells)


@pytest.mark.parametrize(
    "facts",
    [
        {**FACTS, "tools": {"sysstat": "12.7.5"}},
        {**FACTS, "limits": {"open_files": 65536}},
        {**FACTS, "recorded_since_the_next_release": "yes"},
    ],
    ids=["sysstat", "limits", "new-fact"],
)
def test_an_upgraded_sysstat_and_a_new_fact_leave_cells_comparable(campaign, facts):
    other = Environment.objects.create(fingerprint="b", **LINUX, facts=facts)

    found = judged(change(campaign, environment=other))

    assert (found.reasons, found.despite) == ((), ())


def test_a_new_fact_of_the_hardware_leaves_cells_comparable(campaign):
    facts = {"numa_nodes": 1, "microcode": "0x2b"}
    other = HardwareProfile.objects.create(fingerprint="b", **XEON, facts=facts)

    assert judged(change(campaign, hardware=other)).reasons == ()


def test_duets_are_compared_within_their_campaign_alone():
    more = {
        "scenario": factories.scenario("duet"),
        "factors": {"version": ["16.14", "18.4"]},
    }
    one, other = (
        factories.campaign(name, **more)
        .cells.order_by("ordinal")
        .values_list("pk", flat=True)
        for name in ("one", "other")
    )

    assert judged([one[0], one[1]]).reasons == ()
    assert judged([one[0], other[0]]).reasons == ("workload_differs",)


def verdicts_of_all_doors(campaign):
    """What each of them says of the head against the base."""
    reader = AnonymousUser()
    base, head = campaign.cells.order_by("ordinal")
    asked = [f"campaign:c~version={cell.version}" for cell in (base, head)]
    both = sides.both(*asked, campaign="", reader=reader)
    state, _faults = compare_state.read(QueryDict("s=c"))
    line = version_line.read(version_line.used("fixed-point-read", to=reader)).pairs
    page = comparisons.compared(state, reader=reader)
    found = {
        "ratios": ratios(campaign, "tps")[0].comparison,
        "line": line[0].comparison,
        "compare": page.rows[0].comparison,
        "heat": page.heat.rows[1][0].comparison,
        "gate": gate.compare_sides(*both, gate.Criteria()).rows[0].comparison,
        "cells": compared_cells(base.pk, head.pk, reader=reader).rows[0].comparison,
    }
    return {
        name: (each.verdict, each.reasons, [fact.name for fact in each.differing])
        for name, each in found.items()
    }


def test_all_doors_refuse_what_differs_for_the_same_reason(campaign):
    campaign.runs.update(settings=snapshot("on", fsync="on"))
    change(campaign, settings=snapshot("off", fsync="off"))

    found = verdicts_of_all_doors(campaign)

    said = ("not_comparable", ("settings_differs",), ["fsync"])
    assert found == dict.fromkeys(found, said)


def test_all_doors_compare_what_is_alike(campaign):
    found = verdicts_of_all_doors(campaign)

    assert found == dict.fromkeys(found, ("faster", (), []))


def test_a_build_without_optimisation_is_not_compared(campaign):
    server = factories.server("db1")
    for cell, flags in zip(
        campaign.cells.order_by("ordinal"), ("-g -O0", "-g -O2"), strict=True
    ):
        cell.installation = factories.installation(server, cell.version, cflags=flags)
        cell.save()

    found = judged(
        list(campaign.cells.order_by("ordinal").values_list("pk", flat=True))
    )

    assert found.reasons == ("build_differs",)
    assert [(each.name, each.base, each.head) for each in found.differing] == [
        ("optimisation", ("-O0",), ("-O2",))
    ]


def test_campaigns_of_another_scale_are_not_compared(campaign):
    campaign.parameters = {"scale": 10, "duration": 60}
    campaign.save()
    other = factories.campaign("d", factors={"version": ["16.14"], "clients": [2]})
    other.parameters = {"scale": 100, "duration": 60}
    other.save()

    assert judged((campaign.cells.first().pk, other.cells.first().pk)).reasons == (
        "workload_differs",
    )


@pytest.mark.parametrize("clients", [[2], list(range(1, 9))])
def test_the_conditions_of_any_number_of_cells_take_two_queries(
    clients, django_assert_num_queries
):
    made = factories.campaign(
        "many", factors={"version": ["16.14", "18.4"], "clients": clients}
    )
    cells = list(made.cells.values_list("pk", flat=True))

    with django_assert_num_queries(2):
        comparability.read_comparability(cells)
