"""Whether the archive says what the repository's data files say. Reads only, and everything."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Q

from runs.archive.services import publications, results, tables
from runs.models import (
    Artifact,
    Campaign,
    Cell,
    CellSummary,
    Environment,
    HardwareProfile,
    Measurement,
    Metric,
    PrintedFigure,
    PublishedTable,
    Run,
    Source,
)
from runs.models.campaigns import Origin
from runs.published import derived_figures, reading
from runs.published.derived_figures import CheckedTable
from runs.published.document import Document
from runs.scenarios import registry
from runs.seals.selectors.verification import Finding

Rows = Mapping[Any, Any]
REMEDY = "`manage.py load_published --again` stores it as in its file"


def read() -> list[Document]:
    """The data files. Raises PublishedFileError."""
    return [reading.read(path) for path in publications.files()]


def findings(archive: Sequence[Document]) -> Iterator[Finding]:
    """What of the archive differs from its file; nothing before it was loaded the first time."""
    stored = {each.slug: each for each in Source.objects.all()}
    slugs = {each.source.slug for each in archive}
    for slug in sorted(stored.keys() - slugs):
        yield _finding(f"The publication {slug} is in no data file.")
    for document in archive:
        source = stored.get(document.source.slug)
        if source is None:
            if stored:
                yield _finding(f"The publication {document.source.slug} is missing.")
            continue
        for difference in _document(document, source):
            yield _finding(f"The publication {source.slug}: {difference}; {REMEDY}.")


def _finding(message: str) -> Finding:
    return Finding("archive", None, "published_changed", message)


def _document(document: Document, source: Source) -> Iterator[str]:
    wanted = publications.source_fields(document.source)
    yield from _fields("its description", wanted, {name: getattr(source, name) for name in wanted})
    yield from _conditions(document)
    checked = derived_figures.check(document.campaigns)
    yield from _rows("metric", *_metrics(document, checked))
    for table in checked:
        yield from _table(table)


def _metrics(document: Document, tables: Sequence[CheckedTable]) -> tuple[Rows, Rows]:
    """Unit and direction of the figures' metrics: as the code or the file has them, and stored."""
    own: dict[str, Any] = {each.name: each for each in document.metrics} | registry.metrics()
    used = {each.figure.metric for table in tables for each in table.figures} & own.keys()
    rows = Metric.objects.filter(name__in=used, project=None).values_list(
        "name", "unit", "direction"
    )
    wanted = {name: [own[name].unit, str(own[name].direction)] for name in used}
    return wanted, {name: rest for name, *rest in rows}


def _conditions(document: Document) -> Iterator[str]:
    used = {
        key
        for campaign in document.campaigns
        for node in campaign.nodes
        for key in (("hardware", node.hardware), ("environments", node.environment))
    }
    for model, name in ((HardwareProfile, "hardware"), (Environment, "environments")):
        for key, entry in getattr(document, name).items():
            if (name, key) not in used:
                continue
            wanted = dataclasses.asdict(entry)
            slug = f"{document.source.slug}-{wanted.pop('key')}"[:120]
            row = model._default_manager.filter(slug=slug).values(*wanted).first()
            yield from _fields(slug, wanted, row or {})


def _table(table: CheckedTable) -> Iterator[str]:
    entry = table.campaign
    planned = results.planned_runs(table)
    campaign = Campaign.objects.filter(slug=entry.slug).first()
    if campaign is None:
        yield f"the campaign {entry.slug} is missing"
        return
    row = PublishedTable.objects.filter(campaign=campaign).first()
    wanted = {**results.campaign_fields(table), **tables.table_fields(entry)}
    found = {name: getattr(campaign, name) for name in results.campaign_fields(table)}
    found |= {name: getattr(row, name, None) for name in tables.table_fields(entry)}
    yield from _fields(entry.slug, wanted, found)
    for subject, these, those in (
        ("run", _planned_runs(planned, table), _stored_runs(campaign)),
        ("figure", _planned_figures(planned), _stored_figures(campaign)),
        ("summary", results.planned_summaries(planned), _stored_summaries(campaign)),
        ("artifact", _planned_artifacts(planned), _stored_artifacts(campaign)),
        ("printed figure", _printed(table), _stored_printed(campaign)),
    ):
        for difference in _rows(subject, these, those):
            yield f"{entry.slug}, {difference}"


def _planned_runs(planned: Mapping[Any, results.PlannedRun], table: CheckedTable) -> Rows:
    described = {}
    for (key, repeat), run in planned.items():
        version = results.cell_fields(table.campaign, run.levels)["version"]
        tool = (table.campaign.tool_name, table.campaign.tool_version)
        counts = (Run.State.FINISHED.value, Origin.PUBLISHED.value)
        levels = json.loads(json.dumps(dict(run.levels)))
        described[key, repeat] = [levels, version, *tool, *counts]
    return described


def _stored_runs(campaign: Campaign) -> Rows:
    cells = Cell.objects.filter(campaign=campaign).values_list("pk", "key", "levels", "version")
    known = {pk: rest for pk, *rest in cells}
    runs = Run.objects.filter(Q(campaign=campaign) | Q(cell__campaign=campaign)).values_list(
        "cell_id", "campaign__slug", "repeat", "tool_name", "tool_version", "state", "origin"
    )
    found = []
    for cell, slug, repeat, *rest in runs:
        # A run in the cell of another campaign would count there, and is in no file.
        key, *facts = known.get(cell, [f"cell {cell}"])
        if slug != campaign.slug:
            key = f"{key} of {slug}"
        found.append(((key, repeat), [*facts, *rest]))
    return _by_key(found)


def _planned_figures(planned: Mapping[Any, results.PlannedRun]) -> Rows:
    return {
        (key, repeat, each.figure.metric, each.figure.statistic or "single"): [
            each.figure.number.value,
            each.figure.n or 1,
        ]
        for (key, repeat), run in planned.items()
        for each in run.figures
    }


def _stored_figures(campaign: Campaign) -> Rows:
    rows = Measurement.objects.filter(run__campaign=campaign).values_list(
        "run__cell__key", "run__repeat", "metric__name", "statistic", "value", "n"
    )
    return _by_key((tuple(place), [value, n]) for *place, value, n in rows)


def _stored_summaries(campaign: Campaign) -> Rows:
    names = ("n", "median", "minimum", "maximum", "mean", "log_mean", "log_variance")
    summaries = CellSummary.objects.filter(cell__campaign=campaign)
    rows = summaries.values("cell__key", "metric__name", *names)
    return _by_key(
        ((row["cell__key"], row["metric__name"]), {name: row[name] for name in names})
        for row in rows
    )


def _printed(table: CheckedTable) -> Rows:
    return {
        (each.figure.row, each.figure.column): [
            each.figure.text,
            each.figure.n,
            each.figure.statistic or "",
            each.figure.is_exact,
            each.kind,
            each.recomputed,
        ]
        for each in table.figures
    }


def _stored_printed(campaign: Campaign) -> Rows:
    rows = PrintedFigure.objects.filter(table__campaign=campaign).values_list(
        "row", "column", "text", "n", "statistic", "exact", "kind", "recomputed"
    )
    return _by_key(((row, column), rest) for row, column, *rest in rows)


def _planned_artifacts(planned: Mapping[Any, results.PlannedRun]) -> Rows:
    return {
        (*place, each.name): hashlib.sha256(each.text.encode()).hexdigest()
        for place, run in planned.items()
        for each in run.artifacts
    }


def _stored_artifacts(campaign: Campaign) -> Rows:
    rows = Artifact.objects.filter(run__campaign=campaign).values_list(
        "run__cell__key", "run__repeat", "name", "sha256"
    )
    return _by_key((tuple(place), digest) for *place, digest in rows)


def _by_key(rows: Iterable[tuple[tuple[Any, ...], Any]]) -> Rows:
    """Rows by their keys. What is there twice has the place as a part of its key."""
    found: dict[tuple[Any, ...], Any] = {}
    for number, (key, row) in enumerate(rows):
        found[(*key, f"again {number}") if key in found else key] = row
    return found


def _rows(subject: str, wanted: Rows, found: Rows) -> Iterator[str]:
    for key in sorted(wanted.keys() | found.keys(), key=str):
        was, now = wanted.get(key), found.get(key)
        if _plain(was) != _plain(now):
            yield f"{subject} {key} is {_shown(now)}, and should be {_shown(was)}"


def _plain(value: Any) -> Any:
    """A row as it compares: tuples and lists are alike."""
    return list(value) if isinstance(value, tuple) else value


def _fields(subject: str, wanted: Rows, found: Rows) -> Iterator[str]:
    for name, value in wanted.items():
        plain = json.loads(json.dumps(value, default=str))
        if plain != json.loads(json.dumps(found.get(name), default=str)):
            yield f"{name} of {subject} differs"


def _shown(row: Any) -> str:
    return "missing" if row is None else str(row)[:200]
