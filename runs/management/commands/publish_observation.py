"""Makes an edition of an observation a publication of this instance's archive."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.utils import timezone

from runs.access.services import audit
from runs.archive.services import publications
from runs.management import command
from runs.models import Edition
from runs.observations.selectors import publication
from runs.published.errors import PublishedFileError


class Command(command.Command):
    """Its data file is written to the folder of the instance's publications, and loaded."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "observation", help="Its slug: the last part of its address."
        )
        parser.add_argument("edition", help="Such as 2026.")
        parser.add_argument("--publisher", default="BenchLab", help="Who measured it.")
        parser.add_argument(
            "--to", help="Write the file to this folder, and load nothing."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        editions = Edition.objects.select_related(
            "observation__server", "observation__project"
        )
        edition = editions.filter(
            observation__slug=options["observation"], label=options["edition"]
        ).first()
        if edition is None:
            raise CommandError(
                "There is no such edition: see the page of observations."
            )
        project = edition.observation.project
        if project is not None and not project.is_public and not options["to"]:
            raise CommandError(
                f"It is of the private project {project.slug}, and everybody reads the archive. "
                "Write it to a folder by --to."
            )
        folder = Path(options["to"] or settings.PUBLICATIONS_DIR)
        path = folder / f"{edition.published_as}.yaml"
        try:
            text = publication.write_document(
                edition,
                publisher=options["publisher"],
                today=timezone.localdate().isoformat(),
            )
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            if not options["to"]:
                publications.load(files=publications.files())
        except (OSError, ValueError, PublishedFileError) as error:
            raise CommandError(str(error)) from error
        audit.record(
            "edition_published",
            f"observation {edition.observation.slug}",
            after={"edition": edition.label, "file": str(path)},
        )
        self.stdout.write(str(path))
