"""Tells a registered server of more folders with PostgreSQL binaries, and inspects it."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs.models import Server
from runs.services.errors import ServiceError
from runs.services.servers import servers


class Command(BaseCommand):
    """What is registered already stays as it is."""

    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The server's slug and the folders."""
        parser.add_argument("server")
        parser.add_argument("bindirs", nargs="+")

    def handle(self, *args: Any, **options: Any) -> None:
        """Add, inspect, and say what the server has now."""
        server = Server.objects.filter(slug=options["server"]).first()
        if server is None:
            raise CommandError(f"There is no server {options['server']}.")
        try:
            server = servers.add_bindirs(server=server, bindirs=options["bindirs"])
            server = servers.inspect(server=server)
        except ServiceError as problem:
            raise CommandError(f"{problem.message} {problem.remedy}") from problem
        if server.state != Server.State.READY:
            raise CommandError(f"{server.problem} {server.problem_remedy}")
        present = server.installations.filter(removed_at=None)
        self.stdout.write(", ".join(each.version for each in present))
