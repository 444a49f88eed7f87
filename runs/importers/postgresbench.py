"""PostgresBench: a results JSON, or a checkout of its repository (NAME/results/*.json).

Source: ClickHouse/PostgresBench, run.sh ("Assemble JSON"), version of March 2026. Each of a file's
three runs of pgbench is a run here. The licence is that of the LICENSE next to the results.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from runs.importers import row
from runs.tools import known_metrics
from runs.tools.adapter import Level, SeriesData
from runs.tools.output import number, part, rows, words
from runs.wording import gettext_noop as _

_FIGURES = {
    "tps": known_metrics.TPS,
    "transactions": known_metrics.TRANSACTIONS,
    "failed_transactions": known_metrics.FAILED,
    "latency_avg_ms": known_metrics.LATENCY_AVERAGE,
    "latency_stddev_ms": known_metrics.LATENCY_STDDEV,
    "latency_p95_ms": known_metrics.latency_percentile("95"),
    "latency_p99_ms": known_metrics.latency_percentile("99"),
    "initial_connection_time_ms": known_metrics.CONNECTION_TIME,
}
# What of a document is read elsewhere, or is the same for all runs of a file.
_READ = frozenset(
    (
        "benchmark",
        "comment",
        "date",
        "instance",
        "load",
        "machine",
        "postgres_version",
        "results",
        "system",
        "tuned",
        "cluster_size",
    )
)
_LEVELS = {"clients": "clients", "threads": "threads", "scale_factor": "scale"}
_LONGEST = 100_000


def read(path: Path) -> row.Imported:
    """Read the results. Raises row.NotTheirs."""
    imported = row.Imported()
    files = sorted(path.glob("**/results/*.json")) if path.is_dir() else [path]
    for file in files:
        for document in row.documents(file):
            _take(document, file, _licence(file), imported)
    if not imported.runs:
        raise row.NotTheirs(
            _("There is no result with postgres_version, benchmark and results.")
        )
    if any("licence" not in run.labels for run in imported.runs):
        text = _("Results without a LICENSE next to them: ask before publishing them.")
        imported.leave_out(text)
    return imported


def _take(document: Any, file: Path, licence: str, imported: row.Imported) -> None:
    benchmark, moment = (
        part(document, "benchmark"),
        row.moment(part({"": document}, "").get("date")),
    )
    if not benchmark or not words(document.get("postgres_version")):
        return
    levels = dict(_levels(document, benchmark))
    if strange := sorted(set(document) - _READ - levels.keys()):
        text = _(
            "%(file)s: nobody knows what %(field)s is, and whether runs differ by it."
        )
        imported.leave_out(text, file=file.name, field=", ".join(strange)[:200])
        return
    for position, result in enumerate(rows(document, "results"), start=1):
        values = tuple(
            value
            for name, metric in _FIGURES.items()
            for value in row.value_of(metric, result.get(name))
        )
        if moment is None or number(result.get("tps")) is None:
            text = _("%(file)s: run %(place)s has no date or no tps.")
            imported.leave_out(text, file=file.name, place=position)
            continue
        name = " ".join(
            map(str, [*levels.values(), document.get("tuned"), document.get("date")])
        )
        imported.take(
            campaign=row.campaign_of(
                "postgresbench", words(benchmark.get("workload")) or ""
            ),
            scenario="postgresbench",
            external_id=f"{name} run {position}"[-200:],
            started_at=moment,
            levels=levels,
            measurements=values,
            series=tuple(_series(result)),
            labels=_labels(document, licence),
            hardware=_hardware(document),
            # "18.2 (e21737f)": what the service has made of it is in the label.
            server_version=str(document["postgres_version"]).partition(" ")[0],
            tool_name=words(benchmark.get("tool")) or "pgbench",
        )


def _series(result: Mapping[str, Any]) -> Iterator[SeriesData]:
    """Throughput and latency over the run, where the file has them."""
    points = rows(result, "timeseries")
    interval = number(result.get("interval_seconds"))
    if not points or not interval or interval <= 0:
        return
    for name, metric in (
        ("tps", known_metrics.TPS),
        ("latency_avg_ms", known_metrics.LATENCY),
    ):
        values = tuple(number(point.get(name)) for point in points)
        if any(value is not None for value in values):
            yield SeriesData(metric.name, metric.unit, values, interval=float(interval))


def _levels(
    document: Mapping[str, Any], benchmark: Mapping[str, Any]
) -> Iterator[tuple[str, Level]]:
    yield "system", (words(document.get("system")) or "?")[:80]
    yield "machine", (words(document.get("machine")) or "?")[:80]
    for theirs, level in _LEVELS.items():
        count = number(benchmark.get(theirs))
        if count is not None:
            yield level, int(count)
    if mode := words(benchmark.get("query_mode")):
        yield "query_mode", mode[:80]
    yield from _further_levels(document)


def _further_levels(document: Mapping[str, Any]) -> Iterator[tuple[str, Level]]:
    """What the peer has added since: each is a level, so that runs that differ by it are apart.

    An object is told by its label, as `ha` is.
    """
    for name, value in document.items():
        if name in _READ:
            continue
        text = words(value.get("label")) if isinstance(value, dict) else words(value)
        count = number(value)
        if text:
            yield name, text[:80]
        elif count is not None:
            yield name, count
        elif value is None or value == "":
            yield name, "none"


def _labels(document: Mapping[str, Any], licence: str) -> dict[str, str]:
    labels = row.texts(
        document, ("postgres_version", "cluster_size", "tuned", "comment")
    )
    storage = row.texts(
        part(document, "instance"), ("type", "instance_storage", "primary_storage")
    )
    seconds = row.texts(part(document, "benchmark"), ("duration",))
    return labels | storage | seconds | ({"licence": licence} if licence else {})


def _hardware(document: Mapping[str, Any]) -> dict[str, Any]:
    instance = part(document, "instance")
    name = " ".join(
        filter(None, (words(document.get("system")), words(instance.get("type"))))
    )
    threads, gigabytes = number(instance.get("vcpus")), number(instance.get("ram_gb"))
    profile = {
        "name": name,
        "threads": int(threads or 0),
        "memory_bytes": int((gigabytes or 0) * 2**30),
    }
    return {key: value for key, value in profile.items() if value}


def _licence(file: Path) -> str:
    """The first words of the LICENSE of the checkout: its name and version."""
    for folder in file.resolve().parents[:3]:
        for name in ("LICENSE", "LICENSE.md", "LICENSE.txt"):
            if (folder / name).is_file():
                lines = (
                    (folder / name)
                    .read_text("utf-8", "replace")[:_LONGEST]
                    .splitlines()
                )
                return ", ".join([line.strip() for line in lines if line.strip()][:2])[
                    :200
                ]
    return ""
