"""What control does again and again. Those of subjects on top join `ADDED`."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Duty:
    """Something that control does whenever something waits; if it is rare, in every fourth turn.

    `is_outward`: a held copy of the results database does not do it, since it would be done twice
    or by the wrong one.
    """

    act: Callable[[], object]
    is_outward: bool = False
    is_rare: bool = False

    @property
    def name(self) -> str:
        """Module and function, as logs name it."""
        name = getattr(self.act, "__qualname__", repr(self.act))
        return f"{self.act.__module__.rpartition('.')[2]}.{name}"


ADDED: list[Duty] = []
