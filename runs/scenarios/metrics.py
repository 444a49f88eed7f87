"""The metrics that scenarios share."""

from runs.tools import quantities

TPS = quantities.TPS
LATENCY_AVERAGE = quantities.LATENCY_AVERAGE
# In percent; named as in uploads.
LATENCY_PERCENTILES = {
    percent: quantities.latency_percentile(percent) for percent in ("50", "90", "95", "99", "99.9")
}
LATENCY_STDDEV = quantities.LATENCY_STDDEV
CONNECTION_TIME = quantities.CONNECTION_TIME
TRANSACTIONS = quantities.TRANSACTIONS
FAILED_TRANSACTIONS = quantities.FAILED
ELAPSED = quantities.ELAPSED
ROWS_RETURNED = quantities.ROWS_RETURNED
# The metrics of a pgbench run.
PGBENCH = (
    TPS,
    LATENCY_AVERAGE,
    *LATENCY_PERCENTILES.values(),
    LATENCY_STDDEV,
    CONNECTION_TIME,
    TRANSACTIONS,
)
CPU_IDLE = quantities.CPU_IDLE
GENERATOR_CPU = quantities.GENERATOR_CPU
# For any scenario: what the monitors record about a run.
MONITORED = (CPU_IDLE, GENERATOR_CPU)
