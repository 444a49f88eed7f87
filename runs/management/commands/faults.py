"""Prints what goes wrong, where it is at fault and what happens, as docs/execution.md has it."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from runs.execution.fault_table import as_markdown
from runs.management.command import LeanCommand

BEGIN, END = "<!-- faults: begin -->\n", "<!-- faults: end -->\n"
PLACE = Path(settings.BASE_DIR) / "docs" / "execution.md"


def insert_table(text: str) -> str:
    """The text with the current table between its marks. Raises ValueError without marks."""
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    return f"{before}{BEGIN}\n{as_markdown()}\n{after}"


class Command(LeanCommand):
    """`--write` puts it into docs/execution.md."""

    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--write", action="store_true", help="write it into docs/execution.md"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["write"]:
            PLACE.write_text(insert_table(PLACE.read_text()))
        else:
            self.stdout.write(as_markdown())
