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
    found: set[int] = set()
    for part in compact.split(","):
        first, _dash, last = part.partition("-")
        low, high = int(first), int(last or first)
        if low > high:
            raise ValueError(f"{part} runs backwards")
        if high > HIGHEST:
            raise ValueError(f"there is no CPU {high}")
        found.update(range(low, high + 1))
    return frozenset(found)


def spelled(numbers: Iterable[int]) -> str:
    """The list in canonical form: ascending, with neighbours as ranges."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(str(end) for end in part) for part in parts)


def pinned(cpus: str) -> tuple[str, ...]:
    """The prefix for a command that must run, with all its children, on these CPUs only."""
    return ("taskset", "-c", cpus) if cpus else ()
