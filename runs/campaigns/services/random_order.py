"""In which order runs are executed: shuffled by a seed, so that it can be had again."""

import random
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def shuffled(entries: Iterable[T], seed: int | str) -> list[T]:
    """What is given in an order that the seed decides."""
    order = list(entries)
    random.Random(seed).shuffle(order)  # noqa: S311 -- repeatable on purpose
    return order


def draw_rounds(cells: int, repeats: int, seed: int) -> list[tuple[int, int]]:
    """(repeat, cell index) in the order of execution: all cells are shuffled for each repeat."""
    shuffler = random.Random(seed)  # noqa: S311 -- repeatable on purpose
    order = []
    for repeat in range(1, repeats + 1):
        indexes = list(range(cells))
        shuffler.shuffle(indexes)
        order += [(repeat, index) for index in indexes]
    return order
