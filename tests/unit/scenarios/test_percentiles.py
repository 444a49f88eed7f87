"""How many transactions are logged for percentiles."""

import pytest

from runs.scenarios import percentiles, registry
from runs.scenarios.metrics import PGBENCH

HOUR = 3600


@pytest.mark.parametrize(("clients", "seconds"), [(1, 60), (2, 100), (4, 50), (100, 20)])
def test_short_runs_and_those_of_few_clients_are_logged_whole(clients, seconds):
    assert percentiles.share(clients, seconds) == 1


@pytest.mark.parametrize("seconds", [20, 60, 300, HOUR, 168 * HOUR])
@pytest.mark.parametrize("clients", [1, 10, 1000])
def test_slow_runs_have_enough_and_fast_ones_not_too_many(clients, seconds):
    share = percentiles.share(clients, seconds)

    assert share * 51 * seconds >= 1000
    assert share * min(100_000, clients * 10_000) * seconds <= 2_100_000


def test_9_2_logs_only_what_is_logged_whole():
    assert percentiles.log("/srv", 1, 90224) is not None
    assert percentiles.log("/srv", 0.5, 90224) is None
    assert percentiles.log("/srv", 0.5, 90300) is not None


LOGGING = [each for each in registry.every() if set(PGBENCH) <= set(each.metrics)]


@pytest.mark.parametrize("scenario", LOGGING, ids=lambda scenario: scenario.slug)
def test_the_estimate_of_the_disk_knows_of_the_logs_and_of_no_more_than_those(scenario):
    given = {each.name: each.default for each in scenario.parameters}
    short, long, longer = (
        scenario.procedure.sizes(given | {"scale": 1, "duration": seconds}).run_bytes
        for seconds in (1, 60, 86_400)
    )

    assert 0 < short < long == longer < 100 * 10**6
