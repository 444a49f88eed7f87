"""Write the measurements of finished runs as Parquet files, one a month."""

import re
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from benchlab import extras
from runs.exchange.services import parquet
from runs.management.command import LeanCommand


class Command(LeanCommand):
    """All projects are in the files, private ones too: their column says which."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument(
            "--since",
            default="",
            metavar="MONTH",
            help="only this month and later ones: 2026-11",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        if options["since"] and not re.fullmatch(
            r"\d{4}-(0[1-9]|1[0-2])", options["since"]
        ):
            raise CommandError("--since is a month such as 2026-11.")
        try:
            extras.need("archive-export")
            for month in parquet.write(options["folder"], since=options["since"]):
                size = f"{month.size / 2**20:.1f} MB"
                self.stdout.write(f"{month.path}: {month.rows} measurements, {size}")
        except OSError as error:
            raise CommandError(f"The files cannot be written: {error}") from error
