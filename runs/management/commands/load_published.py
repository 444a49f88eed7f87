"""Makes the archive say what its data files say."""

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from runs.access.services import audit
from runs.archive.services import publications
from runs.management import command
from runs.published import (
    advice,
    derived_figures,
    reading,
    schema,
    second_reading,
)
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
        parser.add_argument(
            "--against",
            action="append",
            default=[],
            type=Path,
            metavar="TEXT",
            help="With --check and one file: a text of its source. Says what either lacks.",
        )
        parser.add_argument(
            "files",
            nargs="*",
            type=Path,
            help="With --check: only these, with what each lacks. They may be in any folder.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["against"] and not (
                options["check"] and len(options["files"]) == 1
            ):
                raise CommandError(
                    "--against needs --check and the one file to compare."
                )
            if options["check"]:
                self._check(options["files"])
                for file in options["files"] if options["against"] else ():
                    self._compare(file, options["against"])
            elif options["files"]:
                raise CommandError(
                    "Files are named with --check only: what is loaded is the whole archive."
                )
            else:
                self._load(again=options["again"])
        except PublishedFileError as error:
            raise CommandError(str(error)) from error

    def _load(self, *, again: bool) -> None:
        loaded = publications.load(files=publications.files(), again=again)
        changed = {
            word: slugs for word, slugs in vars(loaded).items() if word != "unchanged"
        }
        if any(changed.values()):
            audit.record("publications_loaded", "archive", after=changed)
        for word, slugs in vars(loaded).items():
            if slugs:
                self.stdout.write(f"{word}: {', '.join(slugs)}")

    def _check(self, files: Sequence[Path]) -> None:
        """Every fault of all files at once, then what contradicts itself, then what is missing."""
        missing_files = [str(path) for path in files if not path.is_file()]
        if missing_files:
            raise CommandError(f"There is no file {', '.join(missing_files)}.")
        others = [
            path
            for path in publications.files()
            if path.stem not in {named.stem for named in files}
        ]
        documents = {path: reading.read(path) for path in (*others, *files)}
        known_names = schema.known(documents.values())
        faults = 0
        for path in files or others:
            faults += self._check_file(
                path, documents[path], known_names, is_named=bool(files)
            )
        if faults:
            raise CommandError(
                f"{faults} to mend, nothing is stored; docs/adding-a-source.md has each field."
            )

    def _compare(self, file: Path, sources: Sequence[Path]) -> None:
        try:
            text = "\n".join(path.read_text() for path in sources)
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"--against: {error}.") from error
        differences = second_reading.differences(reading.read(file), text)
        for difference in differences:
            self.stdout.write(f"  against the source: {difference}")
        self.stdout.write(f"{len(differences)} to look at again in the source.")

    def _check_file(
        self, path: Path, document: Document, known_names: Known, *, is_named: bool
    ) -> int:
        faults = schema.faults(document, known_names)
        tables: tuple[CheckedTable, ...] = ()
        if not faults:
            try:
                tables = derived_figures.check(document.campaigns)
            except PublishedFileError as error:
                faults = [error]
        for fault in faults:
            fault.locate(path)
            self.stderr.write(str(fault))
        for table in tables:
            self.stdout.write(
                f"{path.stem} {table.campaign.table}: {len(table.figures)} figures"
            )
            for contradiction in table.faults:
                self.stdout.write(
                    f"  {contradiction.kind}: {contradiction.printed} → "
                    f"{contradiction.recomputed or '–'}: {contradiction.explanation.en}"
                )
        if is_named and not faults:
            self._sum_up(path, document, tables)
        return len(faults)

    def _sum_up(
        self, path: Path, document: Document, tables: Sequence[CheckedTable]
    ) -> None:
        figures = [figure for table in tables for figure in table.figures]
        computed = sum(figure.recomputed is not None for figure in figures)
        contradictions = sum(len(table.faults) for table in tables)
        self.stdout.write(
            f"{path.name} can be loaded: {len(tables)} tables, {len(figures)} figures, {computed} "
            f"of them computed again, {contradictions} contradictions."
        )
        for advised in advice.advice(document):
            self.stdout.write(f"  missing: {advised}")
