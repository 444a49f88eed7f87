"""Put small files of runs into packs: one file or object in place of many."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs.selectors.operations.checks import one_line
from runs.services.access import audit
from runs.services.runs import packing

TOLD_AFTER = 1000


class Command(BaseCommand):
    """New runs are packed at once; control does the rest in small steps, and this at once."""

    help = "Packs small files of runs that are files of their own. Can be stopped and repeated."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Whether it is meant."""
        parser.add_argument(
            "--dry-run", action="store_true", help="only report what would be packed"
        )

    @audit.commanded
    def handle(self, *_args: Any, **options: Any) -> None:
        """Pack run by run, and say how far it is."""
        is_rehearsal, done = options["dry_run"], packing.Packed()
        try:
            if not is_rehearsal:
                for key, number in packing.take_up_nameless():
                    self.stdout.write(f"{key}: took up {number} files of a pack without rows")
            for number, packed in enumerate(packing.pack_all(is_rehearsal=is_rehearsal), start=1):
                done += packed
                if number % TOLD_AFTER == 0:
                    self.stdout.write(f"{number} runs looked at; {_told(done, is_rehearsal)}")
        except KeyboardInterrupt:
            self.stdout.write(f"Stopped: {_told(done, is_rehearsal)}. Start it again to go on.")
            return
        except OSError as error:
            raise CommandError(
                f"{one_line(error)}. Nothing is lost, and {_told(done, is_rehearsal)}:"
                " start it again to go on."
            ) from error
        self.stdout.write(f"{_told(done, is_rehearsal)}.")


def _told(packed: packing.Packed, is_rehearsal: bool) -> str:
    word = "would become" if is_rehearsal else "became"
    return (
        f"{packed.files} files ({packed.before / 2**20:.1f} MB) of {packed.runs} runs {word}"
        f" {packed.runs} packs ({packed.after / 2**20:.1f} MB)"
    )
