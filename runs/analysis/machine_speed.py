"""How fast a machine was in a run, against what is usual for it.

The speed of a part is what the machine did of a fixed piece of work before and after the load, in
the mean (`runs.execution.machine.speed`). Usual is the median of the runs before on the same
machine; only what the same program did counts, on as many processors.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# The runs whose median is usual, and how many there must be at least.
NEWEST, LEAST = 30, 5
# A part that lacks more than this share of its usual speed was slow.
OFF = 0.15
# One that scatters by itself, as disks do, only beyond so many robust standard deviations.
DEVIATIONS = 4.0
SCATTERING = frozenset({"memory", "disk"})
PARTS = ("core", "cores", "memory", "disk")
_ROBUST = 1.4826

# The stored form of a machine's speed in a run (`Run.speed`).
Speed = Mapping[str, Any]


@dataclass(frozen=True)
class PartSpeed:
    """How fast a part of a machine was, as a share of its `usual` rate; less than `limit` is slow.

    Rates are pieces of work, bytes, or writes a second.
    """

    part: str
    rate: float
    usual: float
    limit: float

    @property
    def share(self) -> float:
        """1 is as usual."""
        return self.rate / self.usual

    @property
    def is_slow(self) -> bool:
        """Whether it makes the run doubtful."""
        return self.share < self.limit

    def as_json(self) -> dict[str, float]:
        """Its stored form."""
        return {
            "rate": self.rate,
            "usual": self.usual,
            "share": round(self.share, 3),
            "limit": round(self.limit, 3),
        }


def rate_of(speed: Speed, part: str) -> float | None:
    """The rate of a part in a run; None where it is not known."""
    rates = [
        float(moment[part])
        for moment in (speed.get("before"), speed.get("after"))
        if isinstance(moment, Mapping) and moment.get(part)
    ]
    return round(statistics.fmean(rates), 1) if rates else None


def judged(speed: Speed, before: Sequence[Speed]) -> list[PartSpeed]:
    """The parts of which is known what is usual, from the runs before on the same machine."""
    parts = []
    for part in PARTS:
        rate = rate_of(speed, part)
        earlier_rates = [
            earlier_rate
            for earlier in before
            if _is_same_work(part, earlier, speed)
            and (earlier_rate := rate_of(earlier, part)) is not None
        ][:NEWEST]
        if rate is not None and len(earlier_rates) >= LEAST:
            usual = statistics.median(earlier_rates)
            parts.append(PartSpeed(part, rate, usual, _limit(part, earlier_rates)))
    return parts


def rates_like(speed: Speed, newest: Speed) -> dict[str, float]:
    """The rates of the parts that did the same work as in the newest run."""
    rates = {
        part: rate_of(speed, part)
        for part in PARTS
        if _is_same_work(part, speed, newest)
    }
    return {part: rate for part, rate in rates.items() if rate is not None}


def medians(rates: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The median of each part over several runs."""
    rates_of: dict[str, list[float]] = {}
    for rates_of_run in rates:
        for part, rate in rates_of_run.items():
            rates_of.setdefault(part, []).append(rate)
    return {part: statistics.median(values) for part, values in rates_of.items()}


def _is_same_work(part: str, earlier: Speed, speed: Speed) -> bool:
    names = {"core": ("program",), "cores": ("program", "processors")}.get(part, ())
    return all(earlier.get(name) == speed.get(name) for name in names)


def _limit(part: str, rates: Sequence[float]) -> float:
    if part not in SCATTERING:
        return 1 - OFF
    usual = statistics.median(rates)
    deviation = statistics.median(abs(rate - usual) for rate in rates)
    return 1 - max(OFF, DEVIATIONS * _ROBUST * deviation / usual)
