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
    stored = {source.slug: source for source in Source.objects.all()}
    slugs = {document.source.slug for document in archive}
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
    wanted_fields = publications.source_fields(document.source)
    yield from _fields(
        "its description",
        wanted_fields,
        {name: getattr(source, name) for name in wanted_fields},
    )
    yield from _conditions(document)
    checked = derived_figures.check(document.campaigns)
    yield from _rows("metric", *_metrics(document, checked))
    for table in checked:
        yield from _table(table)


def _metrics(document: Document, tables: Sequence[CheckedTable]) -> tuple[Rows, Rows]:
    """Unit and direction of the figures' metrics: as the code or the file has them, and stored."""
    known_metrics: dict[str, Any] = {
        metric_entry.name: metric_entry for metric_entry in document.metrics
    } | registry.metrics()
    used = {
        checked.figure.metric for table in tables for checked in table.figures
    } & known_metrics.keys()
    rows = Metric.objects.filter(name__in=used, project=None).values_list(
        "name", "unit", "direction"
    )
    wanted_metrics = {
        name: [known_metrics[name].unit, str(known_metrics[name].direction)]
        for name in used
    }
    return wanted_metrics, {
        name: unit_and_direction for name, *unit_and_direction in rows
    }


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
            wanted_fields = dataclasses.asdict(entry)
            slug = f"{document.source.slug}-{wanted_fields.pop('key')}"[:120]
            row = (
                model._default_manager.filter(slug=slug).values(*wanted_fields).first()
            )
            yield from _fields(slug, wanted_fields, row or {})


def _table(table: CheckedTable) -> Iterator[str]:
    entry = table.campaign
    planned = results.planned_runs(table)
    campaign = Campaign.objects.filter(slug=entry.slug).first()
    if campaign is None:
        yield f"the campaign {entry.slug} is missing"
        return
    row = PublishedTable.objects.filter(campaign=campaign).first()
    wanted_fields = {**results.campaign_fields(table), **tables.table_fields(entry)}
    stored_fields = {
        name: getattr(campaign, name) for name in results.campaign_fields(table)
    }
    stored_fields |= {
        name: getattr(row, name, None) for name in tables.table_fields(entry)
    }
    yield from _fields(entry.slug, wanted_fields, stored_fields)
    for subject, these, those in (
        ("run", _planned_runs(planned, table), _stored_runs(campaign)),
        ("figure", _planned_figures(planned), _stored_figures(campaign)),
        ("summary", results.planned_summaries(planned), _stored_summaries(campaign)),
        ("artifact", _planned_artifacts(planned), _stored_artifacts(campaign)),
        ("printed figure", _printed(table), _stored_printed(campaign)),
    ):
        for difference in _rows(subject, these, those):
            yield f"{entry.slug}, {difference}"


def _planned_runs(
    planned: Mapping[Any, results.PlannedRun], table: CheckedTable
) -> Rows:
    described = {}
    for (key, repeat), run in planned.items():
        version = results.cell_fields(table.campaign, run.levels)["version"]
        tool = (table.campaign.tool_name, table.campaign.tool_version)
        counts = (Run.State.FINISHED.value, Origin.PUBLISHED.value)
        levels = json.loads(json.dumps(dict(run.levels)))
        described[key, repeat] = [levels, version, *tool, *counts]
    return described


def _stored_runs(campaign: Campaign) -> Rows:
    cells = Cell.objects.filter(campaign=campaign).values_list(
        "pk", "key", "levels", "version"
    )
    facts_of_cell = {pk: cell_facts for pk, *cell_facts in cells}
    names = ("tool_name", "tool_version", "state", "origin")
    of_campaign = Q(campaign=campaign) | Q(cell__campaign=campaign)
    runs = Run.objects.filter(of_campaign).values(
        "cell_id", "campaign__slug", "repeat", *names
    )
    stored_rows = []
    for run in runs:
        # A run in the cell of another campaign would count there, and is in no file.
        cell, slug = run["cell_id"], run["campaign__slug"]
        key, *facts = facts_of_cell.get(cell, [f"cell {cell}"])
        if slug != campaign.slug:
            key = f"{key} of {slug}"
        stored_rows.append(
            ((key, run["repeat"]), [*facts, *(run[name] for name in names)])
        )
    return _index_rows(stored_rows)


def _planned_figures(planned: Mapping[Any, results.PlannedRun]) -> Rows:
    return {
        (key, repeat, checked.figure.metric, checked.figure.statistic or "single"): [
            checked.figure.number.value,
            checked.figure.n or 1,
        ]
        for (key, repeat), run in planned.items()
        for checked in run.figures
    }


def _stored_figures(campaign: Campaign) -> Rows:
    rows = Measurement.objects.filter(run__campaign=campaign).values_list(
        "run__cell__key", "run__repeat", "metric__name", "statistic", "value", "n"
    )
    return _index_rows((tuple(row_key), [value, n]) for *row_key, value, n in rows)


def _stored_summaries(campaign: Campaign) -> Rows:
    names = ("n", "median", "minimum", "maximum", "mean", "log_mean", "log_variance")
    summaries = CellSummary.objects.filter(cell__campaign=campaign)
    rows = summaries.values("cell__key", "metric__name", *names)
    return _index_rows(
        ((row["cell__key"], row["metric__name"]), {name: row[name] for name in names})
        for row in rows
    )


def _printed(table: CheckedTable) -> Rows:
    return {
        (printed_figure.figure.row, printed_figure.figure.column): [
            printed_figure.figure.text,
            printed_figure.figure.n,
            printed_figure.figure.statistic or "",
            printed_figure.figure.is_exact,
            printed_figure.kind,
            printed_figure.recomputed,
        ]
        for printed_figure in table.figures
    }


def _stored_printed(campaign: Campaign) -> Rows:
    rows = PrintedFigure.objects.filter(table__campaign=campaign).values_list(
        "row", "column", "text", "n", "statistic", "exact", "kind", "recomputed"
    )
    return _index_rows(
        ((row, column), facts_of_figure) for row, column, *facts_of_figure in rows
    )


def _planned_artifacts(planned: Mapping[Any, results.PlannedRun]) -> Rows:
    return {
        (*run_key, artifact.name): hashlib.sha256(artifact.text.encode()).hexdigest()
        for run_key, run in planned.items()
        for artifact in run.artifacts
    }


def _stored_artifacts(campaign: Campaign) -> Rows:
    rows = Artifact.objects.filter(run__campaign=campaign).values_list(
        "run__cell__key", "run__repeat", "name", "sha256"
    )
    return _index_rows((tuple(row_key), digest) for *row_key, digest in rows)


def _index_rows(rows: Iterable[tuple[tuple[Any, ...], Any]]) -> Rows:
    """Rows by their keys. What is there twice has the place as a part of its key."""
    rows_by_key: dict[tuple[Any, ...], Any] = {}
    for number, (key, row) in enumerate(rows):
        rows_by_key[(*key, f"again {number}") if key in rows_by_key else key] = row
    return rows_by_key


def _rows(subject: str, wanted_rows: Rows, stored_rows: Rows) -> Iterator[str]:
    for key in sorted(wanted_rows.keys() | stored_rows.keys(), key=str):
        was, now = wanted_rows.get(key), stored_rows.get(key)
        if _plain(was) != _plain(now):
            yield f"{subject} {key} is {_shown(now)}, and should be {_shown(was)}"


def _plain(value: Any) -> Any:
    """A row as it compares: tuples and lists are alike."""
    return list(value) if isinstance(value, tuple) else value


def _fields(subject: str, wanted_fields: Rows, stored_fields: Rows) -> Iterator[str]:
    for name, value in wanted_fields.items():
        plain = json.loads(json.dumps(value, default=str))
        if plain != json.loads(json.dumps(stored_fields.get(name), default=str)):
            yield f"{name} of {subject} differs"


def _shown(row: Any) -> str:
    return "missing" if row is None else str(row)[:200]
