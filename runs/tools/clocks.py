"""Times of day that monitors print beside their samples, as most locales write them.

24 hours, AM and PM, Japanese, Chinese and Korean.
"""

from __future__ import annotations

from collections.abc import Sequence

from runs.patterns import re

DAY_S = 86400
CLOCK = (
    r"(?P<hour>\d\d)[:時时시] ?(?P<minute>\d\d)[:分분] ?(?P<second>\d\d)[秒초]?(?:[.,]\d{1,9})?"
    r"(?:[+-]\d\d:?\d\d|Z)?(?: (?P<half>[AaPp][Mm])(?![A-Za-z]))?"
)
_DATE = (
    r"(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4}"
    r"|\d{4}[年년] ?\d{1,2}[月월] ?\d{1,2}[日일])"
)
_LINE = re.compile(rf"[ \t]{{0,40}}+(?:Time: |{_DATE}[T ])?{CLOCK}[ \t]{{0,40}}+")
_WITHIN = re.compile(rf"(?<![\d:.]){CLOCK}(?![\d:])")


def line_clock(line: str) -> float | None:
    """Seconds since midnight of a line that is a time alone, with its date or not; else None."""
    match = _LINE.fullmatch(line)
    return seconds_of(match) if match else None


def last_clock(text: str) -> float | None:
    """Seconds since midnight of the last time in a text; None where there is none."""
    clocks = [seconds_of(match) for match in _WITHIN.finditer(text)]
    return clocks[-1] if clocks else None


def seconds_of(match: re.Match[str]) -> float:
    """Seconds since midnight of what CLOCK has found."""
    hour = int(match["hour"])
    if match["half"]:
        hour = hour % 12 + (12 if match["half"].upper() == "PM" else 0)
    return float(hour * 3600 + int(match["minute"]) * 60 + int(match["second"]))


def elapsed(clocks: Sequence[float | None]) -> list[float]:
    """Seconds since the first time of all further ones, over midnight.

    Empty where one is missing or goes back: nothing is known of the distances then.
    """
    seconds: list[float] = []
    days, before = 0, 0.0
    for clock in clocks:
        if clock is None:
            return []
        days += clock + DAY_S / 2 < before
        before = clock
        seconds.append(clock + days * DAY_S)
    if seconds != sorted(seconds) or len(set(seconds)) < 2:
        return []
    return [moment - seconds[0] for moment in seconds[1:]]
