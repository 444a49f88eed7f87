"""Lets this host leave the BenchLab that it has joined, and removes what it got."""

from typing import Any

from runs.management import command
from runs.operations.services import host_client


class Command(command.Command):
    """`script/worker --leave` calls it. Stop its workers before."""

    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        host_client.leave()
        self.stdout.write(
            "This host has left: its keys are removed here, and its role there."
        )
