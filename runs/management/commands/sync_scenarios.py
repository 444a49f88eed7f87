"""Brings the database's scenarios, metrics and built-in configurations in step with the code's."""

from typing import Any

from runs.configurations.services import configurations
from runs.management.command import LeanCommand
from runs.workloads.services import scenarios


class Command(LeanCommand):
    """Run it after each migrate of a deployment; script/server does the same by itself."""

    def handle(self, *args: Any, **options: Any) -> None:
        scenarios.sync()
        configurations.sync()
