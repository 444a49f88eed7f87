"""Makes the archive say what its data files say."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from runs.access.services import audit
from runs.archive.services import publications
from runs.management import command
from runs.published import derived_figures, reading, schema
from runs.published.derived_figures import CheckedTable
from runs.published.document import Document
from runs.published.errors import PublishedFileError
from runs.published.schema import Known


class Command(command.Command):
    """Run it after each migrate of a deployment; script/server does the same by itself."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--again",
            action="store_true",
            help="Store every file again, also where it has not changed: rows may have been.",
        )
        parser.add_argument(
            "--check",
            action="store_true",
            help="Read and check the files without a database, and report contradictions.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["check"]:
                self._check()
            else:
                self._load(again=options["again"])
        except PublishedFileError as error:
            raise CommandError(str(error)) from error

    def _load(self, *, again: bool) -> None:
        loaded = publications.load(files=publications.files(), again=again)
        changed = {word: slugs for word, slugs in vars(loaded).items() if word != "unchanged"}
        if any(changed.values()):
            audit.record("publications_loaded", "archive", after=changed)
        for word, slugs in vars(loaded).items():
            if slugs:
                self.stdout.write(f"{word}: {', '.join(slugs)}")

    def _check(self) -> None:
        documents = {path: reading.read(path) for path in publications.files()}
        known_names = schema.known(documents.values())
        for path, document in documents.items():
            for table in _checked(path, document, known_names):
                entry = table.campaign
                self.stdout.write(f"{path.stem} {entry.table}: {len(table.figures)} figures")
                for fault in table.faults:
                    self.stdout.write(
                        f"  {fault.kind}: {fault.printed} → {fault.recomputed or '–'}: "
                        f"{fault.explanation.en}"
                    )


def _checked(path: Path, document: Document, known_names: Known) -> tuple[CheckedTable, ...]:
    try:
        schema.check(document, known_names)
        return derived_figures.check(document.campaigns)
    except PublishedFileError as error:
        error.locate(path)
        raise
