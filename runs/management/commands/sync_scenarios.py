"""Brings the database's scenarios, metrics and built-in configurations in step with the code's."""

from typing import Any

from django.core.management.base import BaseCommand

from runs.services.campaigns import scenarios
from runs.services.configurations import configurations


class Command(BaseCommand):
    """Run it after each migrate of a deployment; script/server does the same by itself."""

    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        """Make or update the rows."""
        scenarios.sync()
        configurations.sync()
