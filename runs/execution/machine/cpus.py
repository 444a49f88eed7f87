"""Lists of processors such as "0-3,8", as taskset and the kernel write them."""

import re
from collections.abc import Iterable

HIGHEST = 8191  # the maximum of Linux
_LIST = re.compile(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", re.ASCII)


def parse(text: str) -> frozenset[int]:
    """The numbers of a list; blanks are ignored. Raises ValueError, with the reason."""
    compact = "".join(text.split())
    if not _LIST.fullmatch(compact):
        raise ValueError(f"{text[:40]!r} is not a list of CPUs such as 0-3,8")
    numbers: set[int] = set()
    for range_text in compact.split(","):
        low_text, _dash, high_text = range_text.partition("-")
        low, high = int(low_text), int(high_text or low_text)
        if low > high:
            raise ValueError(f"{range_text} runs backwards")
        if high > HIGHEST:
            raise ValueError(f"there is no CPU {high}")
        numbers.update(range(low, high + 1))
    return frozenset(numbers)


def spelled(numbers: Iterable[int]) -> str:
    """The list in canonical form: ascending, with neighbours as ranges."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return ",".join("-".join(str(end) for end in ends) for ends in ranges)


def pinned(cpus: str) -> tuple[str, ...]:
    """The prefix for a command that must run, with all its children, on these CPUs only."""
    return ("taskset", "-c", cpus) if cpus else ()
