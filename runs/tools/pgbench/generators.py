"""Several pgbench at once against one server: their results as that of one."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from runs.tools.pgbench.result import PgbenchResult, ProgressPoint

T = TypeVar("T", int, float)


def combined(results: Sequence[PgbenchResult]) -> PgbenchResult:
    """Their figures together: tps and counts added, latencies weighted by transactions.

    The standard deviation is that of all transactions: means that differ between the machines
    are part of it. A figure that one of them lacks is unknown.
    """
    if len(results) == 1:
        return results[0]
    weights = [result.transactions_processed or 0 for result in results]
    mean = _weighted([result.latency_average_ms for result in results], weights)
    return replace(
        results[0],
        tps=_sum(result.tps for result in results),
        transactions_processed=_sum(result.transactions_processed for result in results),
        failed_transactions=_sum(result.failed_transactions for result in results),
        clients=_sum(result.clients for result in results),
        threads=_sum(result.threads for result in results),
        latency_average_ms=mean,
        latency_stddev_ms=_stddev(results, weights, mean),
        initial_connection_time_ms=_greatest(results),
    )


def progress(of_each: Sequence[Sequence[ProgressPoint]]) -> tuple[ProgressPoint, ...]:
    """Their progress second by second, as long as all of them report it."""
    if len(of_each) == 1:
        return tuple(of_each[0])
    if not all(of_each):
        return ()
    return tuple(map(_together, zip(*of_each, strict=False)))


def _together(points: Sequence[ProgressPoint]) -> ProgressPoint:
    weights = [point.tps or 0 for point in points]
    return replace(
        points[0],
        tps=_sum(point.tps for point in points),
        latency_ms=_weighted([point.latency_ms for point in points], weights),
        stddev_ms=None,
    )


def _sum(values: Iterable[T | None]) -> T | None:
    """The sum; None where one is unknown."""
    known = list(values)
    if not known or any(value is None for value in known):
        return None
    return sum(value for value in known if value is not None)


def _weighted(values: Sequence[float | None], weights: Sequence[float]) -> float | None:
    total = sum(weights)
    if not total or any(value is None for value in values):
        return None
    pairs = zip(values, weights, strict=True)
    return sum((value or 0.0) * weight for value, weight in pairs) / total


def _stddev(
    results: Sequence[PgbenchResult], weights: Sequence[int], mean: float | None
) -> float | None:
    """From E[x^2] - E[x]^2 over all transactions."""
    if mean is None or any(result.latency_stddev_ms is None for result in results):
        return None
    squares = [
        (result.latency_stddev_ms or 0.0) ** 2 + (result.latency_average_ms or 0.0) ** 2
        for result in results
    ]
    square = _weighted(squares, weights)
    return None if square is None else math.sqrt(max(square - mean**2, 0.0))


def _greatest(results: Sequence[PgbenchResult]) -> float | None:
    known = [result.initial_connection_time_ms for result in results]
    return max((value for value in known if value is not None), default=None)
