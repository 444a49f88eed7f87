r"""Scripts that only explain their statements, with the values that pgbench puts in for variables.

pgbench shows no result of a statement. auto_explain, loaded in the session, sends the plan of each
`EXPLAIN` as a message, which pgbench prints; the statement itself is not executed.
"""

import re
from collections.abc import Iterator
from typing import Any

from runs import foreign_json
from runs.tools.pgbench.script_tokens import tokens

LOG_SETTINGS_SINCE = 120000
_EXPLAINED = frozenset(("delete", "insert", "merge", "select", "update", "values", "with"))
_LEFT_OUT = re.compile(r"\\\s*+(?:[ag]set|sleep|shell|setshell)\b", re.IGNORECASE)
_QUERY = re.compile(r"\A\s*EXPLAIN\s+", re.IGNORECASE)
_SESSION = """LOAD 'auto_explain';
SET log_min_messages = fatal;
SET client_min_messages = log;
SET auto_explain.log_min_duration = 0;
SET auto_explain.log_format = json;
"""
_WITH_SETTINGS = "SET auto_explain.log_settings = on;\n"


def explaining(text: str, version_num: int) -> str:
    """The script with `EXPLAIN` before each statement that has a plan, for a server's version."""
    session = _SESSION + (_WITH_SETTINGS if version_num >= LOG_SETTINGS_SINCE else "")
    return f"{session}{''.join(_words(text))}\n"


def _words(text: str) -> Iterator[str]:
    begins, depth = True, 0
    for token in tokens(text):
        if token.kind == "meta":
            # What \gset would keep is no result of the statement any more.
            is_left_out = _LEFT_OUT.match(token.text)
            yield ("" if begins else ";") if is_left_out else token.text
            begins, depth = True, 0
            continue
        if token.kind in {"end", "joined"} and depth <= 0:
            begins = True
        elif token.kind not in {"space", "newline", "comment"}:
            if begins and token.text.lower() in _EXPLAINED:
                yield "EXPLAIN "
            begins = False
            depth += {"(": 1, ")": -1}.get(token.text, 0)
        yield token.text


def plans(printed: str) -> list[dict[str, Any]]:
    """The plans among pgbench's messages: `statement` and `plan`, in EXPLAIN's format JSON."""
    found, lines = [], list[str]()
    for line in printed.splitlines():
        if line == "{":
            lines = [line]
        elif lines:
            lines.append(line)
        if line == "}" and lines:
            try:
                whole = foreign_json.loads("\n".join(lines))
            except ValueError:
                break
            statement = _QUERY.sub("", str(whole.pop("Query Text", "")))
            found.append({"statement": statement, **whole})
            lines = []
    return found
