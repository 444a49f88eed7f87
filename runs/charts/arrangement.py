"""The drawing of an arrangement: machines as frames, load and clusters as boxes, links as arrows.

Left to right: the load, a connection pool if there is one, the database, and what follows it.
Plain coordinates; a page turns them into SVG.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Literal

from runs.grouping import group_by_key

WIDTH = 150
HEIGHT = 46
ACROSS = 80
DOWN = 18
EDGE, TITLE = 14, 22

Column = Literal["load", "pool", "database", "further"]
COLUMNS: tuple[Column, ...] = ("load", "pool", "database", "further")


@dataclass(frozen=True)
class Part:
    """Something that runs on a machine; `link` is the label of the arrow that leads to it."""

    column: Column
    machine: str
    name: str
    role: str
    link: str = ""


@dataclass(frozen=True)
class Placed:
    """A part or the frame of a machine, from its upper left corner."""

    x: int
    y: int
    width: int
    height: int
    name: str
    role: str = ""

    @property
    def middle(self) -> int:
        """Where its text is centred."""
        return self.x + self.width // 2


@dataclass(frozen=True)
class Arrow:
    """A link between two parts."""

    x1: int
    y1: int
    x2: int
    y2: int
    label: str

    @property
    def middle(self) -> int:
        """Where its label is centred."""
        return (self.x1 + self.x2) // 2

    @property
    def label_y(self) -> int:
        """The line of its label."""
        return (self.y1 + self.y2) // 2 - 5


@dataclass(frozen=True)
class Drawing:
    """An arrangement with positions. `shared` are the machines with several clusters."""

    width: int
    height: int
    frames: Sequence[Placed]
    boxes: Sequence[Placed]
    arrows: Sequence[Arrow]
    shared: Sequence[str]


def drawing(components: Sequence[Part]) -> Drawing:
    """Place the parts. Those of a machine are together in a column."""
    columns = [
        sorted(
            (component for component in components if component.column == column),
            key=lambda component: component.machine,
        )
        for column in COLUMNS
    ]
    columns = [column for column in columns if column]
    most = max(map(len, columns), default=0)
    placed: dict[int, Placed] = {}
    for column_number, column in enumerate(columns):
        x = 2 * EDGE + column_number * (WIDTH + ACROSS)
        gap = (most - len(column)) * (HEIGHT + DOWN + EDGE + TITLE) // 2
        for row, component in enumerate(column):
            y = EDGE + TITLE + gap + row * (HEIGHT + DOWN + EDGE + TITLE)
            placed[id(component)] = Placed(
                x, y, WIDTH, HEIGHT, component.name, component.role
            )
    frames = _frames(components, placed)
    return Drawing(
        width=max((placed.x + placed.width for placed in frames), default=0) + EDGE,
        height=max((placed.y + placed.height for placed in frames), default=0) + EDGE,
        frames=frames,
        boxes=list(placed.values()),
        arrows=_arrows(columns, placed),
        shared=_shared(components),
    )


def _frames(components: Sequence[Part], placed: dict[int, Placed]) -> list[Placed]:
    boxes_of_machine = group_by_key(
        (component.machine, placed[id(component)]) for component in components
    )
    return [_frame(machine, boxes) for machine, boxes in boxes_of_machine.items()]


def _frame(machine: str, boxes: Sequence[Placed]) -> Placed:
    columns = [box.x for box in boxes]
    rows = [box.y for box in boxes]
    x, y = min(columns) - EDGE, min(rows) - TITLE
    width = max(columns) + WIDTH + EDGE - x
    height = max(rows) + HEIGHT + EDGE - y
    return Placed(x, y, width, height, machine)


def _arrows(
    columns: Sequence[Sequence[Part]], placed: dict[int, Placed]
) -> list[Arrow]:
    """From each part of a column to each of the next one: one of two columns has a single part."""
    arrows = []
    for left_column, right in pairwise(columns):
        for start_component, end_component in product(left_column, right):
            start, end = placed[id(start_component)], placed[id(end_component)]
            y1, y2 = start.y + HEIGHT // 2, end.y + HEIGHT // 2
            arrows.append(Arrow(start.x + WIDTH, y1, end.x - 3, y2, end_component.link))
    return arrows


def _shared(components: Sequence[Part]) -> list[str]:
    clusters: Counter[str] = Counter()
    for component in components:
        clusters[component.machine] += component.column in {"database", "further"}
    return [machine for machine, number in clusters.items() if number > 1]
