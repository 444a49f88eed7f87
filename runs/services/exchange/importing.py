"""Imports a project from the lines of an export: all of them, or nothing."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db import DataError, IntegrityError, transaction
from django.utils.translation import gettext as _

from runs.models import Project
from runs.selectors.exchange import Row
from runs.services import seals
from runs.services.access import audit
from runs.services.exchange import reading
from runs.services.exchange.files import Files
from runs.services.exchange.reading import FILE, FORMAT, refused
from runs.services.exchange.references import Known
from runs.services.exchange.results import Results

RESULTS = frozenset({"campaign", "cell", "run", "series", "command", "annotation"})


@dataclass(frozen=True)
class Imported:
    """What an import has added; `there` are the runs that existed before."""

    project: str
    campaigns: int
    runs: int
    there: int


def load(*, lines: Iterable[bytes], into: Project | None = None) -> Imported:
    """Store an export; existing rows stay, so a second import adds nothing.

    The target is the project of its first line, created if necessary, or another one.
    Raises Refused with the number of the line that is at fault. Takes minutes for a million runs.
    """
    files = Files()
    try:
        with transaction.atomic():
            return _load(reading.rows(lines), into, files)
    finally:
        files.discard()


def _load(rows: Iterator[tuple[int, str, Row]], into: Project | None, files: Files) -> Imported:
    described = reading.header(next(rows, None))["project"]
    number = 1
    try:
        project = into or _project(described)
        known = Known(project)
        results = Results(project, known, files)
        for number, kind, row in rows:  # reported where it goes wrong
            _take(number, kind, row, known, files, results)
        files.finish(number)
        results.store()
        details = {"campaigns": results.campaigns, "runs": results.runs, "there": results.skipped}
        audit.record("imported", f"project {project.slug}", project=project, after=details)
        files.place()
        seals.seal_once_committed()
    except (DataError, IntegrityError, KeyError, TypeError, ValueError) as error:
        # Rows are stored many at a time: the fault is in this line or one shortly before it.
        message = _("In or before this line: %(error)s") % {"error": _short(error)}
        raise refused(number, "invalid", message) from error
    return Imported(project.slug, results.campaigns, results.runs, results.skipped)


def _project(described: Row) -> Project:
    found, _created = Project.objects.get_or_create(
        slug=described["slug"],
        defaults={"name": described["name"], "is_public": described["public"]},
    )
    return found


def _take(number: int, kind: str, row: Row, known: Known, files: Files, results: Results) -> None:
    if kind == FILE:
        files.add(number, row)
    elif kind in RESULTS:
        files.finish(number)
        results.add(number, kind, row)
    elif kind == "seal":
        # From the exporting BenchLab. This one seals the runs in a chain of its own.
        files.finish(number)
    elif kind == FORMAT:
        raise refused(number, "repeated", _("A second export begins here."))
    else:
        known.add(number, kind, row)


def _short(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__} {text[0] if text else ''}".strip()
