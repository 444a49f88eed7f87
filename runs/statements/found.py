"""What a run has found of each statement of a load; it is kept encrypted."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from runs.statements.plan_shape import PlanShape


@dataclass(frozen=True)
class FoundUnit:
    """A statement's time by one run: of a call in milliseconds, None if it failed.

    `code` is its SQLSTATE. `plans` are what EXPLAIN printed, one for each of its statements, and
    `shapes` what is compared of them.
    """

    number: int
    milliseconds: float | None
    executions: int
    code: str
    plans: tuple[str, ...] = ()
    shapes: tuple[PlanShape, ...] = ()


@dataclass(frozen=True)
class Found:
    """All of a run, by the version that it measured."""

    version: str
    units: tuple[FoundUnit, ...]

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """As `to_json` gave it."""
        return cls(stored["version"], tuple(_unit_of(unit) for unit in stored["units"]))


def _unit_of(stored: Mapping[str, Any]) -> FoundUnit:
    shapes = tuple(PlanShape.from_json(shape) for shape in stored["shapes"])
    return FoundUnit(**{**stored, "plans": tuple(stored["plans"]), "shapes": shapes})
