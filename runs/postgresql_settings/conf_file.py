"""Reads postgresql.conf; `conf_text` writes it.

Source of the grammar: `guc-file.l` in PostgreSQL, and the manual, chapter Setting Parameters.
pgbench's scripts are carried between versions by `runs.tools.pgbench.dialect`.
"""

import re
from collections.abc import Iterator, Sequence

from runs import enclosed
from runs.postgresql_settings import assignments, pasted
from runs.postgresql_settings.catalogue import canonical, existence
from runs.postgresql_settings.command_lines import Pasted
from runs.postgresql_settings.conf_text import ConfFile, Entry, Fault
from runs.wording import gettext_noop as _

_WORD = re.compile(r"(?<![\w.-])[a-z]+(?:_[a-z]+)+(?!\w)")
_FENCE = re.compile(r"\A\s*+(?:```|~~~)[\w-]*+\s*+\Z")
_SECTION = re.compile(r"\A\s*+\[[\w. -]{1,60}+\]\s*+\Z")
# Names of files, as head prints them, and what a shell was asked for.
_SHELL = re.compile(
    r"==> \S{1,200}+ <==|(?:[\w.-]{1,40}+@[\w.-]{1,60}+[:~/\w \]-]{0,80}+[#$]|\$)"
    r"(?: (?:[\w/.-]{1,40}+ ){0,9}?(?:cat|e?grep|head|tail|less) [^=]{0,300}+)?"
    r"|(?:sudo )?(?:cat|tee) [^=<]{0,200}+<<-? ?['\"]?\w{1,20}+['\"]?[^=]{0,80}+|EO[FT]"
)
_BRACES = re.compile(r"\A[ \t]*+\w{1,80}+ *+= *+\{[ \t\r]*+")
_MAIL = re.compile(r"\A> ?")
_BLOCK = re.compile(r"\A( *+)[\w.-]++: [|>][-+]?\s*+\Z")
_HUNK = re.compile(r"\A@@ -\d++(?:,\d++)? \+\d++(?:,\d++)? @@")
_SETTING = re.compile(r"\A\s*+[A-Za-z_][\w.]*+\s*+=")
_HTML = re.compile(r"<(?:pre|t[dr])\b", re.IGNORECASE)
_CELL = re.compile(r"</t[dh]>\s*+<t[dh]\b[^<>]{0,300}>", re.IGNORECASE)
_ROW = re.compile(r"</tr>", re.IGNORECASE)
# Code in a list or table of Markdown.
_CODE = re.compile(r"\A\s*+[-*|] ?[^`]*+`")
# Heroku's names.
_HEADING = re.compile(r"\A=== ")
_DASHED = re.compile(r"\A[a-z]{1,40}(?:-[a-z]{1,40}){1,8}+(?=: )")
# pgtune and others print the name on a line of its own.
_ALTER = re.compile(
    r"^([ \t]*+alter[ \t]++system[ \t]++set)[ \t]*+\n[ \t]*+", re.IGNORECASE | re.MULTILINE
)


def plain(text: str) -> str:
    """The text with its settings alone, as far as that is known."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if _HTML.search(text):
        text = enclosed.without_marks(_ROW.sub("\n", _CELL.sub("\t", text)))
    lines = _ALTER.sub(r"\n\1 ", text).split("\n")
    lines = [
        "" if _SECTION.match(line) or _SHELL.fullmatch(line.strip()) else line for line in lines
    ]
    lines = ["" if _FENCE.match(line) else line for line in _of_fence(lines)]
    if _HEADING.match(text):
        lines = ["", *(_DASHED.sub(_underscored, line) for line in lines[1:])]
    lines = [line.replace("`", "") if _CODE.match(line) else line for line in lines]
    # A heading of Jira.
    lines = [line.replace("||", "|") if line.startswith("||") else line for line in lines]
    written = [line for line in lines if line.strip()]
    if written and sum(bool(_MAIL.match(line)) for line in written) > 0.8 * len(written):
        lines = [_MAIL.sub("", line) for line in lines]
    return "\n".join(_of_block(_of_difference(lines)))


def _of_fence(lines: list[str]) -> list[str]:
    """The lines of the only fence, the others empty where they name no setting."""
    fences = [index for index, line in enumerate(lines) if _FENCE.match(line)]
    if len(fences) != 2:
        return lines
    begin, end = fences
    around = " ".join(lines[:begin] + lines[end + 1 :])
    if any(existence(word) for word in _WORD.findall(around)):
        return lines
    return [line if begin < index < end else "" for index, line in enumerate(lines)]


def _underscored(name_match: re.Match[str]) -> str:
    name = name_match[0].replace("-", "_")
    return name if existence(name) else name_match[0]


def has_sections(text: str) -> bool:
    """Whether it has headings such as [postgres.parameters], or blocks such as parameters = {."""
    lines = text.removeprefix("\ufeff").split("\n")
    return any(_SECTION.match(line) or _BRACES.fullmatch(line) for line in lines)


def _of_difference(lines: list[str]) -> list[str]:
    """The newer lines of `diff -u`, what they replace empty."""
    if not any(map(_HUNK.match, lines)):
        return lines
    newer_lines = [
        "" if line.startswith(("-", "+++", "@@", "diff ", "index ")) else line for line in lines
    ]
    return [line[1:] if line[:1] in {"+", " "} else line for line in newer_lines]


def _of_block(lines: list[str]) -> list[str]:
    """The lines of the first block scalar of YAML that holds settings, the others empty."""
    for index, line in enumerate(lines):
        if (begin := _BLOCK.match(line)) is None:
            continue
        end = index + 1
        while end < len(lines) and (
            not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > len(begin[1])
        ):
            end += 1
        if any(map(_SETTING.match, lines[index + 1 : end])):
            return [block_line if index < n < end else "" for n, block_line in enumerate(lines)]
    return lines


# No file of settings is longer; what is, is read as lines only.
MOST_CHARACTERS = 1_000_000
INCLUDES = frozenset({"include", "include_dir", "include_if_exists"})

_BY_AN_EDITOR = _("The text begins with a byte order mark, left out: no server starts with it.")
# What a browser or an old editor puts between words: letters for PostgreSQL, or no end of a line.
_NO_BLANKS = re.compile("[\u00a0\u2002-\u200b\u202f\u3000\\r]")
# By what they are not: Python takes 3 ms to compile a class of all letters. With digits, then with
# a dollar, then with what stands in words without quotes.
_LETTER = r"[^\x00-@\[-\^`{-\x7f]"
_OR_DOLLAR = r"[^\x00-#%-/:-@\[-\^`{-\x7f]"
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
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPED = re.compile(r"''|\\([0-7]{1,3}|.)")


def read(text: str) -> ConfFile:
    """Everything that a postgresql.conf sets, with names as PostgreSQL spells them.

    The forms of `pasted` are read as well.
    """
    mark = [Fault(1, "byte_order_mark", _BY_AN_EDITOR, {})] if text.startswith("\ufeff") else []
    if len(text) <= MOST_CHARACTERS and (pasted_entries := pasted.entries(plain(text))) is not None:
        entries_read = tuple(_listed(pasted_entries))
        return ConfFile(
            {entry.name: entry.value for entry in entries_read}, entries_read, (), tuple(mark)
        )
    entries: list[Entry] = []
    faults: list[Fault] = []
    for number, line in enumerate(_lines(text), 1):
        line_content = _line(number, line)
        if isinstance(line_content, Entry):
            entries.append(line_content)
        elif line_content is not None:
            faults.append(line_content)
    if faults and len(text) <= MOST_CHARACTERS:
        wrong = [fault.line for fault in faults]
        assigned = assignments.entries(_lines(text), wrong, has_sections=has_sections(text))
        entries, faults = (_listed(assigned), []) if assigned else (entries, faults)
    settings = {entry.name: entry.value for entry in entries}
    left_out = [fault for fault in faults if fault.code == "include_left_out"]
    faults = [fault for fault in faults if fault not in left_out]
    return ConfFile(settings, tuple(entries), tuple(faults), (*mark, *left_out))


def _listed(pasted_entries: Sequence[Pasted]) -> list[Entry]:
    return [Entry(line, canonical(name), value) for line, name, value in pasted_entries]


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


def _lines(text: str) -> list[str]:
    """Lines end as PostgreSQL's do."""
    return plain(text).split("\n")


def _line(number: int, line: str) -> Entry | Fault | None:
    tokens = list(_tokens(line))
    if not tokens:
        return None
    kind, name = tokens[0]
    value_tokens = tokens[2:] if len(tokens) > 1 and tokens[1][0] == "equals" else tokens[1:]
    if pasted.NO_SETTING.fullmatch(line):
        return None
    if kind != "word" or _NAME.fullmatch(name) is None:
        return _syntax(number, line)
    if name.lower() in INCLUDES:
        return _not_followed(number, line, may_be_missing=name.lower() == "include_if_exists")
    if (statement := pasted.of_statement(line)) is not None:
        return Entry(number, canonical(statement[0]), statement[1])
    if len(value_tokens) != 1 or value_tokens[0][0] not in {"string", "number", "word"}:
        return _syntax(number, line)
    value_kind, value = value_tokens[0]
    if _NO_BLANKS.search(name) or (value_kind == "word" and _NO_BLANKS.search(value)):
        return _syntax(number, line)
    if name.startswith("POSTGRES") and (
        canonical_name := assignments.known(name)
    ):  # a container's variable
        name = canonical_name
    return Entry(number, canonical(name), unquoted(value) if value_kind == "string" else value)


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
        message = _("Line %(line)s has no-break spaces or old line ends: %(text)s. Replace them.")
        return Fault(number, "no_blanks", message, values)
    return Fault(
        number,
        "syntax_error",
        _("Line %(line)s is no setting: %(text)s. Write name = value, other values in quotes."),
        values,
    )


def _not_followed(number: int, line: str, *, may_be_missing: bool) -> Fault:
    return Fault(
        number,
        "include_left_out" if may_be_missing else "include_not_followed",
        _("Line %(line)s names another file, which is not read: %(text)s. Paste its text here."),
        {"line": str(number), "text": line.strip()[:200]},
    )
