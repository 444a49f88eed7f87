"""Judges runs, changes and bisections again by what was recorded. Safe to repeat."""

from typing import Any

from runs.histories.services import changes
from runs.management.command import LeanCommand
from runs.queue.services import certificates


class Command(LeanCommand):
    """Judges what older rules judged, or nobody."""

    def handle(self, *_args: Any, **_options: Any) -> None:
        changed = certificates.judge_again()
        self.stdout.write(f"{changed} runs have a different judgement than before")
        judged = changes.judge_all()
        self.stdout.write(
            f"{judged} changes and bisections were judged by the current rules"
        )
