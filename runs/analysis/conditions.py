"""Under what two cells were measured, and whether that lets them be compared."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Difference = Literal["hardware_differs", "environment_differs"]
Unknown = Literal["hardware_unknown", "environment_unknown"]


@dataclass(frozen=True)
class Conditions:
    """What must be equal on both sides, as fingerprints or names. None is not known."""

    hardware: str | None = None
    environment: str | None = None


@dataclass(frozen=True)
class Judgement:
    """`reasons` forbid the comparison; `despite` what it was made, were there no reasons."""

    reasons: tuple[Difference, ...] = ()
    despite: tuple[Difference | Unknown, ...] = ()


def judge(base: Conditions, head: Conditions, ignore: Collection[str] = ()) -> Judgement:
    """Tell differences that forbid a comparison from those that are `ignore`d or not known.

    What one side does not tell is no difference, since published figures seldom tell all; but
    it is told, so that a reader knows what was taken on trust.
    """
    differences: list[Difference] = []
    unknown: list[Unknown] = []
    if base.hardware is None or head.hardware is None:
        unknown.append("hardware_unknown")
    elif base.hardware != head.hardware:
        differences.append("hardware_differs")
    if base.environment is None or head.environment is None:
        unknown.append("environment_unknown")
    elif base.environment != head.environment:
        differences.append("environment_differs")
    return Judgement(
        reasons=tuple(code for code in differences if code not in ignore),
        despite=(*(code for code in differences if code in ignore), *unknown),
    )
