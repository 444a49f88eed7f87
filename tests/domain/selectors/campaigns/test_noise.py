"""The noise floor of a server, from finished repeats and A/A campaigns."""

import math

import pytest

from runs.analysis.inference.verdicts import MINIMUM_EFFECT
from runs.models import Metric
from runs.selectors.campaigns import noise
from runs.selectors.compare import known_noise
from runs.selectors.compare.known_noise import Scope
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def server():
    return factories.server()


def measured(on, values, *, levels=None, of=None, **fields):
    """A cell of the server with a finished run for each value."""
    of = of or factories.campaign(factors={"version": []})
    cell = factories.cell(of, levels or {"version": "18.4"}, repeats=0)
    given = {"server": on, "hardware": on.hardware} | fields
    for repeat, value in enumerate(values, start=1):
        factories.finish(factories.run(cell, repeat=repeat, **given), tps=value)
    return cell


def test_a_server_without_repeats_has_none(server):
    assert noise.of_server(server, "tps") is None
    measured(server, [1000.0])
    assert noise.of_server(server, "tps") is None


def test_it_is_the_pooled_scatter_of_the_cells(server):
    measured(server, [math.exp(0.01), math.exp(-0.01)])
    measured(server, [100 * math.exp(0.03), 100 * math.exp(-0.03)])
    found = noise.of_server(server, "tps")
    # Each pair's variance is 2 d^2 with one degree of freedom.
    assert found.floor.log_sd == pytest.approx(math.sqrt((2 * 0.01**2 + 2 * 0.03**2) / 2))
    assert found.floor.cells == 2


def test_more_repeats_show_smaller_effects_and_one_shows_none(server):
    measured(server, [1000.0, 1020.0, 990.0])
    found = noise.of_server(server, "tps")
    assert found.can_show(1) is None
    assert found.can_show(3) > found.can_show(5) > found.can_show(100) == MINIMUM_EFFECT


def test_what_differs_between_the_sides_of_an_a_a_campaign_is_noise(server):
    of = factories.campaign(factors={"version": []})
    for side, values in (("A", [1000.0, 1000.1]), ("B", [1100.0, 1100.1])):
        measured(server, values, of=of, levels={"version": "18.4", "side": side})
    found = noise.of_server(server, "tps")
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
    assert noise.of_server(server, "latency" if other == "metric" else "tps") is None


@pytest.mark.parametrize(
    "treatment",
    [{"cold_cache": True}, {"profile": True}, {"server_cpus": "0-3"}, {"pgbench_cpus": "0"},
     {"governor": "performance"}],
)  # fmt: skip
def test_a_campaign_with_a_treatment_tells_nothing_of_the_server_as_it_is(server, treatment):
    treated = factories.campaign(factors={"version": []}, treatment=treatment)
    measured(server, [1000.0, 2000.0], of=treated)
    assert noise.of_server(server, "tps") is None
    measured(server, [1000.0, 1001.0])
    found = noise.of_server(server, "tps")
    assert found.floor.cells == 1
    assert found.scatter < 0.01


def test_a_cell_with_a_run_in_doubt_tells_nothing_of_the_server(server):
    noisy = measured(server, [1000.0, 2000.0])
    measured(server, [1000.0, 1001.0])
    assert noise.of_server(server, "tps").floor.cells == 2
    noisy.runs.filter(repeat=1).update(validity="doubtful")
    found = noise.of_server(server, "tps")
    assert found.floor.cells == 1
    assert found.scatter < 0.01


def known_before(of):
    """What is known of the noise of a campaign from others."""
    tps = Metric.objects.get(name="tps")
    return known_noise.of_scopes([Scope(of, frozenset({None}))], {tps.pk: tps})


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
        noise.of_server(server, "tps")
