"""What others put around a tool's output: encodings, colours, times, and all that is `enclosed`.

The text that a tool printed is in there whole; it is taken out here, for all tools.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import NamedTuple

from runs import enclosed
from runs.patterns import re
from runs.tools.adapter import Reason
from runs.tools.output import text_of
from runs.wording import gettext_noop as _

_LINES_LOOKED_AT = 2000
_KNOWN_SHARE = 0.6  # of those that begin with something known
_LAYERS = 4  # of the likeliest frames, in which documents are looked for
_LARGEST = 2_000_000  # characters of a text that is looked at in other ways, and of all of these
_PAGE_BEGINS = 5_000
_LEAST = 1_000  # of what even a short one costs
_ESCAPE = re.compile(
    r"\x1b"
    r"(?:\[[0-9;?]{0,40}[ -/]{0,4}[@-~]|[\]_][^\x07\x1b\n]{0,1000}(?:\x07|\x1b\\)|[@-Z\\^=>])"
    # As `cat -v` writes it. A regular expression may begin with the same two characters.
    r"|\^\[\[(?:[0-9;?]{1,40}[A-Za-z]|[mKJH])"
)
_SCRIPT = re.compile(r"Script (?:started|done)(?: on|,| \[).{0,200}")
_DAY_TIME = (
    r"\d{4}-\d\d-\d\d[T ,]{1,2}\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
    r"(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
)
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_SYSLOG = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,6})?"
_TIME = re.compile(
    rf"\A(?:\[(?:{_DAY_TIME}|{_CLOCK})\]|{_DAY_TIME}|{_CLOCK}|{_SYSLOG})(?: :)?"
    r"(?:[ \t](?:(?:stdout|stderr) [FP] |\d\d[OE][ +])?|$)"
)
# A shell's; # and > alone begin comments and quotations as well.
_PROMPT = re.compile(
    r"\A(?:(?:\[?[\w.-]{1,40}@[\w.-]{1,60}[^$#%>]{0,80}|(?:PS )?[A-Z]:\\[^>]{0,80})[$#%>]"
    r"|➜ {1,2}\S{1,80}|[$%]) ?(?=\S)"
)
_TAG = re.compile(r"</?[a-z]{1,10}>")


def unwrapped(content: bytes | str) -> tuple[str, tuple[Reason, ...]]:
    """The tool's own text, and a note where its lines had times."""
    text = _ESCAPE.sub("", text_of(_decoded(content))).removeprefix("\ufeff")
    text = enclosed.strip_quotes(_unescaped(text.replace("\u00a0", " ")))
    if enclosed.PREFORMATTED.search(text, 0, _PAGE_BEGINS):
        text = enclosed.strip_marks(text)
    text = enclosed.strip_cdata(text) if "<![CDATA[" in text[:_PAGE_BEGINS] else text
    if text.count("\r") > 1 and text.count("\n") <= 1:  # lines as of old Macs
        text = text.replace("\r", "\n")
    *whole_lines, cut = text.split("\n")
    lines = [_shown_by_a_terminal(line).rstrip() for line in whole_lines] + [
        _shown_by_a_terminal(cut)
    ]
    lines = _remove_prompt([line for line in lines if not _SCRIPT.fullmatch(line)])
    if not _most_begin(lines, _TIME):
        return "\n".join(lines), ()
    note = Reason("unwrapped", _("Most lines began with a time, which was left out."))
    return "\n".join(_TIME.sub("", line, count=1) for line in lines), (note,)


_Alternative = tuple[str, tuple[Reason, ...]]


class Service(NamedTuple):
    """One of several that printed into a log, and what may be its output: as it is, or in more."""

    name: str
    alternatives: tuple[_Alternative, ...]


def services(text: str) -> Iterator[Service]:
    """Each that has printed into a log of several (`docker compose up`), by its lines alone."""
    sentence = _(
        "The lines of “%(name)s” were read alone: others print into the same log."
    )
    for inside, name in enclosed.services(text) if len(text) < _LARGEST else ():
        note = Reason("unwrapped", sentence, name=name[:60])
        whole_texts = (_named(*inner_text, (note,)) for inner_text in _whole(inside))
        yield Service(name, (_named(inside, note), *whole_texts))


def alternatives(text: str) -> Iterator[_Alternative]:
    """Other texts that may be in this one, where it is no result as it stands."""
    characters_left = _LARGEST
    for alternative in _alternatives(text) if len(text) < _LARGEST else ():
        characters_left -= len(alternative[0]) + _LEAST
        if characters_left < 0:
            return
        yield alternative


def _alternatives(text: str) -> Iterator[_Alternative]:
    """First of one layer, then of two: a log of JSON in a container, JSON with times in it."""
    whole_texts = [_named(*inner_text) for inner_text in _whole(text)]
    frames = [_named(*frame) for frame in _frames(text)]
    yield from (*whole_texts, *frames)
    for inside, notes in (*whole_texts, *frames[:_LAYERS]):
        for inner_text in _whole(inside):
            yield _named(*inner_text, notes)
    for inside, notes in whole_texts:
        for inner_text in _frames(inside):
            yield _named(*inner_text, notes)


def _whole(text: str) -> Iterator[tuple[str, Reason]]:
    for inside, sentence in enclosed.whole(text):
        yield inside, Reason("unwrapped", sentence)


def _frames(text: str) -> Iterator[tuple[str, Reason]]:
    bare = Reason(
        "unwrapped", _("Most lines were indented or marked, which was left out.")
    )
    sentence = _("Most lines began with “%(beginning)s”, which was left out.")
    for inside, prefix in enclosed.frames(text):
        beginning = prefix.strip()[:60]
        yield (
            inside,
            Reason("unwrapped", sentence, beginning=beginning) if beginning else bare,
        )


def _named(
    text: str, left_out: Reason, before: tuple[Reason, ...] = ()
) -> _Alternative:
    plain, notes = unwrapped(text)
    return plain, (*before, left_out, *notes)


def _unescaped(text: str) -> str:
    """The text, where a page wrote its marks as entities."""
    is_escaped = "&lt;" in text and "<" not in _TAG.sub("", text)
    return html.unescape(text) if is_escaped else text


def _decoded(content: bytes | str) -> bytes | str:
    """UTF-16 without its mark, as a redirection of PowerShell that was cut leaves it."""
    if isinstance(content, bytes):
        start = content[:400]
        for codec, index in (("utf-16-le", 1), ("utf-16-be", 0)):
            if len(start) > 20 and start[index::2].count(0) > 0.4 * len(start):
                return content.decode(codec, "replace")
        return content
    beginning = content[:400]
    fillers = beginning.count("\x00") + beginning.count("\ufffd")
    if len(beginning) > 20 and fillers > 0.4 * len(beginning):
        return content.replace("\x00", "").replace("\ufffd", "")
    return content


def _shown_by_a_terminal(line: str) -> str:
    """What is left of a line that a carriage return has overwritten, and without its last one."""
    if "\r" not in line:
        return line
    return next(
        (segment for segment in reversed(line.split("\r")) if segment.strip()), ""
    )


def _remove_prompt(lines: list[str]) -> list[str]:
    """Without what a terminal has before the first line alone."""
    written = [
        index for index, line in enumerate(lines[:_LINES_LOOKED_AT]) if line.strip()
    ]
    if len(written) > 1 and not _PROMPT.match(lines[written[1]]):
        lines[written[0]] = _PROMPT.sub("", lines[written[0]], count=1)
    return lines


def _most_begin(lines: list[str], prefix: re.Pattern[str]) -> bool:
    looked_at = [line for line in lines[:_LINES_LOOKED_AT] if line.strip()]
    return len(looked_at) > 1 and (
        sum(bool(prefix.match(line)) for line in looked_at)
        >= _KNOWN_SHARE * len(looked_at)
    )
