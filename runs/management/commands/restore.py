"""Brings a backup into this empty instance, and verifies its seals."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError

from runs.management import command
from runs.models import Instance
from runs.operations.services import backups
from runs.shared import copies


class Command(command.Command):
    """The passphrase is BENCHLAB_BACKUP_PASSPHRASE. Stop web, control and workers before."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("backup", type=Path)
        parser.add_argument(
            "--trust-plain",
            action="store_true",
            help="also take a backup of 0.2 or before, which anybody who had it may have changed",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        rows = backups.restore(
            path=options["backup"],
            passphrase=settings.BACKUP_PASSPHRASE,
            trusts_plain=options["trust_plain"],
        )
        call_command("migrate", interactive=False, verbosity=0)
        copies.hold(Instance.Hold.RESTORED)
        self.stdout.write(
            f"{sum(rows.values())} rows of {len(rows)} tables were restored."
        )
        self.stdout.write(
            "Nothing runs, is sent or backed up until an administrator says on the page "
            "/take-over/, or by manage.py take_over, who uses the servers."
        )
        try:
            call_command("verify", files=True, stdout=self.stdout)
        except CommandError as found:
            raise CommandError(
                f"Everything was restored, but of what was in the backup {found}"
                " (manage.py verify names them)."
            ) from found
