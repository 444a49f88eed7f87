"""Writes a backup of everything, encrypted: results database, artifacts and keys."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from runs.services.access import audit
from runs.services.errors import ServiceError
from runs.services.operations import backups


class Command(BaseCommand):
    """The passphrase is BENCHLAB_BACKUP_PASSPHRASE; everything may go on meanwhile."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Where to, and how many stay."""
        parser.add_argument("folder", type=Path)
        parser.add_argument("--keep", type=int, metavar="N", help="remove all but the newest N")

    @audit.commanded
    def handle(self, *args: Any, **options: Any) -> None:
        """Write it, and say where it is."""
        try:
            made = backups.make(
                folder=options["folder"],
                passphrase=settings.BACKUP_PASSPHRASE,
                keep=options["keep"],
            )
        except ServiceError as problem:
            raise CommandError(f"{problem.message} {problem.remedy}") from problem
        self.stdout.write(f"{made}, {made.stat().st_size / 2**20:.1f} MB")
