"""Encrypts every secret anew under the first key of BENCHLAB_ENCRYPTION_KEY."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from runs.access.services import encryption
from runs.management.command import LeanCommand
from runs.seals.services import seals


class Command(LeanCommand):
    """Put the new key first, run this, then take the old one away."""

    def handle(self, *args: Any, **options: Any) -> None:
        done, unreadable = encryption.rotate()
        if Path(settings.SEAL_KEY).exists():
            seals.take_over()
        self.stdout.write(f"Encrypted {done} secrets under the first key.")
        if unreadable:
            raise CommandError(
                f"No key of BENCHLAB_ENCRYPTION_KEY opens: {', '.join(unreadable)}. "
                "Add the key they were encrypted under after the first, and run this again."
            )
