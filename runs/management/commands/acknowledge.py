"""Says, with the key of the seals, that an amendment was meant, or that a run is BenchLab's own."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from runs.management import command
from runs.seals.services import seals


class Command(command.Command):
    """Look first: `manage.py verify` names entries and runs, and ends with 1 until this is done."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project", nargs="?", default="")
        parser.add_argument("entry", nargs="*", help="numbers of amendments: 19 25-40")
        parser.add_argument(
            "--run",
            type=int,
            action="append",
            default=[],
            help="seal this run as it is now: it is in no chain, and is right",
        )
        parser.add_argument("--reason", required=True)

    def handle(self, *_args: Any, **options: Any) -> None:
        if not options["run"] and not options["entry"]:
            raise CommandError(
                "Name a project and entries of its chain, or a run by --run."
            )
        try:
            if options["entry"]:
                number = seals.acknowledge(
                    project=options["project"],
                    spans=_spans(options["entry"]),
                    reason=options["reason"],
                )
                self.stdout.write(f"{number} amendments acknowledged")
            for run in options["run"]:
                is_new, removed = seals.request_by_hand(
                    run=run, reason=options["reason"]
                )
                state = (
                    "waits to be sealed" if is_new else "is sealed, and stays as it is"
                )
                self.stdout.write(f"run {run} {state}; {removed} requests removed")
        except (OSError, ValueError) as error:
            raise CommandError(
                f"The key of BENCHLAB_SEAL_KEY cannot be used: {error}"
            ) from error


def _spans(words: list[str]) -> list[tuple[int, int]]:
    spans = []
    try:
        for word in words:
            first_text, _dash, last_text = word.partition("-")
            spans.append((int(first_text), int(last_text or first_text)))
    except ValueError:
        raise CommandError(f"Not a number of an entry: {word}") from None
    return spans
