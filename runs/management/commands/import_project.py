"""Stores an export of a project: all of it, or nothing."""

import gzip
import sys
from pathlib import Path
from typing import IO, Any, cast

from django.core.management.base import CommandError, CommandParser

from runs.exchange import services
from runs.management import command
from runs.shared.errors import Refused

GZIP = b"\x1f\x8b"


class Command(command.Command):
    """What is there already stays; a second time adds nothing. A packed file is read as it is."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="- is standard input")
        parser.add_argument("--into", metavar="SLUG", help="an existing project")

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["into"]
        into = None if slug is None else command.project_named(slug)
        try:
            with _opened(options["file"]) as lines:
                done = services.load(lines=lines, into=into)
        except OSError as error:
            raise CommandError(f"{options['file']}: {error}") from error
        except Refused as refused:
            message = "\n".join(
                f"line {fault.pointer[1:]}: {fault.message}" for fault in refused.faults
            )
            raise CommandError(f"{message}\nNothing was stored.") from refused
        self.stdout.write(
            f"{done.project}: {done.campaigns} campaigns and {done.runs} runs are new,"
            f" {done.there} runs were there."
        )


def _opened(path: str) -> IO[bytes]:
    if path == "-":
        return sys.stdin.buffer
    with Path(path).open("rb") as file:
        is_packed = file.read(2) == GZIP
    return cast(IO[bytes], gzip.open(path)) if is_packed else Path(path).open("rb")
