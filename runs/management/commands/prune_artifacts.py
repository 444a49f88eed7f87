"""Removes the files of old runs; their figures, series and names of files stay."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from benchlab.bucket import StoreError
from runs.services.access import audit
from runs.services.runs import artifacts


class Command(BaseCommand):
    """A file that a younger run has as well is kept."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How old, and what is kept whatever its age."""
        parser.add_argument("--older-than", type=int, required=True, metavar="DAYS")
        parser.add_argument(
            "--keep",
            action="append",
            default=[],
            metavar="NAME",
            help="a campaign's slug, or the name of a file such as stdout; may be repeated",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="only report what would be removed"
        )

    @audit.commanded
    def handle(self, *args: Any, **options: Any) -> None:
        """Remove them."""
        if options["older_than"] < 0:
            raise CommandError("--older-than is a number of days.")
        try:
            pruned = artifacts.prune(
                before=timezone.now() - timedelta(days=options["older_than"]),
                keep=options["keep"],
                is_rehearsal=options["dry_run"],
            )
        except StoreError as error:
            raise CommandError(str(error)) from error
        word = "would be removed" if options["dry_run"] else "removed"
        self.stdout.write(f"{pruned.files} files, {pruned.size / 2**20:.1f} MB, {word}.")
