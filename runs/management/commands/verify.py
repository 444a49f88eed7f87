"""Verify that no run, figure or seal was changed since it was sealed."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import connection, transaction

from benchlab.bucket import StoreError
from runs.archive.services import comparison
from runs.management.command import LeanCommand
from runs.published.errors import PublishedFileError
from runs.queue.services import artifacts
from runs.seals.selectors import audit_chain, schema, verification
from runs.seals.selectors.seals import AUDIT
from runs.seals.services import seal_keys, seals


def _lines(paths: Sequence[Path]) -> list[str]:
    try:
        return [
            line
            for path in paths
            for line in path.read_text().splitlines()
            if line.strip()
        ]
    except (OSError, ValueError) as error:
        raise CommandError(f"The heads cannot be read: {error}") from error


def _findings(
    tally: verification.Tally, heads: Sequence[str]
) -> Iterator[verification.Finding]:
    """Of the runs, the audit trail, the archive, and heads published earlier."""
    try:
        archive = comparison.read()
    except PublishedFileError as error:
        raise CommandError(
            f"The archive's data files cannot be read: {error}"
        ) from error
    ends = seal_keys.heads()
    trusted = verification.Trusted(
        keys=seal_keys.trusted(),
        ends=ends,
        acknowledged=seals.acknowledged(),
        published=frozenset(
            campaign_entry.slug
            for document in archive
            for campaign_entry in document.campaigns
        ),
    )
    yield from schema.findings()
    yield from verification.findings(trusted, tally)
    yield from audit_chain.findings(trusted=trusted.keys, ends=ends.get(AUDIT, ()))
    yield from comparison.findings(archive)
    yield from verification.heads_missing(heads, trusted.keys)


class Command(LeanCommand):
    """Names every run and figure that is not as it was sealed; docs/seals.md says what it finds."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--files", action="store_true", help="read the kept files, too"
        )
        parser.add_argument(
            "--head",
            type=Path,
            action="append",
            default=[],
            help="a file with lines of seal_head, which the chains must still have",
        )
        parser.add_argument(
            "--json", action="store_true", help="one JSON object a finding"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Look at everything. Exit status 1 where something has changed."""
        tally, number = verification.Tally(), 0
        with transaction.atomic():
            if not connection.savepoint_ids:
                with connection.cursor() as cursor:
                    # Not read only, as pages are not: a view could tell the difference.
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            for finding in _findings(tally, _lines(options["head"])):
                number += 1
                as_json = json.dumps(vars(finding), ensure_ascii=False)
                line = f"{finding.project}: {finding.code}: {finding.message}"
                self.stdout.write(as_json if options["json"] else line)
            if options["files"]:
                number += self._files()
        if not options["json"]:
            self._sum_up(tally)
        if number:
            raise CommandError(f"{number} findings", returncode=1)

    def _files(self) -> int:
        try:
            changed = list(artifacts.changed())
        except StoreError as error:
            raise CommandError(
                f"The files cannot be read: {error}", returncode=2
            ) from error
        for digest in changed:
            self.stdout.write(
                f"file_changed: the content of the file {digest} is not its own"
            )
        return len(changed)

    def _sum_up(self, tally: verification.Tally) -> None:
        for run, reason in tally.acknowledged:
            self.stdout.write(
                f"amended since it was sealed, acknowledged: run {run}: {reason}"
            )
        self.stdout.write(
            f"{tally.entries} entries and {tally.runs} runs looked at; {tally.waiting} wait to be"
            " sealed"
        )
