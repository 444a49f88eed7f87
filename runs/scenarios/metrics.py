"""The metrics that scenarios share."""

from runs.scenarios.definition import MetricDefinition
from runs.wording import gettext_noop as _

TPS = MetricDefinition("tps", _("Transactions per second"), "tps", "higher")
LATENCY_AVERAGE = MetricDefinition("latency_average", _("Average latency"), "ms", "lower")
LATENCY_STDDEV = MetricDefinition("latency_stddev", _("Latency, standard deviation"), "ms", "lower")
CONNECTION_TIME = MetricDefinition(
    "initial_connection_time", _("Initial connection time"), "ms", "lower"
)
TRANSACTIONS = MetricDefinition(
    "transactions", _("Transactions processed"), "transactions", "neutral"
)
CPU_IDLE = MetricDefinition("cpu_idle", _("CPU idle"), "%", "neutral")
GENERATOR_CPU = MetricDefinition(
    "generator_cpu", _("Processors used by the load generator"), "processors", "neutral"
)
# Whatever the scenario: what the monitors tell of a run.
MONITORED = (CPU_IDLE, GENERATOR_CPU)
