"""Checks what this host needs to work for the BenchLab that it has joined."""

from typing import Any

from django.core.management.base import CommandError

from runs.management import command
from runs.operations.selectors.health_checks import FAILED, OK
from runs.operations.services import host_checks


class Command(command.LeanCommand):
    """One line for each thing; exit status 1 when something has failed."""

    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        failed = 0
        for outcome in host_checks.examine():
            failed += outcome.status == FAILED
            line = f"{outcome.status:8}{outcome.check}: {outcome.reason}"
            self.stdout.write(
                f"{line} {outcome.remedy}" if outcome.status != OK else line
            )
        if failed:
            raise CommandError(f"{failed} things are wrong; see the lines above.")
