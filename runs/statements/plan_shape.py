"""What of a plan is compared between versions: its nodes, estimates, workers, JIT and time."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal, Self

Kind = Literal["node", "index", "parallel", "jit", "estimate", "spilled", "same"]

# A smaller factor between estimates is that of another sample of ANALYZE.
NOTABLE_FACTOR = 3.0
MOST_NODES = 500
_STAGES = ("Parallel ", "Partial ", "Finalize ", "Gather Merge", "Gather")


@dataclass(frozen=True)
class ShapeNode:
    """A node: what it does with what, by which index, and how many rows were thought and came."""

    depth: int
    name: str
    on: str
    index: str
    estimated: float | None
    rows: float | None
    milliseconds: float | None

    @property
    def title(self) -> str:
        """As EXPLAIN names it."""
        using = f" using {self.index}" if self.index else ""
        on = f" on {self.on}" if self.on else ""
        return f"{self.name}{using}{on}"

    @property
    def is_gather(self) -> bool:
        """Whether it collects the rows of workers."""
        return self.name.startswith("Gather")

    @property
    def is_stage(self) -> bool:
        """Whether a serial plan has it in another node: a Gather, or Finalize above its Partial."""
        return self.is_gather or self.name.startswith("Finalize ")

    @property
    def scanned(self) -> tuple[str, str]:
        """What it reads and how, without its stage of a parallel plan."""
        name = self.name
        for stage in _STAGES[:3]:
            name = name.removeprefix(stage)
        return name, self.on


@dataclass(frozen=True)
class PlanShape:
    """The plan of a statement. `is_spilled`: a sort or hash used the disk."""

    nodes: tuple[ShapeNode, ...]
    jit_ms: float = 0.0
    planning_ms: float | None = None
    execution_ms: float | None = None
    blocks_hit: int = 0
    blocks_read: int = 0
    is_spilled: bool = False

    @property
    def is_parallel(self) -> bool:
        """Whether workers take part."""
        return any(node.is_gather for node in self.nodes)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """As it was stored."""
        nodes = tuple(ShapeNode(**node) for node in stored["nodes"])
        return cls(**{**stored, "nodes": nodes})


@dataclass(frozen=True)
class PlanDifference:
    """What differs from base to head; each part is empty where there is nothing to say."""

    only_base: tuple[str, ...] = ()
    only_head: tuple[str, ...] = ()
    is_reordered: bool = False
    becomes_parallel: bool = False
    becomes_serial: bool = False
    gains_jit: bool = False
    loses_jit: bool = False
    gains_spill: bool = False
    loses_spill: bool = False
    estimates: tuple[tuple[str, float, float], ...] = ()

    @property
    def is_none(self) -> bool:
        """Whether both plans are the same in all that is compared."""
        return self == PlanDifference()


def difference(base: Sequence[PlanShape], head: Sequence[PlanShape]) -> PlanDifference:
    """What differs between the plans of a statement, or of each statement of a transaction."""
    parts = [_compare_plans(old, new) for old, new in zip(base, head, strict=False)]
    return PlanDifference(
        only_base=tuple(title for part in parts for title in part.only_base),
        only_head=tuple(title for part in parts for title in part.only_head),
        is_reordered=any(part.is_reordered for part in parts),
        becomes_parallel=any(part.becomes_parallel for part in parts),
        becomes_serial=any(part.becomes_serial for part in parts),
        gains_jit=any(part.gains_jit for part in parts),
        loses_jit=any(part.loses_jit for part in parts),
        gains_spill=any(part.gains_spill for part in parts),
        loses_spill=any(part.loses_spill for part in parts),
        estimates=tuple(estimate for part in parts for estimate in part.estimates),
    )


def _compare_plans(base: PlanShape, head: PlanShape) -> PlanDifference:
    # What a parallel plan collects, and the second stage of what it aggregates, are no news.
    olds = [node for node in base.nodes if not node.is_stage]
    news = [node for node in head.nodes if not node.is_stage]
    only_base: list[str] = []
    only_head: list[str] = []
    estimates: list[tuple[str, float, float]] = []
    matcher = SequenceMatcher(None, _keys(olds), _keys(news), autojunk=False)
    for tag, begin, end, other_begin, other_end in matcher.get_opcodes():
        if tag == "equal":
            estimates += _estimates(olds[begin:end], news[other_begin:other_end])
        else:
            only_base += [node.title for node in olds[begin:end]]
            only_head += [node.title for node in news[other_begin:other_end]]
    # Nodes of both plans that stand elsewhere in them.
    moved = Counter(only_base) & Counter(only_head)
    return PlanDifference(
        only_base=_exclude_moved(only_base, moved),
        only_head=_exclude_moved(only_head, moved),
        is_reordered=bool(moved),
        becomes_parallel=head.is_parallel and not base.is_parallel,
        becomes_serial=base.is_parallel and not head.is_parallel,
        gains_jit=head.jit_ms > 0 and not base.jit_ms,
        loses_jit=base.jit_ms > 0 and not head.jit_ms,
        gains_spill=head.is_spilled and not base.is_spilled,
        loses_spill=base.is_spilled and not head.is_spilled,
        estimates=tuple(estimates),
    )


def _exclude_moved(titles: Iterable[str], moved: Counter[str]) -> tuple[str, ...]:
    """The titles but for so many of each."""
    remaining = Counter(moved)
    rest = []
    for title in titles:
        if remaining[title]:
            remaining[title] -= 1
        else:
            rest.append(title)
    return tuple(rest)


def _keys(nodes: Sequence[ShapeNode]) -> list[tuple[str, str, str]]:
    return [(*node.scanned, node.index) for node in nodes]


def _estimates(
    olds: Sequence[ShapeNode], news: Sequence[ShapeNode]
) -> Iterator[tuple[str, float, float]]:
    """Rows that were thought, where both versions differ by a factor."""
    for old, new in zip(olds, news, strict=True):
        if old.estimated is None or new.estimated is None:
            continue
        before, after = max(old.estimated, 1.0), max(new.estimated, 1.0)
        if max(before / after, after / before) >= NOTABLE_FACTOR:
            yield new.title, before, after
