"""SQL as words: where a statement ends, what is a constant in it, and what it does.

The grammar is that of PostgreSQL's scanner (scan.l) with standard_conforming_strings on, the
default since 9.1. A fault has the place where the text stops being SQL.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from runs.wording import gettext_noop as _
from runs.wording import wording_of

Kind = Literal["space", "word", "name", "string", "number", "parameter", "symbol"]

# Each alternative is linear: no two of its parts can take the same character.
_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\r\n]*)
    |(?P<block>/\*)
    |(?P<escaped>[eE]'[^'\\]*(?:(?:\\.|'')[^'\\]*)*(?P<escaped_end>')?)
    |(?P<string>(?:[bBxXnN]|[uU]&)?'[^']*(?:''[^']*)*(?P<string_end>')?)
    |(?P<name>(?:[uU]&)?"[^"]*(?:""[^"]*)*(?P<name_end>")?)
    |(?P<dollar>\$(?:[^\W\d]\w*)?\$)
    |(?P<parameter>\$\d+)
    |(?P<word>[^\W\d][\w$]*)
    |(?P<number>(?:0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|\d[\d_]*(?:\.(?!\.)\d*)?|\.\d+)
        (?:[eE][+-]?\d+)?)
    |(?P<operator>(?:(?!--|/\*)[-~!@\#^&|`?+*/%<>=])+)
    |(?P<symbol>::|[^\s\w])
    """,
    re.VERBOSE | re.DOTALL,
)
# An operator with none of these does not end in a sign: `=-1` compares with a negative number.
_MAY_END_IN_A_SIGN = frozenset("~!@#^&|`?%")
_OPERATOR = re.compile(r"[-~!@#^&|`?+*/%<>=]+")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_QUOTE_ENDS = ("escaped", "string", "name")


class NotSql(ValueError):
    """A text that PostgreSQL could not read as SQL either, and where it stops being SQL."""

    def __init__(self, text: str, place: int, sql: str) -> None:
        self.line = sql.count("\n", 0, place) + 1
        self.code = "not_sql"
        self.wording = wording_of(text, {"line": self.line})
        super().__init__(text)

    def behind(self, lines: int) -> "NotSql":
        """The same where the text itself begins behind so many lines."""
        self.line += lines
        self.wording = wording_of(str(self), {"line": self.line})
        return self


@dataclass(frozen=True)
class Token:
    """A word of SQL with its place; comments are space."""

    kind: Kind
    text: str
    start: int

    @property
    def lowered(self) -> str:
        """As keywords and unquoted names compare."""
        return self.text.lower() if self.kind == "word" else self.text


def tokens(sql: str, place: int = 0) -> Iterator[Token]:
    """All of a text from a place on. Raises NotSql for a quote or a comment that does not end."""
    while place < len(sql):
        match = _TOKEN.match(sql, place)
        if match is None or match.lastgroup is None:
            raise NotSql(_("Line %(line)s: no word of SQL begins here."), place, sql)
        token = _token(sql, match)
        yield token
        place += len(token.text)


def _token(sql: str, match: re.Match[str]) -> Token:
    place = match.start()
    for group in _QUOTE_ENDS:
        if match[group] is not None:
            if match[f"{group}_end"] is None:
                raise NotSql(
                    _("Line %(line)s: a quote is opened and not closed."), place, sql
                )
            return Token("name" if group == "name" else "string", match[0], place)
    if match["block"] is not None:
        return Token("space", sql[place : _end_of_comment(sql, place)], place)
    if match["dollar"] is not None:
        end = sql.find(match[0], match.end())
        if end < 0:
            raise NotSql(
                _("Line %(line)s: a quote is opened and not closed."), place, sql
            )
        return Token("string", sql[place : end + len(match[0])], place)
    if match["operator"] is not None:
        return Token("symbol", _operator(match["operator"]), place)
    kinds: tuple[Kind, ...] = ("space", "parameter", "word", "number", "symbol")
    kind = next(kind for kind in kinds if match[kind] is not None)
    return Token(kind, match[0], place)


def _operator(text: str) -> str:
    """The operator at the beginning of its characters; others are signs of what follows."""
    if _MAY_END_IN_A_SIGN.intersection(text):
        return text
    return text[0] + text[1:].rstrip("+-")


def _end_of_comment(sql: str, start: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(sql, start):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    raise NotSql(_("Line %(line)s: a comment is opened and not closed."), start, sql)


@dataclass(frozen=True)
class Statement:
    """One statement of a text, without its semicolon, and the line on which it begins."""

    text: str
    line: int
    tokens: tuple[Token, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """Its words without space, lower-case where that makes no difference."""
        return tuple(token.lowered for token in self.tokens if token.kind != "space")

    @property
    def first_word(self) -> str:
        """What it does, but for parentheses in front."""
        return next((word for word in self.words if word != "("), "")

    @property
    def has_backslash(self) -> bool:
        """Outside of quotes: a command of psql, and never SQL."""
        return any(
            token.kind == "symbol" and token.text == "\\" for token in self.tokens
        )


@dataclass
class Script:
    """A text that is read statement by statement: the place up to which it was, and its line."""

    text: str
    place: int = 0
    line: int = 1

    @property
    def is_at_end(self) -> bool:
        """Whether all of it was read."""
        return self.place >= len(self.text)

    def go_to(self, place: int) -> None:
        """Pass over what is before a later place."""
        self.line += self.text.count("\n", self.place, place)
        self.place = place

    def next(self) -> Statement | None:
        """The next statement, behind whose semicolon it then is; None if there is only space.

        Raises NotSql.
        """
        pending: list[Token] = []
        depth = _Depth()
        end = len(self.text)
        for token in tokens(self.text, self.place):
            if token.text == ";" and token.kind == "symbol" and depth.is_outside:
                end = token.start + 1
                break
            depth.take(token)
            pending.append(token)
        statement = self._statement(pending)
        self.go_to(end)
        return statement

    def _statement(self, pending: Sequence[Token]) -> Statement | None:
        filled = [place for place, token in enumerate(pending) if token.kind != "space"]
        if not filled:
            return None
        inner = pending[filled[0] : filled[-1] + 1]
        text = "".join(token.text for token in inner)
        line = self.line + self.text.count("\n", self.place, inner[0].start)
        return Statement(text, line, tuple(inner))


def statements(sql: str) -> Iterator[Statement]:
    """The statements of a text, one after the other. Raises NotSql."""
    script = Script(sql)
    while not script.is_at_end:
        statement = script.next()
        if statement is not None:
            yield statement


def one(sql: str) -> Statement | None:
    """The only statement of a text; None if it has none, or several. Raises NotSql."""
    parsed_statements = list(statements(sql))
    return parsed_statements[0] if len(parsed_statements) == 1 else None


class _Depth:
    """Whether a semicolon ends the statement: not in parentheses, nor in BEGIN ATOMIC ... END."""

    def __init__(self) -> None:
        self._parentheses = 0
        self._blocks = 0
        self._before = ""

    @property
    def is_outside(self) -> bool:
        return self._parentheses <= 0 and not self._blocks

    def take(self, token: Token) -> None:
        if token.kind == "space":
            return
        word = token.lowered
        if word == "(":
            self._parentheses += 1
        elif word == ")":
            self._parentheses -= 1
        elif self._opens(word):
            self._blocks += 1
        elif self._blocks and word == "end":
            self._blocks -= 1
        self._before = word

    def _opens(self, word: str) -> bool:
        if self._blocks:
            return word == "case"
        return word == "atomic" and self._before == "begin"


CONSTANT = "?"
_CONSTANT_WORDS = frozenset({"true", "false", "null"})
# After these a constant word is a part of an operator.
_BEFORE_A_TEST = frozenset({"is", "not"})
# A number after one of these is not subtracted from anything.
_BEFORE_A_SIGN = frozenset(
    {
        "",
        "(",
        ",",
        "[",
        "select",
        "where",
        "and",
        "or",
        "then",
        "else",
        "when",
        "by",
        "in",
        "between",
        "values",
        "set",
        "limit",
        "offset",
        "return",
    }
)


def fingerprint(statement: Statement) -> str:
    """A statement without its constants, in one form: what statements of one kind have alike.

    After pg_stat_statements: constants and parameters are the same, and lists of them are one;
    space, comments and the case of keywords and unquoted names make no difference.
    """
    words: list[str] = []
    for token in statement.tokens:
        if token.kind == "space":
            continue
        word = token.lowered
        if _is_constant(token, words):
            word = CONSTANT
        if word == CONSTANT:
            _take_sign(words)
        words.append(word)
    return " ".join(_shorten_lists(words))


# What `shown` has of a list of constants, and of several rows of them.
_CONSTANTS = re.compile(r"\?(?: ?, ?\?)+")
_ROWS = re.compile(r"\((\?(?:, \.\.\.)?)\)(?: ?, ?\(\1\))+")


def shown(statement: Statement) -> str:
    """A statement as it was written, without its constants, comments and lines.

    Of lists of constants there is the first.
    """
    parts: list[str] = []
    words: list[str] = []
    for token in statement.tokens:
        if token.kind == "space":
            parts.append(" ")
            continue
        if not _is_constant(token, words):
            parts.append(token.text)
            words.append(token.lowered)
            continue
        if _take_sign(words):
            while parts.pop() == " ":
                continue
        parts.append(CONSTANT)
        words.append(CONSTANT)
    text = re.sub(" +", " ", "".join(parts))
    return _ROWS.sub(r"(\1), ...", _CONSTANTS.sub(f"{CONSTANT}, ...", text))


def _is_constant(token: Token, before: Sequence[str]) -> bool:
    if token.kind in {"string", "number", "parameter"}:
        return True
    is_tested = bool(before) and before[-1] in _BEFORE_A_TEST
    return token.kind == "word" and token.lowered in _CONSTANT_WORDS and not is_tested


def _take_sign(words: list[str]) -> bool:
    """Take the sign of a number that follows from the words; whether there was one."""
    if not words or words[-1] not in {"-", "+"}:
        return False
    before = words[-2] if len(words) > 1 else ""
    if before not in _BEFORE_A_SIGN and not _OPERATOR.fullmatch(before):
        return False
    words.pop()
    return True


def _shorten_lists(words: Sequence[str]) -> list[str]:
    """`? , ? , ?` as one `?`, and then `( ? ) , ( ? )` as one `( ? )`."""
    short: list[str] = []
    for word in words:
        short.append(word)
        if short[-3:] == [CONSTANT, ",", CONSTANT]:
            del short[-2:]
        if short[-7:] == ["(", CONSTANT, ")", ",", "(", CONSTANT, ")"]:
            del short[-4:]
    return short


def fill_values(statement: Statement, values: Mapping[int, str | None]) -> str:
    """A statement with values in place of `$1`, `$2`; KeyError for one that has no value.

    A value is a quoted constant without a type, so PostgreSQL infers its type as that of the
    parameter.
    """
    parts = []
    for token in statement.tokens:
        text = token.text
        if token.kind == "parameter":
            text = _quoted(values[int(text[1:])])
        parts.append(text)
    return "".join(parts)


def _quoted(value: str | None) -> str:
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'"


_MASKED = "'masked'"
_LOOKS_SECRET = re.compile(
    r"'(?:[^@'\s]{1,64}+@[^@'\s.]{1,63}+(?:\.[^@'\s.]{1,63}+){1,8}+"  # an e-mail address
    r"|[0-9][0-9 -]{11,22}[0-9]"  # the number of a card or an account
    r"|(?=[^'\s]*[0-9])(?=[^'\s]*[A-Za-z])[A-Za-z0-9+/=_.-]{24,})'"  # a token or a key
)
_SECRET_NAME = re.compile(r"passw|secret|token|api_?key|credential", re.IGNORECASE)
_REACH = 4


def masked(statement: Statement) -> tuple[str, int]:
    """A statement in which constants that look like secrets are `'masked'`, and how many are.

    These are addresses of mail, numbers of cards, keys, and what is compared with a column whose
    name says so.
    """
    parts: list[str] = []
    names: list[str] = []
    count = 0
    for token in statement.tokens:
        text = token.text
        if token.kind in {"word", "name"}:
            names.append(text)
        elif token.kind == "symbol":
            names.append("")
        if token.kind == "string":
            is_named = any(_SECRET_NAME.search(name) for name in names[-_REACH:])
            if is_named or _LOOKS_SECRET.fullmatch(text):
                text = _MASKED
                count += 1
        parts.append(text)
    return "".join(parts), count
