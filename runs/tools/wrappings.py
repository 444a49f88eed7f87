"""What others put around a tool's output: encodings, colours, prefixes of CI and containers.

The text that a tool printed is in there whole; it is taken out here, for all tools.
"""

import re
from collections import Counter

from runs.tools.adapter import Reason
from runs.tools.output import text_of

_LINES_LOOKED_AT = 2000
_SHARE = 0.8  # of the lines: others come from the shell around
_LAYERS = 4
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
_TROUBLE = re.compile(r"error|fatal|abort|client|warning|fail", re.IGNORECASE)


def unwrapped(content: bytes | str) -> tuple[str, tuple[Reason, ...]]:
    """The tool's own text, and a note for each kind of prefix that its lines had."""
    text = _ESCAPE.sub("", text_of(_decoded(content))).removeprefix("\ufeff")
    lines = [_shown_by_a_terminal(line) for line in text.split("\n")]
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


def without_common_prefix(text: str) -> tuple[str, tuple[Reason, ...]] | None:
    """The text without the words that most of its lines begin with; None where there are none."""
    lines, words = text.split("\n"), ""
    for _word in range(_LAYERS):
        word = _common_word(lines)
        if not word:
            break
        lines = [line.removeprefix(word) for line in lines]
        words += word
    return ("\n".join(lines), (_note(f"“{words.strip()}”"),)) if words else None


def _common_word(lines: list[str]) -> str:
    """The first word of most lines, with the space behind it; empty where there is none."""
    looked_at = [line for line in lines[:_LINES_LOOKED_AT] if line.strip()]
    counts = Counter(line[: line.find(" ", 0, _LONGEST_PREFIX) + 1] for line in looked_at)
    word, count = counts.most_common(1)[0] if counts else ("", 0)
    is_common = len(looked_at) > 2 and count >= _SHARE * len(looked_at)
    return word if is_common and word.strip() and not _TROUBLE.search(word) else ""


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
        sum(bool(prefix.match(line)) for line in looked_at) >= _SHARE * len(looked_at)
    )
