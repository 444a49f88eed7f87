"""The tables that mpstat, pidstat and sar print: a time at the beginning of each line.

Times are as most locales write them: 24 hours, AM and PM, Japanese, Chinese and Korean, and seconds
since 1970 as older pidstat -h has them. Source: sysstat's mpstat(1), pidstat(1), sar(1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from runs.patterns import re
from runs.tools import clocks, output
from runs.tools.adapter import UnreadableOutput
from runs.tools.host_reading import HostReading, read_samples
from runs.tools.metrics import interval_of
from runs.wording import gettext_noop as _

_TIME = re.compile(
    rf"\A[ \t]{{0,40}}+(?:\d{{4}}-\d\d-\d\d[T ])?(?:{clocks.CLOCK}|(?P<epoch>\d{{9,11}}))"
    r"[ \t]++(?P<rest>\S.*)"
)
_HEADING = re.compile(r"\A#[ \t]{0,40}+Time[ \t]++(?P<rest>\S.*)")
_NAMES = re.compile(r"[A-Za-z%][A-Za-z0-9%/_+.-]*")
_OF_COLUMNS = re.compile(r"\A%|/s\Z|\Akbmem|\Arunq-sz\Z")
Cells = Mapping[str, str]
Values = Iterable[tuple[str, float]]


def read(
    tool: str,
    text: str,
    values_of: Callable[[Cells], Values],
    *,
    absent: float | None = None,
) -> HostReading:
    """The samples; values of one name in one sample are added up, one without is `absent`.

    Raises UnreadableOutput `not_<tool>_output` where no table has something that is known.
    """
    samples: dict[float, dict[str, float]] = {}
    for moment, cells in _rows(text):
        for name, value in values_of(cells):
            row = samples.setdefault(moment, {})
            row[name] = round(row.get(name, 0.0) + value, 3)
    if not samples:
        raise UnreadableOutput(
            f"not_{tool}_output",
            _("No line names the columns of %(tool)s."),
            _("Send what %(tool)s 1 printed, with LC_ALL=C."),
            tool=tool,
        )
    times = sorted(samples)
    interval = interval_of(times) or 1.0
    seconds = [time - times[0] + interval for time in times]
    return read_samples(tool, seconds, [samples[time] for time in times], absent)


def number(cells: Cells, name: str) -> float | None:
    """The number in a column, also with a decimal comma; None where there is none."""
    return output.number(cells.get(name, "").replace(",", "."))


def _rows(text: str) -> Iterator[tuple[float, Cells]]:
    """(seconds, cells) of each line below a heading; averages have no time."""
    heading: list[str] = []
    days, before = 0, 0.0
    for line in text.splitlines():
        if heading_match := _HEADING.fullmatch(line.rstrip()):
            heading = heading_match["rest"].split()
            continue
        time_match = _TIME.fullmatch(line.rstrip())
        if time_match is None:
            continue
        if _is_heading(time_match["rest"].split()):
            heading = time_match["rest"].split()
            continue
        words = time_match["rest"].split(
            maxsplit=max(0, len(heading) - 1)
        )  # a command has blanks
        if len(words) == len(heading):
            clock = _seconds(time_match)
            days += clock + clocks.DAY_S / 2 < before
            before = clock
            yield clock + days * clocks.DAY_S, dict(zip(heading, words))


def _is_heading(words: list[str]) -> bool:
    """Whether it names columns: no numbers, and one of the words that only columns have."""
    is_named = all(map(_NAMES.fullmatch, words))
    return is_named and any(_OF_COLUMNS.search(word) for word in words)


def _seconds(time_match: re.Match[str]) -> float:
    if time_match["epoch"]:
        return float(time_match["epoch"])
    return clocks.seconds_of(time_match)
