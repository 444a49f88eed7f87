"""SQL that makes the data of a load, as `pg_dump` writes it or by hand, ready for an ordinary role.

Each statement goes to the server as one, by way of psql's \\gexec, which reads nothing in it; rows
of COPY stay as they are. What an ordinary role may not do is left out, or refused.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from runs.statements.needs import Need, needs
from runs.statements.tokens import NotSql, Script, Statement, Token, tokens
from runs.wording import gettext_noop as _
from runs.wording import wording_of

# Written by us as the superuser before the data are loaded: none of them reaches the machine.
EXTENSIONS = frozenset(
    {
        "btree_gin",
        "btree_gist",
        "citext",
        "cube",
        "dict_int",
        "earthdistance",
        "fuzzystrmatch",
        "hstore",
        "intarray",
        "isn",
        "ltree",
        "pg_trgm",
        "pgcrypto",
        "plpgsql",
        "postgis",
        "seg",
        "tablefunc",
        "tsm_system_rows",
        "tsm_system_time",
        "unaccent",
        "uuid-ossp",
        "vector",
    }
)
# In a cluster they would fail for each of them, and say nothing of the load.
PASSED_OVER_EXTENSIONS = frozenset(
    {"pg_stat_statements", "pg_buffercache", "pg_prewarm"}
)
LANGUAGES = frozenset({"sql", "plpgsql"})
# What a session of a dump sets, and each version from 9.3 on knows. Its encoding is that of UTF-8,
# as which the text was read.
_SETTINGS = frozenset({"search_path", "check_function_bodies"})
_OF_THE_INSTANCE = frozenset({"role", "user", "group", "database", "tablespace"})
_NOT_FOR_A_LOAD = frozenset(
    {
        "server",
        "publication",
        "subscription",
        "event",
        "foreign",
        "policy",
    }
)
_COPY_SYMBOLS = frozenset("(),.")
_END_OF_ROWS = "\\."
_END_OF_ROWS_LINE = re.compile(r"^\\\.\r?(?:\n|\Z)", re.MULTILINE)
_PASSED_OVER_COMMANDS = frozenset({"\\restrict", "\\unrestrict"})
LONGEST_SHOWN = 200
MOST_NAMED = 100


class DataRefused(ValueError):
    """SQL that is not run for a load, and where it stands."""

    def __init__(self, code: str, text: str, **values: object) -> None:
        self.code = code
        self.wording = wording_of(text, values)
        super().__init__(text)


# A statement that does not end within so many characters is not waited for.
LONGEST_STATEMENT = 16_000_000


@dataclass(frozen=True)
class DataScript:
    """What psql is given, the extensions that are needed, and what was left out, by first words.

    `roles` are those that own something or have rights; a load does without them. `needs` are
    constructs that older versions do not have.
    """

    script: str
    extensions: tuple[str, ...]
    statements: int
    tables: int
    left_out: tuple[str, ...]
    roles: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()


def read(text: str) -> DataScript:
    """The script of a text. Raises DataRefused, NotSql."""
    reader = DataReader()
    script = reader.take(text, is_last=True)
    return reader.script(script)


class DataReader:
    """SQL that comes in parts, as many as it has: `take` gives what psql is given of each."""

    def __init__(self) -> None:
        self._pending = ""
        self._line = 1
        self._is_first = True
        # The line of the COPY whose rows come, and whether its own line was passed.
        self._copy_line = 0
        self._has_rows_begun = False
        self._extensions: dict[str, None] = {}
        self._left_out: dict[str, None] = {}
        self._roles: dict[str, None] = {}
        self._needs: dict[Need, None] = {}
        self._statements = self._tables = 0

    def take(self, text: str, *, is_last: bool) -> str:
        """What psql is given of the next part. Raises DataRefused, NotSql."""
        _refuse_binary(text, is_first=self._is_first)
        self._is_first = False
        script = Script(self._pending + text, line=self._line)
        lines: list[str] = []
        while not script.is_at_end and self._take_next(script, lines, is_last=is_last):
            continue
        if is_last and self._copy_line:
            raise _rows_not_ended(self._copy_line)
        self._pending, self._line = script.text[script.place :], script.line
        if len(self._pending) > LONGEST_STATEMENT:
            raise DataRefused(
                "statement_too_long",
                _("Line %(line)s: a statement has more than %(most)s characters."),
                line=self._line,
                most=LONGEST_STATEMENT,
            )
        return "\n".join([*lines, ""]) if lines else ""

    def script(self, script: str = "") -> DataScript:
        """What all parts have; `script` is what `take` gave. Raises DataRefused."""
        if not self._statements and not self._tables:
            raise DataRefused(
                "no_data", _("There is no statement in it that makes data.")
            )
        return DataScript(
            script=script,
            extensions=tuple(self._extensions),
            statements=self._statements,
            tables=self._tables,
            left_out=tuple(self._left_out),
            roles=tuple(self._roles)[:MOST_NAMED],
            needs=tuple(self._needs)[:MOST_NAMED],
        )

    def _take_next(self, script: Script, lines: list[str], *, is_last: bool) -> bool:
        """Take rows, or a statement; False for what goes on in the next part."""
        if self._copy_line:
            return self._take_rows(script, lines, is_last=is_last)
        place, line = script.place, script.line
        statement = self._next(script, is_last=is_last)
        if script.is_at_end and not is_last:
            # Nobody knows whether it ends there: it is read again with the next part.
            script.place, script.line = place, line
            return False
        if statement is not None:
            self._take_statement(statement, lines)
        return True

    def _next(self, script: Script, *, is_last: bool) -> Statement | None:
        try:
            _pass_over_commands(script, is_last=is_last)
            return script.next()
        except NotSql as error:
            if is_last:
                raise error.behind(self._line - 1) from None
            script.go_to(len(script.text))
            return None

    def _take_statement(self, statement: Statement, lines: list[str]) -> None:
        if statement.has_backslash:
            raise _command(statement.line, "\\")
        words = statement.words
        if words[:1] == ("copy",):
            _check_copy(statement)
            self._copy_line, self._has_rows_begun = statement.line, False
            self._tables += 1
            lines.append(_copy_of(statement))
        elif words[:2] == ("create", "extension"):
            if name := _extension(statement):
                self._extensions[name] = None
        elif passed_over := _passed_over(statement):
            self._left_out[passed_over] = None
            self._roles.update(dict.fromkeys(_roles_of(words)))
        else:
            _check_function(statement)
            self._needs.update(dict.fromkeys(needs(statement)))
            lines.append(executed(statement.text))
            self._statements += 1

    def _take_rows(self, script: Script, lines: list[str], *, is_last: bool) -> bool:
        """Pass on the rows behind COPY; whether the line that ends them was among them."""
        text = script.text
        if not self._has_rows_begun:
            begin = text.find("\n", script.place) + 1
            if not begin:
                return False
            script.go_to(begin)
            self._has_rows_begun = True
        begin = script.place
        end = _END_OF_ROWS_LINE.search(text, begin)
        if end is None or (end.end() == len(text) and not is_last):
            end_of_lines = text.rfind("\n", begin) + 1
            if end_of_lines > begin and end is None:
                lines.append(text[begin : end_of_lines - 1])
                script.go_to(end_of_lines)
            return False
        if end.start() > begin:
            lines.append(text[begin : end.start() - 1])
        lines.append(_END_OF_ROWS)
        script.go_to(end.end())
        self._copy_line = 0
        return True


def _refuse_binary(text: str, *, is_first: bool) -> None:
    if is_first and text.startswith("PGDMP"):
        raise DataRefused(
            "custom_format",
            _("This is a dump in pg_dump's custom format: choose to upload a dump."),
        )
    if "\0" in text:
        raise DataRefused("not_text", _("It has NUL bytes: it is no SQL."))


def _pass_over_commands(script: Script, *, is_last: bool) -> None:
    """Go behind commands of psql that a dump begins and ends with; another one is refused."""
    text = script.text
    while True:
        place = script.place
        for token in tokens(text, place):
            if token.kind != "space":
                break
            place += len(token.text)
        if not text.startswith("\\", place):
            return
        end = text.find("\n", place)
        if end < 0 and not is_last:
            script.go_to(len(text))
            return
        end = len(text) if end < 0 else end
        command = text[place:end].split(maxsplit=1)[0]
        script.go_to(place)
        if command not in _PASSED_OVER_COMMANDS:
            raise _command(script.line, command)
        script.go_to(end)


def _command(line: int, command: str) -> DataRefused:
    return DataRefused(
        "psql_command",
        _("Line %(line)s: %(command)s is a command of psql, and none is run."),
        line=line,
        command=command[:LONGEST_SHOWN],
    )


def _rows_not_ended(line: int) -> DataRefused:
    return DataRefused(
        "rows_not_ended",
        _(
            "Line %(line)s: the rows of COPY do not end by a line \\. as in a dump; is it cut?"
        ),
        line=line,
    )


def _check_copy(statement: Statement) -> None:
    words = statement.words
    if "stdin" not in words or "from" not in words:
        raise DataRefused(
            "copy_from_file",
            _(
                "Line %(line)s: COPY reads or writes a file or a program, which is not run."
            ),
            line=statement.line,
        )


def _copy_of(statement: Statement) -> str:
    """COPY with names only, since psql reads it."""
    parts = []
    for token in statement.tokens:
        if token.kind == "space":
            continue
        is_plain = token.kind == "word" or (
            token.kind == "symbol" and token.text in _COPY_SYMBOLS
        )
        if not is_plain and not _is_plain_name(token):
            raise DataRefused(
                "copy_options",
                _(
                    "Line %(line)s: only COPY table (columns) FROM stdin is run, without options."
                ),
                line=statement.line,
            )
        parts.append(token.text)
    return " ".join(parts) + ";"


def _is_plain_name(token: Token) -> bool:
    return token.kind == "name" and not {"\n", "\\", "\r"} & set(token.text)


def executed(text: str) -> str:
    """A line of psql that executes a statement, and reads nothing in it."""
    encoded = text.encode().hex()
    return f"SELECT pg_catalog.convert_from(pg_catalog.decode('{encoded}', 'hex'), 'UTF8') \\gexec"


def _extension(statement: Statement) -> str:
    """The extension that is needed; empty for one that is passed over."""
    words = statement.words
    place = 5 if words[2:5] == ("if", "not", "exists") else 2
    name = words[place].strip('"') if len(words) > place else ""
    if name in PASSED_OVER_EXTENSIONS:
        return ""
    if name not in EXTENSIONS:
        raise DataRefused(
            "extension",
            _(
                "Line %(line)s: the extension %(name)s is not made for a load; these are: "
                "%(known)s."
            ),
            line=statement.line,
            name=name,
            known=", ".join(sorted(EXTENSIONS)),
        )
    return name


def _passed_over(statement: Statement) -> str:
    """What is left out of the data without harm to a load; empty if it is not."""
    words = statement.words
    first, second = words[0], words[1] if len(words) > 1 else ""
    statement_words = f"{first} {second}".upper()
    if first == "set":
        return "" if _name_of_setting(words) in _SETTINGS else "SET"
    if first in {"grant", "revoke", "security", "reset", "comment"}:
        return first.upper()
    if first == "alter" and (second == "default" or "owner" in words):
        return "ALTER ... OWNER" if "owner" in words else "ALTER DEFAULT PRIVILEGES"
    if (
        first in {"create", "alter", "drop"}
        and second in _OF_THE_INSTANCE | _NOT_FOR_A_LOAD
    ):
        return statement_words
    if words[:3] in {("create", "schema", "public"), ("drop", "schema", "public")}:
        return "CREATE SCHEMA public"
    return ""


def _name_of_setting(words: Sequence[str]) -> str:
    names = [word for word in words[1:3] if word not in {"session", "local"}]
    return names[0] if names else ""


def _roles_of(words: Sequence[str]) -> list[str]:
    """Whom a statement names that gives something or takes rights."""
    if "to" in words and (words[0] in {"grant", "alter"}):
        names = words[len(words) - 1 - words[::-1].index("to") + 1 :]
    elif words[0] == "revoke" and "from" in words:
        names = words[len(words) - 1 - words[::-1].index("from") + 1 :]
    else:
        return []
    no_names = {
        ",",
        "public",
        "group",
        "with",
        "grant",
        "option",
        "cascade",
        "restrict",
    }
    return [name.strip('"') for name in names if name not in no_names]


def refused_language(statement: Statement) -> str:
    """The language of a function that could leave the database; empty for all else."""
    words = statement.words
    if words[0] != "create" or not {"function", "procedure"} & set(words[1:5]):
        return ""
    depth = 0
    for word, language in pairwise(words):
        depth += (word == "(") - (word == ")")
        # In parentheses it is a column or an argument of that name.
        if word == "language" and not depth:
            name = language.strip("\"'").lower()
            return "" if name in LANGUAGES else name
    return ""


def _check_function(statement: Statement) -> None:
    if language := refused_language(statement):
        raise DataRefused(
            "language",
            _(
                "Line %(line)s: a function in the language %(language)s is not made for a load; "
                "SQL and PL/pgSQL are."
            ),
            line=statement.line,
            language=language,
        )
