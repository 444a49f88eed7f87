r"""The words of a pgbench script, as pgbench itself cuts it up.

A backslash outside of literals and comments begins a command of pgbench, which goes to the end of
its line, behind SQL as well. Source: psqlscan.l and exprscan.l of PostgreSQL 18.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from runs.patterns import re

# By what they are not: Python takes 3 ms to compile a class of all letters.
LETTER = r"[^\x00-@\[-\^`{-\x7f]"
LETTER_OR_DIGIT = r"[^\x00-/:-@\[-\^`{-\x7f]"
NAME = rf"{LETTER}{LETTER_OR_DIGIT}*+"
# What is never closed goes to the end, as in psql: otherwise each beginning would look for its end.
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f\v]+)|(?P<newline>\n)|(?P<comment>--[^\n]*|/\*)"""
    r"""|(?P<literal>[eE]'(?:[^'\\]|\\.|'')*(?:'|(?P<open_escaped>\\?\Z))"""
    r"""|'(?:[^']|'')*(?:'|(?P<open>\Z))|"[^"]*(?:"|(?P<open_name>\Z))"""
    rf"""|(?P<tag>\$(?:{NAME})?\$).*?(?:(?P=tag)|(?P<open_dollar>\Z)))"""
    rf"""|(?P<joined>\\[;:])|(?P<meta>\\(?:\\\r?\n|[^\n])*)|(?P<bracket>[()])|(?P<end>;)"""
    rf"""|(?P<cast>::)|(?P<variable>:{LETTER_OR_DIGIT}++)"""
    # Letters behind a number or a parameter belong to it: a quote behind $1E begins no E'...'.
    rf"""|(?P<word>\$?[0-9]++\.?(?:{NAME}[$\w]*)?|{NAME}[$\w]*|.)""",
    re.DOTALL,
)
# What is no statement by itself.
NO_SQL = frozenset(("space", "newline", "comment", "end"))
_COMMENT = re.compile(r"/\*|\*/")
_OPEN = ("open", "open_escaped", "open_name", "open_dollar")


@dataclass(frozen=True)
class Token:
    """A word of a script, with the line at which it begins. `is_open` is a literal without end."""

    kind: str
    text: str
    line: int
    is_open: bool = False


def tokens(text: str) -> Iterator[Token]:
    """All of a script: its kinds are the groups of `_TOKEN`."""
    offset, line = 0, 1
    while (token_match := _TOKEN.match(text, offset)) is not None:
        kind = (
            "literal"
            if token_match["literal"] is not None
            else str(token_match.lastgroup)
        )
        offset = token_match.end()
        if token_match["comment"] == "/*":
            offset = _end_of_comment(text, offset)
        token_text = text[token_match.start() : offset]
        yield Token(
            kind, token_text, line, any(token_match[name] is not None for name in _OPEN)
        )
        line += token_text.count("\n")


def _end_of_comment(text: str, begin: int) -> int:
    """Where a comment ends; comments of SQL contain comments."""
    depth = 1
    for comment_match in _COMMENT.finditer(text, begin):
        depth += 1 if comment_match[0] == "/*" else -1
        if depth == 0:
            return comment_match.end()
    return len(text)


# \gset and \aset belong to their statement; a backslash by itself is nothing.
_COMMAND = re.compile(r"\A\\[\s\\]*+(?![ag]set(?:\s|\Z))\S", re.IGNORECASE)


def line_of_command(text: str, number: int) -> int:
    """The line, from 1, at which that command begins; 0 if there is no such command."""
    lines = list(command_lines(text))
    return lines[number] if 0 <= number < len(lines) else 0


def command_lines(text: str) -> Iterator[int]:
    r"""The line at which each command begins, in the numbers of pgbench's messages.

    pgbench counts meta commands and statements from 0, with empty ones and what is between /* and
    */. A statement ends at a semicolon that is in no literal, comment or brackets; `\;` joins
    statements, and `\gset` and `\aset` end one and are no command of their own.
    """
    begun, depth, is_comment = 0, 0, False
    for token in tokens(text):
        if token.kind == "meta" or (token.kind == "end" and depth <= 0):
            if begun or token.kind == "end":
                yield begun or token.line
            begun, depth, is_comment = 0, 0, False
            if token.kind == "meta" and _COMMAND.match(token.text):
                yield token.line
        elif token.kind == "comment" and token.text[:2] == "/*":
            is_comment, begun = is_comment or not begun, begun or token.line
        elif token.kind not in NO_SQL:
            begun = token.line if is_comment else begun or token.line
            is_comment = False
            depth += {"(": 1, ")": -1}.get(token.text, 0)
    if begun:
        yield begun


_PIPELINE = re.compile(r"\\\s*+startpipeline\b", re.IGNORECASE)


def has_pipeline(text: str) -> bool:
    """Whether the script has a pipeline, which the simple protocol has not."""
    return any(
        token.kind == "meta" and _PIPELINE.match(token.text) for token in tokens(text)
    )


# Expressions of \set and \if.

_BLANKS = re.compile(r"(?:[ \t\r\f\v]++|\\\r?\n)*")
_WORD = re.compile(
    rf"""(?:(?P<variable>:{LETTER_OR_DIGIT}++)"""
    r"""|(?P<number>[0-9]++(?:\.[0-9]*+)?(?:[eE][-+]?[0-9]++)?|\.[0-9]++(?:[eE][-+]?[0-9]++)?)"""
    rf"""|(?P<name>{NAME})|(?P<mark><<|>>|<=|>=|<>|!=|[-+*/%<>=&|\#~(),])|(?P<end>\Z))"""
)
_BETWEEN = frozenset(("<<", ">>", "<=", ">=", "<>", "!=", *"-+*/%<>=&|#"))
_BEFORE = frozenset(("-", "+", "~", "not"))
_MOST = 2**63  # behind a minus that is no subtraction; one less without
# (fewest, most) arguments; None is any number.
_FUNCTIONS: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("abs", "debug", "double", "exp", "int", "ln", "sqrt"), (1, 1)),
    **dict.fromkeys(("mod", "pow", "power", "random"), (2, 2)),
    **dict.fromkeys(
        ("random_exponential", "random_gaussian", "random_zipfian"), (3, 3)
    ),
    **dict.fromkeys(("greatest", "least"), (1, None)),
    **dict.fromkeys(("hash", "hash_fnv1a", "hash_murmur2"), (1, 2)),
    "permute": (2, 3),
    "pi": (0, 0),
}
MOST_DEPTH = 100


class BadExpressionError(ValueError):
    """pgbench would refuse the expression; the text is where it stops."""


class _Expression:
    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0
        self.kind = self.word = ""
        # Whether the last word was a minus with nothing on its left.
        self.is_negated = False
        self._next()

    def whole(self) -> None:
        self._value()
        if self.kind != "end":
            self._refuse()

    def _next(self) -> None:
        blanks = _BLANKS.match(self.text, self.at)
        word_match = _WORD.match(self.text, blanks.end() if blanks else self.at)
        if word_match is None:
            raise BadExpressionError(self.text[self.at :].strip() or self.text.strip())
        self.begin, self.at = self.at, word_match.end()
        self.kind = str(word_match.lastgroup)
        self.word = word_match[self.kind]
        if self.kind == "name":
            self.word = self.word.lower()
        elif self.kind == "number" and self.word.isdigit():
            value = int(self.word[:30])
            if value > _MOST or (value == _MOST and not self.is_negated):
                self._refuse()

    def _refuse(self) -> None:
        raise BadExpressionError(self.text[self.begin :].strip() or self.text.strip())

    def _take(self, *words: str) -> bool:
        if self.kind in {"name", "mark"} and self.word in words:
            self._next()
            return True
        return False

    def _need(self, word: str) -> None:
        if not self._take(word):
            self._refuse()

    def _value(self) -> None:
        """Operands and what is between them; which of them binds first does not matter here."""
        self.depth += 1
        if self.depth > MOST_DEPTH:
            self._refuse()
        while True:
            while self.kind in {"name", "mark"} and self.word in _BEFORE:
                self.is_negated = self.word == "-"
                self._next()
            self.is_negated = False
            self._operand()
            while self._take("isnull", "notnull") or self._is():
                pass
            if not self._take(*_BETWEEN, "and", "or"):
                break
        self.depth -= 1

    def _is(self) -> bool:
        if not self._take("is"):
            return False
        self._take("not")
        if not self._take("null", "true", "false"):
            self._refuse()
        return True

    def _operand(self) -> None:
        if self.kind in {"variable", "number"}:
            self._next()
        elif self._take("("):
            self._value()
            self._need(")")
        elif self._take("case"):
            self._cases()
        elif self._take("null", "true", "false"):
            pass
        elif self.kind == "name" and self.word in _FUNCTIONS:
            self._call()
        else:
            self._refuse()

    def _cases(self) -> None:
        self._need("when")
        while True:
            self._value()
            self._need("then")
            self._value()
            if not self._take("when"):
                break
        if self._take("else"):
            self._value()
        self._need("end")

    def _call(self) -> None:
        begin, (fewest, most) = self.begin, _FUNCTIONS[self.word]
        self._next()
        self._need("(")
        count = 0
        while not self._take(")"):
            if count:
                self._need(",")
            self._value()
            count += 1
        if count < fewest or (most is not None and count > most):
            raise BadExpressionError(self.text[begin:].strip())


def check_expression(text: str) -> None:
    r"""Whether pgbench reads the expression of a \set or \if. Raises BadExpressionError."""
    _Expression(text).whole()
