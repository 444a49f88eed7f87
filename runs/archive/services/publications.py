"""Publications: the archive says what the reviewed data files of the repository say."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DataError, transaction

from runs.archive.services import published_conditions, results, tables
from runs.models import Measurement, Metric, Source
from runs.published import derived_figures, reading, schema
from runs.published.derived_figures import CheckedTable
from runs.published.document import Document, MetricEntry, SourceEntry
from runs.published.errors import PublishedFileError
from runs.scenarios import registry
from runs.workloads.services import scenarios


@dataclass(frozen=True)
class Loaded:
    """The slugs of sources that were stored, that had not changed, and that were removed."""

    stored: tuple[str, ...]
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]


def files() -> list[Path]:
    """The data files of the repository, and those of this instance.

    Raises PublishedFileError for a file of the instance that has the name of another one.
    """
    ours, instance_files = reading.files(), reading.files(settings.PUBLICATIONS_DIR)
    names = {path.stem for path in ours}
    for path in instance_files:
        if path.stem in names:
            raise PublishedFileError(
                f"{path}: BenchLab has a publication of this name; give the file and its slug "
                "another one."
            )
    return [*ours, *instance_files]


def load(*, files: Sequence[Path], again: bool = False) -> Loaded:
    """Make the archive say what these files say, and nothing else.

    A file whose content is already stored is not read, unless `again`. All changed files are read
    and checked before the first is stored. Raises PublishedFileError, which names file, campaign
    and row.
    """
    stored = dict(Source.objects.values_list("slug", "content_hash"))
    hashes = {path: reading.content_hash(path) for path in files}
    changed = [path for path in files if again or stored.get(path.stem) != hashes[path]]
    # A changed file may use what another one describes.
    documents = {path: reading.read(path) for path in files} if changed else {}
    checked = list(_checked(documents, changed))
    if checked:
        scenarios.sync()
    gone = tuple(sorted(stored.keys() - {path.stem for path in files}))
    for slug in gone:
        _remove(slug=slug)
    for path, document, checked_tables in checked:
        try:
            store(document=document, found=checked_tables, content_hash=hashes[path])
        except PublishedFileError as error:
            error.locate(path)
            raise
        except DataError as error:
            # Most often a text that is longer than its column.
            raise PublishedFileError(
                f"{path.name}: cannot be stored: {error}"
            ) from error
    return Loaded(
        stored=tuple(path.stem for path in changed),
        unchanged=tuple(path.stem for path in files if path not in changed),
        removed=gone,
    )


def _checked(
    documents: Mapping[Path, Document], changed: Sequence[Path]
) -> Iterator[tuple[Path, Document, tuple[CheckedTable, ...]]]:
    known_names = schema.known(documents.values())
    for path in changed:
        try:
            schema.check(documents[path], known_names)
            yield (
                path,
                documents[path],
                derived_figures.check(documents[path].campaigns),
            )
        except PublishedFileError as error:
            error.locate(path)
            raise


@transaction.atomic
def store(
    *, document: Document, found: Sequence[CheckedTable], content_hash: str
) -> None:
    """Bring what is stored of one publication in step with its checked document."""
    entry = document.source
    source, _created = Source.objects.update_or_create(
        slug=entry.slug, defaults=source_fields(entry) | {"content_hash": content_hash}
    )
    before = published_conditions.stored_for(source)
    on = published_conditions.store(document)
    stored = results.store(
        source=source,
        document=document,
        tables=found,
        conditions=on,
        metrics=_metrics(source, document, found),
    )
    tables.store(
        source=source, document=document, tables=found, conditions=on, results=stored
    )
    published_conditions.remove(before, kept=on)


@transaction.atomic
def _remove(*, slug: str) -> None:
    source = Source.objects.get(slug=slug)
    before = published_conditions.stored_for(source)
    results.remove(source)
    source.delete()
    published_conditions.remove(before)


def source_fields(entry: SourceEntry) -> dict[str, Any]:
    """What is stored of a publication itself."""
    return {
        "title": entry.title.en,
        "title_ja": entry.title.ja,
        "publisher": entry.publisher.en,
        "publisher_ja": entry.publisher.ja,
        "year": entry.year,
        "published": entry.published,
        "language": entry.language,
        "url": entry.url,
        "traces": [trace.stored() for trace in entry.traces],
        "licence": entry.licence,
        "licence_url": entry.licence_url,
        "summary": entry.summary.en,
        "summary_ja": entry.summary.ja,
        "transcribed_on": entry.transcribed,
        "data_version": entry.data_version,
        "corrections": [correction.stored() for correction in entry.corrections],
    }


def _metrics(
    source: Source, document: Document, checked_tables: Sequence[CheckedTable]
) -> Mapping[str, Metric]:
    """Every metric of the document's figures; metrics defined in code keep their titles."""
    ours = registry.metrics()
    for entry in document.metrics:
        _check_metric(source, entry)
        if entry.name not in ours:
            Metric.objects.update_or_create(
                name=entry.name,
                project=None,
                defaults={
                    "unit": entry.unit,
                    "direction": entry.direction,
                    "title": entry.title.en,
                    "title_ja": entry.title.ja,
                },
            )
    metrics = {metric.name: metric for metric in Metric.objects.filter(project=None)}
    for table in checked_tables:
        for checked in table.figures:
            if checked.figure.metric not in metrics:
                message = f"the metric {checked.figure.metric} is not described; put it in metrics."
                raise PublishedFileError(
                    message, campaign=table.campaign.slug, row=checked.figure.row
                )
    return metrics


def _check_metric(source: Source, entry: MetricEntry) -> None:
    """Refuse another unit or direction for a metric that already has values."""
    stored_metric = Metric.objects.filter(name=entry.name, project=None).first()
    if stored_metric is None or (stored_metric.unit, stored_metric.direction) == (
        entry.unit,
        entry.direction,
    ):
        return
    other_measurements = Measurement.objects.filter(metric=stored_metric).exclude(
        run__campaign__published__source=source
    )
    if entry.name in registry.metrics() or other_measurements.exists():
        raise PublishedFileError(
            f"the metric {entry.name} has the unit “{stored_metric.unit}” and the direction "
            f"{stored_metric.direction} elsewhere; take another name for another metric."
        )
