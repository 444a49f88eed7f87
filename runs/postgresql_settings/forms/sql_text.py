"""Statements that set something: scripts, sessions of psql, dumps of roles.

Source: the manual's pages of ALTER SYSTEM, ALTER DATABASE, ALTER ROLE and SET; `scan.l` for the
words, and `config_generic.sgml` for lists: their elements are joined by a comma and a blank.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runs.postgresql_settings.forms.reading import FormReading, Pasted

_OF_PROMPT = r"\w[\w@.:-]{0,60}?[=(*^'-]?[#>](?:\s++|\Z)"
_PROMPT = re.compile(rf"\A\s*+(?:{_OF_PROMPT}|\$ (?!\\))")
# What psql answers: tags of commands, tables, their counts, messages.
_OUTPUT = re.compile(
    r"(?:ALTER|CREATE|DROP|GRANT|REVOKE) [A-Z ]{1,40}|SET|RESET|BEGIN|COMMIT|COMMENT"
    r"|psql \(.*|Type \"help\".*|You are now .*"
    r"| .*|[-+]{3,}|\(\d{1,9} \w{1,20}\)|(?:NOTICE|WARNING|HINT|DETAIL|INFO|LOG): .*"
)
_TOKEN = re.compile(
    r"""
      (?P<space>\s++)
    | (?P<comment>--[^\n]*+|/\*.*?(?:\*/|\Z))
    | (?P<escaped>[eE]'(?:[^'\\]|\\.|'')*+(?:'|\\?\Z))
    | (?P<string>'(?:[^']|'')*+(?:'|\Z))
    | (?P<dollar>\$(?P<tag>[A-Za-z_]*+)\$.*?(?:\$(?P=tag)\$|\Z))
    | (?P<quoted>"(?:[^"]|"")*+(?:"|\Z))
    | (?P<word>[^\W\d][\w$]*+(?:\.[^\W\d][\w$]*+)*+)
    | (?P<number>[-+]?[\d.][\w.]*+)
    | (?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_TWO_WORDS = re.compile(r"\A\s*+([A-Za-z]++)\s++[A-Za-z]")
_SETS = re.compile(r"\A\s*+(?:alter|set|select)\s", re.IGNORECASE)
# With what a statement begins, and no line of postgresql.conf.
_STATEMENTS = frozenset(
    {
        "abort",
        "alter",
        "analyze",
        "begin",
        "call",
        "checkpoint",
        "close",
        "cluster",
        "comment",
        "commit",
        "copy",
        "create",
        "deallocate",
        "delete",
        "discard",
        "do",
        "drop",
        "end",
        "execute",
        "explain",
        "grant",
        "insert",
        "listen",
        "load",
        "lock",
        "notify",
        "prepare",
        "reassign",
        "reindex",
        "reset",
        "revoke",
        "rollback",
        "savepoint",
        "security",
        "select",
        "set",
        "show",
        "start",
        "truncate",
        "update",
        "vacuum",
        "values",
        "with",
    }
)
# What SET is also followed by, and no setting.
_NOT_SET = frozenset(
    {"constraints", "role", "transaction", "authorization", "characteristics"}
)
# Lists of names (GUC_LIST_QUOTE).
_OF_NAMES = frozenset(
    {
        "local_preload_libraries",
        "search_path",
        "session_preload_libraries",
        "shared_preload_libraries",
        "temp_tablespaces",
        "unix_socket_directories",
    }
)
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*+")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPED = re.compile(r"''|\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)


@dataclass(frozen=True)
class Token:
    """A word of SQL: its kind, its text, and where it begins (from 1)."""

    kind: str
    text: str
    line: int
    begins_line: bool


def read_session(text: str) -> FormReading | None:
    """What statements in a session of psql set; None where a line is neither these nor output."""
    lines = text.split("\n")
    prompts = 0
    is_open = False
    statements = []
    for line in lines:
        prompt = _PROMPT.match(line)
        if prompt is not None:
            prompts += 1
            statements.append(line[prompt.end() :])
            is_open = _is_open(statements[-1], is_open=is_open)
        elif is_open or _begins_statement(line):
            statements.append(line)
            is_open = _is_open(line, is_open=is_open)
        elif not line.strip() or _OUTPUT.fullmatch(line):
            statements.append("")
        else:
            return None
    return read_script("\n".join(statements)) if prompts else None


def read_script(text: str) -> FormReading | None:
    """What a script sets; None for a text in which something else than statements stands."""
    blank = ("\\", "#")
    lines = [
        "" if line.lstrip().startswith(blank) else line for line in text.split("\n")
    ]
    reading = FormReading()
    count = 0
    for statement in _statements("\n".join(lines)):
        first = statement[0]
        if first.kind != "word" or first.text.lower() not in _STATEMENTS:
            return None
        if _is_line_of_conf(statement) or _is_of_a_shell(statement):
            return None
        reading.add(_read_statement(statement))
        count += 1
    return reading if count and (reading.settings or reading.faults) else None


def read_line(line: str) -> FormReading | None:
    """What the statements of one line set; None for a line that is none."""
    prompt = _PROMPT.match(line)
    return read_script(line[prompt.end() :] if prompt else line)


def begins_script(text: str) -> bool:
    """Whether a text begins with a statement that can set something."""
    return _SETS.match(text) is not None


def _begins_statement(line: str) -> bool:
    word = _TWO_WORDS.match(line)
    return (
        word is not None
        and word[1].lower() in {"alter", "set", "select"}
        and ";" in line
    )


def _is_open(line: str, *, is_open: bool) -> bool:
    """Whether a statement goes on behind the line."""
    written = line.split("--", maxsplit=1)[0].rstrip()
    return (
        is_open
        if not written
        else not written.endswith(";") and written.lstrip()[:1] != "\\"
    )


def _is_of_a_shell(statement: Sequence[Token]) -> bool:
    """`set -e` and the like."""
    return (
        statement[0].text == "set"
        and len(statement) > 1
        and statement[1].text[0] in "-+"
    )


def _is_line_of_conf(statement: Sequence[Token]) -> bool:
    """`lock = on` and the like: a word and what it is set to."""
    return len(statement) > 1 and statement[1].text == "="


def _statements(text: str) -> Iterator[list[Token]]:
    statement: list[Token] = []
    for token in _tokens(text):
        if token.text == ";" and token.kind == "mark":
            if statement:
                yield statement
            statement = []
            continue
        # pgtune and people leave a semicolon out at the end of a line.
        begins = token.begins_line and token.text.lower() in {"alter", "set", "select"}
        if begins and _is_whole(statement):
            yield statement
            statement = []
        statement.append(token)
    if statement:
        yield statement


def _is_whole(statement: Sequence[Token]) -> bool:
    """Whether a statement that sets something has its value."""
    words = [token.text.lower() for token in statement]
    if "=" in words or "to" in words:
        return words[-1] not in {"=", "to", ","}
    return bool(words) and words[0] == "select" and words[-1] == ")"


def _tokens(text: str) -> Iterator[Token]:
    line = 1
    begins_line = True
    for match in _TOKEN.finditer(text):
        kind = "dollar" if match["dollar"] is not None else str(match.lastgroup)
        if kind not in {"space", "comment"}:
            yield Token(kind, match[0], line, begins_line)
            begins_line = False
        newlines = match[0].count("\n")
        line += newlines
        begins_line = begins_line or newlines > 0


def _read_statement(statement: Sequence[Token]) -> FormReading:
    words = [token.text.lower() for token in statement]
    if words[0] == "select":
        return _read_set_config(statement)
    begin = _where_set(words)
    reading = FormReading()
    if begin is None or begin >= len(statement):
        return reading
    if words[begin : begin + 2] == ["time", "zone"]:
        name, values = "TimeZone", statement[begin + 2 :]
    else:
        name, values = _unquoted(statement[begin]), statement[begin + 1 :]
        if values and values[0].text.lower() in {"=", "to"}:
            values = values[1:]
        elif words[begin] in _NOT_SET or words[begin + 1 : begin + 3] == [
            "from",
            "current",
        ]:
            return reading
        else:
            reading.refuse(statement[0].line, _written(statement))
            return reading
    if not [token for token in values if token.text.lower() == "default"]:
        _take_values(reading, statement[begin].line, name, values)
    return reading


def _where_set(words: Sequence[str]) -> int | None:
    """The place of the name behind SET; None for a statement that sets nothing."""
    if words[0] == "alter":
        if len(words) < 2 or words[1] not in {"system", "database", "role", "user"}:
            return None
        return words.index("set") + 1 if "set" in words else None
    if words[0] != "set" or len(words) < 2:
        return None
    place = 2 if words[1] in {"session", "local", "persist"} else 1
    return None if words[place : place + 1] and words[place] in _NOT_SET else place


def _take_values(
    reading: FormReading, line: int, name: str, values: Sequence[Token]
) -> None:
    """A list of literals and words, joined as PostgreSQL joins them."""
    elements: list[list[Token]] = [[]]
    for token in values:
        if token.text == "," and token.kind == "mark":
            elements.append([])
        else:
            elements[-1].append(token)
    wrong = [element for element in elements if not _is_value(element)]
    if wrong:
        reading.refuse_rest(line, _written(values))
        return
    value_of = _name_value if name.lower() in _OF_NAMES else _value
    reading.settings.append((line, name, ", ".join(map(value_of, elements))))


def _is_value(element: Sequence[Token]) -> bool:
    if len(element) == 1:
        return element[0].kind != "mark" and _is_closed(element[0])
    # psql's variables and a sign before a number.
    return len(element) == 2 and element[0].text in {"-", "+", ":"}


def _is_closed(token: Token) -> bool:
    """Whether a literal has its end: without one it goes to the end of the text."""
    if token.kind not in {"string", "escaped", "quoted", "dollar"}:
        return True
    return len(token.text) > 1 and token.text[-1] == {"quoted": '"', "dollar": "$"}.get(
        token.kind, "'"
    )


def _value(element: Sequence[Token]) -> str:
    return "".join(_unquoted(token) for token in element)


def _name_value(element: Sequence[Token]) -> str:
    """Of a list of names: one in quotes keeps them where it would be another without."""
    (token, *others) = element
    is_quoted = token.kind == "quoted" and not others
    if is_quoted and not _PLAIN_NAME.fullmatch(token.text[1:-1]):
        return token.text
    return _value(element)


def _read_set_config(statement: Sequence[Token]) -> FormReading:
    """`set_config('name', 'value', ...)`, as often as it is called."""
    reading = FormReading()
    for index, token in enumerate(statement):
        if token.text.lower() not in {"set_config", "pg_catalog.set_config"}:
            continue
        arguments = statement[index + 1 : index + 5]
        strings = [
            argument for argument in arguments if argument.kind in {"string", "escaped"}
        ]
        if len(strings) != 2 or [arguments[0].text, arguments[2].text] != ["(", ","]:
            reading.refuse(token.line, _written(statement[index:]))
            continue
        setting: Pasted = (token.line, _unquoted(strings[0]), _unquoted(strings[1]))
        reading.settings.append(setting)
    return reading


def _unquoted(token: Token) -> str:
    text = token.text
    if token.kind == "string":
        return text[1:-1].replace("''", "'")
    if token.kind == "escaped":
        return _ESCAPED.sub(_unescaped, text[2:-1])
    if token.kind == "quoted":
        return text[1:-1].replace('""', '"')
    if token.kind == "dollar":
        mark = text.index("$", 1) + 1
        return text[mark:-mark]
    return text


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if escape is None:
        return "'"
    if escape[0] == "x" and len(escape) > 1:
        return chr(int(escape[1:], 16))
    if escape[0] in "01234567":
        return chr(int(escape, 8) & 0xFF)
    return _ESCAPES.get(escape, escape)


def _written(tokens: Sequence[Token]) -> str:
    return " ".join(token.text for token in tokens)
