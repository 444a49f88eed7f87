"""Reads a tool's files as they reach the door: unwrapped, and with a word on what they are not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from runs.patterns import re
from runs.tools import monitors, packed_files, registry, tools_without_adapter, units
from runs.tools.adapter import Adapter, Files, Reading, Reason, UnreadableOutput
from runs.tools.output import text_of
from runs.tools.wrappings import Service, alternatives, services, unwrapped
from runs.wording import gettext_noop as _

# Texts for people; others are logs, which programs wrote into files.
_PRINTED = ("stdout", "raw", "stderr")
_PAGE = re.compile(
    r"(?i)<(?:\?xml[^>]{0,200}>\n{0,2}<)?(?:!doctype html|html|head|body)\b"
)
# An equals sign as mails write it: "=20" may be a figure, and "=" the end of any line.
_OF_MAIL = re.compile(r"=3D")
_LINES = 10_000  # of any length; beyond these, so many characters a line as no tool falls below
_LEAST_LINE = 20
_LARGEST = 100_000  # characters of a text that is read again for what to say of it
_COMMA = re.compile(r"\d,\d{1,6} (?:tps|ms|ns|s|us|ops/sec|per sec)")


def read(adapter: Adapter, files: Files) -> Reading:
    """Read the files of one run, and of monitors beside it. Raises UnreadableOutput alone."""
    series, noted = monitors.read(files)
    reading = _possible(_read(adapter, monitors.exclude(files)))
    own_names = {series_data.name for series_data in reading.series}
    further_series = tuple(
        series_data for series_data in series if series_data.name not in own_names
    )
    return _add_notes(
        replace(reading, series=(*reading.series, *further_series)), noted
    )


def tool_of(files: Files) -> str:
    """The name of the tool that has printed these files of one run; empty for none that is known.

    A whole run tells it at once; else it is the tool that understands most, or knows the form as
    one that it cannot read. `lines` reads what anybody prints, and is asked last.
    """
    texts = dict(monitors.exclude(files))
    if not any(map(len, texts.values())):
        return ""
    for name, content in texts.items():
        texts[name] = _ends(unwrapped(content)[0] if name in _PRINTED else content)
    outcomes: dict[str, Reading | UnreadableOutput] = {}
    for adapter in sorted(
        registry.every(), key=lambda adapter: adapter.name == "lines"
    ):
        taken_files = _taken(adapter, texts)
        outcome = _outcome(adapter, taken_files)
        if _is_empty(outcome):
            within = max(_inside(adapter, taken_files), key=_worth, default=outcome)
            if isinstance(within, Reading) and (
                within.measurements or _says_why(within)
            ):
                outcome = within
        if isinstance(outcome, Reading) and outcome.status == "finished":
            return adapter.name
        if not _is_foreign(adapter, outcome):
            outcomes[adapter.name] = outcome
    return max(outcomes, key=lambda name: _worth(outcomes[name]), default="")


def _is_foreign(adapter: Adapter, outcome: Reading | UnreadableOutput) -> bool:
    """Whether the adapter says that nothing of its tool is there."""
    codes = (f"not_{adapter.name}_output", "no_figures")
    return isinstance(outcome, UnreadableOutput) and outcome.code in codes


def _taken(adapter: Adapter, files: Files) -> Files:
    """The files that an adapter reads; a single text is taken as stdout or raw."""
    names = {file_kind.name for file_kind in adapter.takes} | {"stdout", "raw"}
    return {name: content for name, content in files.items() if name in names}


def _possible(reading: Reading) -> Reading:
    """A run with a time, a size or a rate below 0 is not one to rely on."""
    below = [
        x
        for x in reading.measurements
        if x.value < 0 and units.is_never_negative(x.unit)
    ]
    if not below:
        return reading
    reason = Reason(
        "contradiction",
        _("%(metric)s is below 0: %(value)s %(unit)s."),
        metric=below[0].metric,
        value=f"{below[0].value:g}",
        unit=below[0].unit,
    )
    reasons = (*reading.reasons, reason)
    return replace(reading, status="failed", reasons=reasons, measurements=())


def _read(adapter: Adapter, files: Files) -> Reading:
    _refuse_packed(files)
    unwrapped_texts = {
        name: unwrapped(files[name]) for name in files if name in _PRINTED
    }
    texts: Files = {
        **files,
        **{name: text for name, (text, _notes) in unwrapped_texts.items()},
    }
    notes = tuple(note for _text, noted in unwrapped_texts.values() for note in noted)
    outcome = _outcome(adapter, texts)
    if isinstance(outcome, Reading) and outcome.status == "finished":
        return _add_notes(outcome, notes)
    if _is_empty(outcome):
        outcome = max((outcome, *_inside(adapter, texts)), key=_worth)
    if isinstance(outcome, Reading) and (outcome.measurements or _says_why(outcome)):
        return _add_notes(_placed(adapter, outcome, texts), notes)
    _refuse_page(adapter, texts)
    _refuse_mail(files)
    _refuse_other_tool(adapter, outcome, texts)
    if isinstance(outcome, UnreadableOutput):
        raise outcome
    return _add_notes(outcome, notes)


def _outcome(adapter: Adapter, files: Files) -> Reading | UnreadableOutput:
    """What the adapter makes of it. The time goes with the number of lines, which is bounded."""
    if any(_has_too_many_lines(content) for content in files.values()):
        return UnreadableOutput(
            "too_many_lines",
            _(
                "The output has more lines than a tool prints: most are empty or of a few letters."
            ),
            _("Send what the tool printed, and nothing else."),
        )
    try:
        return adapter.read(files)
    except UnreadableOutput as refused:
        return refused


def _has_too_many_lines(content: bytes | str) -> bool:
    lines = content.count(b"\n") if isinstance(content, bytes) else content.count("\n")
    return lines > _LINES + len(content) // _LEAST_LINE


# What is said of a text that has nothing of the tool, too.
_NOTHING = frozenset(("no_result", "cut"))


def _is_empty(outcome: Reading | UnreadableOutput) -> bool:
    """Whether no line of a result was found, or not the last ones."""
    if isinstance(outcome, UnreadableOutput):
        return outcome.code != "too_many_lines"
    codes = {reason.code for reason in outcome.reasons}
    return "no_result" in codes or codes <= _NOTHING


def _says_why(outcome: Reading) -> bool:
    return bool({reason.code for reason in outcome.reasons} - _NOTHING)


def _add_notes(reading: Reading, notes: tuple[Reason, ...]) -> Reading:
    return (
        replace(reading, notes=(*reading.notes, *dict.fromkeys(notes)))
        if notes
        else reading
    )


def _placed(adapter: Adapter, reading: Reading, files: Files) -> Reading:
    """Say by which line there is a second run, so that its text can be cut there."""
    name = next((name for name in ("stdout", "raw") if files.get(name)), None)
    if name is None or not _holds_several(reading) or len(files[name]) > _LARGEST:
        return reading
    lines = str(files[name]).splitlines(keepends=True)

    def is_several(count: int) -> bool:
        outcome = _outcome(adapter, {**files, name: "".join(lines[:count])})
        return isinstance(outcome, Reading) and _holds_several(outcome)

    if not is_several(len(lines)):  # only within something else
        return reading
    line_number, above = 0, len(lines)
    while line_number < above:
        middle = (line_number + above) // 2
        if is_several(middle):
            above = middle
        else:
            line_number = middle + 1
    sentence = _("%(reason)s The second is there by line %(line)s.")
    reasons = tuple(
        Reason(reason.code, sentence, reason=reason, line=line_number)
        if reason.code == "several_results"
        else reason
        for reason in reading.reasons
    )
    return replace(reading, reasons=reasons)


def _holds_several(reading: Reading) -> bool:
    return any(reason.code == "several_results" for reason in reading.reasons)


def _inside(adapter: Adapter, files: Files) -> Iterator[Reading]:
    """The readings of what may be within the files."""
    readings = _service_readings(adapter, files)
    if len(readings) > 1:
        yield _several(adapter, list(readings))
        return
    yield from readings.values()
    for other_files, noted in _alternatives(files):
        reading = _outcome(adapter, other_files)
        if isinstance(reading, Reading):
            yield _add_notes(reading, noted)


def _service_readings(adapter: Adapter, files: Files) -> dict[str, Reading]:
    """The readings with figures of those that printed into one log, by their names."""
    readings: dict[str, Reading] = {}
    for file_name in ("stdout", "raw"):
        content = files.get(file_name)
        for service in services(content) if isinstance(content, str) else ():
            outcomes = _service_outcomes(adapter, files, file_name, service)
            best = max(outcomes, key=_worth, default=None)
            if best is not None and best.measurements:
                readings[service.name] = best
    return readings


def _service_outcomes(
    adapter: Adapter, files: Files, file_name: str, service: Service
) -> Iterator[Reading]:
    for text, notes in service.alternatives:
        outcome = _outcome(adapter, {**files, file_name: text})
        if isinstance(outcome, Reading):
            yield _add_notes(outcome, notes)


def _several(adapter: Adapter, names: list[str]) -> Reading:
    sentence = _(
        "Several that print into this log have a result (%(names)s): send one's lines."
    )
    reason = Reason("several_results", sentence, names=", ".join(names))
    return Reading(status="failed", tool_name=adapter.name, reasons=(reason,))


def _worth(outcome: Reading | UnreadableOutput) -> tuple[int, int, int, int]:
    """How much of a text was understood; what leaves out a message of trouble is worth less."""
    if isinstance(outcome, UnreadableOutput):
        return -1, 0, 0, 0
    figures = (outcome.measurements, outcome.series, outcome.levels, outcome.labels)
    versions = (outcome.tool_version, outcome.server_version)
    number_known = sum(map(len, figures)) + sum(
        version is not None for version in versions
    )
    number = len({reason.code for reason in outcome.reasons} - _NOTHING)
    rank = ("failed", "partial", "finished").index(outcome.status)
    return number_known, number, rank, -len(outcome.unknown_lines)


def _alternatives(files: Files) -> Iterator[tuple[Files, tuple[Reason, ...]]]:
    """The files as they may have been before something was put around the output."""
    for name in ("stdout", "raw"):
        content = files.get(name)
        for text, notes in alternatives(content) if isinstance(content, str) else ():
            yield {**files, name: text}, notes


def _refuse_packed(files: Files) -> None:
    for name in _PRINTED:
        content = files.get(name, "")
        form = packed_files.form_of(content)
        if form:
            raise UnreadableOutput(
                "compressed",
                _("The output is compressed (%(form)s), and not text."),
                _("Unpack it, and send the text as UTF-8."),
                form=form,
            )


def _refuse_mail(files: Files) -> None:
    for name in _PRINTED:
        if len(_OF_MAIL.findall(text_of(files.get(name, ""))[:_LARGEST])) > 2:
            raise UnreadableOutput(
                "quoted_printable",
                _(
                    "The output is encoded as a mail is (quoted-printable: = is written as =3D)."
                ),
                _("Copy it from the mail as it is shown, and not from its source."),
            )


def _refuse_page(adapter: Adapter, files: Files) -> None:
    for name in ("stdout", "raw"):
        content = files.get(name)
        if isinstance(content, str) and _PAGE.match(content[:2000].lstrip()):
            raise UnreadableOutput(
                "web_page",
                _("This is an HTML page, and not %(tool)s's output."),
                _(
                    "Look at the job that fetched it: a proxy or a login page has answered it."
                ),
                tool=adapter.title,
            )


def _refuse_other_tool(
    adapter: Adapter, outcome: Reading | UnreadableOutput, files: Files
) -> None:
    """Name the tool whose whole run it is; `lines` reads what anybody prints, and is no tool."""
    if isinstance(outcome, Reading) and outcome.measurements:
        return
    ends_of_files = {name: _ends(content) for name, content in files.items()}
    for other_adapter in registry.every():
        if other_adapter.name in (adapter.name, "lines"):
            continue
        reading = _outcome(other_adapter, ends_of_files)
        if isinstance(reading, Reading) and reading.status == "finished":
            raise UnreadableOutput(
                "other_tool",
                _("This is %(other)s's output, and not %(tool)s's."),
                _("Send it with --tool %(name)s (or tool: %(name)s)."),
                other=other_adapter.title,
                tool=adapter.title,
                name=other_adapter.name,
            )
    text = "".join(
        content for content in ends_of_files.values() if isinstance(content, str)
    )
    if other_tool := tools_without_adapter.name_of(text):
        raise UnreadableOutput(
            "other_tool",
            _("This is %(other)s's output, and not %(tool)s's."),
            _(
                "No tool here reads it: print its figures as lines (tps=14203.5 tps, --tool lines)."
            ),
            other=other_tool,
            tool=adapter.title,
        )
    if comma := _COMMA.search(text):
        raise UnreadableOutput(
            "decimal_comma",
            _("The figures are written with commas (%(figure)s)."),
            _("Run the tool with LC_ALL=C."),
            figure=comma[0],
        )


def _ends(content: bytes | str) -> bytes | str:
    """The first and the last lines of a long text: of settings and of figures."""
    if isinstance(content, bytes) or len(content) <= _LARGEST:
        return content
    half = _LARGEST // 2
    return (
        content[:half].rpartition("\n")[0] + "\n" + content[-half:].partition("\n")[2]
    )
