"""The metrics that scenarios share."""

from runs.tools import known_metrics

# In percent; named as in uploads.
LATENCY_PERCENTILES = {
    percent: known_metrics.latency_percentile(percent)
    for percent in ("50", "90", "95", "99", "99.9")
}
# The metrics of a pgbench run.
PGBENCH = (
    known_metrics.TPS,
    known_metrics.LATENCY_AVERAGE,
    *LATENCY_PERCENTILES.values(),
    known_metrics.LATENCY_STDDEV,
    known_metrics.CONNECTION_TIME,
    known_metrics.TRANSACTIONS,
)
# For any scenario: what the monitors record about a run.
MONITORED = (known_metrics.CPU_IDLE, known_metrics.GENERATOR_CPU)
