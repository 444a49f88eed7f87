"""Tells a registered server of more folders with PostgreSQL binaries, and inspects it."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from runs.management import command
from runs.models import Server
from runs.servers.services import servers


class Command(command.Command):
    """What is registered already stays as it is."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("server")
        parser.add_argument("bindirs", nargs="+")

    def handle(self, *args: Any, **options: Any) -> None:
        server = command.server_named(options["server"])
        server = servers.add_bindirs(server=server, bindirs=options["bindirs"])
        server = servers.inspect(server=server)
        if server.state != Server.State.READY:
            raise CommandError(f"{server.problem} {server.problem_remedy}")
        present = server.installations.filter(removed_at=None)
        self.stdout.write(", ".join(installation.version for installation in present))
