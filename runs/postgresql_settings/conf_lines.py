"""One line of postgresql.conf, as PostgreSQL reads it.

Source of the grammar: `guc-file.l` in PostgreSQL, and the manual, chapter Setting Parameters.
"""

import re
from collections.abc import Iterator

from runs.postgresql_settings.catalogue import canonical
from runs.postgresql_settings.conf_text import Entry, Fault
from runs.wording import gettext_noop as _

INCLUDES = frozenset({"include", "include_dir", "include_if_exists"})

# What a browser or an old editor puts between words: letters for PostgreSQL, or no end of a line.
_NO_BLANKS = re.compile("[\u00a0\u2002-\u200b\u202f\u3000\\r]")
# By what they are not: Python takes 3 ms to compile a class of all letters. With digits, then with
# a dollar, then with what stands in words without quotes.
_LETTER = r"[^\x00-@\[-\^`{-\x7f]"
_OR_DOLLAR = r"[^\x00-#%-/:-@\[-\^`{-\x7f]"
_OR_DIGIT = r"[^\x00-/:-@\[-\^`{-\x7f]"
_OF_WORD = r"[^\x00-#%-,;-@\[-\^`{-\x7f]"
_TOKEN = re.compile(
    rf"""
      (?P<space>[ \t\r]+)
    | (?P<comment>\#.*)
    | (?P<string>(?<!\\)'(?:[^'\\]|\\.|'')*')
    | (?P<number>[+-]?(?:\d*+\.\d*+(?:[eE][+-]?\d++)?|0x[0-9a-fA-F]++[a-zA-Z]*+|\d++[a-zA-Z]*+))
    | (?P<word>{_LETTER}{_OF_WORD}*)
    | (?P<equals>=)
    """,
    re.VERBOSE | re.ASCII,
)
_NAME = re.compile(rf"{_LETTER}{_OR_DOLLAR}*(?:\.{_LETTER}{_OR_DOLLAR}*)?")
# A qualified name, which no value is: "server.crt" has to be in quotes.
_QUALIFIED = re.compile(rf"\A{_LETTER}{_OR_DIGIT}*+\.{_LETTER}{_OR_DIGIT}*+")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPED = re.compile(r"''|\\([0-7]{1,3}|.)")


def line(number: int, text: str) -> Entry | Fault | None:
    """What a line sets, or why it is none; None for an empty line or a comment."""
    tokens = list(_tokens(text))
    if not tokens:
        return None
    kind, name = tokens[0]
    value_tokens = (
        tokens[2:] if len(tokens) > 1 and tokens[1][0] == "equals" else tokens[1:]
    )
    if kind != "word" or _NAME.fullmatch(name) is None:
        return _syntax(number, text)
    if name.lower() in INCLUDES:
        # A folder may be empty, as Debian's is.
        return _not_followed(number, text, may_be_missing=name.lower() != "include")
    if len(value_tokens) != 1 or value_tokens[0][0] not in {"string", "number", "word"}:
        return _syntax(number, text)
    value_kind, value = value_tokens[0]
    if value_kind == "word" and _QUALIFIED.fullmatch(value):
        return _syntax(number, text)
    if _NO_BLANKS.search(name) or (value_kind == "word" and _NO_BLANKS.search(value)):
        return _syntax(number, text)
    return Entry(
        number, canonical(name), unquoted(value) if value_kind == "string" else value
    )


def _tokens(line: str) -> Iterator[tuple[str, str]]:
    """(kind, text) of each word of a line; anything else comes as `other`."""
    position = 0
    while position < len(line):
        match = _TOKEN.match(line, position)
        if match is None:
            yield "other", line[position:]
            return
        position = match.end()
        if match.lastgroup is not None and match.lastgroup not in {"space", "comment"}:
            yield match.lastgroup, match[0]


def _syntax(number: int, line: str) -> Fault:
    values = {"line": str(number), "text": line.strip()[:200]}
    if _NO_BLANKS.search(line.rstrip("\r\t ")):
        message = _(
            "Line %(line)s has no-break spaces or old line ends: %(text)s. Replace them."
        )
        return Fault(number, "no_blanks", message, values)
    return Fault(
        number,
        "syntax_error",
        _(
            "Line %(line)s is no setting: %(text)s. Write name = value, other values in quotes."
        ),
        values,
    )


def _not_followed(number: int, line: str, *, may_be_missing: bool) -> Fault:
    return Fault(
        number,
        "include_left_out" if may_be_missing else "include_not_followed",
        _(
            "Line %(line)s names another file, which is not read: %(text)s. Paste its text here."
        ),
        {"line": str(number), "text": line.strip()[:200]},
    )


def unquoted(token: str) -> str:
    """The text in quotes: '' is a quote, and a backslash escapes as in C."""
    return _ESCAPED.sub(_unescaped, token[1:-1])


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if escape is None:
        return "'"
    if escape[0] in "01234567":
        return chr(int(escape, 8) & 0xFF)
    return _ESCAPES.get(escape, escape)
