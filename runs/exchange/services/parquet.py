"""Measurements of finished runs as Parquet: a file a month, for DuckDB, ClickHouse and others.

PostgreSQL sends a month as CSV and DuckDB writes it as Parquet: neither has it in memory. A file is
complete as soon as it is there; a month that is written again replaces its file.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.db import connection, transaction

from runs.models import Run

# Column, its type in the file, and where it comes from.
COLUMNS = (
    ("measurement", "BIGINT", "m.id"),
    ("run", "BIGINT", "r.id"),
    ("project", "VARCHAR", "coalesce(p.slug, 'default')"),
    ("campaign", "VARCHAR", "c.slug"),
    ("scenario", "VARCHAR", "s.slug"),
    ("origin", "VARCHAR", "r.origin"),
    ("finished_at", "TIMESTAMPTZ", "r.finished_at"),
    ("version", "VARCHAR", "cell.version"),
    ("major", "VARCHAR", "r.cell_major"),
    ("revision", "VARCHAR", "v.sha"),
    ("levels", "VARCHAR", "cell.levels"),
    ("repeat", "INTEGER", "r.repeat"),
    ("validity", "VARCHAR", "coalesce(nullif(r.validity, ''), 'unknown')"),
    ("server", "VARCHAR", "host.slug"),
    ("cpu", "VARCHAR", "h.cpu_model"),
    ("cores", "INTEGER", "h.cores"),
    ("memory_bytes", "BIGINT", "h.memory_bytes"),
    ("os", "VARCHAR", "e.os_name"),
    ("metric", "VARCHAR", "metric.name"),
    ("unit", "VARCHAR", "metric.unit"),
    ("direction", "VARCHAR", "metric.direction"),
    ("statistic", "VARCHAR", "m.statistic"),
    ("value", "DOUBLE", "m.value"),
    ("n", "INTEGER", "m.n"),
)
ROWS = """
SELECT {columns}
  FROM runs_run r
  JOIN runs_measurement m ON m.run_id = r.id
  JOIN runs_metric metric ON metric.id = m.metric_id
  JOIN runs_cell cell ON cell.id = r.cell_id
  JOIN runs_campaign c ON c.id = r.campaign_id
  JOIN runs_scenario s ON s.id = c.scenario_id
  LEFT JOIN runs_project p ON p.id = c.project_id
  LEFT JOIN runs_revision v ON v.id = cell.revision_id
  LEFT JOIN runs_server host ON host.id = r.server_id
  LEFT JOIN runs_hardwareprofile h ON h.id = r.hardware_id
  LEFT JOIN runs_environment e ON e.id = r.environment_id
 WHERE r.state = %(finished)s AND {month}
"""
NONE = "none"


@dataclass(frozen=True)
class Month:
    """A file: `month` is 2026-11, or `none` for runs without an end, such as published ones."""

    month: str
    path: Path
    rows: int
    size: int


def write(folder: Path, *, since: str = "") -> Iterator[Month]:
    """Write each month from `since` (2026-11; empty: all) to `folder`/measurements/month=2026-11/.

    Reads the runs of a month by an index. The last months of a lab still change: write them again.
    Raises OSError.
    """
    for month in _months(since):
        yield _write(folder / "measurements" / f"month={month}", month)


def _months(since: str) -> list[str]:
    ended = Run.objects.filter(state=Run.State.FINISHED)
    dated = ended.filter(finished_at__isnull=False).order_by("finished_at")
    first_time, last_time = (
        queryset.values_list("finished_at", flat=True).first()
        for queryset in (dated, dated.order_by("-finished_at"))
    )
    months = []
    if first_time and last_time:
        year, month = first_time.year, first_time.month
        while (year, month) <= (last_time.year, last_time.month):
            months.append(f"{year}-{month:02}")
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    if ended.filter(finished_at=None).exists() and not since:
        months.append(NONE)
    return [month for month in months if month >= since]


def _write(folder: Path, month: str) -> Month:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "data.parquet"
    with TemporaryDirectory(dir=folder.parent.parent) as scratch:
        rows = Path(scratch) / "rows.csv"
        with rows.open("wb") as file:
            _copy(file, month)
        target = Path(scratch) / "data.parquet"
        number = _convert(rows, target)
        target.replace(path)
    return Month(month, path, number, path.stat().st_size)


def _copy(file: Any, month: str) -> None:
    """The rows of a month as CSV: an empty text is quoted, and what is missing is not."""
    columns = ", ".join(f"{source} AS {name}" for name, _type, source in COLUMNS)
    query = ROWS.format(columns=columns, month=_condition(month))
    with transaction.atomic(), connection.cursor() as cursor:
        # Months are those of UTC, whoever asks.
        cursor.execute("SET LOCAL timezone = 'UTC'")
        raw: Any = cursor
        statement = f"COPY ({query}) TO STDOUT (FORMAT csv)"
        with raw.copy(statement, {"finished": Run.State.FINISHED.value}) as copied:
            for piece in copied:
                file.write(piece)


def _condition(month: str) -> str:
    if month == NONE:
        return "r.finished_at IS NULL"
    begin = datetime.strptime(month, "%Y-%m")  # noqa: DTZ007 -- a month of UTC
    end = f"timestamptz '{begin:%Y-%m-01} UTC' + interval '1 month'"
    return (
        f"r.finished_at >= timestamptz '{begin:%Y-%m-01} UTC' AND r.finished_at < {end}"
    )


def _convert(rows: Path, path: Path) -> int:
    import duckdb  # noqa: PLC0415 -- of the extra archive-export

    types = {name: kind for name, kind, _source in COLUMNS}
    with duckdb.connect() as database:
        # A few hundred MB are enough for sorting none of it.
        database.execute("SET memory_limit = '512MB'; SET threads = 1")
        database.execute("SET preserve_insertion_order = false; SET timezone = 'UTC'")
        read = database.sql(
            "SELECT * FROM read_csv($rows, header = false, columns = $columns, auto_detect = false,"
            " delim = ',', quote = '\"', escape = '\"', nullstr = '', allow_quoted_nulls = false)",
            params={"rows": str(rows), "columns": types},
        )
        read.write_parquet(str(path), compression="zstd")
        [count] = database.execute(
            "SELECT count(*) FROM read_parquet(?)", [str(path)]
        ).fetchone() or (0,)
    return int(count)
