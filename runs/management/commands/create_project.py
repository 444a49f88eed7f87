"""Makes a project: campaigns and people that belong together."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from runs.access.services import projects
from runs.management import command


class Command(command.Command):
    """What is uploaded with a token of the project belongs to it."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--name", default="")
        parser.add_argument(
            "--private", action="store_true", help="only members can read it"
        )
        parser.add_argument("--member", action="append", default=[], metavar="USER")

    def handle(self, *args: Any, **options: Any) -> None:
        members = list(User.objects.filter(username__in=options["member"]))
        if missing := set(options["member"]) - {user.username for user in members}:
            raise CommandError(f"There is no user {', '.join(sorted(missing))}.")
        project = projects.create(
            slug=options["slug"],
            name=options["name"],
            is_public=not options["private"],
            members=members,
        )
        self.stdout.write(f"Made the project {project.slug}.")
