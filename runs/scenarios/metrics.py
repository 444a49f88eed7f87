"""The metrics that scenarios share."""

from runs.scenarios.definition import MetricDefinition
from runs.tools import metrics
from runs.wording import gettext_noop as _

TPS = MetricDefinition("tps", _("Transactions per second"), "tps", "higher")
LATENCY_AVERAGE = MetricDefinition("latency_average", _("Average latency"), "ms", "lower")
# In percent; named as in uploads.
LATENCY_PERCENTILES = {
    percent: MetricDefinition(metric.name, metric.title, metric.unit, metric.direction)
    for percent in ("50", "90", "95", "99", "99.9")
    for metric in [metrics.latency_percentile(percent)]
}
LATENCY_STDDEV = MetricDefinition("latency_stddev", _("Latency, standard deviation"), "ms", "lower")
CONNECTION_TIME = MetricDefinition(
    "initial_connection_time", _("Initial connection time"), "ms", "lower"
)
TRANSACTIONS = MetricDefinition(
    "transactions", _("Transactions processed"), "transactions", "neutral"
)
FAILED_TRANSACTIONS = MetricDefinition(
    metrics.FAILED.name, metrics.FAILED.title, metrics.FAILED.unit, metrics.FAILED.direction
)
ELAPSED = MetricDefinition("elapsed", _("Elapsed time"), "s", "lower")
ROWS_RETURNED = MetricDefinition("rows_returned", _("Rows returned"), "rows", "neutral")
# The metrics of a pgbench run.
PGBENCH = (
    TPS,
    LATENCY_AVERAGE,
    *LATENCY_PERCENTILES.values(),
    LATENCY_STDDEV,
    CONNECTION_TIME,
    TRANSACTIONS,
)
CPU_IDLE = MetricDefinition("cpu_idle", _("CPU idle"), "%", "neutral")
GENERATOR_CPU = MetricDefinition(
    "generator_cpu", _("Processors used by the load generator"), "processors", "neutral"
)
# For any scenario: what the monitors record about a run.
MONITORED = (CPU_IDLE, GENERATOR_CPU)
