"""A trial: one statement with settings put back, in turn with the version that it is compared with.

The campaign of a trial has two runs. Their level `arm` says what each executes: `A`, the statement
as it is, or the settings that are put back, one by one and all together.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from runs.analysis.why.proof import AGAIN, ALL, A, Arms, B

LEVEL = "arm"
# Parameters of its campaign: the statement's number, and the campaign whose answer asks.
STATEMENT, OF_CAMPAIGN = "statement", "of_campaign"
# The file in which a run keeps its times, encrypted.
ARTIFACT = "trial.enc"
_AND, _IS = "; ", " = "
_SETTING = re.compile(rf"([a-z_]{{1,63}}+){_IS}([0-9A-Za-z.]{{1,63}}+)", re.ASCII)


def level(put_back: Mapping[str, str]) -> str:
    """The level of the run that puts settings back; they are its arms in this order."""
    return _AND.join(f"{name}{_IS}{value}" for name, value in put_back.items())


def put_back(arm: str) -> dict[str, str]:
    """The settings of a level; none of A. Raises ValueError: psql reads them."""
    if arm == A:
        return {}
    matches = [_SETTING.fullmatch(setting) for setting in arm.split(_AND)]
    if None in matches:
        raise ValueError(f"no settings: {arm!r}")
    return {match[1]: match[2] for match in matches if match}


def arms(arm: str) -> dict[str, dict[str, str]]:
    """What a run of this level executes: the settings of each arm, by its name."""
    if arm == A:
        return {A: {}}
    tried = put_back(arm)
    arm_of_setting = {name: {name: value} for name, value in tried.items()}
    together = {ALL: tried} if len(tried) > 1 else {}
    return {B: {}, AGAIN: {}, **arm_of_setting, **together}


@dataclass(frozen=True)
class TrialTimes:
    """What a run of a trial found: milliseconds by arm and slice; without those that failed."""

    arms: Arms = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """As `to_json` gave it."""
        return cls(
            {
                name: {int(number): value for number, value in times.items()}
                for name, times in stored["arms"].items()
            }
        )


def together(found: Sequence[TrialTimes]) -> dict[str, Mapping[int, float]]:
    """The arms of both runs."""
    return {name: times for one in found for name, times in one.arms.items()}
