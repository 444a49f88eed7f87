"""Prints the end of a chain in one signed line, for a place that BenchLab cannot rewrite."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from runs.access.services import projects
from runs.management import command
from runs.seals.selectors.seals import AUDIT
from runs.seals.services import seals


class Command(command.Command):
    """`verify --head` and `benchlab-verify --head` compare it later; docs/seals.md."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project", nargs="?", default=projects.DEFAULT)
        parser.add_argument(
            "--audit", action="store_true", help="the chain of the audit trail"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        chain = AUDIT if options["audit"] else options["project"]
        try:
            self.stdout.write(seals.head_line(chain=chain))
        except (OSError, ValueError) as error:
            raise CommandError(
                f"The key of BENCHLAB_SEAL_KEY cannot be used: {error}"
            ) from error
