"""Stores results that another tool has kept: pgbench-tools, HammerDB, BenchBase and others."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from runs.access.services import projects
from runs.importers import pgbench_tools_database
from runs.importers.registry import IMPORTERS
from runs.importers.row import Imported
from runs.management import command
from runs.uploads.services import importing
from runs.wording import put

_SHOWN = 20


class Command(command.Command):
    """Each run is stored once: a second import adds what is new alone. docs/importing.md."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("peer", choices=sorted(IMPORTERS))
        parser.add_argument(
            "source", help="a file, a folder, or postgresql://... of pgbench-tools"
        )
        parser.add_argument("--project", default=projects.DEFAULT, metavar="SLUG")
        parser.add_argument(
            "--dry-run", action="store_true", help="read, and store nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        source, peer = options["source"], options["peer"]
        try:
            imported = _read(peer, source)
        except ValueError as error:  # NotTheirs, or no text
            raise CommandError(f"{source}: {error}") from error
        except OSError as error:
            raise CommandError(f"{source}: {error.strerror or error}") from error
        left_out = [put(wording) for wording in imported.left_out]
        if not imported.runs:
            raise CommandError("\n".join([f"{source} has no run.", *left_out[:_SHOWN]]))
        if options["dry_run"]:
            self.stdout.write(f"{len(imported.runs)} runs can be read.")
            self._tell(left_out)
            return
        origin = (
            f"{peer}: {Path(source).name if '://' not in source else 'a connection'}"
        )
        project = command.project_named(options["project"])
        runs = importing.qualify_campaigns(imported.runs, project)
        done = importing.load(runs=runs, project=project, origin=origin)
        self.stdout.write(f"{done.runs} runs are new, {done.there} were there.")
        for slug in sorted(done.campaigns):
            self.stdout.write(f"campaign {slug}")
        self._tell([*left_out, *done.left_out])

    def _tell(self, left_out: list[str]) -> None:
        if left_out:
            self.stdout.write(f"Not taken ({len(left_out)}):")
        for sentence in left_out[:_SHOWN]:
            self.stdout.write(f"  {sentence}")
        if len(left_out) > _SHOWN:
            self.stdout.write(f"  and {len(left_out) - _SHOWN} more")


def _read(peer: str, source: str) -> Imported:
    if peer == "pgbench-tools" and source.startswith(pgbench_tools_database.SCHEMES):
        return pgbench_tools_database.read(source)
    return IMPORTERS[peer](Path(source))
