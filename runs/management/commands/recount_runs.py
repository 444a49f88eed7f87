"""Count runs again, and correct the stored numbers of campaigns and origins."""

from typing import Any

from runs.management.command import LeanCommand
from runs.services.runs import transitions


class Command(LeanCommand):
    """Corrects what the triggers of the database should have kept."""

    help = "Counts runs again, and corrects stored numbers that differ. Safe while services run."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Correct all that differ."""
        self.stdout.write(
            f"{transitions.recount()} stored numbers of runs were wrong and are corrected"
        )
