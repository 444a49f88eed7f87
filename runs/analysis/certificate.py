"""Can a run be relied on? A certificate from what was recorded during its measurement.

valid: what could make it doubtful was checked, and nothing does. doubtful: it may be right, but
something suggests otherwise. invalid: it measured something else. unknown, which is stored as an
empty text: nobody recorded who used the processors, or a statement of less than a second was
executed once, and nothing else makes the run doubtful.

The limits, and the reasons for them, are in docs/statistics.md.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from runs.analysis import drift
from runs.analysis.fact_readers import UNOPTIMISED
from runs.analysis.machine_speed import PartSpeed

RULES_VERSION = 10
"""Increase it with every change below; stored judgements name the rules that they used."""

Validity = Literal["", "valid", "doubtful", "invalid"]
Weight = Literal["invalid", "doubt", "remark"]
WEIGHTS: tuple[Weight, ...] = get_args(Weight)

# Shares of all processors of a machine.
FOREIGN_DOUBTFUL, FOREIGN_INVALID = 0.10, 0.80
STOLEN_DOUBTFUL = THROTTLED_DOUBTFUL = 0.02
# Pages a second to swap and from there.
SWAPPED_DOUBTFUL = 256
# Shares of the load's time in which a process waited for memory; for a disk; and for a processor,
# though as many were idle.
MEMORY_PRESSURE_DOUBTFUL = 0.05
PRESSURE_REMARKED, IDLE_REMARKED = 0.50, 0.50
DRIFT_DOUBTFUL = 0.10
SHORT_DOUBTFUL_S, SHORT_S = 5.0, 30.0
# In slices a side's seconds in all repeats count, and its turns.
FEW_TURNS = 12
# Checkpoints are normal in a run that is long enough for several.
LONG_WITH_CHECKPOINTS_S = 1800.0

# What the run's own notes mean: their weight, and whether another run may avoid the problem.
_NOTED: Mapping[str, tuple[Weight, bool]] = {
    "generator_saturated": ("doubt", False),
    "load_stalled": ("doubt", True),
    "generator_stalled": ("doubt", True),
    "checkpoint_during_run": ("doubt", True),
    "autovacuum_during_run": ("remark", False),
    "clocks_differ": ("doubt", False),
    "second_threads": ("remark", False),
    "profiled": ("doubt", False),
    "settings_changed": ("doubt", False),
    "short_statement": ("remark", False),
}
# What others take of a machine: the runs of a round in slices share it in turn.
SHARED_IN_TURN = frozenset(
    {
        "foreign_load",
        "steal",
        "throttled",
        "machine_slow",
        "memory_slow",
        "disk_slow",
    }
)
# Executed once, a statement of less than a second says nothing of how its time scatters.
ALONE = "short_statement"


@dataclass(frozen=True)
class Usage:
    """Who used the processors of a machine under load, in seconds of processor time.

    `throttled` are seconds for which a quota stopped processes, `swapped` are pages. For
    `pressure_…` seconds a process waited for what it lacked; `pressure_seconds` and `quota_seconds`
    are those of which the machine told that: 0 where it tells nothing, None in records of before.
    """

    machine: str
    processors: int
    seconds: float
    busy: float
    stolen: float
    servers: float
    kernel: float
    generator: float
    servers_in_kernel: float = 0.0
    throttled: float = 0.0
    swapped: float = 0.0
    pressure_cpu: float = 0.0
    pressure_memory: float = 0.0
    pressure_io: float = 0.0
    pressure_seconds: float | None = None
    quota_seconds: float | None = None

    @property
    def capacity(self) -> float:
        """The machine's capacity."""
        return self.processors * self.seconds

    @property
    def foreign(self) -> float:
        """The time used neither by PostgreSQL nor by the generator nor by the kernel."""
        return max(self.busy - self.servers - self.generator - self.kernel, 0.0)


@dataclass(frozen=True)
class Evidence:
    """The records of a run. None and empty mean unknown.

    `rates` are (second, transactions a second); `queue` is the mean run queue of the database's
    machine, `clients` and `processors` those of the run; `optimisation` is the build's flag.
    `foreign_settings` are those that neither the configuration nor BenchLab's sessions have set.
    `login` is what the account's login gave on the database's machine, where that is unusual.

    `speeds` are those of the parts of each machine whose usual speed is known.

    A run in slices has `turns` with the other runs of its round, in all repeats; `duration_s` is
    then that of all repeats, too.
    """

    usage: Sequence[Usage] = ()
    rates: Sequence[tuple[float, float]] = ()
    duration_s: float | None = None
    clients: int | None = None
    queue: float | None = None
    processors: int | None = None
    notes: Collection[str] = ()
    optimisation: str | None = None
    assertions: bool | None = None
    shares_machine: bool = False
    foreign_settings: Collection[str] = ()
    login: Sequence[str] = ()
    turns: int | None = None
    speeds: Mapping[str, Sequence[PartSpeed]] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """One reason to doubt a run, or one thing to know; `figures` are the values of its sentence.

    `is_curable`: another run of the same may avoid it.
    """

    code: str
    weight: Weight
    figures: Mapping[str, float | str] = field(default_factory=dict)
    is_curable: bool = False


@dataclass(frozen=True)
class Certificate:
    """The judgement, and its reasons."""

    validity: Validity
    findings: tuple[Finding, ...] = ()

    @property
    def is_curable(self) -> bool:
        """Whether measuring again may give a run without doubt."""
        doubts = [finding for finding in self.findings if finding.weight != "remark"]
        return bool(doubts) and all(finding.is_curable for finding in doubts)


def certify(evidence: Evidence) -> Certificate:
    """Judge a run from its records."""
    findings = tuple(
        _lighten_in_turn(finding, evidence)
        for finding in (
            *_processors(evidence),
            *_speed(evidence),
            *_steadiness(evidence),
            *_length(evidence),
            *_noted(evidence),
            *_build(evidence),
            *_settings(evidence),
        )
    )
    weights = {finding.weight for finding in findings}
    if "invalid" in weights:
        return Certificate("invalid", findings)
    if "doubt" in weights:
        return Certificate("doubtful", findings)
    is_known = evidence.usage and ALONE not in evidence.notes
    return Certificate("valid" if is_known else "", findings)


def _processors(evidence: Evidence) -> Iterator[Finding]:
    for usage in evidence.usage:
        foreign = usage.foreign / usage.capacity
        stolen = usage.stolen / usage.capacity
        if foreign > FOREIGN_DOUBTFUL:
            weight: Weight = "invalid" if foreign > FOREIGN_INVALID else "doubt"
            yield _taken("foreign_load", weight, usage, foreign)
        if stolen > STOLEN_DOUBTFUL:
            yield _taken("steal", "doubt", usage, stolen)
        yield from _held_back(usage)
    if not evidence.usage:
        yield Finding("usage_unknown", "remark")
        yield from _queue(evidence)
    if evidence.shares_machine:
        yield Finding("generator_on_same_machine", "remark")


def _held_back(usage: Usage) -> Iterator[Finding]:
    """What the machine's own limits took: a quota, and memory that was too small."""
    throttled = usage.throttled / usage.capacity
    if throttled > THROTTLED_DOUBTFUL:
        yield _taken("throttled", "doubt", usage, throttled, is_curable=False)
    if usage.swapped > SWAPPED_DOUBTFUL * usage.seconds:
        pages: dict[str, float | str] = {
            "machine": usage.machine,
            "pages": round(usage.swapped),
        }
        yield Finding("swapping", "doubt", pages, is_curable=True)
    yield from _pressure(usage)
    unread = [
        name
        for name, seconds in (
            ("PSI", usage.pressure_seconds),
            ("cpu.stat", usage.quota_seconds),
        )
        if seconds == 0
    ]
    if unread:
        figures: dict[str, float | str] = {
            "machine": usage.machine,
            "what": ", ".join(unread),
        }
        yield Finding("limits_unknown", "remark", figures)


def _pressure(usage: Usage) -> Iterator[Finding]:
    """For which part of the load a process waited for memory, a disk or a processor."""
    if not usage.pressure_seconds:
        return
    memory = usage.pressure_memory / usage.pressure_seconds
    disk = usage.pressure_io / usage.pressure_seconds
    processor = usage.pressure_cpu / usage.pressure_seconds
    idle = 1 - (usage.busy + usage.stolen) / usage.capacity
    if memory > MEMORY_PRESSURE_DOUBTFUL:
        yield _taken("memory_pressure", "doubt", usage, memory)
    if disk > PRESSURE_REMARKED:
        yield _taken("io_pressure", "remark", usage, disk, is_curable=False)
    if processor > PRESSURE_REMARKED and idle > IDLE_REMARKED:
        yield _taken("cpu_pressure", "remark", usage, processor, is_curable=False)


_SLOW = {
    "core": "machine_slow",
    "cores": "machine_slow",
    "memory": "memory_slow",
    "disk": "disk_slow",
}


def _speed(evidence: Evidence) -> Iterator[Finding]:
    """What was slower than it usually is; of the processors, one at a time or all, the slower."""
    for machine, parts in evidence.speeds.items():
        slowest: dict[str, PartSpeed] = {}
        for part in filter(lambda part: part.is_slow, parts):
            slowest_part = slowest.setdefault(_SLOW[part.part], part)
            slowest[_SLOW[part.part]] = min(
                slowest_part, part, key=lambda one: one.share
            )
        for code, part in slowest.items():
            figures: dict[str, float | str] = {
                "machine": machine,
                "share": round(100 * part.share),
            }
            yield Finding(code, "doubt", figures, is_curable=True)


def _lighten_in_turn(finding: Finding, evidence: Evidence) -> Finding:
    """In slices others take from all runs of a round alike: one step less."""
    if evidence.turns is None or finding.code not in SHARED_IN_TURN:
        return finding
    return replace(finding, weight="doubt" if finding.weight == "invalid" else "remark")


def _taken(
    code: str, weight: Weight, usage: Usage, share: float, *, is_curable: bool = True
) -> Finding:
    figures: dict[str, float | str] = {
        "machine": usage.machine,
        "share": round(100 * share, 1),
    }
    return Finding(code, weight, figures, is_curable=is_curable)


def _queue(evidence: Evidence) -> Iterator[Finding]:
    """Each client has a server process and a share of the generator; the rest are others'."""
    if evidence.queue is None or not evidence.clients or not evidence.processors:
        return
    if evidence.queue > 2 * evidence.clients + evidence.processors:
        figures = {"queue": round(evidence.queue, 1), "clients": evidence.clients}
        yield Finding("run_queue", "doubt", figures, is_curable=True)


def _steadiness(evidence: Evidence) -> Iterator[Finding]:
    times = [time for time, _rate in evidence.rates]
    stability = drift.examine(times, [rate for _time, rate in evidence.rates])
    slow = stability.drift
    if slow is not None and slow.is_proven and abs(slow.change) >= DRIFT_DOUBTFUL:
        yield Finding(
            "drift", "doubt", {"change": round(100 * slow.change, 1)}, is_curable=True
        )
    if stability.warm_up_s > 0:
        yield Finding("warm_up", "remark", {"seconds": round(stability.warm_up_s, 1)})
    if stability.dips:
        deepest = max(stability.dips, key=lambda dip: dip.depth)
        figures = {
            "number": len(stability.dips),
            "depth": round(100 * deepest.depth, 0),
        }
        yield Finding("dips", "remark", figures)


def _length(evidence: Evidence) -> Iterator[Finding]:
    if evidence.duration_s is None:
        return
    is_few = evidence.turns is not None and evidence.turns < FEW_TURNS
    if evidence.duration_s < SHORT_DOUBTFUL_S or is_few:
        yield Finding("too_short", "doubt", {"seconds": round(evidence.duration_s, 1)})
    elif evidence.duration_s < SHORT_S:
        yield Finding("short", "remark", {"seconds": round(evidence.duration_s, 1)})


def _noted(evidence: Evidence) -> Iterator[Finding]:
    is_long = (evidence.duration_s or 0) >= LONG_WITH_CHECKPOINTS_S
    for code, (weight, is_curable) in _NOTED.items():
        if code in evidence.notes:
            is_usual = code == "checkpoint_during_run" and is_long
            yield Finding(code, "remark" if is_usual else weight, is_curable=is_curable)


def _settings(evidence: Evidence) -> Iterator[Finding]:
    if evidence.foreign_settings:
        names = ", ".join(sorted(evidence.foreign_settings))
        yield Finding("foreign_settings", "doubt", {"names": names})
    if evidence.login:
        yield Finding("login", "remark", {"found": ", ".join(evidence.login)})


def _build(evidence: Evidence) -> Iterator[Finding]:
    if evidence.assertions:
        yield Finding("assertions", "doubt")
    if evidence.optimisation in UNOPTIMISED:
        yield Finding("not_optimised", "doubt", {"flag": evidence.optimisation})
