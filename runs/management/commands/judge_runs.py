"""Judge again how far runs may be relied on, by the rules of this BenchLab."""

from typing import Any

from django.core.management.base import BaseCommand

from runs.services.runs import certificates


class Command(BaseCommand):
    """Certifies runs that older rules judged, or nobody."""

    help = "Judges runs again by what was recorded of them. Safe to repeat."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Judge all that need it."""
        changed = certificates.judge_again()
        self.stdout.write(f"{changed} runs are judged otherwise than before")
