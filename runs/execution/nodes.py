"""The machines of a run, each with its line, its base directory and its folder of steps."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from runs.execution.base_dir import BaseDir
from runs.execution.line import Line, Tell
from runs.execution.ssh import Host

T = TypeVar("T")

DATABASE_NODE = "db"


@dataclass(frozen=True)
class Node:
    """One machine of a run. `name` is db, or load1, load2, ...; `address` is as it is shown."""

    name: str
    address: str
    line: Line
    base: BaseDir
    directory: str
    tell: Tell

    @property
    def steps_directory(self) -> str:
        """Where the steps on this machine keep their files."""
        return f"{self.directory}/steps"

    async def on_host(self, act: Callable[[Host], Awaitable[T]]) -> T:
        """Do something idempotent there, however often the connection is lost."""
        return await self.line.do(act, self.tell)
