"""The metrics that scenarios share."""

from runs.tools import quantities

# In percent; named as in uploads.
LATENCY_PERCENTILES = {
    percent: quantities.latency_percentile(percent) for percent in ("50", "90", "95", "99", "99.9")
}
# The metrics of a pgbench run.
PGBENCH = (
    quantities.TPS,
    quantities.LATENCY_AVERAGE,
    *LATENCY_PERCENTILES.values(),
    quantities.LATENCY_STDDEV,
    quantities.CONNECTION_TIME,
    quantities.TRANSACTIONS,
)
# For any scenario: what the monitors record about a run.
MONITORED = (quantities.CPU_IDLE, quantities.GENERATOR_CPU)
