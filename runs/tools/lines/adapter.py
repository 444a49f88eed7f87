"""Any tool's figures by lines of their own: `metric=value unit direction`.

The direction may be left out for units of time (lower is better) and for rates (tps, anything a
second: higher is better); for others it is unknown.
"""

from __future__ import annotations

from runs.patterns import re
from runs.tools import units
from runs.tools.adapter import (
    Adapter,
    Direction,
    Files,
    MetricValue,
    Reading,
    Reason,
    TakenFile,
    UnreadableOutput,
)
from runs.tools.metrics import named
from runs.tools.named_values import MOST, doubled
from runs.tools.output import lines_of, number, output_of, shown
from runs.wording import gettext_noop as _

_LARGEST = 1e18
_WORD = r"[^\W\d_][\w./-]{0,79}"
_NAME = rf"\A(?P<name>{_WORD}) {{0,3}}= {{0,3}}"
# A name of several words is one where a unit or a direction says that a figure is meant.
_OF_WORDS = re.compile(
    rf"\A(?P<name>{_WORD}(?: [\w./-]{{1,40}}){{1,4}}) {{0,3}}= {{0,3}}"
    r"(?P<value>[-+0-9.eE]{1,40})"
    r"(?= \S)(?: (?P<unit>[^\s=]{1,40}?))?(?: (?P<direction>higher|lower|neutral))?"
)
_LINE = re.compile(
    rf"{_NAME}(?P<value>[-+0-9.eE]{{1,40}})"
    r"(?: (?P<unit>[^\s=]{1,40}?))?(?: (?P<direction>higher|lower|neutral))?"
)
# A figure that was meant: a name, and what begins as a number, is one of floating point's words, or
# has a unit alone.
_MEANT = re.compile(
    rf"{_NAME}(?:[-+]?[0-9]|[-+]?(?i:nan|inf)|$"
    r"|(?<=\S= )(?P<unit>[^\s=]{1,40})(?: [a-z]{5,7})?$)"
)


def read(files: Files) -> Reading:
    """Read lines such as `wal_size=81 MiB lower` among others. Raises UnreadableOutput."""
    lines = lines_of(output_of(files))
    lines_and_matches = [(line, _figure(line.strip())) for line in lines.whole]
    matches = [match for _line, match in lines_and_matches if match]
    if not matches and _LINE.fullmatch(lines.cut.strip()):
        raise UnreadableOutput(
            "cut",
            _("The only line with a figure has no end, and may be cut."),
            _(
                "Print a line break behind it: echo, and not echo -n or printf without \\n."
            ),
        )
    if not matches:
        raise UnreadableOutput(
            "no_figures",
            _("No line has the form metric=value unit."),
            _("Print lines such as tps=14203.5 tps or wal_size=81 MiB lower."),
        )
    values, reasons = _values(matches)
    reasons += [
        Reason(
            "not_a_number",
            _("No number: %(line)s (write 1203.5 ms, no comma)"),
            line=line.strip()[:100],
        )
        for line, match in lines_and_matches
        if match is None and _is_meant(line.strip())
    ][:5]
    reasons += [Reason("cut", _("The last line has no end."))] if lines.cut else []
    return Reading(
        status="failed" if reasons else "finished",
        tool_name="lines",
        reasons=tuple(reasons),
        measurements=() if reasons else tuple(values),
        unknown_lines=shown(line for line, match in lines_and_matches if match is None),
    )


def _figure(line: str) -> re.Match[str] | None:
    if match := _LINE.fullmatch(line):
        return match
    of_words = _OF_WORDS.fullmatch(line)
    is_told = of_words is not None and (
        of_words["direction"] or units.is_never_negative(of_words["unit"] or "")
    )
    return of_words if is_told else None


def _is_meant(line: str) -> bool:
    meant_match = _MEANT.match(line)
    return bool(
        meant_match
        and (not meant_match["unit"] or units.is_never_negative(meant_match["unit"]))
    )


def _values(matches: list[re.Match[str]]) -> tuple[list[MetricValue], list[Reason]]:
    reasons = list(doubled([named(match["name"]) for match in matches]))
    if len(matches) > MOST:
        reasons.append(
            Reason("too_many", _("There are more than %(most)s figures."), most=MOST)
        )
    values = []
    for match in matches:
        unit, value = match["unit"] or "", number(match["value"])
        direction = match["direction"] or _direction(unit)
        if value is None or abs(value) > _LARGEST:
            reasons.append(
                Reason("not_a_number", _("%(name)s is no number."), name=match["name"])
            )
        elif direction is None:
            reason = _(
                "Nobody can tell which %(name)s is better: add higher, lower or neutral."
            )
            reasons.append(Reason("no_direction", reason, name=match["name"]))
        else:
            values.append(
                MetricValue(named(match["name"]), value, unit, direction, match["name"])  # type: ignore[arg-type]
            )
    return values, reasons


def _direction(unit: str) -> Direction | None:
    if units.seconds(unit) is not None:
        return "lower"
    return (
        "higher" if units.is_measured(unit) and not unit.startswith("error") else None
    )


ADAPTER = Adapter(
    "lines",
    "metric=value unit",
    (
        TakenFile(
            "stdout", _("Lines such as tps=14203.5 tps; others are ignored"), True
        ),
    ),
    read,
)
