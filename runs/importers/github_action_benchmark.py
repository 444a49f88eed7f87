"""github-action-benchmark: `data.js` of gh-pages, or the file of external-data-json-path.

Source: its README and src/write.ts. Each entry of a suite is a run, each of its benches a metric.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runs import foreign_json
from runs.importers import row
from runs.tools.adapter import Direction, MetricValue
from runs.tools.named_values import MOST, marked
from runs.tools.output import part, rows, words
from runs.wording import gettext_noop as _

# As src/write.ts decides which alerts are of worse figures.
_BIGGER_IS_BETTER = frozenset({"benchmarkjs", "pytest", "customBiggerIsBetter"})


def read(path: Path) -> row.Imported:
    """Read the file. Raises row.NotTheirs."""
    text = path.read_text("utf-8-sig")
    begin = text.find("{")
    try:
        document = (
            foreign_json.loads(text[begin:].rstrip().rstrip(";"))
            if begin >= 0
            else None
        )
    except ValueError as error:
        raise row.NotTheirs(
            _("No JSON behind window.BENCHMARK_DATA: %(error)s"), error=error
        ) from error
    suites = part(document, "entries")
    if not suites:
        raise row.NotTheirs(
            _("There are no entries: this is not data.js of github-action-benchmark.")
        )
    imported = row.Imported()
    for name, entries in suites.items():
        for entry in rows({"entries": entries}, "entries"):
            _take(name, entry, imported)
    return imported


def _take(suite: str, entry: dict[str, Any], imported: row.Imported) -> None:
    commit = part(entry, "commit")
    sha, moment = (
        row.sha_of(commit.get("id")),
        row.moment(entry.get("date"), per_second=1000),
    )
    if not sha or moment is None:
        imported.leave_out(
            _("%(suite)s: an entry without a commit or a date."), suite=suite
        )
        return
    tool = words(entry.get("tool")) or "?"
    values = tuple(_values(entry, tool, f"{suite} {sha[:10]}", imported))
    imported.take(
        campaign=row.campaign_of(suite),
        scenario=row.campaign_of(suite),
        external_id=f"{sha}@{moment.isoformat()}",
        started_at=moment,
        measurements=values[:MOST],
        sha=sha,
        branch="main",  # a file has the results of one branch
        url=words(commit.get("url")) or "",
        committed_at=row.moment(commit.get("timestamp")),
        subject=row.subject_of(commit.get("message")),
        author=row.author_of(part(commit, "author").get("name")),
        tool_name=tool[:40],
        failure="" if values else "The entry has no figure.",
    )


def _values(
    entry: dict[str, Any], tool: str, suite_name: str, imported: row.Imported
) -> Iterator[MetricValue]:
    benches = rows(entry, "benches")
    names = [str(bench.get("name") or "").strip() for bench in benches]
    marked_names, counts = marked(names), Counter(names)
    for name, bench in zip(names, benches, strict=True):
        unit, *further_values = (words(bench.get("unit")) or "").split("\t")
        direction: Direction = "higher" if tool in _BIGGER_IS_BETTER else "lower"
        if tool == "benchmarkluau":
            direction = row.direction_of(unit)
        value = row.value_of(
            row.named(name, unit, direction, is_marked=name in marked_names),
            bench.get("value"),
        )
        if not value or not name or counts[name] > 1:
            text = _("%(place)s: %(name)s (no number, or twice).")
            imported.leave_out(
                text, place=suite_name, name=name or _("a bench without a name")
            )
            continue
        yield from value
        for (
            further_value
        ) in further_values:  # of Go, to 1.15: "ns/op\t  32 B/op\t  1 allocs/op"
            figure, _space, unit = further_value.strip().partition(" ")
            if (other_name := f"{name} - {unit}") not in counts:
                yield from row.value_of(row.named(other_name, unit, direction), figure)
