"""asv (airspeed velocity): the folder of results, as results_dir of asv.conf.json names it.

Source: asv's documentation ("Developer docs", "Benchmark suite layout and file formats") of file
versions 1 and 2. Each file is of a commit, an environment and a machine, and is a run.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runs.importers import row
from runs.tools.adapter import MetricValue
from runs.tools.named_values import MOST, marked
from runs.tools.output import part, words
from runs.wording import gettext_noop as _

_MACHINE = frozenset({"arch", "cpu", "machine", "num_cpu", "os", "ram", "version"})
_UNITS = {"seconds": "s", "bytes": "B"}


def read(path: Path) -> row.Imported:
    """Read the folder of results. Raises row.NotTheirs."""
    folder = path / "results" if (path / "results").is_dir() else path
    catalogue = row.object_in(folder / "benchmarks.json")
    files = sorted(folder.glob("*/*.json"))
    if not catalogue or not files:
        raise row.NotTheirs(
            _("There is no benchmarks.json with results of machines below it.")
        )
    imported = row.Imported()
    for file in files:
        if file.name != "machine.json":
            _take(file, catalogue, folder, imported)
    return imported


def _take(
    file: Path, catalogue: dict[str, Any], folder: Path, imported: row.Imported
) -> None:
    document = row.object_in(file)
    sha = row.sha_of(document.get("commit_hash"))
    moment = row.moment(document.get("date"), per_second=1000)
    if not sha or moment is None:
        imported.leave_out(_("%(file)s: no commit_hash or date."), file=file.name)
        return
    machine = row.object_in(file.parent / "machine.json") | part(document, "params")
    values = list(_values(document, catalogue, file.name, imported))
    # Values with commas or spaces are lists of requirements, no levels.
    environment = {
        name: value
        for name, value in row.texts(part(document, "params")).items()
        if name not in _MACHINE and "/" not in value  # a path names no version
    }
    imported.take(
        campaign=row.campaign_of(
            "asv", str(catalogue.get("project") or folder.resolve().parent.name)
        ),
        scenario="asv",
        external_id=f"{file.parent.name}/{file.stem}"[:200],
        started_at=moment,
        levels={"machine": file.parent.name[:80], **environment},
        measurements=tuple(values[:MOST]),
        sha=sha,
        branch="main",
        committed_at=moment,
        hardware=row.processor(words(machine.get("cpu")) or ""),
        tool_name="asv",
        failure="" if values else "No benchmark has a number.",
    )


def _values(
    document: dict[str, Any],
    catalogue: dict[str, Any],
    file: str,
    imported: row.Imported,
) -> Iterator[MetricValue]:
    columns = document.get("result_columns")
    results_by_name = dict(
        _results(
            part(document, "results"), columns if isinstance(columns, list) else []
        )
    )
    marked_names = marked(results_by_name)
    for name, (benchmark, value) in results_by_name.items():
        unit = str(part(catalogue, benchmark).get("unit") or "")
        is_known = unit in _UNITS
        metric = row.named(
            name,
            _UNITS.get(unit, unit),
            "lower" if is_known else None,
            is_marked=name in marked_names,
        )
        values = row.value_of(metric, value)
        if not values:
            imported.leave_out(
                _("%(file)s: %(name)s has no number."), file=file, name=name
            )
        yield from values


def _results(
    results: dict[str, Any], columns: list[Any]
) -> Iterator[tuple[str, tuple[str, Any]]]:
    for benchmark, result_values in results.items():
        columns_of_result = (
            dict(zip(columns, result_values, strict=False))
            if isinstance(result_values, list)
            else result_values
        )
        if not isinstance(
            columns_of_result, dict
        ):  # to version 1 a benchmark without parameters
            columns_of_result = {"result": columns_of_result}
        values, params = (
            columns_of_result.get("result"),
            columns_of_result.get("params") or [],
        )
        # Of as many as there are values: the product of long lists has no end.
        choices = params if isinstance(params, list) else []
        is_known = bool(choices) and all(isinstance(listed, list) for listed in choices)
        cases = itertools.product(*choices) if is_known else [()]
        for case, value in zip(
            cases, values if isinstance(values, list) else [values], strict=False
        ):
            suffix = f"({', '.join(map(str, case))})" if case else ""
            yield f"{benchmark}{suffix}", (benchmark, value)
