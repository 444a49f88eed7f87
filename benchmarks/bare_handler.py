"""The least that an upload can cost: a WSGI handler that stores the same rows and checks nothing.

`benchmarks.ingest` starts it with gunicorn, in pairs with BenchLab's own. It takes the run of a new
commit, in the campaign of the environment variable BARE_CAMPAIGN, whose metrics are there already.
"""

import json
import os
import threading
from collections.abc import Iterable
from typing import Any

import psycopg

REVISION = (
    "INSERT INTO runs_revision (project_id, sha, ref, url, committed_at, parents, created_at)"
    " SELECT project_id, %s, '', '', NULL, '[]', now() FROM runs_campaign WHERE id = %s"
)
CELL = (
    "INSERT INTO runs_cell (campaign_id, ordinal, levels, workload, key, series_key, revision_id,"
    " version) VALUES (%s, 1, %s, '{}', %s, %s, currval('runs_revision_id_seq'), %s)"
)
RUN = (
    "INSERT INTO runs_run (campaign_id, cell_id, repeat, position, origin, state, code, message,"
    " remedy, attempt, hardware_id, environment_id, server_version, tool_name, tool_version,"
    " quality, external_id, labels, queued_at, started_at) VALUES (%s,"
    " currval('runs_cell_id_seq'), 1, 0, 'uploaded', 'finished', '', '', '', 1, %s, %s, %s, %s, %s,"
    " '[]', '', %s, now(), %s) RETURNING id"
)
MEASUREMENT = (
    "INSERT INTO runs_measurement (run_id, metric_id, value, n, statistic)"
    " SELECT currval('runs_run_id_seq'), *, 1, 'single'"
    " FROM unnest(%s::bigint[], %s::float8[])"
)
SUMMARY = (
    "INSERT INTO runs_cellsummary (cell_id, metric_id, n, median, minimum, maximum, mean, log_mean)"
    " SELECT currval('runs_cell_id_seq'), metric, 1, value, value, value, value, ln(value)"
    " FROM unnest(%s::bigint[], %s::float8[]) AS found (metric, value)"
)
STALE = (
    "INSERT INTO runs_stalecell (campaign_id, cell_id, at)"
    " VALUES (%s, currval('runs_cell_id_seq'), now())"
)
SEAL = "INSERT INTO runs_sealrequest (kind, run) VALUES ('sealed', currval('runs_run_id_seq'))"
PROFILES = (
    "SELECT hardware_id, environment_id FROM runs_run WHERE hardware_id IS NOT NULL"
    " ORDER BY id LIMIT 1"
)


class _Place(threading.local):
    """A thread's connection, and what is looked up once."""

    def __init__(self) -> None:
        self.connection = psycopg.connect(os.environ["DATABASE_URL"])
        self.campaign = int(os.environ["BARE_CAMPAIGN"])
        self.metrics = dict(self.connection.execute("SELECT name, id FROM runs_metric").fetchall())
        self.profiles = self.connection.execute(PROFILES).fetchone() or (None, None)
        self.connection.commit()


PLACE = _Place()


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Store the run and tell its number."""
    given = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
    told = json.dumps({"id": _store(given)}).encode()
    length = ("Content-Length", str(len(told)))
    start_response("201 Created", [("Content-Type", "application/json"), length])
    return [told]


def _store(given: dict[str, Any]) -> int:
    connection, campaign = PLACE.connection, PLACE.campaign
    sha, version = given["revision"]["sha"], given["postgresql"]["version"]
    levels = json.dumps({"version": version, **given["levels"]}, sort_keys=True)
    tool, labels = given["tool"], json.dumps(given["labels"])
    figures = (
        [PLACE.metrics[each["metric"]] for each in given["measurements"]],
        [float(each["value"]) for each in given["measurements"]],
    )
    ran = (version, tool["name"], tool["version"], labels, given["started_at"])
    with connection.transaction(), connection.pipeline():
        connection.execute(REVISION, (sha, campaign))
        connection.execute(CELL, (campaign, levels, f"{levels}@{sha}", levels, version))
        made = connection.execute(RUN, (campaign, *PLACE.profiles, *ran))
        connection.execute(MEASUREMENT, figures)
        connection.execute(SUMMARY, figures)
        connection.execute(STALE, (campaign,))
        connection.execute(SEAL)
    return int(made.fetchall()[0][0])
