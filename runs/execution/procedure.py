"""What the engine asks of a scenario."""

from typing import Protocol

from runs.execution.bench import Bench


class Procedure(Protocol):
    """The part of a run that its scenario decides."""

    async def load(self, bench: Bench) -> None:
        """Fill a fresh, running cluster."""

    async def warm(self, bench: Bench) -> None:
        """Bring the data into memory."""

    async def measure(self, bench: Bench) -> None:
        """Put the load on and add the findings."""
