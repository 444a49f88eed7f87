"""Removes what runs that were given up left on the servers, and prints it."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from runs.execution.errors import TargetProblem
from runs.management.command import LeanCommand, server_named
from runs.models import Server
from runs.queue.services import sweeping
from runs.shared.errors import ServiceError


class Command(LeanCommand):
    """Only folders with this BenchLab's mark are touched, and none of a run that is still open."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--server", metavar="SLUG", help="only this one; default all"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Sweep, and end with an error when a server could not be swept completely."""
        swept = Server.objects.select_related("ssh_key").order_by("slug")
        if options["server"]:
            swept = swept.filter(pk=server_named(options["server"]).pk)
        # Nothing of ours is on a hop.
        swept = swept.exclude(base_dir="")
        failed = [server.slug for server in swept if not self._sweep(server)]
        if failed:
            raise CommandError(f"Not cleaned up: {', '.join(failed)}.")

    def _sweep(self, server: Server) -> bool:
        try:
            swept = sweeping.sweep(server=server)
        except (ServiceError, TargetProblem) as error:
            self.stderr.write(f"{server.slug}: {error.message} {error.remedy}".strip())
            return False
        for path in swept.removed:
            self.stdout.write(f"{server.slug}: removed {path}")
        self.stdout.write(f"{server.slug}: {len(swept.removed)} removed")
        for problem in swept.left:
            self.stderr.write(
                f"{server.slug}: {problem.message} {problem.remedy}".strip()
            )
        return not swept.left
