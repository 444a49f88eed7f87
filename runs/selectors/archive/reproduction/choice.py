"""What is chosen so far for a design, and why where it is otherwise than printed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runs.models import Campaign, Server
from runs.scenarios.definition import Place, Quick, Scenario
from runs.selectors.archive import versions
from runs.selectors.archive.reproduction.printed import VERSION


@dataclass
class Choice:
    """A publication, the scenario that repeats it, and the servers; `reasons` by code."""

    campaign: Campaign
    scenario: Scenario
    place: Place
    quick: Quick | None
    servers: Sequence[Server]
    printed: Mapping[str, Sequence[Any]]
    reasons: dict[str, str] = field(default_factory=dict)
    not_installed: list[str] = field(default_factory=list)

    @property
    def versions(self) -> list[str]:
        """Those that the publication prints."""
        return [text for each in self.printed.get(VERSION, ()) if versions.major(text := str(each))]
