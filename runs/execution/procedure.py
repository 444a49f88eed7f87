"""The interface of a scenario that the engine uses."""

from typing import Protocol, runtime_checkable

from runs.execution.bench import Bench


class Procedure(Protocol):
    """The part of a run that its scenario decides."""

    async def load(self, bench: Bench) -> None:
        """Fill a new, running cluster with the data. Done once per prepared cluster."""

    async def warm(self, bench: Bench) -> None:
        """Read the data into memory. Done after each start of the cluster."""

    async def measure(self, bench: Bench) -> None:
        """Run the load and add the findings."""


@runtime_checkable
class Arranging(Protocol):
    """A scenario that has something to do after all clusters of a run are running."""

    async def arrange(self, bench: Bench) -> None:
        """Link or load the further clusters. Done in each run, before it is warmed up."""
