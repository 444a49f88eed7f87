"""Looks at everything that BenchLab needs: says what is wrong and what to do."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs.operations.selectors.health_checks import FAILED, OK
from runs.operations.services import doctor


class Command(BaseCommand):
    """One line for each thing; exit status 1 when something has failed."""

    help = __doc__
    # They are part of what is looked at.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Servers take up to 6 s each where nobody answers."""
        parser.add_argument(
            "--without-targets", action="store_true", help="do not check servers"
        )
        parser.add_argument(
            "--before-start",
            action="store_true",
            help="only what must hold before services start; prints nothing but what has failed",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["before_start"]:
            # One line for all that has failed.
            faults = [
                outcome
                for outcome in doctor.check_before_start()
                if outcome.status == FAILED
            ]
            lines = (
                f"{outcome.check}: {outcome.reason} {outcome.remedy}".strip()
                for outcome in faults
            )
            if faults:
                raise CommandError(" ".join(lines))
            return
        failed = 0
        for outcome in doctor.examine(with_targets=not options["without_targets"]):
            failed += outcome.status == FAILED
            line = f"{outcome.status:8}{outcome.check}: {outcome.reason}"
            self.stdout.write(
                f"{line} {outcome.remedy}" if outcome.status != OK else line
            )
        if failed:
            raise CommandError(f"{failed} things are wrong; see the lines above.")
