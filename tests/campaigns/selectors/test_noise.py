"""The noise floor of a server, from finished repeats and A/A campaigns."""

import math
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs.access.selectors.projects import NOBODY
from runs.analysis.inference.verdicts import MINIMUM_EFFECT
from runs.archive.selectors import version_line
from runs.campaigns.selectors import campaigns, grids
from runs.cells.selectors import factor_names as designs
from runs.cells.selectors import noise
from runs.compare.selectors.address import candidates
from runs.compare.selectors.judge import known_noise, ratios
from runs.compare.selectors.judge.known_noise import Scope
from runs.models import Campaign, Metric, Run, Topology, TopologyNode
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def server():
    return factories.server()


def measured(on, values, *, levels=None, of=None, **fields):
    """A cell of the server with a finished run for each value."""
    of = of or factories.campaign(factors={"version": []}, state="finished")
    cell = factories.cell(of, levels or {"version": "18.4"}, repeats=0)
    given = {"server": on, "hardware": on.hardware} | fields
    for repeat, value in enumerate(values, start=1):
        factories.finish(factories.run(cell, repeat=repeat, **given), tps=value)
    return cell


def test_a_server_without_repeats_has_none(server):
    assert noise.find_server_noise([server], "tps") is None
    measured(server, [1000.0])
    assert noise.find_server_noise([server], "tps") is None


def test_it_says_that_it_is_unknown_because_of_runs_in_doubt(server):
    cell = measured(server, [1000.0, 1001.0])
    assert noise.find_server_noise([server], "tps") is not None
    Run.objects.filter(cell=cell, repeat=1).update(validity="doubtful")
    assert noise.find_server_noise([server], "tps") is None
    assert noise.is_doubted_on(server, "tps")
    assert noise.is_doubted_of(server.hardware, "tps", to=NOBODY)
    assert not noise.is_doubted_on(factories.server(), "tps")


def test_it_is_the_pooled_scatter_of_the_cells(server):
    measured(server, [math.exp(0.01), math.exp(-0.01)])
    measured(server, [100 * math.exp(0.03), 100 * math.exp(-0.03)])
    found = noise.find_server_noise([server], "tps")
    # Each pair's variance is 2 d^2 with one degree of freedom.
    assert found.floor.log_sd == pytest.approx(
        math.sqrt((2 * 0.01**2 + 2 * 0.03**2) / 2)
    )
    assert found.floor.cells == 2


def test_more_repeats_show_smaller_effects_and_one_shows_none(server):
    measured(server, [1000.0, 1020.0, 990.0])
    found = noise.find_server_noise([server], "tps")
    assert found.can_show(1) is None
    assert found.can_show(3) > found.can_show(5) > found.can_show(100) == MINIMUM_EFFECT


def test_what_differs_between_the_sides_of_an_a_a_campaign_is_noise(server):
    of = factories.campaign(factors={"version": []})
    for side, values in (("A", [1000.0, 1000.1]), ("B", [1100.0, 1100.1])):
        measured(server, values, of=of, levels={"version": "18.4", "side": side})
    found = noise.find_server_noise([server], "tps")
    assert (found.floor.cells, found.floor.freedom) == (1, 3)
    assert found.scatter > 0.05


@pytest.mark.parametrize("other", ["server", "hardware", "metric"])
def test_only_what_was_measured_there_counts(server, other):
    fields = {
        "server": {"server": factories.server()},
        "hardware": {"hardware": factories.hardware("before")},
        "metric": {},
    }[other]
    measured(server, [1000.0, 1100.0], **fields)
    assert (
        noise.find_server_noise([server], "latency" if other == "metric" else "tps")
        is None
    )


@pytest.mark.parametrize(
    "treatment",
    [
        {"cold_cache": True},
        {"profile": True},
        {"server_cpus": "0-3"},
        {"pgbench_cpus": "0"},
        {"governor": "performance"},
    ],
)
def test_a_campaign_with_a_treatment_tells_nothing_of_the_server_as_it_is(
    server, treatment
):
    treated = factories.campaign(factors={"version": []}, treatment=treatment)
    measured(server, [1000.0, 2000.0], of=treated)
    assert noise.find_server_noise([server], "tps") is None
    measured(server, [1000.0, 1001.0])
    found = noise.find_server_noise([server], "tps")
    assert found.floor.cells == 1
    assert found.scatter < 0.01


def test_a_cell_with_a_run_in_doubt_tells_nothing_of_the_server(server):
    noisy = measured(server, [1000.0, 2000.0])
    measured(server, [1000.0, 1001.0])
    assert noise.find_server_noise([server], "tps").floor.cells == 2
    noisy.runs.filter(repeat=1).update(validity="doubtful")
    found = noise.find_server_noise([server], "tps")
    assert found.floor.cells == 1
    assert found.scatter < 0.01


def known_before(of):
    """What is known of the noise of a campaign from others."""
    tps = Metric.objects.get(name="tps")
    return known_noise.find_noise([Scope(of, frozenset({None}))], {tps.pk: tps})


def test_campaigns_know_the_noise_of_others_by_their_runs_without_doubt(server):
    for _campaign in range(6):
        measured(server, [1000.0, 1002.0, 1001.0])
    disturbed = measured(server, [1000.0, 2000.0, 1500.0])
    disturbed.runs.filter(repeat=1).update(validity="doubtful")
    asked = factories.campaign(factors={"version": []})
    cell = measured(server, [1000.0, 1003.0, 1001.0], of=asked)

    (known,) = known_before(asked).values()
    assert math.sqrt(known.variance) < 0.01

    # A disturbed campaign is not judged by how quiet the server is otherwise.
    assert known_before(disturbed.campaign) == {}
    cell.runs.filter(repeat=2).update(validity="invalid")
    assert known_before(asked) == {}


def test_it_takes_one_query(server, django_assert_num_queries):
    for _cell in range(5):
        measured(server, [1000.0, 1010.0])
    with django_assert_num_queries(1):
        noise.find_server_noise([server], "tps")


LEVELS = {"version": ["16.14", "18.4"], "server": ["alpha", "beta"], "clients": [1, 2]}


def campaign(factors=LEVELS, *, kind=Topology.Kind.SINGLE, **fields):
    """A campaign whose runs are on the server of their cell."""
    factories.metric()
    servers = {
        slug: factories.server(slug, name=slug.capitalize())
        for slug in factors["server"]
    }
    topology = Topology.objects.create(slug="both", name="both", kind=kind)
    for ordinal, server in enumerate(servers.values(), start=1):
        TopologyNode.objects.create(
            topology=topology, server=server, role="database", ordinal=ordinal
        )
    made = factories.campaign(factors=factors, topology=topology, **fields)
    for run in made.runs.select_related("cell"):
        Run.objects.filter(pk=run.pk).update(server=servers[run.cell.levels["server"]])
    return made


def finish(of, gains):
    for run in of.runs.select_related("cell").order_by("pk"):
        levels = run.cell.levels
        gain = gains.get(levels["server"], 1) * gains.get(levels["version"], 1)
        factories.finish(
            run, tps=1000 * levels["clients"] * gain * (1 + 0.001 * run.repeat)
        )
    return of


def test_servers_stand_against_the_first_and_versions_within_each_server():
    rows = ratios.ratios(finish(campaign(), {"beta": 2, "18.4": 1.5}), "tps")
    servers = [row for row in rows if row.subject == "server"]
    assert {(row.base_label, row.head_label) for row in servers} == {("alpha", "beta")}
    assert [row.levels for row in servers] == [
        {"version": "16.14", "clients": 1},
        {"version": "16.14", "clients": 2},
        {"version": "18.4", "clients": 1},
        {"version": "18.4", "clients": 2},
    ]
    assert all(row.comparison.ratio == pytest.approx(2, rel=1e-6) for row in servers)
    versions = [row for row in rows if row.subject == "version"]
    assert {row.levels["server"] for row in versions} == {"alpha", "beta"}
    assert all(row.comparison.ratio == pytest.approx(1.5, rel=1e-6) for row in versions)


def test_a_factor_with_names_is_compared_within_each_server():
    factors = {**LEVELS, "version": ["18.4"], "checksums": ["off", "on"]}
    rows = ratios.ratios(finish(campaign(factors), {}), "tps")
    assert {row.subject for row in rows} == {"server", "checksums"}
    assert {row.levels["server"] for row in rows if row.subject == "checksums"} == {
        "alpha",
        "beta",
    }


def test_a_release_that_one_server_lacks_is_compared_with_no_other():
    made = campaign()
    made.cells.filter(levels__server="beta", version="16.14").delete()
    rows = ratios.ratios(finish(made, {}), "tps")
    assert {row.levels["version"] for row in rows if row.subject == "server"} == {
        "18.4"
    }
    assert {row.levels["server"] for row in rows if row.subject == "version"} == {
        "alpha"
    }


def test_servers_are_rows_of_the_grid_by_name_and_never_columns_beside_another_factor():
    factors = {
        "version": ["18.4"],
        "server": ["alpha", "beta"],
        "checksums": ["off", "on"],
    }
    grid = grids.grid(campaign(factors))
    assert grid.factor == "checksums"
    assert [row.label for row in grid.rows] == ["18.4 · Alpha", "18.4 · Beta"]


def test_the_compare_page_offers_a_series_for_each_server():
    finish(campaign(title="Both"), {})
    (found,) = candidates.candidates("Both", reader=NOBODY)
    assert found.axis == "clients"
    assert {each.levels["server"] for each in found.series} == {"alpha", "beta"}


def test_only_levels_of_servers_are_called_by_a_servers_name():
    words = designs.words(campaign())
    assert words.listed({"server": "beta", "clients": 1}) == "Server Beta, Clients 1"
    assert words.level("placement", "beta") == "beta"


def test_the_last_server_to_end_says_what_time_is_left():
    made = campaign(
        {"version": ["18.4"], "server": ["alpha", "beta"], "clients": [1]}, repeats=4
    )
    for slug, seconds, number in (("alpha", 100, 1), ("beta", 10, 2)):
        for run in made.runs.filter(server__slug=slug).order_by("pk")[:number]:
            factories.finish(run, seconds=seconds, tps=1)
    assert campaigns.progress(made).seconds_left == pytest.approx(300, abs=5)
    running = made.runs.filter(server__slug="alpha", state="queued").first()
    running.state, running.started_at = (
        Run.State.MEASURING,
        timezone.now() - timedelta(seconds=40),
    )
    running.save()
    assert campaigns.progress(made).seconds_left == pytest.approx(260, abs=5)


def test_servers_that_share_load_generators_are_added():
    factors = {"version": ["18.4"], "server": ["alpha", "beta"], "clients": [1]}
    made = campaign(factors, repeats=2, kind=Topology.Kind.CLIENT)
    for slug, seconds in (("alpha", 100), ("beta", 10)):
        run = made.runs.filter(server__slug=slug).order_by("pk").first()
        factories.finish(run, seconds=seconds, tps=1)
    assert campaigns.progress(made).seconds_left == pytest.approx(110, abs=5)


def test_the_version_line_pairs_versions_of_one_server():
    made = finish(campaign(), {"beta": 3, "18.4": 1.2})
    Campaign.objects.update(state="finished")
    found = version_line.read(version_line.used("fixed-point-read")).pairs
    assert [pair.campaign for pair in found] == [made, made]
    assert [pair.base.server for pair in found] == ["alpha", "beta"]
    assert all(pair.link.ratio == pytest.approx(1.2, rel=0.01) for pair in found)


def test_the_cells_that_scatter_are_not_compared_with_each_other(server):
    """The planner expects few of them, and a join of thousands by nested loops took 0.4 s."""
    campaign = measured(server, [100.0, 101.0, 99.0]).campaign_id
    with CaptureQueriesContext(connection) as queries:
        known_noise._rows([campaign], [factories.metric().pk])
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + queries[-1]["sql"])
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert plan.count("hashed SubPlan") >= 2
    assert "Semi Join" not in plan
