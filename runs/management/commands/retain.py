"""Remove what is older than BENCHLAB_RETENTION says; without --remove only tell what it is."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from runs.management import command
from runs.operations.services import retention


class Command(command.Command):
    """Prints a line for each kind. Rows of sealed runs and of publications always stay."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--remove",
            action="store_true",
            help="remove it; without this, only report it",
        )
        parser.add_argument(
            "--keep",
            action="append",
            default=[],
            metavar="NAME",
            help="a campaign's slug, or the name of a file such as stdout; may be repeated",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        if not settings.RETENTION:
            self.stdout.write("BENCHLAB_RETENTION is not set: everything is kept.")
            return
        is_rehearsal = not options["remove"]
        removals = retention.apply(
            settings.RETENTION, keep=options["keep"], is_rehearsal=is_rehearsal
        )
        word = "would be removed" if is_rehearsal else "removed"
        for removal in removals:
            size = f", {removal.size / 2**20:.1f} MB" if removal.kind == "files" else ""
            line = f"{removal.kind} older than {removal.days} days: {removal.number}{size} {word}"
            self.stdout.write(line)
        if is_rehearsal:
            self.stdout.write("Nothing is removed without --remove.")
