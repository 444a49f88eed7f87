"""pgbench-tools: its database of results as a plain pg_dump; `pgbench_tools_database` connects.

Source: init/resultdb.sql. Each row of `tests` is a run; test_settings, test_bgwriter and
test_metrics_data give settings, counters and monitors where they are. Times are taken as UTC.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runs.grouping import group_by_key
from runs.importers.row import Imported, NotTheirs, campaign_of, moment, texts
from runs.tools import known_metrics, metrics
from runs.tools.adapter import Level, MetricValue, SeriesData
from runs.tools.host_reading import device_column
from runs.tools.metrics import Metric
from runs.tools.output import number, slug
from runs.wording import gettext_noop as _

Row = dict[str, Any]
Tables = dict[str, list[Row]]
ByTest = Mapping[str, Mapping[tuple[str, str], list[Row]]]
TABLES = (
    "tests",
    "testset",
    "server",
    "test_settings",
    "test_bgwriter",
    "test_metrics_data",
)
_FIGURES = (
    (known_metrics.TPS, "tps"),
    (known_metrics.TRANSACTIONS, "trans"),
    (known_metrics.LATENCY_AVERAGE, "avg_latency"),
    (known_metrics.LATENCY_MAXIMUM, "max_latency"),
    (known_metrics.latency_percentile("90"), "percentile_90_latency"),
    (known_metrics.WAL_WRITTEN, "wal_written"),
)
_COUNTERS = (
    "checkpoints_timed",
    "checkpoints_req",
    "buffers_checkpoint",
    "buffers_clean",
)
_LEVELS = {
    "clients": "clients",
    "workers": "threads",
    "scale": "scale",
    "rate_limit": "rate",
    "client_limit": "client_limit",
    "multi": "multiplier",
}
_VERSION = re.compile(r"(?:PostgreSQL )?(?P<version>[0-9]{1,2}(?:\.[0-9]{1,3}){0,2})\b")
_ESCAPES = {r"\t": "\t", r"\n": "\n", r"\\": "\\"}
_MONITORS = 150  # series of a run
# What vmstat, /proc/meminfo and the log of transactions gave, in our names and units.
_MEASURED = {
    "rate": (known_metrics.TPS, 1.0),
    "avg_latency": (known_metrics.LATENCY, 1.0),
    "max_latency": (known_metrics.LATENCY_MAXIMUM, 1.0),
    "us": (known_metrics.CPU_USER, 1.0),
    "sy": (known_metrics.CPU_SYSTEM, 1.0),
    "wa": (known_metrics.CPU_IOWAIT, 1.0),
    "st": (known_metrics.CPU_STEAL, 1.0),
    "id": (known_metrics.CPU_IDLE, 1.0),
    "r": (known_metrics.RUN_QUEUE, 1.0),
    "MemFree": (known_metrics.MEMORY_FREE, 1 / 1024),
    "Cached": (known_metrics.MEMORY_CACHED, 1 / 1024),
}
# The ends of iostat's, behind a disk's name.
_OF_DISKS = {
    "rkB/s": (known_metrics.DISK_READ, 1.0),
    "rMB/s": (known_metrics.DISK_READ, 1024.0),
    "wkB/s": (known_metrics.DISK_WRITE, 1.0),
    "wMB/s": (known_metrics.DISK_WRITE, 1024.0),
    "MB/s": (known_metrics.DISK_TRANSFER, 1024.0),
    "%util": (known_metrics.DISK_UTIL, 1.0),
    "await": (known_metrics.DISK_AWAIT, 1.0),
}


@dataclass(frozen=True)
class _Named:
    """The rows that tests name: sets by number and server, servers by name; the first of each."""

    sets: Mapping[tuple[str, str | None], Row]
    servers: Mapping[str, Row]

    def info(self, test: Row) -> str:
        """What somebody wrote of the set of a test; to 2020 sets named no server."""
        number = str(test.get("set"))
        testset = self.sets.get((number, test.get("server"))) or self.sets.get(
            (number, None)
        )
        return str(testset.get("info") or "") if testset else ""


def read(path: Path) -> Imported:
    """Read a dump. Raises NotTheirs."""
    return read_tables(_dumped(path))


def read_tables(tables: Tables) -> Imported:
    """The runs of these tables, each a list of rows. Raises NotTheirs."""
    if not tables.get("tests"):
        raise NotTheirs(
            _(
                "There is no table tests with rows, or the dump is not plain (pg_dump -Fp)."
            )
        )
    imported = Imported()
    further = {
        name: group_by_key((_key(row), row) for row in tables.get(name, []))
        for name in TABLES[3:]
    }
    names = _Named(
        sets={
            (str(row.get("set")), row.get("server")): row
            for row in reversed(tables.get("testset", []))
        },
        servers={
            str(row.get("server")): row for row in reversed(tables.get("server", []))
        },
    )
    for row in tables["tests"]:
        _take(row, names, further, imported)
    return imported


def _dumped(file: Path) -> Tables:
    tables: Tables = {}
    columns: list[str] = []
    rows: list[Row] | None = None
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if rows is not None and line.rstrip("\n") == "\\.":
                rows = None
            elif rows is not None:
                cells = line.rstrip("\n").split("\t")
                rows.append(dict(zip(columns, map(_cell, cells), strict=False)))
            elif line.startswith("COPY ") and line.rstrip().endswith("FROM stdin;"):
                table, _sign, names = line.removeprefix("COPY ").partition(" (")
                columns = [
                    column.strip().strip('"')
                    for column in names.partition(")")[0].split(",")
                ]
                rows = tables.setdefault(table.rpartition(".")[2].strip('"'), [])
    return tables


def _cell(text: str) -> str | None:
    if text == r"\N":
        return None
    for escape, character in _ESCAPES.items() if "\\" in text else ():
        text = text.replace(escape, character)
    return text


def _key(row: Row) -> tuple[str, str]:
    """Tests are numbered on each server; to 2020 there was none."""
    return str(row.get("server") or ""), str(row.get("test"))


def _take(row: Row, names: _Named, rows_of_test: ByTest, imported: Imported) -> None:
    key, started_at, ended = (
        _key(row),
        moment(row.get("start_time")),
        moment(row.get("end_time")),
    )
    test_name = " ".join(filter(None, ["test", *key]))
    if started_at is None or ended is None or not _number(row.get("trans")):
        text = _("%(test)s: it has not ended, or measured no transaction.")
        imported.leave_out(text, test=test_name)
        return
    if not _number(row.get("tps")):
        text = _("%(test)s: the column tps is empty; the rest of it is taken.")
        imported.leave_out(text, test=test_name)
    settings = {
        str(setting["name"]): str(setting.get("value") or setting.get("setting") or "")
        for setting in rows_of_test["test_settings"].get(key, [])
        if setting.get("name")
    }
    info = names.info(row)
    begin = moment(row.get("start_latency")) or started_at
    imported.take(
        campaign=campaign_of("pgbench-tools", key[0], "set", str(row.get("set"))),
        scenario="pgbench-tools",
        external_id="/".join(filter(None, key)),
        started_at=started_at,
        finished_at=ended,
        levels=dict(_levels(row)),
        measurements=tuple(_values(row, key, rows_of_test)),
        series=tuple(
            _monitors(rows_of_test["test_metrics_data"].get(key, []), begin.timestamp())
        ),
        labels=texts({"set": info, "server": key[0]}),
        settings={name: value for name, value in settings.items() if value},
        hardware=_hardware(names.servers.get(key[0], {}), key[0]),
        server_version=_version(row, settings),
        tool_name="pgbench",
    )


def _number(value: Any) -> float | None:
    """A number of either source: a dump has texts, and a connection decimals."""
    return None if value is None else number(str(value))


def _version(row: Row, settings: dict[str, str]) -> str:
    version_match = _VERSION.match(
        settings.get("server_version") or str(row.get("server_version") or "")
    )
    return version_match["version"] if version_match else ""


def _hardware(row: Row, name: str) -> dict[str, Any]:
    model, threads = (
        str(row.get("server_cpu") or "")[:200],
        _number(row.get("server_num_proc")),
    )
    profile = {
        "name": model or name,
        "cpu_model": model,
        "threads": int(threads) if threads else 0,
    }
    return {key: value for key, value in profile.items() if value} if row else {}


def _levels(row: Row) -> Iterator[tuple[str, Level]]:
    if row.get("script"):
        yield "script", str(row["script"])[:80]
    for column, level in _LEVELS.items():
        value = _number(row.get(column))
        if value:  # 0 and NULL are of no limit
            yield level, int(value) if value.is_integer() else value


def _values(
    row: Row, key: tuple[str, str], rows_of_test: ByTest
) -> Iterator[MetricValue]:
    for metric, column in _FIGURES:
        yield from metric.make_values(_number(row.get(column)) or None)
    size = _number(row.get("dbsize"))
    yield from known_metrics.DATABASE_SIZE.make_values(size / 10**6 if size else None)
    for background_row in rows_of_test["test_bgwriter"].get(key, [])[:1]:
        for name in _COUNTERS:
            yield from Metric(name, name, "", "neutral").make_values(
                _number(background_row.get(name))
            )


def _monitors(rows: list[Row], begin: float) -> Iterator[SeriesData]:
    """vmstat, iostat and memory, each column a series over the time of the run; ours first."""
    points = group_by_key(
        (
            str(row.get("metric")),
            (collected_at.timestamp() - begin, _number(row.get("value"))),
        )
        for row in rows
        if (collected_at := moment(row.get("collected")))
    )
    ordered = sorted(
        points, key=lambda name: (_measured(name)[0].name.startswith("monitor_"), name)
    )
    for name in ordered[:_MONITORS]:
        metric, factor = _measured(name)
        placed = sorted(points[name], key=lambda point: point[0])
        values = [
            (seconds, None if value is None else value * factor)
            for seconds, value in placed
        ]
        interval = metrics.interval_of([seconds for seconds, _value in placed])
        yield from metrics.regular(metric, values, interval=interval)


def _measured(name: str) -> tuple[Metric, float]:
    """What a column is of, and what makes our unit of it; of others nobody knows the unit."""
    if name in _MEASURED:
        return _MEASURED[name]
    disk, _sign, column = name.rpartition("_")
    if disk and column in _OF_DISKS:
        metric, factor = _OF_DISKS[column]
        return replace(metric, name=device_column(metric.name, disk)), factor
    return Metric(f"monitor_{slug(name)}"[:60], "", "", "neutral"), 1.0
