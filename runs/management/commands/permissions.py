"""Prints who may do what, as docs/security.md has it."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.selectors.access import permission_matrix

PLACE = Path(settings.BASE_DIR) / "docs" / "security.md"


class Command(BaseCommand):
    """The matrix of rights and addresses; `--write` puts it into docs/security.md."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        """Write, or only check."""
        parser.add_argument("--write", action="store_true", help="into docs/security.md")
        parser.add_argument("--check", action="store_true", help="that docs/security.md has it")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print, write or check."""
        text = PLACE.read_text()
        current = permission_matrix.put_into(text)
        if options["write"]:
            PLACE.write_text(current)
        elif not options["check"]:
            self.stdout.write(permission_matrix.markdown())
        elif current != text:
            raise CommandError(f"{PLACE.name} is old: manage.py permissions --write")
