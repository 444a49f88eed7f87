"""Keeps what the migrations make, for `manage.py verify`."""

from typing import Any

from django.core.management.base import CommandParser

from runs.management.command import LeanCommand
from runs.seals.selectors import schema


class Command(LeanCommand):
    """Names what differs in the schema. After a new migration: migrate an empty database."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--write",
            action="store_true",
            help="keep this database's as that of the release",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        if options["write"]:
            schema.write()
        for finding in schema.findings():
            self.stdout.write(finding.message)
