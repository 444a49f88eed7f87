"""Checking scripts before they are run: meta commands, variables and weights, by token.

What only a server can check (SQL) is left to it. Scripts have the syntax of pgbench 9.6 and later.
Source: the pgbench page of PostgreSQL 18's manual, pgbench.c.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from runs.patterns import re
from runs.tools.pgbench.script_tokens import (
    NAME,
    NO_SQL,
    BadExpressionError,
    Token,
    check_expression,
    tokens,
)
from runs.tools.pgbench.scripts import (
    MOST_CHARACTERS,
    MOST_SCRIPTS,
    MOST_WEIGHT,
    Fault,
    GivenScript,
)

# Always defined by pgbench itself.
AUTOMATIC = frozenset(("client_id", "default_seed", "random_seed", "scale"))
SHELL = frozenset(("shell", "setshell"))
_CONDITIONS = ("if", "elif", "else", "endif")
_WITHOUT_WORDS = frozenset(
    ("else", "endif", "startpipeline", "syncpipeline", "endpipeline")
)
_COMMANDS = frozenset(
    ("set", "sleep", "gset", "aset", *_CONDITIONS, *SHELL, *_WITHOUT_WORDS)
)
_OF_PIPELINES = frozenset(
    ("startpipeline", "syncpipeline", "endpipeline", "gset", "aset")
)
_MOST_WORDS = dict.fromkeys(_WITHOUT_WORDS, 0) | {"gset": 1, "aset": 1}
_SETTING = frozenset(("set", "setshell"))
# A backslash may be anywhere in front of the command among these.
_BLANKS = "\\" + "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
_SHELL = re.compile(r"(?:set)?shell", re.IGNORECASE)
_FIRST_NAME = re.compile(rf"\A\s*+({NAME})")
_META = re.compile(
    r"\A\\(?:\s|\\\r?\n)*(?P<command>(?:[^\s\\]|\\(?!\r?\n))*)(?P<rest>.*)", re.DOTALL
)
_SET = re.compile(rf"\A\s*+(?P<name>{NAME})(?=\s|\\)(?P<expression>.*)", re.DOTALL)
_SLEEP = re.compile(r"(?::\S+|[+-]?[0-9]++)(?:\s*+(?:us|ms|s))?", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_USED = re.compile(rf"(?<![:\w]):({NAME})")
_CONTINUED = re.compile(r"\\\r?\n")


def check(
    scripts: Sequence[GivenScript],
    variables: Mapping[str, str],
    *,
    allows_shell: bool = False,
) -> list[Fault]:
    """Everything that is wrong with the scripts of one workload; of a line each fault once."""
    faults = list(_check_whole(scripts, variables))
    for script in scripts:
        if not 1 <= script.weight <= MOST_WEIGHT:
            faults.append(Fault(script.name, 0, "bad_weight", str(script.weight)))
        if len(script.text) > MOST_CHARACTERS:
            faults.append(Fault(script.name, 0, "too_long", str(MOST_CHARACTERS)))
            continue
        faults += _lines(script, set(variables))
        if not allows_shell:
            faults += _shells(script)
    return list(dict.fromkeys(faults))


def _check_whole(
    scripts: Sequence[GivenScript], variables: Mapping[str, str]
) -> Iterator[Fault]:
    if not scripts:
        yield Fault("", 0, "no_script")
    if len(scripts) > MOST_SCRIPTS:
        yield Fault("", 0, "too_many_scripts", str(MOST_SCRIPTS))
    counts = Counter(script.name for script in scripts)
    for name in sorted(name for name, count in counts.items() if count > 1):
        yield Fault(name, 0, "name_twice", name)
    for name, value in variables.items():
        if not _NAME.fullmatch(name) or name in AUTOMATIC or "\n" in value:
            yield Fault("", 0, "bad_variable", name)


def _shells(script: GivenScript) -> Iterator[Fault]:
    r"""Commands that run programs; one in a literal or a comment counts as well, to be safe.

    pgbench takes them within a line too, and skips blanks after the backslash.
    """
    line, end = 1, 0
    for shell_match in _SHELL.finditer(script.text):
        before = script.text[end : shell_match.start()]
        start = before.find("\\", len(before.rstrip(_BLANKS)))
        if start >= 0:
            begun = line + before.count("\n", 0, start)
            yield Fault(script.name, begun, "shell", f"\\{shell_match[0]}")
        line, end = line + before.count("\n"), shell_match.end()


def _lines(script: GivenScript, defined: set[str]) -> Iterator[Fault]:
    conditions, pipeline, has_sql = _Conditions(), _Pipeline(), False
    is_behind_sql = False  # and behind no other command
    # \\gset and \\aset define what the server's columns are called.
    knows_names = not re.search(r"\\\s*+[ag]set", script.text, re.IGNORECASE)
    for run in _runs(script.text):
        first_token = run[0]
        faults: Iterator[tuple[str, str]] = iter(())
        if first_token.kind == "meta":
            faults = chain(
                _meta(first_token, conditions, is_behind_sql=is_behind_sql),
                pipeline.faults(first_token, is_sure=not conditions.is_open),
            )
        elif first_token.is_open:
            faults = iter((("quote_open", first_token.text[:20]),))
        else:
            is_behind_sql = True
            has_sql = has_sql or any(token.kind not in NO_SQL for token in run)
        for code, word in faults:
            yield Fault(script.name, first_token.line, code, word)
        for line, name in _used(run) if knows_names else ():
            if name not in defined | AUTOMATIC:
                yield Fault(script.name, line, "variable_missing", name)
        if first_token.kind == "meta":
            is_behind_sql = False
            defined |= _set_by(first_token)
    yield from (
        Fault(script.name, line, "condition_open") for line in conditions.open_lines
    )
    if pipeline.line:
        yield Fault(script.name, pipeline.line, "pipeline_open")
    if not has_sql:
        yield Fault(script.name, 0, "no_sql")


def _runs(text: str) -> Iterator[list[Token]]:
    """Each command of pgbench and each literal by itself, and what is between them together.

    pgbench sends what is between /* and */, and so takes it for a statement.
    """
    run: list[Token] = []
    for token in tokens(text):
        if token.text.startswith("--"):
            continue
        if token.kind in {"meta", "literal"}:
            if _is_written(run):
                yield run
            yield [token]
            run = []
        else:
            run.append(token)
    if _is_written(run):
        yield run


def _is_written(run: Sequence[Token]) -> bool:
    return any(token.kind not in {"space", "newline"} for token in run)


def _used(run: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """(line, name) of each variable; in a literal pgbench leaves what it does not know."""
    if run[0].kind == "literal":
        return
    text = "".join(
        "\n" * token.text.count("\n") if token.kind == "comment" else token.text
        for token in run
    )
    line, offset = run[0].line, 0
    for use_match in _USED.finditer(text):
        line, offset = (
            line + text.count("\n", offset, use_match.start()),
            use_match.start(),
        )
        yield line, use_match[1]


def _set_by(meta: Token) -> set[str]:
    command_match = _META.fullmatch(meta.text)
    if command_match is None or command_match["command"].lower() not in _SETTING:
        return set()
    name = _FIRST_NAME.match(command_match["rest"])
    return {name[1]} if name else set()


@dataclass
class _Condition:
    line: int
    has_else: bool = False


class _Conditions:
    def __init__(self) -> None:
        self._open: list[_Condition] = []

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    @property
    def open_lines(self) -> list[int]:
        return [condition.line for condition in self._open]

    def takes(self, command: str, line: int) -> bool:
        """Whether the command may stand here."""
        if command == "if":
            self._open.append(_Condition(line))
            return True
        if not self._open or (command != "endif" and self._open[-1].has_else):
            return False
        if command == "endif":
            self._open.pop()
        elif command == "else":
            self._open[-1].has_else = True
        return True


class _Pipeline:
    """Whether a pipeline is open; pgbench sees it only when the script runs.

    What stands in a \\if may run or not: nothing is said of it, nor of what follows.
    """

    def __init__(self) -> None:
        self.line = 0
        self._is_known = True

    def faults(self, token: Token, *, is_sure: bool) -> Iterator[tuple[str, str]]:
        """(code, word) of a command that pgbench aborts at."""
        command_match = _META.fullmatch(token.text)
        command = command_match["command"].lower() if command_match else ""
        if command not in _OF_PIPELINES:
            return
        self._is_known &= is_sure
        if not self._is_known:
            self.line = 0
        elif command == "startpipeline" and self.line:
            yield "pipeline_twice", f"\\{command}"
        elif command == "startpipeline":
            self.line = token.line
        elif command in {"gset", "aset"}:
            yield from [("not_in_pipeline", f"\\{command}")] if self.line else ()
        elif not self.line:
            yield "no_pipeline", f"\\{command}"
        elif command == "endpipeline":
            self.line = 0


def _meta(
    token: Token, conditions: _Conditions, *, is_behind_sql: bool
) -> Iterator[tuple[str, str]]:
    command_match = _META.fullmatch(token.text)
    command = command_match["command"].lower() if command_match else ""
    argument_text = command_match["rest"] if command_match else ""
    words = _CONTINUED.sub(" ", argument_text).split()
    command_text = " ".join(words)
    if not command:
        return
    if command == "setrandom":
        yield "setrandom", command_text
    elif command not in _COMMANDS:
        yield (
            "unknown_command",
            f"\\{command_match['command'] if command_match else ''}",
        )
    elif command == "set":
        yield from _set(argument_text, command_text)
    elif command == "sleep" and not _SLEEP.fullmatch(command_text):
        yield "bad_sleep", command_text
    elif command in {"if", "elif"}:
        yield from (
            [("no_condition", f"\\{command}")]
            if not words
            else _expression(argument_text)
        )
    elif command in {"gset", "aset"} and not is_behind_sql:
        yield "no_statement", f"\\{command}"
    elif len(words) > _MOST_WORDS.get(command, len(words)):
        yield "unexpected_words", command_text
    if command in _CONDITIONS and not conditions.takes(command, token.line):
        yield "condition_without_if", f"\\{command}"


def _set(argument_text: str, command_text: str) -> Iterator[tuple[str, str]]:
    set_match = _SET.fullmatch(argument_text)
    if set_match is None or not _CONTINUED.sub(" ", set_match["expression"]).strip():
        yield "bad_set", command_text
    else:
        yield from _expression(set_match["expression"])


def _expression(text: str) -> Iterator[tuple[str, str]]:
    try:
        check_expression(text)
    except BadExpressionError as error:
        yield "bad_expression", str(error)
