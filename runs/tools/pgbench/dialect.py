r"""Scripts, written once as pgbench 9.6 and later read them, for the tool that will run them.

To 9.5 a variable gets a random value by `\setrandom`, `\set` to 9.4 takes one operator, and each
line is a statement of its own. Source: the pgbench page of each version's manual.
"""

from collections.abc import Iterator

from runs.patterns import re
from runs.tools.pgbench import versions
from runs.tools.pgbench.script_tokens import Token, tokens
from runs.tools.pgbench.versions import UnsupportedByToolError, require, version_text

_COMMANDS_SINCE = {
    **dict.fromkeys(("if", "elif", "else", "endif"), 110000),
    "gset": 120000,
    "aset": 130000,
    **dict.fromkeys(("startpipeline", "endpipeline"), 140000),
    "syncpipeline": 170000,
}
_FUNCTIONS_SINCE = {
    **dict.fromkeys(("exp", "ln", "mod", "pow", "power", "random_zipfian"), 110000),
    **dict.fromkeys(("hash", "hash_fnv1a", "hash_murmur2"), 110000),
    "permute": 140000,
}
_META = re.compile(r"\A\s*\\(?P<command>\w++)(?P<rest>.*)", re.ASCII)
_SET = re.compile(r"\A\s++(?P<name>\w++)\s++(?P<expression>.*\S)\s*")
_RANDOM = re.compile(r"random\s*\((?P<arguments>[^()]*)\)", re.IGNORECASE)
_CALL = re.compile(r"\b(\w+)\s*\(", re.ASCII)
_TERM = r"(?:-?[0-9]+|:\w+)"
_OPERAND = re.compile(_TERM)
_ONE_OPERATION = re.compile(rf"\A({_TERM})\s*([-+*/])\s*({_TERM})")
_WHOLE_NUMBERS = re.compile(r"(?:[-+*/%()\s0-9]|:[A-Za-z_]\w*(?!\w))+", re.ASCII)
_COMMAND = re.compile(r"\\\s*+(\w++)", re.ASCII)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


def adapt_script(script_text: str, client_version: int) -> str:
    r"""Return a script as that version of pgbench runs it.

    Unchanged from 9.6 on. Raises UnsupportedByToolError, naming the line, for what the tool
    cannot run: other random functions and expressions than whole numbers before 9.6, more than
    one operator before 9.5, and commands (`\if`, `\gset`, pipelines) that came later.
    """
    begins_line = True
    for token in tokens(script_text):
        if token.kind == "meta":
            _require_known(token, client_version, begins_line=begins_line)
        begins_line = token.kind in {"meta", "newline"} or (
            begins_line and token.kind == "space"
        )
    if client_version >= versions.RANDOM_FUNCTIONS:
        return script_text
    return "".join(
        f"{line}\n" for line in _old_lines(script_text.splitlines(), client_version)
    )


def _require_known(token: Token, client_version: int, *, begins_line: bool) -> None:
    command_match = _COMMAND.match(token.text)
    command = command_match[1].lower() if command_match else ""
    _require_since(_COMMANDS_SINCE, command, f"\\{command}", token.line, client_version)
    if not begins_line:
        usage = f"Line {token.line}: A command behind something else on its line"
        require(client_version, versions.RANDOM_FUNCTIONS, usage)
    if "\n" in token.text:
        usage = f"Line {token.line}: A command over several lines"
        require(client_version, versions.CONTINUED_COMMANDS, usage)
    for call in _CALL.finditer(token.text) if command in {"set", "if", "elif"} else ():
        name = call[1].lower()
        _require_since(_FUNCTIONS_SINCE, name, f"{name}()", token.line, client_version)


def _require_since(
    since: dict[str, int], name: str, usage: str, number: int, client_version: int
) -> None:
    if name in since:
        require(client_version, since[name], f"Line {number}: {usage}")


def _old_lines(lines: list[str], client_version: int) -> Iterator[str]:
    statement: list[str] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("--"):
            continue
        meta = _META.fullmatch(text)
        if statement and meta:  # a command ends a statement that has no semicolon
            yield " ".join(statement)
            statement.clear()
        if meta:
            yield from _old_meta(meta, number, client_version)
            continue
        _require_joinable(text, number, client_version)
        statement.append(text)
        if text.endswith(";"):
            yield " ".join(statement)
            statement.clear()
    if statement:
        yield " ".join(statement)


def _require_joinable(text: str, number: int, client_version: int) -> None:
    """Check that an SQL line can be one of several that become a single line."""
    bare = _QUOTED.sub("", text)
    if ";" in bare[:-1] or "--" in bare:
        raise UnsupportedByToolError(
            f"Line {number}: to pgbench {version_text(client_version)} a line is one statement; "
            f"give each its own line, and no comment behind it: {text}"
        )


def _old_meta(meta: re.Match[str], number: int, client_version: int) -> Iterator[str]:
    assignment = (
        _SET.fullmatch(meta["rest"]) if meta["command"].lower() == "set" else None
    )
    if assignment is None:
        yield meta[0].strip()
        return
    name, expression = assignment["name"], assignment["expression"]
    random = _RANDOM.fullmatch(expression)
    if random is None:
        yield _old_set(name, expression, number, client_version)
    else:
        yield from _setrandom(name, random["arguments"], number, client_version)


def _setrandom(
    name: str, arguments: str, number: int, client_version: int
) -> Iterator[str]:
    """Write `\\set name random(low, high)`, with a variable for a bound that is an expression."""
    bounds = [bound.strip() for bound in arguments.split(",")]
    if len(bounds) != 2:
        raise UnsupportedByToolError(
            f"Line {number}: random() takes a lower and an upper bound."
        )
    for side, (end, bound) in enumerate(zip(("low", "high"), tuple(bounds))):
        if not _OPERAND.fullmatch(bound):
            variable = f"benchlab_{name}_{end}"
            yield _old_set(variable, bound, number, client_version)
            bounds[side] = f":{variable}"
    yield f"\\setrandom {name} {bounds[0]} {bounds[1]}"


def _old_set(name: str, expression: str, number: int, client_version: int) -> str:
    if operation := _ONE_OPERATION.fullmatch(expression):
        return f"\\set {name} {operation[1]} {operation[2]} {operation[3]}"
    if _OPERAND.fullmatch(expression):
        return f"\\set {name} {expression}"
    if _WHOLE_NUMBERS.fullmatch(expression):
        usage = (
            f"Line {number}: An expression of more than one operation ({expression})"
        )
        require(client_version, versions.EXPRESSIONS, usage)
        return f"\\set {name} {expression}"
    raise UnsupportedByToolError(
        f"Line {number}: pgbench {version_text(client_version)} cannot compute {expression!r}; "
        f"to 9.5 there are whole numbers, variables, + - * / and random(low, high) by itself."
    )
