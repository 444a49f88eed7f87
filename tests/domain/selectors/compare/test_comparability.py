"""Stored conditions are judged alike by every page and program, whatever rows they are in."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import QueryDict

from runs.models import Environment, HardwareProfile, Run, SettingsSnapshot
from runs.selectors.archive import version_line
from runs.selectors.compare import (
    comparability,
    comparisons,
    verdicts,
)
from runs.selectors.compare import (
    head_and_base as sides,
)
from runs.selectors.compare import (
    state as compare_state,
)
from runs.selectors.compare.cells import compared_cells
from runs.selectors.compare.ratios import ratios
from tests import factories

pytestmark = pytest.mark.django_db

FACTS = {"governor": "performance", "tools": {"sysstat": "12.6"}, "limits": {"open_files": 1024}}
LINUX = {"os_name": "Debian GNU/Linux 13 (trixie)", "kernel": "Linux 6.12.41"}
XEON = {"name": "rack", "cpu_model": "Xeon", "cores": 8}


@pytest.fixture
def campaign():
    made = factories.campaign("c", factors={"version": ["16.14", "18.4"], "clients": [2]})
    environment = Environment.objects.create(fingerprint="a", **LINUX, facts=FACTS)
    hardware = HardwareProfile.objects.create(fingerprint="a", **XEON, facts={"numa_nodes": 1})
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
    return comparability.of_cells(cells).judgement(*cells)


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
    more = {"scenario": factories.scenario("duet"), "factors": {"version": ["16.14", "18.4"]}}
    one, other = (
        factories.campaign(name, **more).cells.order_by("ordinal").values_list("pk", flat=True)
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
        "gate": verdicts.between(*both, verdicts.Asked()).rows[0].comparison,
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
    for cell, flags in zip(campaign.cells.order_by("ordinal"), ("-g -O0", "-g -O2"), strict=True):
        cell.installation = factories.installation(server, cell.version, cflags=flags)
        cell.save()

    found = judged(list(campaign.cells.order_by("ordinal").values_list("pk", flat=True)))

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
def test_the_conditions_of_any_number_of_cells_take_two_queries(clients, django_assert_num_queries):
    made = factories.campaign("many", factors={"version": ["16.14", "18.4"], "clients": clients})
    cells = list(made.cells.values_list("pk", flat=True))

    with django_assert_num_queries(2):
        comparability.of_cells(cells)
