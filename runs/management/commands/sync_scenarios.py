"""Brings the database's scenarios, metrics and built-in configurations in step with the code's."""

from typing import Any

from runs.management.command import LeanCommand
from runs.services.campaigns import scenarios
from runs.services.configurations import configurations


class Command(LeanCommand):
    """Run it after each migrate of a deployment; script/server does the same by itself."""

    def handle(self, *args: Any, **options: Any) -> None:
        scenarios.sync()
        configurations.sync()
