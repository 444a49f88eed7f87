"""Writes a whole project as lines of JSON."""

import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser

from benchlab.bucket import StoreError
from runs.exchange import services
from runs.management.command import LeanCommand
from runs.models import Project


class Command(LeanCommand):
    """On standard output: manage.py export_project default | gzip > default.ndjson.gz."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["slug"]).first()
        if project is None:
            project_slugs = ", ".join(
                Project.objects.order_by("slug").values_list("slug", flat=True)
            )
            raise CommandError(
                f"There is no project {options['slug']}. There are: {project_slugs}"
            )
        write = sys.stdout.buffer.write
        try:
            for line in services.lines(project):
                write(line)
        except StoreError as error:
            raise CommandError(f"The export is not complete: {error}") from error
        sys.stdout.buffer.flush()
