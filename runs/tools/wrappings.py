"""What others put around a tool's output: encodings, colours, prefixes of CI and containers.

The text that a tool printed is in there whole; it is taken out here, for all tools.
"""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from runs import foreign_json
from runs.tools.adapter import Reason
from runs.tools.output import document_of, text_of

_LINES_LOOKED_AT = 2000
_SHARE = 0.8  # of the lines: others come from the shell around
_KNOWN_SHARE = 0.6  # of those that begin with something known
_LAYERS = 4
_LARGEST = 2_000_000  # characters of a text that is looked at in other ways
_LONGEST_PREFIX = 120
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-9;?]{0,40}[ -/]{0,4}[@-~]|[\]_][^\x07\x1b\n]{0,1000}(?:\x07|\x1b\\)|[@-Z\\^=>])"
)
_SCRIPT = re.compile(r"Script (?:started|done)(?: on|,| \[).{0,200}")
_DAY_TIME = (
    r"\d{4}-\d\d-\d\d[T ,]{1,2}\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
)
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_SYSLOG = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,6})?"
_PREFIXES = {
    "a time": re.compile(
        rf"\A(?:\[(?:{_DAY_TIME}|{_CLOCK})\]|{_DAY_TIME}|{_CLOCK}|{_SYSLOG})(?: :)?"
        r"(?:[ \t](?:(?:stdout|stderr) [FP] |\d\d[OE][ +])?|$)"
    ),
    "a host and a program": re.compile(r"\A[\w.-]{1,80} [\w./-]{1,60}\[\d{1,10}\]: "),
    "a level": re.compile(r"\A(?:\{[^}\s]{1,100}\} )?\[?(?:INFO|DEBUG|NOTICE)\]?(?: -|:)? "),
    "a container's name": re.compile(r"\A[A-Za-z][\w.-]{0,80} {0,40}\| ?"),
    "a name in brackets": re.compile(  # and not go-tpc's own words
        r"\A\[(?!Current\]|Summary\])(?:pod/)?[\w.@-]{1,80}(?:/[\w.-]{1,80}){0,2}\]"
        r"(?: (?:out|err):)? "
    ),
    "a job and a step": re.compile(
        rf"\A[^\t\n]{{1,100}}\t[^\t\n]{{1,100}}\t\ufeff?(?={_DAY_TIME})"
    ),
    "a quote's mark": re.compile(r"\A(?:> ?|\| (?![- ]))"),
}
_TAG = re.compile(r"</?[a-z]{1,10}>")
_TROUBLE = re.compile(r"error|fatal|abort|client|warning|fail", re.IGNORECASE)


def unwrapped(content: bytes | str) -> tuple[str, tuple[Reason, ...]]:
    """The tool's own text, and a note for each kind of prefix that its lines had."""
    text = _ESCAPE.sub("", text_of(_decoded(content))).removeprefix("\ufeff")
    text = _unescaped(text.replace("\u00a0", " "))
    if text.count("\r") > 1 and text.count("\n") <= 1:  # lines as of old Macs
        text = text.replace("\r", "\n")
    *whole, cut = text.split("\n")
    lines = [_shown_by_a_terminal(line).rstrip() for line in whole] + [_shown_by_a_terminal(cut)]
    lines = [line for line in lines if not _SCRIPT.fullmatch(line)]
    found: list[str] = []
    for _layer in range(_LAYERS):
        name = next((name for name in _PREFIXES if _most_begin(lines, _PREFIXES[name])), None)
        if name is None:
            break
        lines = [
            _PREFIXES[name].sub("", line, count=1) if _PREFIXES[name].match(line) else line
            for line in lines
        ]
        found.append(name)
    return "\n".join(lines), tuple(_note(name) for name in found)


def alternatives(text: str) -> Iterator[tuple[str, tuple[Reason, ...]]]:
    """Other texts that may be in this one, where it is no result as it stands."""
    for way in _WAYS if len(text) < _LARGEST else ():
        found = way(text.split("\n"))
        if found is None:
            continue
        inside, notes = unwrapped("\n".join(found[0]) + "\n")
        notes = (Reason("unwrapped", found[1]), *notes)
        yield inside, notes
        if further := _without_common_words(inside.split("\n")):
            yield "\n".join(further[0]), (*notes, Reason("unwrapped", further[1]))


_Found = tuple[Sequence[str], str] | None


def _without_common_words(lines: list[str]) -> _Found:
    words = ""
    for _word in range(_LAYERS):
        word = _common_word(lines)
        if not word:
            break
        lines = [line.removeprefix(word) for line in lines]
        words += word
    return (
        (lines, f"Most lines began with “{words.strip()}”, which was left out.") if words else None
    )


def _common_word(lines: list[str]) -> str:
    """The first word of most lines, with what parts it from the rest; empty where there is none."""
    looked_at = [line for line in lines[:_LINES_LOOKED_AT] if line.strip()]
    counts = Counter(found[0] if (found := _WORD.match(line)) else "" for line in looked_at)
    word, count = counts.most_common(1)[0] if counts else ("", 0)
    is_common = len(looked_at) > 2 and count >= _SHARE * len(looked_at)
    return word if is_common and word.strip() and not _TROUBLE.search(word) else ""


def _without_margin(lines: list[str]) -> _Found:
    """Without what most lines begin with: blanks, and perhaps marks of a table or a difference."""
    looked_at = [line for line in lines[:_LINES_LOOKED_AT] if line.strip()]
    margins = Counter(found[0] for line in looked_at if (found := _MARGIN.match(line)))
    for margin in sorted(margins, key=len):
        begin = sum(line.startswith(margin) for line in looked_at)
        if len(looked_at) > 2 and begin >= _SHARE * len(looked_at):
            inside = [line.removeprefix(margin) for line in lines]
            return inside, "Most lines were indented or marked, which was left out."
    return None


def _from_json_lines(lines: list[str]) -> _Found:
    """The messages of a log whose lines are JSON, as Docker's."""
    documents = [document_of(line) for line in lines if line.strip()]
    said = [
        next((each[key] for key in _MESSAGES if isinstance(each.get(key), str)), None)
        for each in documents
        if isinstance(each, dict)
    ]
    found = [text.removesuffix("\n") for text in said if text is not None]
    is_log = len(found) > 1 and len(found) >= _SHARE * len(documents)
    return (found, "The lines were in JSON, and are read without it.") if is_log else None


def _from_a_string(lines: list[str]) -> _Found:
    """The lines of one JSON string, or of a text whose line ends are written as \\n."""
    for line in lines[:_LINES_LOOKED_AT]:
        if line.count("\\n") > 2:
            found = _STRING.fullmatch(line)
            text = _string(found["string"]) if found else line.replace("\\n", "\n")
            return text.split("\n"), "The text was in one string, and is read without it."
    return None


def _from_strings(lines: list[str]) -> _Found:
    """The lines of a list of JSON strings, as Ansible prints them."""
    found = [_string(match["string"]) for line in lines if (match := _QUOTED.fullmatch(line))]
    return (found, "The lines were in quotes, which were left out.") if len(found) > 2 else None


def _string(text: str) -> str:
    try:
        found = foreign_json.loads(text)
    except ValueError:
        return text.strip('"')
    return str(found)


_WORD = re.compile(rf"\A[^ \t]{{1,{_LONGEST_PREFIX}}}[ \t]")
# The mark of a comment with its blanks, blanks alone, a mark of a difference or a table.
_MARGIN = re.compile(r"\A(?:[ \t]{0,40}(?:#|//|--|;|\*) {1,8}|[ \t]{1,40}(?=\S)|\+(?! ?-)|\| )")
_MESSAGES = ("log", "msg", "message", "MESSAGE", "textPayload", "line", "text")
_STRING = re.compile(r'\A\s{0,80}(?:"[^"\s]{1,80}": )?(?P<string>"(?:[^"\\]|\\.)*"),?')
_QUOTED = re.compile(r'\A\s{0,80}(?P<string>"(?:[^"\\]|\\.)*"),?')
_WAYS: tuple[Callable[[list[str]], _Found], ...] = (
    _without_common_words,
    _without_margin,
    _from_json_lines,
    _from_a_string,
    _from_strings,
)


def _unescaped(text: str) -> str:
    """The text, where a page wrote its marks as entities."""
    is_escaped = "&lt;" in text and "<" not in _TAG.sub("", text)
    return html.unescape(text) if is_escaped else text


def _note(what: str) -> Reason:
    return Reason("unwrapped", f"Most lines began with {what}, which was left out.")


def _decoded(content: bytes | str) -> bytes | str:
    """UTF-16 without its mark, as a redirection of PowerShell that was cut leaves it."""
    if isinstance(content, bytes):
        start = content[:400]
        for codec, place in (("utf-16-le", 1), ("utf-16-be", 0)):
            if len(start) > 20 and start[place::2].count(0) > 0.4 * len(start):
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
    return next((part for part in reversed(line.split("\r")) if part.strip()), "")


def _most_begin(lines: list[str], prefix: re.Pattern[str]) -> bool:
    looked_at = [line for line in lines[:_LINES_LOOKED_AT] if line.strip()]
    return len(looked_at) > 1 and (
        sum(bool(prefix.match(line)) for line in looked_at) >= _KNOWN_SHARE * len(looked_at)
    )
