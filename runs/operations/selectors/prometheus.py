"""Numbers about BenchLab for Prometheus, computed from the database at each scrape.

The amount read does not grow with the database: queues are counted by partial indexes and up to a
limit, totals are the last values of sequences, and recent events are read from the newest rows
only. So every process of the site gives the same answer, and counters survive restarts; those of
requests (benchlab.request_counts) do not.
"""

import math
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from redis.exceptions import RedisError

from benchlab import request_counts
from runs.models import Run, WebhookDelivery
from runs.operations.selectors import health_checks, readiness
from runs.operations.selectors.health_checks import BACKUP_AGE, FAILED, UNKNOWN, Outcome
from runs.shared import queries, signs

CONTENT_TYPE = CONTENT_TYPE_LATEST
STATEMENT_TIMEOUT = "5s"
_OPEN_STATES = (Run.State.QUEUED, Run.State.LOST, *Run.ACTIVE)
# No query reads more rows than this.
MOST_ROWS = 5000

QUEUE = """
SELECT state, count(*), coalesce(extract(epoch FROM now() - min(queued_at)), 0)
FROM (SELECT state, queued_at FROM runs_run WHERE state = ANY(%(waiting)s)
      LIMIT %(most)s) run
GROUP BY state"""
ACTIVE = """
SELECT state, count(*), coalesce(extract(epoch FROM now() - min(started_at)), 0)
FROM runs_run WHERE state = ANY(%(active)s) GROUP BY state"""
ENDED = """
SELECT event.to_state, coalesce(nullif(event.code, ''), event.to_state), count(*)
FROM (SELECT * FROM runs_runevent ORDER BY id DESC LIMIT %(most)s) event
WHERE event.at > now() - interval '1 hour'
AND event.to_state = ANY(%(ended)s) GROUP BY 1, 2"""
DURATIONS = """
SELECT quantile, percentile_cont(quantile) WITHIN GROUP (ORDER BY seconds)
FROM (SELECT extract(epoch FROM run.finished_at - run.started_at)::float8 AS seconds
      FROM (SELECT * FROM runs_runevent ORDER BY id DESC LIMIT %(most)s) event
      JOIN runs_run run ON run.id = event.run_id
      WHERE event.to_state = %(finished)s AND event.at > now() - interval '1 day') took,
     unnest(ARRAY[0.5, 0.95, 1]) quantile
WHERE seconds IS NOT NULL GROUP BY quantile"""
STORED = """
SELECT origin, count(*)
FROM (SELECT origin, queued_at FROM runs_run ORDER BY id DESC LIMIT %(most)s) run
WHERE queued_at > now() - interval '5 minutes' GROUP BY origin"""
VERDICTS = """
SELECT kind, decision, count(*)
FROM (SELECT * FROM runs_change ORDER BY id DESC LIMIT %(most)s) change
WHERE found_at > now() - interval '1 day' GROUP BY 1, 2"""
WAITING = """
SELECT 'stale cells', count(*) FROM (SELECT 1 FROM runs_stalecell LIMIT %(most)s) a
UNION ALL SELECT 'deliveries', count(*)
FROM (SELECT 1 FROM runs_webhookdelivery WHERE state = %(undelivered)s LIMIT %(most)s) b
UNION ALL SELECT 'mails', count(*)
FROM (SELECT 1 FROM runs_change WHERE mailed_at IS NULL LIMIT %(most)s) c"""
LEASES = """
SELECT coalesce(max(extract(epoch FROM now() - heartbeat_at)), 0)
FROM runs_lease WHERE run_id IS NOT NULL"""
SERVERS = "SELECT state, count(*) FROM runs_server GROUP BY state"
TOTALS = {
    "runs_run": ("runs", "runs stored"),
    "runs_measurement": ("measurements", "measurements stored"),
    "runs_upload": ("uploads", "uploads with an Idempotency-Key"),
    "runs_change": ("changes", "changes found"),
    "runs_webhookdelivery": ("webhook_deliveries", "reports to webhooks"),
}
TOTAL = "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence(%(table)s, 'id')), 0)"
SIZE = "SELECT pg_database_size(current_database())"
STATES: dict[str, Any] = {
    "waiting": [Run.State.QUEUED.value, Run.State.LOST.value],
    "active": [run_state.value for run_state in Run.ACTIVE],
    "ended": [
        run_state.value
        for run_state in (Run.State.FINISHED, *Run.UNSUCCESSFUL, Run.State.LOST)
    ],
    "finished": Run.State.FINISHED.value,
    "undelivered": WebhookDelivery.State.WAITING.value,
}


def exposition() -> bytes:
    """All metrics in the text format of Prometheus."""
    registry = CollectorRegistry()
    registry.register(_Benchlab())
    return generate_latest(registry) + generate_latest(request_counts.REGISTRY)


class _Benchlab(Collector):
    def describe(self) -> Iterable[Metric]:
        """Nothing is computed when it is registered."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """The metrics, one subject after the other."""
        yield _gauge("benchlab_info", "Version.", ["version"], [(settings.VERSION, 1)])
        outcomes = readiness.get().outcomes
        yield from _health_metrics(outcomes)
        with suppress(OSError):
            usage = shutil.disk_usage(
                health_checks.existing(Path(settings.ARTIFACTS_DIR))
            )
            room = [(usage.free,)]
            yield _gauge(
                "benchlab_disk_free_bytes", "Room for files of runs.", [], room
            )
        # A database that hangs would keep its own limits of time no more than anything else.
        if all(
            outcome.status != FAILED
            for outcome in outcomes
            if outcome.check == "database"
        ):
            with transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute(
                        f"SET LOCAL statement_timeout = '{STATEMENT_TIMEOUT}'"
                    )
                yield from _run_metrics()
                yield from _result_metrics()
                # Nothing where none was made: an alert asks for that as well.
                text = "Seconds since manage.py backup has made the newest backup."
                yield _gauge("benchlab_backup_age_seconds", text, [], _rows(BACKUP_AGE))
        yield from _counted(
            "http_errors", "Requests that ended in an error.", "address"
        )
        yield from _counted(
            "restarts", "Processes that took the place of a crashed one.", "kind"
        )


def _health_metrics(outcomes: Iterable[Outcome]) -> Iterator[Metric]:
    values = {FAILED: 0.0, UNKNOWN: math.nan}
    rows = [(outcome.check, values.get(outcome.status, 1.0)) for outcome in outcomes]
    text = "1 where the check of /readyz holds, NaN where it could not be asked."
    yield _gauge("benchlab_ready", text, ["check"], rows)
    ages: list[tuple[str, str, float]] = []
    with suppress(RedisError, OSError):
        ages = [(sign.kind, sign.process, sign.age) for sign in signs.signs()]
    text = "Seconds since the last sign of life."
    yield _gauge("benchlab_last_seen_seconds", text, ["kind", "process"], ages)


def _run_metrics() -> Iterator[Metric]:
    rows = [*_rows(QUEUE), *_rows(ACTIVE)]
    # A state without a run is a zero: what is absent equals nothing, and an alert would never fire.
    counts = {state.value: 0 for state in _OPEN_STATES}
    counts |= {state: count for state, count, _age in rows}
    text = "Runs that wait or are at work."
    yield _gauge("benchlab_queue_runs", text, ["state"], list(counts.items()))
    ages = [(state, age) for state, _count, age in rows]
    text = "How long the oldest run of a state has waited, or is at work."
    yield _gauge("benchlab_queue_oldest_seconds", text, ["state"], ages)
    text = f"Ends of runs in the last hour, among the newest {MOST_ROWS} events."
    yield _gauge("benchlab_runs_ended_1h", text, ["state", "code"], _rows(ENDED))
    durations = [
        (f"{quantile * 100:g}", seconds) for quantile, seconds in _rows(DURATIONS)
    ]
    text = "Duration of the runs that finished in the last day."
    yield _gauge("benchlab_run_duration_seconds", text, ["percentile"], durations)
    yield _gauge("benchlab_servers", "Servers by state.", ["state"], _rows(SERVERS))
    text = "The longest silence of a worker that holds a server."
    yield _gauge("benchlab_lease_silent_seconds", text, [], _rows(LEASES))


def _result_metrics() -> Iterator[Metric]:
    for table, (name, description) in TOTALS.items():
        family = CounterMetricFamily(
            f"benchlab_{name}_made", f"The last number given to {description}."
        )
        family.add_metric([], float(_rows(TOTAL, table=table)[0][0]))
        yield family
    text = f"Runs stored in the last five minutes, at most {MOST_ROWS}."
    yield _gauge("benchlab_runs_stored_5m", text, ["origin"], _rows(STORED))
    text = "Changes found in the last day, by what people decided."
    yield _gauge("benchlab_verdicts_1d", text, ["kind", "decision"], _rows(VERDICTS))
    text = f"What waits to be looked at or sent, at most {MOST_ROWS}."
    yield _gauge("benchlab_waiting", text, ["what"], _rows(WAITING))
    yield _gauge(
        "benchlab_database_bytes", "Size of the results database.", [], _rows(SIZE)
    )


def _counted(name: str, text: str, label: str) -> Iterator[Metric]:
    family = CounterMetricFamily(f"benchlab_{name}", text, labels=[label])
    with suppress(RedisError, OSError):
        for labels_text, count in sorted(signs.counted(name).items()):
            family.add_metric([labels_text], count)
    yield family


def _rows(query: str, **values: str) -> list[tuple[Any, ...]]:
    return queries.rows(query, {"most": MOST_ROWS, **STATES, **values})


def _gauge(
    name: str, text: str, labels: list[str], rows: Iterable[tuple[Any, ...]]
) -> GaugeMetricFamily:
    """A gauge: in each row the last value is the number, the others are labels."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for *values, number in rows:
        family.add_metric([str(value) for value in values], float(number))
    return family
