"""Counts runs again, and corrects stored numbers that differ. Safe while services run."""

from typing import Any

from runs.management.command import LeanCommand
from runs.queue.services import transitions


class Command(LeanCommand):
    """Corrects what the triggers of the database should have kept."""

    def handle(self, *_args: Any, **_options: Any) -> None:
        self.stdout.write(
            f"{transitions.recount()} stored numbers of runs were wrong and are corrected"
        )
