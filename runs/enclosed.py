"""A tool's output within something else: documents, strings of programs, frames of lines.

What stands around each line is found by what most lines have in common, digits aside. It may be the
tool's own, so that these are candidates: whoever reads them takes the one that reads best.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator
from typing import Any

from runs import foreign_json
from runs.patterns import re
from runs.wording import Marked
from runs.wording import gettext_noop as _

_LINES_LOOKED_AT = 2000
_SHARE = 0.6  # of the lines: others come from the shell around
_LONGEST_PREFIX = 160
_MOST_TOKENS = 60
_MOST_FRAMES = 24
_WORK = 1_000_000  # characters that are looked at in frames, except of a text that is larger
_FEWEST_LINES = 3
_MOST_SERVICES = 16
_STARTS_LOOKED_AT = 20  # so that a hostile text does not take a long time
_MOST_DOCUMENTS = 20_000  # in 2 MB, a line of a container's log each
# Who printed a line, where several print into one log: `docker compose`, with times of others as
# well; `kubectl logs --prefix`, `concurrently`; `gh run view --log` (job and step).
_SERVICE = re.compile(
    r"\A(?:(?:\d\d:\d\d:\d\d )?(?P<bar>[\w.-]{1,60}+) {0,60}+\|(?: |\Z)"
    r"|\[(?P<bracket>\d{1,2}|[^\[\]\s\d][^\[\]\s]{0,160}+)\] "
    r"|(?P<step>[^\t]{1,80}+\t[^\t]{1,80}+)\t)"
)
_TOKEN = re.compile(r"[0-9]+|[A-Za-z]+|[ ]+|.")
_ENDS = re.compile(r"(?:\"\},?|[\"'],?|[|│┃║]|\$|<br ?/?>)\Z")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_ESCAPED = re.compile(r"\\(.)")
_LITERAL = re.compile(  # one that is not closed goes to the end
    r""""(?:[^"\\]|\\[\s\S])*+(?:"|\\?\Z)|'(?:[^'\\]|\\[\s\S])*+(?:'|\\?\Z)"""
)
_ASSIGNED = re.compile(r"\A[^\n\"']{0,80}[\"']")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,300}>|<![^<>]{0,300}>")
# The tag alone: C++ has templates such as <Prefetch>.
PREFORMATTED = re.compile(r"<pre(?:\s[^<>]{0,300})?>", re.IGNORECASE)
_PREFORMATTED_ENDS = re.compile(r"</pre>", re.IGNORECASE)
_BREAK = re.compile(r"<br ?/?>\n?", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:quot|lt|gt|amp|nbsp|apos|#\d{1,4}|#x[0-9a-fA-F]{1,4});")
# What `gcloud logging read` prints.
_YAML = re.compile(r"^ {0,8}(?:textPayload|message|msg): ?(.*)", re.MULTILINE)
# What PHP's print_r prints of rows.
_PRINT_R = re.compile(r"^ {0,40}\[[\w ]{1,40}\] => (?!Array\n)(.+)", re.MULTILINE)
_LOGFMT = re.compile(
    r"""^[^\n]{0,300}?\b(?:msg|message)=("(?:[^"\\\n]|\\.)*+"|[^\s"]*+)""", re.MULTILINE
)
_SHELL = re.compile(  # what stands before a string of several lines
    r"\A(?=[^\"'])(?:[+$#] {1,3})?(?:(?:echo|printf|export|declare|local)(?: -\w{1,4})? )?"
    r"(?:\w{1,80}=)?([\"'])"
)
_ESCAPED_IN_SHELL = re.compile(r"\\([\\\"$`])")
_MESSAGES = (
    "log",
    "msg",
    "message",
    "MESSAGE",
    "textPayload",
    "line",
    "text",
    "@message",
    "QUERY PLAN",
)


def whole(text: str) -> Iterator[tuple[str, Marked]]:
    """What documents, strings and pages hold, with a sentence on what was around it."""
    for inside in _documents(text):
        yield inside, _("The text was in a document, and is read without it.")
    for inside in _literals(text):
        yield inside, _("The text was in one string, and is read without it.")
    if (inside := strip_marks(text)) != text:
        yield inside, _("The text was marked as HTML, and is read without it.")


def services(text: str) -> Iterator[tuple[str, str]]:
    """The lines of each that printed into a log of several, without its name, and the name.

    Nothing where most lines are of one alone: `frames` has these.
    """
    lines_by_name: dict[str, list[str]] = {}
    all_lines = text.split("\n")
    for line in all_lines:
        if label := _SERVICE.match(line):
            lines = lines_by_name.setdefault(label[label.lastgroup or 0], [])
            lines.append(line[label.end() :])
    likely = [
        (name, lines)
        for name, lines in lines_by_name.items()
        if len(lines) >= _FEWEST_LINES
    ]
    if len(likely) == 1 and len(likely[0][1]) >= _SHARE * len(all_lines):
        return
    likely.sort(key=lambda service: -len(service[1]))
    for name, lines in likely[:_MOST_SERVICES]:
        yield "\n".join(lines) + "\n", name


def frames(text: str) -> Iterator[tuple[str, str]]:
    """The lines without what most begin and end with, and the beginning; the longest first."""
    yield from _frames(text.split("\n"))


def _documents(text: str) -> Iterator[str]:
    documents: list[Any] = []
    position = failures = 0
    while failures < _STARTS_LOOKED_AT:
        begin = foreign_json.BEGINS.search(text, position)
        if begin is None:
            break
        try:
            document, position = foreign_json.first(text, begin.start())
            documents.append(document)
            if len(documents) > _MOST_DOCUMENTS:
                return
        except ValueError:
            failures, position = failures + 1, begin.start() + 1
    yield from _within(documents)
    messages = _LOGFMT.findall(text)
    documents = (
        messages if len(messages) > _SHARE * text.count("\n") else _YAML.findall(text)
    )
    if len(documents) >= _FEWEST_LINES:
        yield "".join(f"{_unquoted(message)}\n" for message in documents)
    if (
        text.startswith("Array\n")
        and len(rows := _PRINT_R.findall(text)) >= _FEWEST_LINES
    ):
        yield "".join(f"{row}\n" for row in rows)


def _within(value: Any) -> Iterator[str]:
    items = value if isinstance(value, list) else list(value.values())
    if all(map(_is_timed, items)):  # Loki's, which is asked for the newest first
        items = sorted(items, key=lambda pair: (len(pair[0]), pair[0]))
    lines = [message for message in map(_message, items) if message is not None]
    if isinstance(value, list) and len(lines) >= max(
        _FEWEST_LINES, _SHARE * len(items)
    ):
        yield "\n".join(line.removesuffix("\n") for line in lines) + "\n"
        return
    for item_of in items:
        if isinstance(item_of, str) and item_of.count("\n") >= _FEWEST_LINES:
            yield item_of
        elif isinstance(item_of, (dict, list)):
            yield from _within(item_of)


def _is_timed(value: Any) -> bool:
    """Whether it is a line with the nanoseconds since 1970."""
    is_pair = isinstance(value, list) and len(value) == 2
    return is_pair and isinstance(value[0], str) and value[0].isdigit()


def _message(value: Any) -> str | None:
    if isinstance(value, dict):
        value = next((value[key] for key in _MESSAGES if key in value), None)
    elif isinstance(value, list) and (
        len(value) == 1 or _is_timed(value)
    ):  # of one column
        value = value[-1]
    return value if isinstance(value, str) else None


def _literals(text: str) -> Iterator[str]:
    """Strings as programs print them: one whose line ends are written as \\n, or one for a line."""
    literals = [match[0][1:-1] for match in _LITERAL.finditer(text)]
    printed_literals = [
        literal for literal in literals if literal.count("\\n") >= _FEWEST_LINES
    ]
    yield from (_unescaped(literal) for literal in printed_literals)
    if printed_literals:
        return
    rows = [literal for literal in literals if literal not in _MESSAGES]
    if len(rows) >= _FEWEST_LINES and sum(map(len, rows)) > _SHARE * len(text):
        yield "".join(f"{_unescaped(row)}\n" for row in rows)
    if text.count("\\n") >= _FEWEST_LINES:
        yield _ASSIGNED.sub("", text).replace("\\n", "\n")


def strip_quotes(text: str) -> str:
    """The text without the shell's string that it begins with, as after `echo` and `set -x`."""
    if not (begin := _SHELL.match(text)):
        return text
    end = text.rfind(begin[1])
    inside = text[begin.end() : end]
    is_plain = begin[1] == "'"
    escaped = inside.partition("\n")[0].replace("'\\''" if is_plain else '\\"', "")
    if (
        inside.count("\n") < _FEWEST_LINES or begin[1] in escaped
    ):  # closed on its first line
        return text
    inside = (
        inside.replace("'\\''", "'")
        if is_plain
        else _ESCAPED_IN_SHELL.sub(r"\1", inside)
    )
    return inside + text[end + 1 :]


def _unquoted(text: str) -> str:
    is_literal = _LITERAL.fullmatch(text) and text[-1] == text[0] and len(text) > 1
    return _unescaped(text[1:-1]) if is_literal else text


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), text)


def strip_cdata(text: str) -> str:
    """What XML, as of JUnit, has as it was printed; the text where that is nothing."""
    sections = text.split("<![CDATA[")[1:]
    return (
        "\n".join(
            section.partition("]]>")[0] for section in sections if "]]>" in section
        )
        or text
    )


def strip_marks(text: str) -> str:
    """The text of HTML, of its preformatted parts if it has such."""
    parts = (
        _PREFORMATTED_ENDS.split(part, maxsplit=1)
        for part in PREFORMATTED.split(text)[1:]
    )
    if preformatted := [part[0] for part in parts if len(part) > 1]:
        text = "\n".join(preformatted)
    bare = _TAG.sub("", _BREAK.sub("\n", text))
    return html.unescape(bare) if _ENTITY.search(bare) else bare


def _frames(lines: list[str]) -> Iterator[tuple[str, str]]:
    """The lines without what most begin and end with; the longest beginning first."""
    looked_at = [line for line in lines[:_LINES_LOOKED_AT] if line.strip()]
    if len(looked_at) < _FEWEST_LINES:
        return
    prefixes = _prefixes(looked_at)
    characters = sum(map(len, lines)) + 1
    for prefix in prefixes[: max(2, min(_MOST_FRAMES, _WORK // characters))]:
        inner = [_remainder(prefix, line) for line in lines]
        begin = next(
            prefix_match[0]
            for line in looked_at
            if (prefix_match := prefix.match(line))
        )
        yield "\n".join(inner), begin
        if end := _common_end(inner):
            yield "\n".join(_bare(line, begin, end) for line in inner), begin
    if end := _common_end(looked_at):
        yield "\n".join(_bare(line, "", end) for line in lines), ""


def _remainder(prefix: re.Pattern[str], line: str) -> str:
    if prefix_match := prefix.match(line):
        return _cell(line[prefix_match.end() :])
    return (
        "" if prefix.match(f"{line} ") else line
    )  # blanks at the end may have been lost


def _cell(text: str) -> str:
    """A cell of CSV or an item of YAML, whose quotes depend on what is in it."""
    quote = text[:1]
    is_quoted = quote in {'"', "'"} and len(text) > 1 and text.endswith(quote)
    return text[1:-1].replace(quote * 2, quote) if is_quoted else text


def _prefixes(lines: list[str]) -> list[re.Pattern[str]]:
    """Patterns of what most lines begin with, cut at each place where it may have ended.

    What the most lines have comes first, and of that the longest.
    """
    rows = [_TOKEN.findall(line[:_LONGEST_PREFIX]) for line in lines]
    least = max(_FEWEST_LINES, _SHARE * len(rows))
    shape: list[str] = []
    counted_shapes: list[tuple[int, str]] = []
    bare = 0
    for token_count in range(_MOST_TOKENS):
        bare += sum(
            len(row) == token_count for row in rows
        )  # lines of the prefix alone
        rows = [row for row in rows if len(row) > token_count]
        counts = Counter(_kind(row[token_count]) for row in rows)
        kind, count = counts.most_common(1)[0] if counts else ("", 0)
        count += bare
        if count < least:
            break
        rows = [row for row in rows if _kind(row[token_count]) == kind]
        if kind == " ":  # the rest of the blanks may be the line's own
            widths = sorted({len(row[token_count]) for row in rows})[:3]
            counted_shapes += [
                (count, "".join(shape) + f" {{{width}}}") for width in reversed(widths)
            ]
        elif not kind.isalnum():
            counted_shapes.append((count, "".join(shape) + re.escape(kind)))
        shape.append({" ": " {1,80}+", "0": "[0-9]{1,40}+"}.get(kind, re.escape(kind)))
    likeliest = sorted(
        enumerate(counted_shapes), key=lambda counted: (-counted[1][0], -counted[0])
    )
    return [re.compile(pattern) for _place, (_count, pattern) in likeliest]


def _kind(word: str) -> str:
    """Numbers and blanks are alike, whatever they are."""
    if word[0] == " ":
        return " "
    return "0" if word.isdigit() else word


def _common_end(lines: list[str]) -> str:
    ends = Counter(
        end_match[0].strip() if (end_match := _ENDS.search(line)) else ""
        for line in lines
        if line.strip()
    )
    end, count = ends.most_common(1)[0] if ends else ("", 0)
    return end if count >= _SHARE * sum(ends.values()) else ""


def _bare(line: str, begin: str, end: str) -> str:
    """The line without its end, and its quotes as they were before it was quoted."""
    line = line.rstrip()
    for mark in dict.fromkeys((end, end.rstrip(","))):
        if mark and line.endswith(mark):
            line = line.removesuffix(mark).rstrip()
            break
    quote = end[0]
    if quote not in "\"'":
        return line
    line = line if begin.rstrip().endswith(quote) else line.removeprefix(quote)
    return _unescaped(line) if f"\\{quote}" in line else line.replace(quote * 2, quote)
