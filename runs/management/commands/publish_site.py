"""Writes the archive as static files, for any web host."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from runs.access.services import audit
from runs.archive.services import static_site
from runs.management import command


class Command(command.Command):
    """Topics, publications, versions and chosen campaigns, as strangers see them."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "folder", type=Path, help="A new or empty folder, or one of before."
        )
        parser.add_argument(
            "--campaign",
            action="append",
            default=[],
            metavar="SLUG",
            help="A campaign executed here that everybody may see; may be given several times.",
        )
        parser.add_argument(
            "--instance", default="", help="How each page names this instance."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        folder = options["folder"].absolute()
        written = static_site.publish(
            folder, campaigns=options["campaign"], instance=options["instance"]
        )
        audit.record(
            "site_published",
            "archive",
            after={"folder": str(folder), "pages": written.pages},
        )
        self.stdout.write(f"{folder}: {written.pages} pages, {written.files} files")
