"""BenchmarkSQL: folders of results (my_result_*) with run.properties, data/runInfo.csv, result.csv.

Source: BenchmarkSQL 5 and 6, jTPCC.java. What counts is computed from each transaction, as its own
report does: tpmC is new orders a minute of the measured time.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from runs.importers.row import Imported, ImportedRun, NotTheirs, moment, texts
from runs.tools import quantities
from runs.tools.adapter import MetricValue
from runs.tools.output import number

_NEW_ORDER = "NEW_ORDER"
# The delivery itself is done in the background, and no transaction of a terminal.
_BACKGROUND = "DELIVERY_BG"
_PERCENTILES = ("50", "90", "95", "99")


@dataclass
class _Kind:
    latencies: list[float] = field(default_factory=list)
    rollbacks: int = 0
    errors: int = 0


def read(path: Path) -> Imported:
    """Read every result below the folder. Raises NotTheirs."""
    folders = sorted({file.parent.parent for file in path.rglob("data/runInfo.csv")})
    if not folders:
        raise NotTheirs("There is no data/runInfo.csv in the folder or below it.")
    found = Imported()
    for folder in folders:
        _take(folder, found)
    return found


def _take(folder: Path, found: Imported) -> None:
    with (folder / "data" / "runInfo.csv").open(newline="") as file:
        info = next(csv.DictReader(file), {})
    at, minutes = moment(info.get("sessionStart")), number(info.get("runMins"))
    if at is None or not minutes:
        found.left_out.append(f"{folder.name}: no sessionStart, or a run by transactions.")
        return
    if "postgres" not in (info.get("db") or "").lower():
        found.left_out.append(f"{folder.name}: a result of {info.get('db')}.")
        return
    kinds = _kinds(folder / "data" / "result.csv", minutes * 60_000)
    properties = _properties(folder / "run.properties")
    levels = {
        "clients": number(properties.get("terminals") or info.get("runTerminals")),
        "warehouses": number(info.get("runWarehouses") or info.get("loadWarehouses")),
        "duration": minutes * 60,
        "rampup": (number(properties.get("rampupMins")) or 0) * 60 or None,
    }
    values = tuple(_values(kinds, minutes))
    found.runs.append(
        ImportedRun(
            campaign="benchmarksql",
            scenario="tpcc",
            external_id=f"{folder.name}@{at.isoformat()}"[:200],
            started_at=at,
            levels={name: int(level) for name, level in levels.items() if level is not None},
            measurements=values,
            labels=texts(properties, ("application", "limitTxnsPerMin", "newOrderWeight")),
            tool_name="benchmarksql",
            tool_version=(info.get("driverVersion") or "")[:40],
            failure="" if kinds.get(_NEW_ORDER) else "No new order was processed.",
        )
    )


def _kinds(file: Path, most: float) -> dict[str, _Kind]:
    """The transactions of each kind within the measured time. Latencies in ms."""
    found: dict[str, _Kind] = {}
    if not file.is_file():
        return found
    with file.open(newline="") as rows:
        for row in csv.DictReader(rows):
            elapsed, latency = number(row.get("elapsed")), number(row.get("latency"))
            kind = row.get("ttype") or ""
            if elapsed is None or latency is None or not 0 <= elapsed <= most or not kind:
                continue
            of = found.setdefault(kind, _Kind())
            of.latencies.append(latency)
            of.rollbacks += row.get("rbk") == "1"
            of.errors += row.get("error") not in (None, "", "0")
    return found


def _values(kinds: dict[str, _Kind], minutes: float) -> Iterator[MetricValue]:
    counted = {name: kind for name, kind in kinds.items() if name != _BACKGROUND}
    if _NEW_ORDER not in counted:
        return
    yield from quantities.TPMC.of(len(counted[_NEW_ORDER].latencies) / minutes)
    yield from quantities.TPM.of(sum(len(kind.latencies) for kind in counted.values()) / minutes)
    yield from quantities.ERRORS.of(sum(kind.errors for kind in counted.values()))
    for name, kind in kinds.items():
        ordered = sorted(kind.latencies)
        yield from quantities.TRANSACTIONS.part(name).of(len(ordered))
        yield from quantities.ROLLBACKS.part(name).of(kind.rollbacks)
        yield from quantities.LATENCY_AVERAGE.part(name).of(sum(ordered) / len(ordered))
        yield from quantities.LATENCY_MAXIMUM.part(name).of(ordered[-1])
        for percent in _PERCENTILES:
            place = max(0, round(len(ordered) * float(percent) / 100) - 1)
            yield from quantities.latency_percentile(percent).part(name).of(ordered[place] or None)


def _properties(file: Path) -> dict[str, str]:
    lines = file.read_text("utf-8", "replace").splitlines() if file.is_file() else []
    pairs = (line.partition("=") for line in lines if "=" in line and line[0] not in "#!")
    return {name.strip(): value.strip() for name, _sign, value in pairs}
