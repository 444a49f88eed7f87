"""Scripts as somebody wrote them, their bounds, and what can be wrong with them."""

from dataclasses import dataclass

MOST_SCRIPTS, MOST_CHARACTERS, MOST_WEIGHT = 20, 100_000, 1_000_000


@dataclass(frozen=True)
class Fault:
    """What is wrong, as a code with words for it; `line` counts from 1; 0 is all of it."""

    script: str
    line: int
    code: str
    word: str = ""


@dataclass(frozen=True)
class GivenScript:
    """A script as somebody wrote it."""

    name: str
    text: str
    weight: int = 1
