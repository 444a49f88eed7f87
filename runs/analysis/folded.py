"""Folded stacks, "OUTER;...;INNER N" a line: https://www.brendangregg.com/flamegraphs.html."""

from collections.abc import Iterator


def stacks(folded: str) -> Iterator[tuple[list[str], int]]:
    """The frames of each line, the outermost first, and its samples; other lines are left out."""
    for line in folded.splitlines():
        stack, _blank, number = line.rpartition(" ")
        if stack and number.isascii() and number.isdigit():
            yield stack.split(";"), int(number)
