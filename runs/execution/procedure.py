"""What the engine asks of a scenario."""

from typing import Protocol, runtime_checkable

from runs.execution.bench import Bench


class Procedure(Protocol):
    """The part of a run that its scenario decides."""

    async def load(self, bench: Bench) -> None:
        """Fill a fresh, running cluster."""

    async def warm(self, bench: Bench) -> None:
        """Bring the data into memory."""

    async def measure(self, bench: Bench) -> None:
        """Put the load on and add the findings."""


@runtime_checkable
class Arranging(Protocol):
    """A scenario that has something to do once all clusters of a run serve."""

    async def arrange(self, bench: Bench) -> None:
        """Link or load the further clusters. Done in each run, before it is warmed."""
