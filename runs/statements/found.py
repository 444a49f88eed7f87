"""What a run has found of each statement of a load; it is kept encrypted."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from runs.statements.plan_shape import PlanShape

# In place of an SQLSTATE: the data gave no value for a parameter.
NO_VALUE = "no_value"


@dataclass(frozen=True)
class FoundUnit:
    """A statement's time by one run: of a call in milliseconds, None if it failed.

    `code` is its SQLSTATE. `plans` are what EXPLAIN printed, one for each of its statements, and
    `shapes` what is compared of them. `read_bytes` is what the server read from storage for a cold
    execution, its session included; None for a warm one.
    """

    number: int
    milliseconds: float | None
    executions: int
    code: str
    plans: tuple[str, ...] = ()
    shapes: tuple[PlanShape, ...] = ()
    read_bytes: float | None = None


WholeProblem = Literal["old_client", "nothing_left", "ended"]


@dataclass(frozen=True)
class FoundWhole:
    """The load as a whole in one run: units drawn at their calls, by so many clients at once.

    `calls_per_second` is None where `problem` says why it was not measured; `message` is what
    pgbench said then. `drawn` are the numbers of the units, `failed` of those that are left out
    since they failed in this run or the round before, `unsafe` of those whose text pgbench would
    read as its own.
    """

    clients: int
    calls_per_second: float | None
    drawn: tuple[int, ...]
    failed: tuple[int, ...] = ()
    unsafe: tuple[int, ...] = ()
    problem: WholeProblem | Literal[""] = ""
    message: str = ""

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """As it was stored."""
        numbers = {name: tuple(stored[name]) for name in ("drawn", "failed", "unsafe")}
        return cls(**{**stored, **numbers})


@dataclass(frozen=True)
class Found:
    """All of a run, by the version that it measured; `whole` where it was asked for."""

    version: str
    units: tuple[FoundUnit, ...]
    whole: FoundWhole | None = None

    @property
    def failed(self) -> frozenset[int]:
        """The units that a further run leaves out of the load as a whole."""
        known_failures = self.whole.failed if self.whole else ()
        own_failures = {unit.number for unit in self.units if unit.milliseconds is None}
        return frozenset(known_failures) | own_failures

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """As `to_json` gave it."""
        units = tuple(_unit_of(unit) for unit in stored["units"])
        whole_row = stored.get("whole")
        return cls(
            stored["version"],
            units,
            FoundWhole.from_json(whole_row) if whole_row else None,
        )


def _unit_of(stored: Mapping[str, Any]) -> FoundUnit:
    shapes = tuple(PlanShape.from_json(shape) for shape in stored["shapes"])
    return FoundUnit(**{**stored, "plans": tuple(stored["plans"]), "shapes": shapes})
