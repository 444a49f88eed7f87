"""Makes a token for the API and prints it."""

from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from runs.access.services import projects, tokens
from runs.management import command
from runs.models import Token


class Command(command.Command):
    """The token is the only thing on standard output, so that a script can take it."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="who uses it")
        parser.add_argument(
            "--scopes",
            default="read,upload",
            help=f"some of {','.join(Token.Scope.values)}",
        )
        parser.add_argument("--project", default=projects.DEFAULT, metavar="SLUG")
        parser.add_argument("--days", type=int, help="number of days until it expires")

    def handle(self, *args: Any, **options: Any) -> None:
        days, scopes = options["days"], options["scopes"].split(",")
        token = tokens.create(
            name=options["name"],
            scopes=[scope.strip() for scope in scopes if scope.strip()],
            project=command.project_named(options["project"]),
            expires_at=timezone.now() + timedelta(days=days)
            if days is not None
            else None,
        )
        self.stdout.write(token.text)
