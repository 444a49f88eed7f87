"""Checking scripts before they are run: meta commands, variables and weights, line by line.

What only a server can check (SQL) is left to it. Scripts have the syntax of pgbench 9.6 and later.
Source: the pgbench page of PostgreSQL 18's manual.

The lines of a script at which its commands begin, in the numbers of pgbench's messages.

pgbench counts meta commands and statements from 0. A statement ends at a semicolon that is not in a
literal, a comment or brackets; `\\;` joins statements, and `\\gset` and `\aset` end one and are no
command of their own. Source: the pgbench page of PostgreSQL 18's manual, and psqlscan.l.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

# What is never closed goes to the end, as in psql: otherwise each beginning would look for its end.
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+)|(?P<newline>\n)|(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))"""
    r"""|(?P<literal>'(?:[^']|'')*+(?:'|(?P<open>\Z))|"[^"]*(?:"|\Z)"""
    r"""|(?P<tag>\$\w*+\$).*?(?:(?P=tag)|\Z))"""
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
        kind = "literal" if token["literal"] is not None else token.lastgroup
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


# Always defined by pgbench itself.
AUTOMATIC = frozenset(("client_id", "default_seed", "random_seed", "scale"))
SHELL = frozenset(("shell", "setshell"))
_CONDITIONS = ("if", "elif", "else", "endif")
_WITHOUT_WORDS = frozenset(("else", "endif", "startpipeline", "syncpipeline", "endpipeline"))
_COMMANDS = frozenset(
    ("set", "sleep", "gset", "aset", *_CONDITIONS, *SHELL, *_WITHOUT_WORDS)
)  # fmt: skip
MOST_SCRIPTS, MOST_CHARACTERS, MOST_WEIGHT = 20, 100_000, 1_000_000
_SETTING = frozenset(("set", "setshell"))
# A backslash may be anywhere in front of the command among these.
_BLANKS = "\\" + "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
_SHELL = re.compile(r"(?:set)?shell", re.IGNORECASE)
_META = re.compile(r"\A\s*\\(?P<command>\S*+)(?P<rest>.*)")
_SET = re.compile(r"\A\s++(?P<name>[A-Za-z_]\w*+)\s++(?P<expression>\S.*)", re.ASCII)
_SLEEP = re.compile(r"\A\s+(?::\w+|\d+)\s*+(?:us|ms|s)?\s*", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_USED = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)", re.ASCII)
_QUOTED = re.compile(r"'(?:[^']|'')*'|--.*")


@dataclass(frozen=True)
class Fault:
    """What is wrong, as a code with words for it; `line` counts from 1; 0 is all of it."""

    script: str
    line: int
    code: str
    word: str = ""


@dataclass(frozen=True)
class GivenScript:
    """A script as somebody wrote it."""

    name: str
    text: str
    weight: int = 1


def check(
    scripts: Sequence[GivenScript], variables: Mapping[str, str], *, allows_shell: bool = False
) -> list[Fault]:
    """Everything that is wrong with the scripts of one workload."""
    found = list(_as_a_whole(scripts, variables))
    for script in scripts:
        found += _weights(script)
        if len(script.text) > MOST_CHARACTERS:
            found.append(Fault(script.name, 0, "too_long", str(MOST_CHARACTERS)))
            continue
        found += _lines(script, set(variables))
        if not allows_shell:
            found += _shells(script)
    return found


def _as_a_whole(scripts: Sequence[GivenScript], variables: Mapping[str, str]) -> Iterator[Fault]:
    if not scripts:
        yield Fault("", 0, "no_script")
    if len(scripts) > MOST_SCRIPTS:
        yield Fault("", 0, "too_many_scripts", str(MOST_SCRIPTS))
    names = [script.name for script in scripts]
    for name in sorted({each for each in names if names.count(each) > 1}):
        yield Fault(name, 0, "name_twice", name)
    for name, value in variables.items():
        if not _NAME.fullmatch(name) or name in AUTOMATIC or "\n" in value:
            yield Fault("", 0, "bad_variable", name)


def _weights(script: GivenScript) -> Iterator[Fault]:
    if not 1 <= script.weight <= MOST_WEIGHT:
        yield Fault(script.name, 0, "bad_weight", str(script.weight))


def _shells(script: GivenScript) -> Iterator[Fault]:
    r"""Commands that run programs; one in a literal or a comment counts as well, to be safe.

    pgbench takes them within a line too, and skips blanks after the backslash.
    """
    line, end = 1, 0
    for found in _SHELL.finditer(script.text):
        before = script.text[end : found.start()]
        start = before.find("\\", len(before.rstrip(_BLANKS)))
        if start >= 0:
            begun = line + before.count("\n", 0, start)
            yield Fault(script.name, begun, "shell", f"\\{found[0]}")
        line, end = line + before.count("\n"), found.end()


def _lines(script: GivenScript, defined: set[str]) -> Iterator[Fault]:
    open_conditions: list[int] = []
    has_sql = False
    # \gset and \\aset define what the server's columns are called.
    knows_names = "\\gset" not in script.text and "\\aset" not in script.text
    for number, line in enumerate(script.text.splitlines(), start=1):
        meta = _META.fullmatch(line)
        if meta:
            for code, word in _meta(meta, open_conditions, number):
                yield Fault(script.name, number, code, word)
        else:
            has_sql = has_sql or bool(_bare(line).strip(" ;\t"))
        for name in _used(line) if knows_names else ():
            if name not in defined | AUTOMATIC:
                yield Fault(script.name, number, "variable_missing", name)
        if meta and meta["command"] in _SETTING and (found := _NAME.search(meta["rest"])):
            defined.add(found[0])
    yield from (Fault(script.name, number, "condition_open") for number in open_conditions)
    if not has_sql:
        yield Fault(script.name, 0, "no_sql")
    yield from _quotes(script)


def _meta(meta: re.Match[str], conditions: list[int], number: int) -> Iterator[tuple[str, str]]:
    command, rest = meta["command"], meta["rest"]
    if command == "setrandom":
        yield "setrandom", rest.strip()
    elif command not in _COMMANDS:
        yield "unknown_command", f"\\{command}"
    elif command == "set" and not _SET.fullmatch(rest):
        yield "bad_set", rest.strip()
    elif command == "set" and rest.count("(") != rest.count(")"):
        yield "brackets", rest.strip()
    elif command == "sleep" and not _SLEEP.fullmatch(rest):
        yield "bad_sleep", rest.strip()
    elif command in {"if", "elif"} and not rest.strip():
        yield "no_condition", f"\\{command}"
    yield from _nesting(command, conditions, number)


def _nesting(command: str, conditions: list[int], number: int) -> Iterator[tuple[str, str]]:
    if command == "if":
        conditions.append(number)
    elif command in _CONDITIONS and not conditions:
        yield "condition_without_if", f"\\{command}"
    elif command == "endif":
        conditions.pop()


def _quotes(script: GivenScript) -> Iterator[Fault]:
    """A quote that is not closed takes the rest of the script with it."""
    lines = [line for line in script.text.splitlines() if not _META.fullmatch(line)]
    if any(token["open"] is not None for token in _TOKEN.finditer("\n".join(lines))):
        yield Fault(script.name, 0, "quote_open")


def _used(text: str) -> list[str]:
    return _USED.findall(_bare(text))


def _bare(text: str) -> str:
    """Without literals and comments: pgbench leaves there what it does not know."""
    return _QUOTED.sub("", text)
