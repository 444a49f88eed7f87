"""Writes a backup of everything, encrypted: results database, artifacts and keys."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings

from runs.management import command
from runs.operations.services import backups


class Command(command.Command):
    """The passphrase is BENCHLAB_BACKUP_PASSPHRASE; everything may go on meanwhile."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument(
            "--keep", type=int, metavar="N", help="remove all but the newest N"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        backup = backups.make(
            folder=options["folder"],
            passphrase=settings.BACKUP_PASSPHRASE,
            keep=options["keep"],
        )
        self.stdout.write(f"{backup}, {backup.stat().st_size / 2**20:.1f} MB")
