r"""The lines of a script at which its commands begin, in the numbers of pgbench's messages.

pgbench counts meta commands and statements from 0. A statement ends at a semicolon that is not in a
literal, a comment or brackets; `\;` joins statements, and `\gset` and `\aset` end one and are no
command of their own. Source: the pgbench page of PostgreSQL 18's manual, and psqlscan.l.
"""

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+)|(?P<newline>\n)|(?P<comment>--[^\n]*|/\*.*?\*/)"""
    r"""|(?P<literal>'(?:[^']|'')*'|"[^"]*"|(?P<tag>\$\w*\$).*?(?P=tag))"""
    r"""|(?P<joined>\\;)|(?P<meta>\\[A-Za-z]\w*(?:\\\n|[^\n])*)|(?P<bracket>[()])|(?P<end>;)|(?P<other>.)""",
    re.DOTALL,
)
_ENDING = re.compile(r"\\[ag]set\b")


def line_of_command(text: str, number: int) -> int:
    """The line, from 1, at which that command begins; 0 if there is no such command."""
    lines = list(command_lines(text))
    return lines[number] if 0 <= number < len(lines) else 0


def command_lines(text: str) -> Iterator[int]:
    """The line at which each command begins."""
    line, begun, depth = 1, 0, 0
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup if token.lastgroup != "tag" else "literal"
        if kind == "meta":
            if begun:
                yield begun
                begun, depth = 0, 0
            if not _ENDING.match(token[0]):
                yield line
        elif kind == "end" and depth <= 0:
            if begun:
                yield begun
            begun, depth = 0, 0
        elif kind not in {"space", "newline", "comment"}:
            begun = begun or line
            depth += {"(": 1, ")": -1}.get(token[0], 0)
        line += token[0].count("\n")
    if begun:
        yield begun
