"""Publications: loading their data files, drafts with a preview, and acceptance."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from django.contrib.auth.models import User
from django.db import DataError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.models import Measurement, Metric, PublicationDraft, PublishedTable, Source
from runs.published import checks, reading, schema
from runs.published.checks import CheckedTable
from runs.published.document import Document, MetricEntry, SourceEntry, Text
from runs.published.errors import PublishedFileError
from runs.scenarios import registry
from runs.services.archive import conditions, results, tables
from runs.services.campaigns import scenarios
from runs.services.errors import ServiceError


@dataclass(frozen=True)
class Loaded:
    """The slugs of sources that were stored, that had not changed, and that were removed."""

    stored: tuple[str, ...]
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]


def load(*, files: Sequence[Path]) -> Loaded:
    """Make the archive say what these files say, and nothing else.

    A file whose content is already stored is not read. All changed files are read and checked
    before the first is stored. Raises PublishedFileError, which names file, campaign and row.
    """
    stored = dict(Source.objects.values_list("slug", "content_hash"))
    hashes = {path: reading.content_hash(path) for path in files}
    changed = [path for path in files if stored.get(path.stem) != hashes[path]]
    # A changed file may use what another one describes.
    documents = {path: reading.read(path) for path in files} if changed else {}
    checked = list(_checked(documents, changed))
    if checked:
        scenarios.sync()
    gone = tuple(sorted(stored.keys() - {path.stem for path in files}))
    for slug in gone:
        _remove(slug=slug)
    for path, document, found in checked:
        try:
            store(document=document, found=found, content_hash=hashes[path])
        except PublishedFileError as error:
            error.locate(path)
            raise
        except DataError as error:
            # Most often a text that is longer than its column.
            raise PublishedFileError(f"{path.name}: cannot be stored: {error}") from error
    return Loaded(
        stored=tuple(path.stem for path in changed),
        unchanged=tuple(path.stem for path in files if path not in changed),
        removed=gone,
    )


def _checked(
    documents: Mapping[Path, Document], changed: Sequence[Path]
) -> Iterator[tuple[Path, Document, tuple[CheckedTable, ...]]]:
    known = schema.known(documents.values())
    for path in changed:
        try:
            schema.check(documents[path], known)
            yield path, documents[path], checks.check(documents[path].campaigns)
        except PublishedFileError as error:
            error.locate(path)
            raise


@transaction.atomic
def store(*, document: Document, found: Sequence[CheckedTable], content_hash: str) -> None:
    """Bring what is stored of one publication in step with its checked document."""
    source = _source(document.source, content_hash)
    before = conditions.stored_for(source)
    on = conditions.store(document)
    kept = results.store(
        source=source,
        document=document,
        tables=found,
        conditions=on,
        metrics=_metrics(source, document, found),
    )
    tables.store(source=source, document=document, tables=found, conditions=on, results=kept)
    conditions.remove(before, kept=on)


@transaction.atomic
def _remove(*, slug: str) -> None:
    source = Source.objects.get(slug=slug)
    before = conditions.stored_for(source)
    results.remove(source)
    source.delete()
    conditions.remove(before)


def _source(entry: SourceEntry, content_hash: str) -> Source:
    made, _created = Source.objects.update_or_create(
        slug=entry.slug,
        defaults={
            "title": entry.title.en,
            "title_ja": entry.title.ja,
            "publisher": entry.publisher.en,
            "publisher_ja": entry.publisher.ja,
            "year": entry.year,
            "published": entry.published,
            "language": entry.language,
            "url": entry.url,
            "traces": [each.stored() for each in entry.traces],
            "licence": entry.licence,
            "licence_url": entry.licence_url,
            "summary": entry.summary.en,
            "summary_ja": entry.summary.ja,
            "transcribed_on": entry.transcribed,
            "data_version": entry.data_version,
            "corrections": [each.stored() for each in entry.corrections],
            "content_hash": content_hash,
        },
    )
    return made


def _metrics(
    source: Source, document: Document, found: Sequence[CheckedTable]
) -> Mapping[str, Metric]:
    """Every metric of the document's figures; metrics defined in code keep their titles."""
    ours = registry.metrics()
    for entry in document.metrics:
        _check_metric(source, entry)
        if entry.name not in ours:
            Metric.objects.update_or_create(
                name=entry.name,
                defaults={
                    "unit": entry.unit,
                    "direction": entry.direction,
                    "title": entry.title.en,
                    "title_ja": entry.title.ja,
                },
            )
    metrics = {metric.name: metric for metric in Metric.objects.all()}
    for table in found:
        for checked in table.figures:
            if checked.figure.metric not in metrics:
                message = f"the metric {checked.figure.metric} is not described; put it in metrics."
                raise PublishedFileError(
                    message, campaign=table.campaign.slug, row=checked.figure.row
                )
    return metrics


def _check_metric(source: Source, entry: MetricEntry) -> None:
    """Refuse another unit or direction for a metric that already has values."""
    known = Metric.objects.filter(name=entry.name).first()
    if known is None or (known.unit, known.direction) == (entry.unit, entry.direction):
        return
    others = Measurement.objects.filter(metric=known).exclude(
        run__campaign__published__source=source
    )
    if entry.name in registry.metrics() or others.exists():
        raise PublishedFileError(
            f"the metric {entry.name} has the unit “{known.unit}” and the direction "
            f"{known.direction} elsewhere; take another name for another metric."
        )


MOST_CHARACTERS = 500_000
# Cannot be slugs: they are the addresses of other pages.
NOT_SLUGS = ("discrepancies", "drafts", "figures", "later")


@dataclass(frozen=True)
class Preview:
    """A draft as the archive would take it: what it says, and what BenchLab computes of it."""

    document: Document
    tables: tuple[CheckedTable, ...]


def preview(*, slug: str, text: str) -> Preview:
    """Check a draft by all rules of data files. Raises PublishedFileError with line and remedy."""
    with _written({slug: text}) as (path,):
        return _checked_draft(path)


@transaction.atomic
def save(*, slug: str, text: str, by: User) -> PublicationDraft:
    """Keep a draft, whatever is still wrong with it. Raises ServiceError `slug_taken`, `too_long`.

    A draft that was accepted stays in the archive as it was until the new text is accepted.
    """
    if slug in NOT_SLUGS or slug in {path.stem for path in reading.files()}:
        message = _("“%(slug)s” is the name of another publication or page.") % {"slug": slug}
        raise ServiceError("slug_taken", message, field="slug")
    if len(text) > MOST_CHARACTERS:
        message = _("It has more than %(most)d characters.") % {"most": MOST_CHARACTERS}
        raise ServiceError("too_long", message, field="text")
    draft, _created = PublicationDraft.objects.update_or_create(
        slug=slug, defaults={"text": text, "edited_by": by}
    )
    return draft


@transaction.atomic
def accept(*, draft: PublicationDraft, text: str, by: User) -> None:
    """Take a draft into the archive; `text` is what was looked at, which nobody changed since.

    Raises ServiceError `second_person`, `changed_since`; PublishedFileError for what is wrong.
    """
    found = PublicationDraft.objects.select_for_update().get(pk=draft.pk)
    if found.edited_by_id == by.pk:
        message = _("Someone other than its author has to accept it.")
        raise ServiceError("second_person", message)
    if found.text != text:
        message = _("It was changed since you looked. Look again.")
        raise ServiceError("changed_since", message)
    with _written({found.slug: text}) as (path,):
        checked = _checked_draft(path)
        scenarios.sync()
        try:
            store(
                document=checked.document,
                found=checked.tables,
                content_hash=reading.content_hash(path),
            )
        except DataError as error:
            raise PublishedFileError(f"{path.name}: cannot be stored: {error}") from error
    PublicationDraft.objects.filter(pk=found.pk).update(
        accepted=text, accepted_by=by, accepted_at=timezone.now()
    )


def load_all() -> Loaded:
    """Make the archive say what the repository's files and all accepted publications say."""
    accepted = PublicationDraft.objects.exclude(accepted="").values_list("slug", "accepted")
    with _written(dict(accepted)) as paths:
        return load(files=[*reading.files(), *paths])


def _checked_draft(path: Path) -> Preview:
    document = reading.read(path)
    try:
        schema.check(document, _known(document))
        _check_slugs(document)
        return Preview(document, checks.check(document.campaigns))
    except PublishedFileError as error:
        error.locate(path)
        raise


def _known(document: Document) -> schema.Known:
    """What the document, the code and the archive as it is stored know."""
    own = schema.known([document])
    stored = {
        metric.name: MetricEntry(
            metric.name,
            metric.unit,
            metric.direction,  # type: ignore[arg-type]
            Text(metric.title, metric.title_ja),
        )
        for metric in Metric.objects.all()
    }
    return replace(own, metrics={**stored, **own.metrics})


def _check_slugs(document: Document) -> None:
    slugs = [campaign.slug for campaign in document.campaigns]
    others = PublishedTable.objects.exclude(source__slug=document.source.slug)
    taken = others.filter(campaign__slug__in=slugs).values_list("campaign__slug", flat=True)
    for slug in taken:
        message = "its slug is that of a campaign of another publication; choose another."
        raise PublishedFileError(message, campaign=slug)


@contextmanager
def _written(texts: Mapping[str, str]) -> Iterator[list[Path]]:
    """The texts as files: faults name a file's line."""
    with TemporaryDirectory(prefix="benchlab-publications-") as folder:
        paths = []
        for slug, text in sorted(texts.items()):
            path = Path(folder, f"{slug}.yaml")
            path.write_text(text, encoding="utf-8")
            paths.append(path)
        yield paths
