"""Publications transcribed in the browser: written, checked, accepted by a second person."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from django.contrib.auth.models import User
from django.db import DataError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.models import Metric, PublicationDraft, PublishedTable
from runs.published import checks, reading, schema
from runs.published.checks import CheckedTable
from runs.published.document import Document, MetricEntry, Text
from runs.published.errors import PublishedFileError
from runs.services.archive import loading
from runs.services.campaigns import scenarios
from runs.services.errors import ServiceError

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
        return _checked(path)


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
        message = _("Another person has to accept it than the one who wrote it.")
        raise ServiceError("second_person", message)
    if found.text != text:
        message = _("It was changed since you looked. Look again.")
        raise ServiceError("changed_since", message)
    with _written({found.slug: text}) as (path,):
        checked = _checked(path)
        scenarios.sync()
        try:
            loading.store(
                document=checked.document,
                found=checked.tables,
                content_hash=reading.content_hash(path),
            )
        except DataError as error:
            raise PublishedFileError(f"{path.name}: cannot be stored: {error}") from error
    PublicationDraft.objects.filter(pk=found.pk).update(
        accepted=text, accepted_by=by, accepted_at=timezone.now()
    )


def load_all() -> loading.Loaded:
    """Make the archive say what the repository's files and all accepted publications say."""
    accepted = PublicationDraft.objects.exclude(accepted="").values_list("slug", "accepted")
    with _written(dict(accepted)) as paths:
        return loading.load(files=[*reading.files(), *paths])


def _checked(path: Path) -> Preview:
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
