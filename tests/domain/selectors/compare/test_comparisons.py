"""The comparison of series: rows, verdicts, all against all, and what prevents it."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import QueryDict

from runs.models import Run, SettingsSnapshot, Topology
from runs.selectors.campaigns import campaigns
from runs.selectors.compare import state as compare_state
from runs.selectors.compare.comparisons import compared
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


def verdicts(page):
    return [row.comparison.verdict for row in page.rows]


def test_every_series_is_compared_with_the_first_at_each_level():
    finished(gain={"18.4": 1.1})

    page = compare("s=c")

    assert page.labels == ("PostgreSQL 16.14", "PostgreSQL 18.4")
    assert [(row.head_label, row.base_label, row.x) for row in page.rows] == [
        ("PostgreSQL 18.4", "PostgreSQL 16.14", clients) for clients in (1, 2, 4)
    ]
    assert verdicts(page) == ["faster"] * 3
    assert page.rows[0].comparison.ratio == pytest.approx(1.1)
    assert page.rows[0].comparison.adjusted_p_value >= page.rows[0].comparison.p_value


def test_another_baseline_turns_the_ratios_round():
    finished(gain={"18.4": 1.1})

    page = compare("s=c&base=c~version%3D18.4")

    assert verdicts(page) == ["slower"] * 3
    assert page.rows[0].comparison.ratio == pytest.approx(1 / 1.1)


def test_an_effect_within_the_minimum_asked_for_is_the_same():
    finished(gain={"18.4": 1.1})

    assert verdicts(compare("s=c&effect=20")) == ["same"] * 3


def test_the_forest_goes_by_effect_and_shows_only_what_matters_if_asked():
    finished(gain={"17.1": 0.5, "18.4": 1.2}, version=["16.14", "17.1", "18.4"], clients=[1])
    finished("same", version=["16.14"], clients=[1])

    page = compare("s=c&s=same&matters=1")

    assert [row.head_label for row in page.forest] == ["PostgreSQL 17.1", "PostgreSQL 18.4"]
    assert len(page.rows) == 3


def test_other_hardware_is_not_comparable_until_that_is_overridden():
    finished("here", on=factories.hardware("a"), version=["16.14"], clients=[1])
    finished("there", on=factories.hardware("b"), version=["16.14"], clients=[1])

    page = compare("s=here&s=there")
    assert verdicts(page) == ["not_comparable"]
    assert page.reasons == ("hardware_differs",)

    page = compare("s=here&s=there&ignore=hardware")
    assert verdicts(page) == ["same"]
    assert page.reasons == ()
    assert page.despite == ("hardware_differs", "environment_unknown")


def test_series_of_one_version_are_told_apart_by_their_system_or_machine():
    debian, windows = factories.environment("Debian 13"), factories.environment("Windows 2022")
    finished("a", under=debian, version=["16.14"], clients=[1])
    finished("b", under=windows, version=["16.14"], clients=[1])

    page = compare("s=a&s=b&facet=os&ignore=environment")

    assert page.labels == ("PostgreSQL 16.14 · Debian 13", "PostgreSQL 16.14 · Windows 2022")
    assert [value for value, _series in page.facets] == ["Debian 13", "Windows 2022"]


def test_facets_by_topology_part_the_series():
    for kind in ("single", "streaming"):
        campaign = finished(kind, version=["16.14"], clients=[1])
        campaign.topology = Topology.objects.create(slug=kind, name=kind, kind=kind)
        campaign.save()

    page = compare("s=single&s=streaming&facet=topology")

    assert [value for value, _series in page.facets] == ["single server", "streaming replication"]


def test_each_is_compared_with_each_at_its_peak():
    finished(gain={"18.4": 1.1}, version=["16.14", "17.1", "18.4"], clients=[1, 4])

    heat = compare("s=c").heat

    assert {cell.x for row in heat.rows for cell in row if cell} == {4}
    assert [[found and found.comparison.verdict for found in row] for row in heat.rows] == [
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
    campaign = factories.campaign("c", factors={"version": ["16.14", "18.4"], "clients": [1, 2, 4]})
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
    campaign = factories.campaign("c", factors={"version": ["16.14", "18.4"], "clients": [1, 2]})
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

    found = {(each.kind, each.name): each.values for each in compare("s=a&s=b").differences}

    assert found == {
        ("hardware", "name"): ("small", "large"),
        ("hardware", "cpu_model"): ("EPYC small", "EPYC large"),
        ("hardware", "memory_bytes"): (2**33, 2**35),
        ("settings", "shared_buffers"): ("128MB", "256MB"),
    }


def test_laws_of_scalability_are_fitted_when_asked_for():
    finished(version=["16.14"], clients=[1, 2, 4, 8])

    (found,) = compare("s=c&fit=usl").fits

    assert found.fit.gamma == pytest.approx(1000, rel=0.01)
    assert found.fit.r_squared == pytest.approx(1)
    assert compare("s=c").fits == ()


def test_a_state_without_series_is_an_empty_page():
    page = compare("")

    assert (page.rows, page.heat, page.labels) == ((), None, ())


def test_what_was_done_to_the_machines_of_one_side_only_is_a_difference():
    for slug, treatment in (("plain", {}), ("cold", {"cold_cache": True, "server_cpus": "0-3"})):
        campaign = finished(slug)
        campaign.treatment = treatment
        campaign.save()

    found = compare("s=plain&s=cold").differences

    told = {each.name: set(each.values) for each in found if each.kind == "treatment"}
    assert told == {"cold_cache": {"no", "yes"}, "server_cpus": {"no", "0-3"}}


def test_each_level_compares_the_newer_version_with_the_older():
    campaign = factories.finish_all(factories.campaign(), gain={"18.4": 1.1})

    rows = campaigns.ratios(campaign, "tps")

    assert [row.levels for row in rows] == [{"clients": 1}, {"clients": 2}, {"clients": 4}]
    assert {(row.base_label, row.head_label) for row in rows} == {("16.14", "18.4")}
    for row in rows:
        assert row.comparison.ratio == pytest.approx(1.1)
        assert row.comparison.low < 1.1 < row.comparison.high
        assert row.comparison.verdict == "faster"
    assert (rows[0].base.median, rows[0].head.median) == pytest.approx((1000, 1100))


def test_the_lowest_version_is_the_baseline_whatever_its_text():
    campaign = factories.campaign(factors={"version": ["10.1", "9.6.24"], "clients": [1]})
    factories.finish_all(campaign)

    (row,) = campaigns.ratios(campaign, "tps")

    assert (row.base_label, row.head_label) == ("9.6.24", "10.1")


def test_another_baseline_can_be_asked_for():
    campaign = factories.campaign(factors={"version": ["16.14", "17.1", "18.4"], "clients": [1]})
    factories.finish_all(campaign)

    rows = campaigns.ratios(campaign, "tps", baseline_version="17.1")

    assert [(row.base_label, row.head_label) for row in rows] == [
        ("17.1", "16.14"),
        ("17.1", "18.4"),
    ]


def test_a_baseline_that_was_not_measured_compares_nothing():
    campaign = factories.finish_all(factories.campaign())

    assert campaigns.ratios(campaign, "tps", baseline_version="9.2") == []


def test_a_pair_waits_until_both_sides_have_a_result():
    campaign = factories.campaign(factors={"version": ["16.14", "18.4"], "clients": [1]})
    old, new = (campaign.runs.filter(cell__version=version) for version in ("16.14", "18.4"))
    factories.finish(old[0], tps=100)
    assert campaigns.ratios(campaign, "tps") == []

    factories.finish(new[0], tps=110)
    (row,) = campaigns.ratios(campaign, "tps")
    assert row.comparison.verdict == "too_few_runs"
    assert row.comparison.ratio == pytest.approx(1.1)


def test_for_a_latency_less_is_faster():
    factories.metric("latency_average", "lower", "ms")
    campaign = factories.campaign(factors={"version": ["16.14", "18.4"], "clients": [1]})
    for run in campaign.runs.all():
        latency = 10 if run.cell.version == "16.14" else 8
        factories.finish(run, latency_average=latency * (1 + run.repeat / 1000))

    (row,) = campaigns.ratios(campaign, "latency_average")

    assert row.comparison.verdict == "faster"
    assert row.comparison.ratio == pytest.approx(0.8)


def test_two_builds_of_one_version_are_compared_under_their_folders():
    campaign = factories.campaign(
        factors={"version": ["16.14"], "bindir": ["/opt/a", "/opt/b"], "clients": [1]}
    )
    factories.finish_all(campaign)

    (row,) = campaigns.ratios(campaign, "tps")

    assert (row.base_label, row.head_label) == ("16.14 · /opt/a", "16.14 · /opt/b")
    assert row.levels == {"clients": 1}


def test_a_metric_that_nobody_measured_has_no_rows():
    assert campaigns.ratios(factories.campaign(), "tpz") == []


@pytest.mark.parametrize("clients", [[1], [1, 2, 4, 8, 16]])
def test_ratios_take_nine_queries_however_many_cells(clients, django_assert_num_queries):
    campaign = factories.campaign(factors={"version": ["16.14", "18.4"], "clients": clients})
    factories.finish_all(campaign)

    with django_assert_num_queries(9):
        campaigns.ratios(campaign, "tps")


def test_levels_that_have_names_are_compared_within_each_version():
    factors = {"version": ["16.14", "18.4"], "checksums": ["off", "on"], "clients": [1, 2]}
    campaign = factories.finish_all(factories.campaign(factors=factors))

    rows = campaigns.ratios(campaign, "tps")

    assert {(row.subject, row.base_label, row.head_label) for row in rows} == {
        ("checksums", "off", "on")
    }
    assert [row.levels for row in rows] == [
        {"version": version, "clients": clients}
        for version in ("16.14", "18.4")
        for clients in (1, 2)
    ]
