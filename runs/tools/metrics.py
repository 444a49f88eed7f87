"""The metrics that tools share: name, title, unit, and which way is better."""

import math
from dataclasses import dataclass, replace

from runs.tools.adapter import Direction, MetricValue
from runs.tools.output import slug
from runs.wording import gettext_noop as _

_LONGEST_NAME = 80
_LARGEST = 1e18  # larger values are never measurements, only errors in the output


@dataclass(frozen=True)
class Metric:
    """What a number is of."""

    name: str
    title: str
    unit: str
    direction: Direction

    def of(self, value: float | None) -> tuple[MetricValue, ...]:
        """Return the measurement, or nothing where the tool gave no usable number."""
        if value is None or not math.isfinite(value) or abs(value) > _LARGEST:
            return ()
        return (MetricValue(self.name, float(value), self.unit, self.direction, self.title),)

    def part(self, name: str) -> "Metric":
        """Return this metric of a part of the run: an operation, a job, a statement."""
        prefix = slug(name)[: _LONGEST_NAME - len(self.name) - 1].strip("_")
        full = f"{prefix}_{self.name}" if prefix else self.name
        return replace(self, name=full, title=f"{name[:60]}: {self.title}")


TPS = Metric("tps", _("Transactions per second"), "tps", "higher")
QPS = Metric("qps", _("Queries per second"), "queries/s", "higher")
TRANSACTIONS = Metric("transactions", _("Transactions processed"), "transactions", "neutral")
FAILED = Metric("failed_transactions", _("Failed transactions"), "transactions", "lower")
ERRORS = Metric("errors", _("Errors"), "errors", "lower")
LATENCY_MINIMUM = Metric("latency_minimum", _("Latency, minimum"), "ms", "lower")
LATENCY_AVERAGE = Metric("latency_average", _("Average latency"), "ms", "lower")
LATENCY_STDDEV = Metric("latency_stddev", _("Latency, standard deviation"), "ms", "lower")
LATENCY_MAXIMUM = Metric("latency_max", _("Latency, maximum"), "ms", "lower")
CONNECTION_TIME = Metric("initial_connection_time", _("Initial connection time"), "ms", "lower")
_PERCENTILES = {
    "25": _("Latency, 25th percentile"),
    "50": _("Latency, median"),
    "75": _("Latency, 75th percentile"),
    "90": _("Latency, 90th percentile"),
    "95": _("Latency, 95th percentile"),
    "99": _("Latency, 99th percentile"),
    "99.9": _("Latency, 99.9th percentile"),
}


def latency_percentile(percent: str) -> Metric:
    """Return the metric of a percentile of latency: "99.9" gives `latency_p99_9`."""
    title = _PERCENTILES.get(percent, f"Latency, {percent}th percentile")
    return Metric(f"latency_p{slug(percent)}", title, "ms", "lower")
