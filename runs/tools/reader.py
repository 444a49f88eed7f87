"""Reads a tool's files as they reach the door: unwrapped, and with a word on what they are not."""

import re
from collections.abc import Iterator
from dataclasses import replace

from runs.tools import monitors, registry
from runs.tools.adapter import Adapter, Files, Reading, Reason, UnreadableOutput
from runs.tools.wrappings import alternatives, unwrapped
from runs.wording import gettext_noop as _

# Texts for people; others are logs, which programs wrote into files.
_PRINTED = ("stdout", "raw", "stderr")
_PAGE = re.compile(r"(?i)<(?:\?xml[^>]{0,200}>\n{0,2}<)?(?:!doctype html|html|head|body)\b")
_COMMA = re.compile(r"\d,\d{1,6} (?:tps|ms|ns|s|us|ops/sec|per sec)")


def read(adapter: Adapter, files: Files) -> Reading:
    """Read the files of one run, and of monitors beside it. Raises UnreadableOutput alone."""
    series, noted = monitors.read(files)
    reading = _read(adapter, monitors.without(files))
    own = {each.name for each in reading.series}
    further = tuple(each for each in series if each.name not in own)
    return _with_notes(replace(reading, series=(*reading.series, *further)), noted)


def _read(adapter: Adapter, files: Files) -> Reading:
    found = {name: unwrapped(files[name]) for name in files if name in _PRINTED}
    texts: Files = {**files, **{name: text for name, (text, _notes) in found.items()}}
    notes = tuple(note for _text, noted in found.values() for note in noted)
    outcome = _outcome(adapter, texts)
    if isinstance(outcome, Reading) and outcome.status == "finished":
        return _with_notes(outcome, notes)
    if _is_empty(outcome) and (inside := _best(adapter, texts)):
        return _with_notes(inside, notes)
    _refuse_page(adapter, texts)
    _refuse_other_tool(adapter, outcome, texts)
    if isinstance(outcome, UnreadableOutput):
        raise outcome
    return _with_notes(outcome, notes)


def _outcome(adapter: Adapter, files: Files) -> Reading | UnreadableOutput:
    try:
        return adapter.read(files)
    except UnreadableOutput as refused:
        return refused


def _is_empty(outcome: Reading | UnreadableOutput) -> bool:
    """Whether nothing in the text was a result, and nothing said why."""
    return isinstance(outcome, UnreadableOutput) or (
        {reason.code for reason in outcome.reasons} <= {"no_result", "cut"}
    )


def _with_notes(reading: Reading, notes: tuple[Reason, ...]) -> Reading:
    return replace(reading, notes=(*reading.notes, *dict.fromkeys(notes))) if notes else reading


def _best(adapter: Adapter, files: Files) -> Reading | None:
    """The reading of what may be within the files that has the most in it, the first of equals."""
    found = []
    for others, noted in _alternatives(files):
        reading = _outcome(adapter, others)
        if isinstance(reading, Reading) and reading.measurements:
            found.append(_with_notes(reading, noted))
    return max(found, key=_worth, default=None)


def _worth(reading: Reading) -> tuple[bool, int, int]:
    figures = (reading.measurements, reading.series, reading.levels, reading.labels)
    versions = (reading.tool_version, reading.server_version)
    known = sum(map(len, figures)) + sum(version is not None for version in versions)
    return reading.status == "finished", known, -len(reading.unknown_lines)


def _alternatives(files: Files) -> Iterator[tuple[Files, tuple[Reason, ...]]]:
    """The files as they may have been before something was put around the output."""
    for name in ("stdout", "raw"):
        content = files.get(name)
        for text, notes in alternatives(content) if isinstance(content, str) else ():
            yield {**files, name: text}, notes


def _refuse_page(adapter: Adapter, files: Files) -> None:
    for name in ("stdout", "raw"):
        content = files.get(name)
        if isinstance(content, str) and _PAGE.match(content[:2000].lstrip()):
            raise UnreadableOutput(
                "web_page",
                _("This is an HTML page, and not %(tool)s's output."),
                _("Look at the job that fetched it: a proxy or a login page has answered it."),
                tool=adapter.title,
            )


def _refuse_other_tool(adapter: Adapter, outcome: Reading | UnreadableOutput, files: Files) -> None:
    """Name the tool whose whole run it is; `lines` reads what anybody prints, and is no tool."""
    if isinstance(outcome, Reading) and outcome.measurements:
        return
    for other in registry.every():
        if other.name in (adapter.name, "lines"):
            continue
        reading = _outcome(other, files)
        if isinstance(reading, Reading) and reading.status == "finished":
            raise UnreadableOutput(
                "other_tool",
                _("This is %(other)s's output, and not %(tool)s's."),
                _("Send it with --tool %(name)s (or tool: %(name)s)."),
                other=other.title,
                tool=adapter.title,
                name=other.name,
            )
    text = "".join(content for content in files.values() if isinstance(content, str))
    if comma := _COMMA.search(text):
        raise UnreadableOutput(
            "decimal_comma",
            _("The figures are written with commas (%(figure)s)."),
            _("Run the tool with LC_ALL=C."),
            figure=comma[0],
        )
