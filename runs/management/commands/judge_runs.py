"""Judge again, by the rules of this BenchLab, what is stored: runs, changes and bisections."""

from typing import Any

from runs.management.command import LeanCommand
from runs.services.changes import changes
from runs.services.runs import certificates


class Command(LeanCommand):
    """Judges what older rules judged, or nobody."""

    help = "Judges runs, changes and bisections again by what was recorded. Safe to repeat."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Judge all that need it."""
        changed = certificates.judge_again()
        self.stdout.write(f"{changed} runs have a different judgement than before")
        judged = changes.judge_all()
        self.stdout.write(f"{judged} changes and bisections were judged by the current rules")
