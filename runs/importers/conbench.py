"""Conbench: what /api/benchmark-results/ answers (/api/benchmarks/ before), page by page.

Source: Conbench's API, benchmark_result.py. A file has one answer, an answer's `data` or a list.
Results of a run and a machine are one run here, each benchmark with its tags a metric.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runs.importers import row
from runs.tools.adapter import MetricValue
from runs.tools.named_values import MOST, marked
from runs.tools.output import number, part, words
from runs.wording import gettext_noop as _


def read(path: Path) -> row.Imported:
    """Read the answers. Raises row.NotTheirs."""
    results = [
        result for document in row.documents(path) for result in _results(document)
    ]
    if not results:
        raise row.NotTheirs(
            _("There is no result with tags and stats, as the API answers them.")
        )
    imported = row.Imported()
    runs: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for result in results:
        machine = words(part(result, "hardware").get("name")) or "?"
        runs[words(result.get("run_id")) or str(result.get("id")), machine].append(
            result
        )
    for (run, machine), each_of in runs.items():
        _take(run, machine, each_of, imported)
    return imported


def _results(document: Any) -> list[dict[str, Any]]:
    data = document.get("data", [document]) if isinstance(document, dict) else document
    return [
        element for element in data if isinstance(element, dict) and "tags" in element
    ]


def _take(
    run: str, machine: str, results: list[dict[str, Any]], imported: row.Imported
) -> None:
    results.sort(key=lambda result: str(result.get("timestamp")))
    first_result = results[0]
    moment, commit = (
        row.moment(first_result.get("timestamp")),
        part(first_result, "commit"),
    )
    if moment is None:
        imported.leave_out(_("Run %(run)s: no time."), run=run)
        return
    values = list(_values(run, results, imported))
    repository = (
        (words(commit.get("repository")) or "conbench").rstrip("/").rpartition("/")[2]
    )
    sha = row.sha_of(commit.get("sha"))
    branch = (words(commit.get("branch")) or "").rpartition(":")[2]
    # Without a branch a commit of the default branch is its own fork point.
    is_default = not branch or commit.get("fork_point_sha") == commit.get("sha")
    imported.take(
        campaign=row.campaign_of("conbench", repository),
        scenario="conbench",
        external_id=f"{run}@{machine}"[:200],
        started_at=moment,
        levels={"machine": machine[:80]},
        measurements=tuple(values[:MOST]),
        sha=sha,
        branch="main" if is_default else branch,
        url=words(commit.get("url")) or "",
        committed_at=row.moment(commit.get("timestamp")),
        subject=row.subject_of(commit.get("message")),
        author=row.author_of(commit.get("author_name")),
        parents=tuple(filter(None, [row.sha_of(commit.get("parent_sha"))])),
        labels={"run_reason": words(first_result.get("run_reason")) or "?"},
        hardware={"name": machine},
        tool_name="conbench",
        failure="" if values else "No result of the run has a number.",
    )


def _values(
    run: str, results: list[dict[str, Any]], imported: row.Imported
) -> Iterator[MetricValue]:
    names = [_name(part(result, "tags")) for result in results]
    marked_names, seen_names = marked(names), set[str]()
    for name, result in zip(names, results, strict=True):
        stats = part(result, "stats")
        unit = words(stats.get("unit")) or ""
        value = number(stats.get("mean"))
        data = [number(item) for item in stats.get("data") or []]
        samples = [item for item in data if item is not None]
        if value is None and samples and len(samples) == len(data):
            value = sum(samples) / len(samples)
        values = row.value_of(
            row.named(name, unit, is_marked=name in marked_names), value
        )
        if result.get("error") or not values or name in seen_names:
            text = _("Run %(run)s: %(name)s (an error, no number, or twice).")
            imported.leave_out(text, run=run, name=name)
        else:
            seen_names.add(name)
            yield from values


def _name(tags: dict[str, Any]) -> str:
    further_tags = [
        f"{key} {value}"
        for key, value in sorted(tags.items())
        if key not in ("name", "id")
    ]
    return " ".join([str(tags.get("name") or "?"), *further_tags])
