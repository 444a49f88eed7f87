"""SQL that makes the data of a load, as `pg_dump` writes it or by hand, ready for an ordinary role.

Each statement goes to the server as one, by way of psql's \\gexec, which reads nothing in it; rows
of COPY stay as they are. What an ordinary role may not do is left out, or refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runs.statements.tokens import Script, Statement, Token
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
# What a session of a dump sets, and each version from 9.3 on knows.
_SETTINGS = frozenset({"client_encoding", "search_path", "check_function_bodies"})
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
_PASSED_OVER_COMMANDS = frozenset({"\\restrict", "\\unrestrict"})
LONGEST_SHOWN = 200


class DataRefused(ValueError):
    """SQL that is not run for a load, and where it stands."""

    def __init__(self, code: str, text: str, **values: object) -> None:
        self.code = code
        self.wording = wording_of(text, values)
        super().__init__(text)


@dataclass(frozen=True)
class DataScript:
    """What psql is given, the extensions that are needed, and what was left out, by first words."""

    script: str
    extensions: tuple[str, ...]
    statements: int
    tables: int
    left_out: tuple[str, ...]


def read(text: str) -> DataScript:
    """The script of a text. Raises DataRefused, NotSql."""
    _refuse_binary(text)
    lines: list[str] = []
    extensions: dict[str, None] = {}
    left_out: dict[str, None] = {}
    count = tables = 0
    for piece in _pieces(text):
        if piece.rows is not None:
            lines += [_copy_of(piece.statement), *piece.rows, _END_OF_ROWS]
            tables += 1
            continue
        words = piece.statement.words
        if words[:2] == ("create", "extension"):
            if name := _extension(piece.statement):
                extensions[name] = None
        elif passed_over := _passed_over(piece.statement):
            left_out[passed_over] = None
        else:
            _check(piece.statement)
            lines.append(executed(piece.statement.text))
            count += 1
    if not count and not tables:
        raise DataRefused("no_data", _("There is no statement in it that makes data."))
    script = "\n".join([*lines, ""])
    return DataScript(script, tuple(extensions), count, tables, tuple(left_out))


def _refuse_binary(text: str) -> None:
    if text.startswith("PGDMP"):
        raise DataRefused(
            "custom_format",
            _(
                "This is a dump in pg_dump's custom format. Put it on the server and give its "
                "path, or write it as SQL: pg_dump -Fp, or pg_restore -f FILE."
            ),
        )
    if "\0" in text:
        raise DataRefused("not_text", _("It has NUL bytes: it is no SQL."))


@dataclass(frozen=True)
class _Piece:
    """A statement, and the rows that follow COPY ... FROM stdin."""

    statement: Statement
    rows: Sequence[str] | None = None


def _pieces(text: str) -> Iterator[_Piece]:
    script = Script(text)
    while not script.is_at_end:
        _pass_over_commands(script)
        statement = script.next()
        if statement is None:
            continue
        if statement.has_backslash:
            raise _command(statement.line, "\\")
        words = statement.words
        if words[:1] != ("copy",):
            yield _Piece(statement)
            continue
        if "stdin" not in words or "from" not in words:
            raise DataRefused(
                "copy_from_file",
                _(
                    "Line %(line)s: COPY reads or writes a file or a program, which is not run."
                ),
                line=statement.line,
            )
        yield _Piece(statement, _rows(script, statement.line))


def _pass_over_commands(script: Script) -> None:
    """Go behind commands of psql that a dump begins and ends with; another one is refused."""
    text = script.text
    while True:
        place = script.place
        while place < len(text) and text[place].isspace():
            place += 1
        if not text.startswith("\\", place):
            return
        end = text.find("\n", place)
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


def _rows(script: Script, line: int) -> list[str]:
    """The rows behind COPY, up to the line that ends them."""
    text = script.text
    begin = text.find("\n", script.place) + 1
    rows: list[str] = []
    while begin > 0:
        end = text.find("\n", begin)
        row = text[begin:] if end < 0 else text[begin:end]
        if row.rstrip("\r") == _END_OF_ROWS:
            script.go_to(len(text) if end < 0 else end + 1)
            return rows
        rows.append(row)
        begin = end + 1
    raise DataRefused(
        "rows_not_ended",
        _(
            "Line %(line)s: the rows of COPY do not end by a line \\. as in a dump; is it cut?"
        ),
        line=line,
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
    shown = f"{first} {second}".upper()
    if first == "set":
        return "" if _name_of_setting(words) in _SETTINGS else shown
    if first in {"grant", "revoke", "security", "reset", "comment"}:
        return first.upper()
    if first == "alter" and (second == "default" or "owner" in words):
        return "ALTER ... OWNER" if "owner" in words else "ALTER DEFAULT PRIVILEGES"
    if (
        first in {"create", "alter", "drop"}
        and second in _OF_THE_INSTANCE | _NOT_FOR_A_LOAD
    ):
        return shown
    if words[:3] in {("create", "schema", "public"), ("drop", "schema", "public")}:
        return "CREATE SCHEMA public"
    return ""


def _name_of_setting(words: Sequence[str]) -> str:
    names = [word for word in words[1:3] if word not in {"session", "local"}]
    return names[0] if names else ""


def _check(statement: Statement) -> None:
    """Refuse a function in a language by which it could leave the database."""
    words = statement.words
    makes_function = words[0] == "create" and {"function", "procedure"} & set(
        words[1:5]
    )
    if makes_function and "language" in words:
        language = words[words.index("language") + 1].strip("\"'").lower()
        if language not in LANGUAGES:
            raise DataRefused(
                "language",
                _(
                    "Line %(line)s: a function in the language %(language)s is not made for a "
                    "load; SQL and PL/pgSQL are."
                ),
                line=statement.line,
                language=language,
            )
