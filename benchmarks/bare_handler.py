"""The least that uploads can cost: a WSGI handler that checks nothing and knows nobody.

`benchmarks.ingest` starts it with gunicorn, and asks it and BenchLab in turn. A run of a new commit
is stored in BenchLab's own tables, in the campaign of the environment variable BARE_CAMPAIGN, whose
metrics are there already. A batch goes by COPY into four tables of its own: revisions, cells, runs
and figures. `/page?20` gives the newest 20 figures, `/history?KEY` all medians of a series.
"""

import json
import os
import threading
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import unquote

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
    " FROM unnest(%s::bigint[], %s::float8[]) AS figures (metric, value)"
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
FLOOR_TABLES = """
CREATE SCHEMA IF NOT EXISTS floor;
CREATE TABLE IF NOT EXISTS floor.revision
    (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, sha text UNIQUE);
CREATE TABLE IF NOT EXISTS floor.cell
    (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, revision_id bigint, levels jsonb,
     key text, UNIQUE (revision_id, key));
CREATE TABLE IF NOT EXISTS floor.run
    (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, cell_id bigint, started_at timestamptz,
     document jsonb);
CREATE INDEX IF NOT EXISTS run_cell ON floor.run (cell_id);
CREATE TABLE IF NOT EXISTS floor.measurement
    (run_id bigint, metric text, value float8, unit text, PRIMARY KEY (run_id, metric));
"""
FLOOR_REVISIONS = (
    "INSERT INTO floor.revision (sha) SELECT unnest(%s::text[])"
    " ON CONFLICT (sha) DO UPDATE SET sha = excluded.sha RETURNING sha, id"
)
FLOOR_CELLS = (
    "INSERT INTO floor.cell (revision_id, levels, key)"
    " SELECT revision, key::jsonb, key FROM unnest(%s::bigint[], %s::text[]) AS cells"
    " (revision, key) ON CONFLICT (revision_id, key) DO UPDATE SET key = excluded.key"
    " RETURNING revision_id, key, id"
)
FLOOR_RUNS = (
    "INSERT INTO floor.run (cell_id, started_at, document)"
    " SELECT cell, started::timestamptz, document::jsonb"
    " FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS runs (cell, started, document)"
    " RETURNING id"
)
PAGE = (
    "SELECT run.id, run.started_at::text, metric.name, figure.value"
    " FROM (SELECT id, started_at FROM runs_run WHERE campaign_id = %s ORDER BY id DESC LIMIT %s)"
    " AS run JOIN runs_measurement AS figure ON figure.run_id = run.id"
    " JOIN runs_metric AS metric ON metric.id = figure.metric_id ORDER BY run.id DESC"
)
HISTORY = (
    "SELECT revision.sha, revision.committed_at::text, summary.n, summary.median, summary.minimum,"
    " summary.maximum FROM runs_cell AS cell"
    " JOIN runs_revision AS revision ON revision.id = cell.revision_id"
    " JOIN runs_cellsummary AS summary ON summary.cell_id = cell.id"
    " WHERE cell.campaign_id = %s AND cell.series_key = %s ORDER BY revision.committed_at"
)
DOCUMENT = ("hardware", "environment", "postgresql", "tool", "labels")


class _Database(threading.local):
    """A thread's connection, and what is looked up once."""

    def __init__(self) -> None:
        self.connection = psycopg.connect(os.environ["DATABASE_URL"])
        self.campaign = int(os.environ["BARE_CAMPAIGN"])
        self.metrics: dict[str, int] = dict(
            self.connection.execute("SELECT name, id FROM runs_metric").fetchall()
        )
        self.profiles = self.connection.execute(PROFILES).fetchone() or (None, None)
        self.connection.execute(FLOOR_TABLES)
        self.connection.commit()


DATABASE = _Database()


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Store what was sent and answer with its number, or how many there are; or answer a GET."""
    if environ["REQUEST_METHOD"] == "GET":
        rows = _read(environ["PATH_INFO"], unquote(environ["QUERY_STRING"]))
        return _answer(start_response, "200 OK", {"results": rows})
    upload = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
    stored = _store_batch(upload["runs"]) if "runs" in upload else _store(upload)
    return _answer(start_response, "201 Created", {"id": stored})


def _answer(start_response: Any, status: str, document: object) -> Iterable[bytes]:
    content = json.dumps(document).encode()
    length = ("Content-Length", str(len(content)))
    start_response(status, [("Content-Type", "application/json"), length])
    return [content]


def _read(path: str, wanted: str) -> list[tuple[Any, ...]]:
    query = {"/page": PAGE, "/history": HISTORY}[path]
    value = int(wanted) if path == "/page" else wanted
    with DATABASE.connection.transaction():
        return DATABASE.connection.execute(query, (DATABASE.campaign, value)).fetchall()


def _store(run: dict[str, Any]) -> int:
    connection, campaign = DATABASE.connection, DATABASE.campaign
    sha, version = run["revision"]["sha"], run["postgresql"]["version"]
    levels = json.dumps({"version": version, **run["levels"]}, sort_keys=True)
    tool = run["tool"]
    figures = (
        [
            DATABASE.metrics[measurement["metric"]]
            for measurement in run["measurements"]
        ],
        [float(measurement["value"]) for measurement in run["measurements"]],
    )
    run_values = (
        campaign,
        *DATABASE.profiles,
        version,
        tool["name"],
        tool["version"],
        json.dumps(run["labels"]),
        run["started_at"],
    )
    with connection.transaction(), connection.pipeline():
        connection.execute(REVISION, (sha, campaign))
        connection.execute(CELL, (campaign, levels, f"{levels}@{sha}", levels, version))
        inserted = connection.execute(RUN, run_values)
        connection.execute(MEASUREMENT, figures)
        connection.execute(SUMMARY, figures)
        connection.execute(STALE, (campaign,))
        connection.execute(SEAL)
    return int(inserted.fetchall()[0][0])


def _store_batch(runs: Sequence[dict[str, Any]]) -> int:
    connection = DATABASE.connection
    with connection.transaction():
        shas = sorted({run["revision"]["sha"] for run in runs})
        revisions: dict[str, int] = dict(
            connection.execute(FLOOR_REVISIONS, (shas,)).fetchall()
        )
        places = [
            (
                revisions[run["revision"]["sha"]],
                json.dumps(run["levels"], sort_keys=True),
            )
            for run in runs
        ]
        columns = [list(column) for column in zip(*sorted(set(places)), strict=True)]
        cells = {
            (revision, key): cell
            for revision, key, cell in connection.execute(
                FLOOR_CELLS, columns
            ).fetchall()
        }
        run_columns = (
            [cells[place] for place in places],
            [run["started_at"] for run in runs],
            [json.dumps({name: run[name] for name in DOCUMENT}) for run in runs],
        )
        run_ids = [
            run_id
            for (run_id,) in connection.execute(FLOOR_RUNS, run_columns).fetchall()
        ]
        with connection.cursor().copy("COPY floor.measurement FROM STDIN") as copy:
            for run_id, run in zip(run_ids, runs, strict=True):
                for figure in run["measurements"]:
                    copy.write_row(
                        (run_id, figure["metric"], figure["value"], figure["unit"])
                    )
    return len(run_ids)
