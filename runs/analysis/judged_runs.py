"""What certificates say of several runs: how many are valid, doubtful, invalid, unknown."""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

JUDGEMENTS = ("valid", "doubtful", "invalid", "unknown")


@dataclass(frozen=True)
class Judged:
    """How many runs have each judgement.

    `left_out` of the invalid ones are in no median and no verdict; `again` of these were measured
    again since. `is_ours`: some were executed here; others are never judged, and are unknown.
    """

    valid: int = 0
    doubtful: int = 0
    invalid: int = 0
    unknown: int = 0
    left_out: int = 0
    again: int = 0
    ours: int = 0

    @classmethod
    def total(cls, judged_parts: Iterable["Judged"]) -> "Judged":
        """Of all runs of these."""
        columns = zip(*map(_COUNTS, judged_parts))
        return cls(*map(sum, columns))

    @property
    def counts(self) -> dict[str, int]:
        """The number of each judgement."""
        return {name: getattr(self, name) for name in JUDGEMENTS}

    @property
    def has_doubts(self) -> bool:
        """Whether a figure made of these runs needs a mark."""
        return bool(self.doubtful or self.invalid or (self.unknown and self.ours))

    @property
    def was_machine_taken(self) -> bool:
        """Whether others used the machine in most of the runs: then there is no answer."""
        total_runs = self.valid + self.doubtful + self.invalid + self.unknown
        return 2 * (self.left_out - self.again) > total_runs - self.again


_COUNTS = attrgetter(*Judged.__dataclass_fields__)
NOT_JUDGED = Judged()
