"""Lets bisections build commits on a server, from a clone there, or ends that. A build executes the
code of its commit as BenchLab's account on that server: docs/security.md.
"""

import shlex
from typing import Any

from django.core.management.base import CommandError, CommandParser

from runs.management import command
from runs.servers.services import builds


class Command(command.Command):
    """Allows builds; only who may run commands of the instance may do that."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("server", help="the slug of a registered server")
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument(
            "--from", dest="clone", help="the folder of a clone on that server"
        )
        which.add_argument(
            "--never", action="store_true", help="stop allowing it; keep the builds"
        )
        which.add_argument(
            "--remove", action="store_true", help="stop allowing it; remove the builds"
        )
        parser.add_argument(
            "--configure",
            default="",
            metavar="OPTIONS",
            help="of configure, in one argument",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        server = command.server_named(options["server"])
        clone = options["clone"] or ""
        try:
            configure = shlex.split(options["configure"])
        except ValueError as error:
            raise CommandError(f"--configure: {error}") from error
        builds.allow(server=server, clone=clone, options=configure)
        removed = builds.remove_all(server=server) if options["remove"] else 0
        if removed:
            self.stdout.write(f"{removed} builds are removed")
        self.stdout.write(
            f"{server.slug} builds commits of {clone}"
            if clone
            else f"{server.slug} builds nothing"
        )
