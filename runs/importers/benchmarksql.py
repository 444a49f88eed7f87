"""BenchmarkSQL: folders of results (my_result_*) with run.properties, data/runInfo.csv, result.csv.

Source: BenchmarkSQL 5 and 6.0, jTPCC.java and jTPCCMonkey.java. To 5 the figures are computed from
each transaction, as its own report does: tpmC is new orders a minute of the measured time. 6 has
sums and a histogram of each kind, and its time in the folder's name alone.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from runs.importers.row import Imported, NotTheirs, moment, texts
from runs.tools import known_metrics
from runs.tools.adapter import MetricValue
from runs.tools.output import number
from runs.wording import gettext_noop as _

_NEW_ORDER = "NEW_ORDER"
# The delivery itself is done in the background, and no transaction of a terminal.
_BACKGROUND = "DELIVERY_BG"
_PERCENTILES = ("50", "90", "95", "99")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)_(\d\d)(\d\d)(\d\d)")
# What 6 calls by other names.
_LEVELS = {
    "threads": "numSUTThreads",
    "think_time_multiplier": "thinkTimeMultiplier",
    "keying_time_multiplier": "keyingTimeMultiplier",
}


@dataclass
class _Kind:
    """The transactions of a kind. Times in ms; `percentiles` are of 6, which has no latencies."""

    latencies: list[float] = field(default_factory=list)
    rollbacks: int = 0
    errors: int = 0
    count: int = 0
    average: float = 0.0
    most: float = 0.0
    percentiles: dict[str, float] = field(default_factory=dict)


def read(path: Path) -> Imported:
    """Read every result below the folder. Raises NotTheirs."""
    folders = sorted({file.parent.parent for file in path.rglob("data/runInfo.csv")})
    if not folders:
        raise NotTheirs(_("There is no data/runInfo.csv in the folder or below it."))
    imported = Imported()
    for folder in folders:
        _take(folder, imported)
    return imported


def _take(folder: Path, imported: Imported) -> None:
    data = folder / "data"
    info = next(_rows(data / "runInfo.csv"), {})
    name_match = _TIME.search(folder.name)
    started_at = moment(
        info.get("sessionStart")
        or (
            f"{name_match[1]} {':'.join(name_match.groups()[1:])}" if name_match else ""
        )
    )
    minutes, database = (
        number(info.get("runMins")),
        info.get("db") or info.get("dbType") or "?",
    )
    if started_at is None or not minutes:
        text = _("%(folder)s: no time of its start, or a run by transactions.")
        imported.leave_out(text, folder=folder.name)
        return
    if "postgres" not in database.lower():
        text = _("%(folder)s: a result of %(database)s.")
        imported.leave_out(text, folder=folder.name, database=database)
        return
    is_summed = (data / "summary.csv").is_file()
    kinds = (
        _summed(data) if is_summed else _kinds(data / "result.csv", minutes * 60_000)
    )
    properties = _properties(folder / "run.properties")
    levels = {
        "clients": number(properties.get("terminals") or info.get("runTerminals")),
        "warehouses": number(info.get("runWarehouses") or info.get("loadWarehouses")),
        "duration": minutes * 60,
        "rampup": (number(properties.get("rampupMins")) or 0) * 60 or None,
        **{level: number(info.get(name)) for level, name in _LEVELS.items()},
    }
    imported.take(
        campaign="benchmarksql",
        scenario="tpcc",
        external_id=f"{folder.name}@{started_at.isoformat()}"[:200],
        started_at=started_at,
        levels={
            name: int(level) if level.is_integer() else level
            for name, level in levels.items()
            if level is not None
        },
        measurements=tuple(_values(kinds, minutes)),
        labels=texts(properties, ("application", "limitTxnsPerMin", "newOrderWeight")),
        tool_name="benchmarksql",
        tool_version=(info.get("driverVersion") or info.get("jTPCCVersion") or "")[:40],
        failure="" if kinds.get(_NEW_ORDER) else "No new order was processed.",
    )


def _rows(file: Path) -> Iterator[dict[str, str]]:
    if file.is_file():
        with file.open(newline="") as lines:
            try:
                yield from csv.DictReader(lines)
            except csv.Error as error:
                raise NotTheirs(
                    _("%(file)s is not CSV: %(error)s"), file=file.name, error=error
                ) from error


def _summed(data: Path) -> dict[str, _Kind]:
    """The kinds of 6: sums, of times in seconds, and how many took up to each edge."""
    edges: dict[str, list[tuple[float, float]]] = {}
    for row in _rows(data / "histogram.csv"):
        edge, count = number(row.get("edge")), number(row.get("numtrans"))
        if edge is not None and count:
            edges.setdefault(row.get("ttype") or "", []).append((edge, count))
    kinds = {}
    for row in _rows(data / "summary.csv"):
        name, count = row.get("ttype") or "", int(number(row.get("count")) or 0)
        if not count:
            continue
        kinds[name] = _Kind(
            count=count,
            average=(number(row.get("mean")) or 0) * 1000,
            most=(number(row.get("max")) or 0) * 1000,
            rollbacks=int(number(row.get("rollbacks")) or 0),
            errors=int(number(row.get("errors")) or 0),
            percentiles={
                percent: edge * 1000
                for percent in _PERCENTILES
                if (
                    edge := _edge(
                        edges.get(name, []), int(count * float(percent) / 100)
                    )
                )
            },
        )
    return kinds


def _edge(edges: list[tuple[float, float]], needed: int) -> float | None:
    """The edge up to which there are as many transactions, as the tool itself looks for it."""
    have = 0.0
    for edge, count in edges:
        have += count
        if have >= needed:
            return edge
    return None


def _kinds(file: Path, most: float) -> dict[str, _Kind]:
    """The transactions of each kind within the measured time. Latencies in ms."""
    kinds: dict[str, _Kind] = {}
    for row in _rows(file):
        elapsed, latency = number(row.get("elapsed")), number(row.get("latency"))
        kind = row.get("ttype") or ""
        if elapsed is None or latency is None or not 0 <= elapsed <= most or not kind:
            continue
        counts = kinds.setdefault(kind, _Kind())
        counts.latencies.append(latency)
        counts.rollbacks += row.get("rbk") == "1"
        counts.errors += row.get("error") not in (None, "", "0")
    for counts in kinds.values():
        ordered = sorted(counts.latencies)
        counts.count, counts.average, counts.most = (
            len(ordered),
            sum(ordered) / len(ordered),
            ordered[-1],
        )
        for percent in _PERCENTILES:
            position = max(0, round(len(ordered) * float(percent) / 100) - 1)
            counts.percentiles[percent] = ordered[position]
    return kinds


def _values(kinds: dict[str, _Kind], minutes: float) -> Iterator[MetricValue]:
    counted = {name: kind for name, kind in kinds.items() if name != _BACKGROUND}
    if _NEW_ORDER not in counted:
        return
    yield from known_metrics.TPMC.make_values(counted[_NEW_ORDER].count / minutes)
    yield from known_metrics.TPM.make_values(
        sum(kind.count for kind in counted.values()) / minutes
    )
    yield from known_metrics.ERRORS.make_values(
        sum(kind.errors for kind in counted.values())
    )
    for name, kind in kinds.items():
        yield from known_metrics.TRANSACTIONS.part(name).make_values(kind.count)
        yield from known_metrics.ROLLBACKS.part(name).make_values(kind.rollbacks)
        yield from known_metrics.LATENCY_AVERAGE.part(name).make_values(
            kind.average or None
        )
        yield from known_metrics.LATENCY_MAXIMUM.part(name).make_values(kind.most)
        for percent, value in kind.percentiles.items():
            yield from (
                known_metrics.latency_percentile(percent)
                .part(name)
                .make_values(value or None)
            )


def _properties(file: Path) -> dict[str, str]:
    lines = file.read_text("utf-8", "replace").splitlines() if file.is_file() else []
    pairs = (
        line.partition("=") for line in lines if "=" in line and line[0] not in "#!"
    )
    return {name.strip(): value.strip() for name, _sign, value in pairs}
