"""Says who uses the servers of a results database that may be a copy: it is held until then."""

from argparse import ArgumentParser
from typing import Any

from runs.management import command
from runs.operations.services import copies
from runs.shared.errors import ServiceError


class Command(command.Command):
    """Each server is gone (no other BenchLab uses it) or left to one. Without arguments: names."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--gone",
            nargs="+",
            default=[],
            metavar="SLUG",
            help="no other BenchLab uses these",
        )
        parser.add_argument(
            "--left",
            nargs="+",
            default=[],
            metavar="SLUG",
            help="another BenchLab uses these",
        )
        parser.add_argument(
            "--all-gone", action="store_true", help="no other BenchLab uses any of them"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slugs = [server.slug for server in copies.servers_to_answer()]
        gone = slugs if options["all_gone"] else options["gone"]
        try:
            copies.take_over(gone=gone, left=options["left"])
        except ServiceError:
            for slug in slugs:
                self.stdout.write(slug)
            raise
        self.stdout.write("This BenchLab goes on.")
