"""Makes a token for the API and prints it."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from runs.models import Project, Token
from runs.services.access import audit, projects, tokens
from runs.services.errors import ServiceError


class Command(BaseCommand):
    """The token is the only thing on standard output, so that a script can take it."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        """Name, scopes, project and how long."""
        parser.add_argument("name", help="who uses it")
        parser.add_argument(
            "--scopes", default="read,upload", help=f"some of {','.join(Token.Scope.values)}"
        )
        parser.add_argument("--project", default=projects.DEFAULT, metavar="SLUG")
        parser.add_argument("--days", type=int, help="number of days until it expires")

    @audit.commanded
    def handle(self, *args: Any, **options: Any) -> None:
        """Make it."""
        days, scopes = options["days"], options["scopes"].split(",")
        try:
            made = tokens.create(
                name=options["name"],
                scopes=[scope.strip() for scope in scopes if scope.strip()],
                project=_project(options["project"]),
                expires_at=timezone.now() + timedelta(days=days) if days is not None else None,
            )
        except ServiceError as error:
            raise CommandError(f"{error.message} {error.remedy}".strip()) from error
        self.stdout.write(made.text)


def _project(slug: str) -> Project:
    if slug == projects.DEFAULT:
        return projects.default()
    found = Project.objects.filter(slug=slug).first()
    if found is None:
        raise CommandError(
            f"There is no project {slug}. Make it: manage.py create_project {slug} [--private]"
        )
    return found
