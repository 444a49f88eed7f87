"""What commands have in common: who acts, and that a refusal ends them with one line."""

import getpass
import inspect
from typing import Any

from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError

from benchlab.bucket import StoreError
from runs.access.services import audit, projects
from runs.execution.errors import TargetProblem
from runs.models import Project, Server
from runs.shared.errors import ServiceError


class LeanCommand(BaseCommand):
    """A command without the checks of addresses, which load all pages: half of its start."""

    requires_system_checks: tuple[str, ...] = (
        Tags.database,
        Tags.models,
        Tags.security,
    )

    def __init_subclass__(cls) -> None:
        """What a command's module and class say of themselves is its help."""
        docstrings = (inspect.getmodule(cls).__doc__, cls.__doc__)
        cls.help = "\n\n".join(text.strip() for text in docstrings if text)


class Command(LeanCommand):
    """A command by which somebody acts: the audit trail has who is logged in to the machine."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run it. What a service or the store of files refuses becomes a CommandError."""
        name = type(self).__module__.rpartition(".")[2]
        try:
            with audit.acting(audit.Actor(_login(), f"command {name}")):
                return super().execute(*args, **options)
        except (ServiceError, TargetProblem) as error:
            raise CommandError(f"{error.message} {error.remedy}".strip()) from error
        except StoreError as error:
            raise CommandError(str(error)) from error


def server_named(slug: str) -> Server:
    """The server of a slug. Raises CommandError."""
    server = Server.objects.filter(slug=slug).first()
    if server is None:
        raise CommandError(f"There is no server {slug}.")
    return server


def project_named(slug: str) -> Project:
    """The project of a slug. Raises CommandError, with how to make one."""
    if slug == projects.DEFAULT:
        return projects.default()
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        raise CommandError(
            f"There is no project {slug}. Make it: manage.py create_project {slug} [--private]"
        )
    return project


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
