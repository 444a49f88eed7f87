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
    results = [each for answer in row.documents(path) for each in _results(answer)]
    if not results:
        raise row.NotTheirs(_("There is no result with tags and stats, as the API answers them."))
    found = row.Imported()
    runs: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for each in results:
        machine = words(part(each, "hardware").get("name")) or "?"
        runs[words(each.get("run_id")) or str(each.get("id")), machine].append(each)
    for (run, machine), each_of in runs.items():
        _take(run, machine, each_of, found)
    return found


def _results(document: Any) -> list[dict[str, Any]]:
    data = document.get("data", [document]) if isinstance(document, dict) else document
    return [each for each in data if isinstance(each, dict) and "tags" in each]


def _take(run: str, machine: str, results: list[dict[str, Any]], found: row.Imported) -> None:
    results.sort(key=lambda each: str(each.get("timestamp")))
    first = results[0]
    at, commit = row.moment(first.get("timestamp")), part(first, "commit")
    if at is None:
        found.leave_out(_("Run %(run)s: no time."), run=run)
        return
    values = list(_values(run, results, found))
    repository = (words(commit.get("repository")) or "conbench").rstrip("/").rpartition("/")[2]
    sha = row.sha_of(commit.get("sha"))
    branch = (words(commit.get("branch")) or "").rpartition(":")[2]
    # Without a branch a commit of the default branch is its own fork point.
    is_default = not branch or commit.get("fork_point_sha") == commit.get("sha")
    found.take(
        campaign=row.campaign_of("conbench", repository),
        scenario="conbench",
        external_id=f"{run}@{machine}"[:200],
        started_at=at,
        levels={"machine": machine[:80]},
        measurements=tuple(values[:MOST]),
        sha=sha,
        branch="main" if is_default else branch,
        url=words(commit.get("url")) or "",
        committed_at=row.moment(commit.get("timestamp")),
        parents=tuple(filter(None, [row.sha_of(commit.get("parent_sha"))])),
        labels={"run_reason": words(first.get("run_reason")) or "?"},
        hardware={"name": machine},
        tool_name="conbench",
        failure="" if values else "No result of the run has a number.",
    )


def _values(run: str, results: list[dict[str, Any]], found: row.Imported) -> Iterator[MetricValue]:
    names = [_name(part(each, "tags")) for each in results]
    alike, seen = marked(names), set[str]()
    for name, each in zip(names, results, strict=True):
        stats = part(each, "stats")
        unit = words(stats.get("unit")) or ""
        value = number(stats.get("mean"))
        data = [number(item) for item in stats.get("data") or []]
        samples = [item for item in data if item is not None]
        if value is None and samples and len(samples) == len(data):
            value = sum(samples) / len(samples)
        values = row.value_of(row.named(name, unit, is_marked=name in alike), value)
        if each.get("error") or not values or name in seen:
            text = _("Run %(run)s: %(name)s (an error, no number, or twice).")
            found.leave_out(text, run=run, name=name)
        else:
            seen.add(name)
            yield from values


def _name(tags: dict[str, Any]) -> str:
    further = [f"{key} {value}" for key, value in sorted(tags.items()) if key not in ("name", "id")]
    return " ".join([str(tags.get("name") or "?"), *further])
