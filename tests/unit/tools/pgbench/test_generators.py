"""Several pgbench as one: sums, weighted means, and nothing made up."""

import math
from dataclasses import replace

import pytest

from runs.tools.pgbench import generators
from runs.tools.pgbench.result import PgbenchResult, ProgressPoint

ONE = PgbenchResult(
    status="complete",
    clients=2,
    threads=1,
    tps=100.0,
    transactions_processed=1000,
    latency_average_ms=10.0,
    latency_stddev_ms=1.0,
    initial_connection_time_ms=3.0,
)
OTHER = replace(
    ONE,
    tps=300.0,
    transactions_processed=3000,
    latency_average_ms=30.0,
    latency_stddev_ms=2.0,
    initial_connection_time_ms=5.0,
)


def test_one_result_stays_as_it_is():
    assert generators.combined([ONE]) is ONE


def test_rates_and_counts_are_added():
    both = generators.combined([ONE, OTHER])
    assert (both.tps, both.transactions_processed, both.clients) == (400.0, 4000, 4)
    assert both.initial_connection_time_ms == 5.0


def test_latencies_are_those_of_all_transactions():
    both = generators.combined([ONE, OTHER])
    assert both.latency_average_ms == pytest.approx(25.0)
    # 1,000 of N(10, 1) and 3,000 of N(30, 2): within 3.25, between 75.
    assert both.latency_stddev_ms == pytest.approx(math.sqrt(3.25 + 75))


def test_what_one_machine_does_not_tell_is_unknown():
    both = generators.combined([ONE, replace(OTHER, latency_stddev_ms=None, tps=None)])
    assert both.tps is None
    assert both.latency_stddev_ms is None
    assert both.latency_average_ms == pytest.approx(25.0)


def test_progress_is_added_as_long_as_all_tell():
    def point(seconds, tps, latency):
        return ProgressPoint(seconds=seconds, tps=tps, latency_ms=latency, stddev_ms=1.0)

    first = [point(1, 10, 2.0), point(2, 10, 2.0), point(3, 10, 2.0)]
    second = [point(1, 30, 4.0), point(2, 0, None)]
    together = generators.progress([first, second])
    assert [each.tps for each in together] == [40, 10]
    assert together[0].latency_ms == pytest.approx(3.5)
    assert together[1].latency_ms is None
    assert generators.progress([first, []]) == ()
