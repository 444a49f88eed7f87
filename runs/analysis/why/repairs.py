"""How single objects of a database get what the other side has: reviewed statements, one table.

Nothing here is free text: names are plain or quoted, and each definition is what a server printed
of its own catalogue, in the one form that its row expects. Whatever is not in that form is not put
back.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

# As recorded: `runs.execution.evidence.objects.MOST_CHARACTERS` cuts longer ones.
MOST_CHARACTERS = 1990
_PLAIN = re.compile(r"[a-z_][a-z0-9_$]{0,62}")
_ARGUMENTS = re.compile(r"[a-z0-9_ ,.\[\]\"]{0,500}")
_TYPE = re.compile(
    r"[a-z][a-z0-9_ ]{0,60}(?:\(\d{1,9}(?:,\d{1,9})?\))?[a-z ]{0,30}(?:\[\]){0,3}"
)
_OPTION = re.compile(r"([a-z_]{1,40}+(?:\.[a-z_]{1,40}+)?+)=([a-z0-9_.+-]{1,40})")
_DOLLARS = re.compile(
    r"CREATE OR REPLACE (?:FUNCTION|PROCEDURE) [^;$]{1,1000}"
    r"\$(?P<tag>function|procedure)\$(?P<body>.*)\$(?P=tag)\$\s?",
    re.DOTALL,
)
# What psql would read as its own, or as a further statement.
_FOREIGN = re.compile(r"[\\;]|--|/\*|(?<!:):[\"'A-Za-z_]")
_STORAGE = {"p": "PLAIN", "e": "EXTERNAL", "x": "EXTENDED", "m": "MAIN"}
_COMPRESSION = {"p": "pglz", "l": "lz4"}
_VOLATILITY = {"v": "VOLATILE", "s": "STABLE", "i": "IMMUTABLE"}


@dataclass(frozen=True)
class Change:
    """An object by name, what it is and what it shall be: recorded definitions, empty for none.

    `definitions` are those of the side that has what shall be, by kind and name, `present` those of
    the side that gets it.
    """

    name: str
    now: str
    wanted: str
    definitions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    present: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[str, str]:
        """The quoted names of a table and of what it has; of a plain name alone both."""
        table, _point, member = self.name.partition(".")
        return quoted(table), quoted(member or table)


class NotPlain(ValueError):
    """A name or a definition is not in the form that its row expects."""


Repair = Callable[[Change], Iterator[str]]


def quoted(name: str) -> str:
    """A plain name as an identifier. Raises NotPlain."""
    if not _PLAIN.fullmatch(name):
        raise NotPlain(name)
    return f'"{name}"'


@dataclass(frozen=True)
class Remedy:
    """What makes an object as wanted, after the functions that it calls and its side lacks.

    `statements` is empty where nothing here does, also for the want of such a function's
    definition: `undefined` are those that no record defines whole.
    """

    statements: tuple[str, ...] = ()
    undefined: tuple[str, ...] = ()


def find_remedy(kind: str, change: Change) -> Remedy:
    """How the object becomes as wanted."""
    own_statements = _own_statements(kind, change)
    definition_of = {
        name: _function_definition(change, name)
        for name in _list_missing(change, own_statements)
    }
    if undefined := tuple(name for name, text in definition_of.items() if not text):
        return Remedy(undefined=undefined)
    return Remedy((*definition_of.values(), *own_statements))


def _own_statements(kind: str, change: Change) -> tuple[str, ...]:
    repair = REPAIRS.get(kind)
    if repair is None or change.now == change.wanted:
        return ()
    try:
        return tuple(repair(change))
    except NotPlain:
        return ()


def _list_missing(change: Change, texts: Iterable[str]) -> list[str]:
    """The functions that these texts call and the side lacks; what a function calls before it.

    None where the functions of a side were not recorded. By the name alone: of a name that has
    several kinds of arguments all that are missing are among them.
    """
    if not {"function"} <= change.present.keys() & change.definitions.keys():
        return []
    lacking = change.definitions["function"].keys() - change.present["function"].keys()
    in_order: dict[str, None] = {}
    open_names = set(lacking)

    def add(text: str) -> None:
        for name in sorted(open_names):
            called = re.escape(name.partition("(")[0])
            if name in open_names and re.search(rf'(?<![\w$]){called}"?\s*\(', text):
                open_names.discard(name)
                add(_function_definition(change, name))
                in_order[name] = None

    for text in texts:
        add(text)
    return list(in_order)


_DEFAULT_OF = re.compile(
    r"(?P<setting>[a-z_.]{1,100}) \((?:all roles|(?:role (?P<role>[A-Za-z0-9_-]{1,63}))?"
    r"(?:, )?(?:database (?P<database>[A-Za-z0-9_-]{1,63}))?)\)"
)


def list_setting_resets(name: str, defaults: Iterable[str]) -> tuple[str, ...]:
    """Takes back what roles and the database say of a setting, so that the file counts.

    `defaults` are the names of what they say, as recorded.
    """
    try:
        return tuple(
            f"{_alter(default)} RESET {_setting(name)};"
            for default in defaults
            if default.partition(" (")[0] == name
        )
    except NotPlain:
        return ()


def _alter(default: str) -> str:
    """Whose setting it is: "enable_seqscan (role x, database y)"."""
    match = _DEFAULT_OF.fullmatch(default)
    if match is None:
        raise NotPlain(default)
    role, database = match["role"], match["database"]
    if role is None and database is not None:
        return f'ALTER DATABASE "{database}"'
    whose = f'"{role}"' if role is not None else "ALL"
    within = f' IN DATABASE "{database}"' if database is not None else ""
    return f"ALTER ROLE {whose}{within}"


def _setting(name: str) -> str:
    return ".".join(map(quoted, name.split(".")))


# What a set-up leaves locked, as a prepared transaction does, stays so.
LOCK_TIMEOUT = "SET lock_timeout = '30s';"
_ENDS_TRANSACTION = "ROLLBACK PREPARED "


def script(statements: Sequence[str]) -> str:
    """What puts several objects back: what holds locks is ended first, and none is waited for."""
    first = [text for text in statements if text.startswith(_ENDS_TRANSACTION)]
    others = [text for text in statements if text not in first]
    return "\n".join([LOCK_TIMEOUT, *first, *others])


def _single(text: str, *begins: str) -> str:
    """One statement, or the rest of one, as a server printed it, without its end."""
    text = text.strip().removesuffix(";")
    if len(text) > MOST_CHARACTERS or _FOREIGN.search(text):
        raise NotPlain(text[:100])
    if begins and not text.startswith(begins):
        raise NotPlain(text[:100])
    return text


def _index(change: Change) -> Iterator[str]:
    index = quoted(change.name)
    wanted_index = change.wanted.removesuffix(" INVALID")
    if wanted_index != change.wanted:
        raise NotPlain(change.wanted)
    if wanted_index == change.now.removesuffix(" INVALID"):
        yield f"REINDEX INDEX {index};"
        return
    definition = (
        _single(wanted_index, "CREATE INDEX ", "CREATE UNIQUE INDEX ")
        if wanted_index
        else ""
    )
    if change.now.startswith("CREATE UNIQUE "):
        # An index of a constraint is dropped with it, and only so.
        table = re.search(r" ON (?:[a-z_]\w*\.)?([a-z_]\w*) USING ", change.now)
        if table is None:
            raise NotPlain(change.now)
        yield (
            f"ALTER TABLE {quoted(table[1])} DROP CONSTRAINT IF EXISTS {index} CASCADE;"
        )
        yield f"DROP INDEX IF EXISTS {index};"
    elif change.now:
        yield f"DROP INDEX {index};"
    if definition:
        yield f"{definition};"


def _relation(change: Change) -> Iterator[str]:
    if not (change.now and change.wanted):
        raise NotPlain(change.name)
    table = quoted(change.name)
    now, wanted = (text.split(" ") for text in (change.now, change.wanted))
    kinds = [
        [word for word in words if word in {"TABLE", "MATERIALIZED", "PARTITIONED"}]
        for words in (now, wanted)
    ]
    if kinds[0] != kinds[1] or "TABLE" not in kinds[0]:
        raise NotPlain(change.name)
    if ("UNLOGGED" in now) != ("UNLOGGED" in wanted):
        yield f"ALTER TABLE {table} SET {'UNLOGGED' if 'UNLOGGED' in wanted else 'LOGGED'};"
    if ("ROW" in now) != ("ROW" in wanted):
        yield (
            f"ALTER TABLE {table} {'ENABLE' if 'ROW' in wanted else 'DISABLE'} "
            "ROW LEVEL SECURITY;"
        )
    yield from _options(f"ALTER TABLE {table}", change)
    if dict(_OPTION.findall(change.now)).get("fillfactor") != dict(
        _OPTION.findall(change.wanted)
    ).get("fillfactor"):
        yield f"VACUUM FULL {table};"


def _options(alter: str, change: Change) -> Iterator[str]:
    now, wanted = (dict(_OPTION.findall(text)) for text in (change.now, change.wanted))
    reset = sorted(now.keys() - wanted.keys())
    changed = sorted(name for name, value in wanted.items() if now.get(name) != value)
    if reset:
        yield f"{alter} RESET ({', '.join(reset)});"
    if changed:
        values = ", ".join(f"{name} = {wanted[name]}" for name in changed)
        yield f"{alter} SET ({values});"


_COLUMN_PART = re.compile(
    r" (?=NOT NULL|COLLATE |STORAGE |STATISTICS |COMPRESSION |[a-z_]{1,40}=)"
)


@dataclass(frozen=True)
class _Column:
    """What the record says of a column; `given` are its words by their name."""

    type: str
    default: str
    given: Mapping[str, str]

    @classmethod
    def of(cls, text: str) -> "_Column":
        head, _word, default = text.partition(" DEFAULT ")
        name, *parts = _COLUMN_PART.split(head)
        if not _TYPE.fullmatch(name):
            raise NotPlain(name)
        given: dict[str, str] = {}
        for part in parts:
            word, _space, value = part.partition(" ")
            if "=" in word:
                given["options"] = f"{given.get('options', '')} {part}".strip()
            else:
                given[word] = value
        return cls(name, default, given)

    def differs(self, other: "_Column", word: str) -> bool:
        """Whether a word of theirs does."""
        return self.given.get(word, "") != other.given.get(word, "")


def _column(change: Change) -> Iterator[str]:
    if not (change.now and change.wanted):
        raise NotPlain(change.name)
    table, column = change.parts
    now, wanted = _Column.of(change.now), _Column.of(change.wanted)
    alter = f"ALTER TABLE {table} ALTER COLUMN {column}"
    if now.default != wanted.default:
        yield (
            f"{alter} SET DEFAULT {_single(wanted.default)};"
            if wanted.default
            else f"{alter} DROP DEFAULT;"
        )
    if now.differs(wanted, "NOT"):
        yield f"{alter} {'SET' if 'NOT' in wanted.given else 'DROP'} NOT NULL;"
    if now.differs(wanted, "STATISTICS"):
        yield f"{alter} SET STATISTICS {int(wanted.given.get('STATISTICS', '-1'))};"
    options_now = now.given.get("options", "")
    options_wanted = wanted.given.get("options", "")
    yield from _options(alter, Change(change.name, options_now, options_wanted))
    yield from _rewritten(table, column, now, wanted)


def _generated(change: Change) -> Iterator[str]:
    """Only back to a plain column, which keeps its values; from 13 on."""
    if change.wanted:
        raise NotPlain(change.name)
    table, column = change.parts
    yield f"ALTER TABLE {table} ALTER COLUMN {column} DROP EXPRESSION;"


def _stored(wanted: _Column) -> Iterator[str]:
    letter = wanted.given.get("STORAGE", "")
    if letter not in _STORAGE and letter:
        raise NotPlain(letter)
    if letter:
        yield f"SET STORAGE {_STORAGE[letter]}"
    if "COMPRESSION" in wanted.given:
        method = _COMPRESSION.get(wanted.given["COMPRESSION"], "default")
        yield f"SET COMPRESSION {method}"


def _rewritten(table: str, column: str, now: _Column, wanted: _Column) -> Iterator[str]:
    """Each value is made anew, and stored as the column says then.

    In one command: another type takes storage and compression back to those of the type.
    """
    words = ("STORAGE", "COMPRESSION", "COLLATE")
    if now.type == wanted.type and not any(now.differs(wanted, word) for word in words):
        return
    collation = wanted.given.get("COLLATE", "").strip('"')
    if collation and not re.fullmatch(r"[A-Za-z0-9_.@-]{1,63}", collation):
        raise NotPlain(collation)
    value = f"{column}::text::{wanted.type}"
    if wanted.type in {"text", "character varying"}:
        value = f"({column} || '')::{wanted.type}"
    collated = f' COLLATE "{collation}"' if collation else ""
    actions = [f"TYPE {wanted.type}{collated} USING {value}", *_stored(wanted)]
    changed = ", ".join(f"ALTER COLUMN {column} {action}" for action in actions)
    yield f"ALTER TABLE {table} {changed};"


def _constraint(change: Change) -> Iterator[str]:
    table, constraint = change.parts
    yield f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {constraint};"
    if change.wanted:
        definition = _single(
            change.wanted, "FOREIGN KEY ", "CHECK ", "EXCLUDE ", "UNIQUE "
        )
        # pg_get_constraintdef() says it, and so does the record.
        definition = definition.replace(" NOT VALID NOT VALID", " NOT VALID")
        yield f"ALTER TABLE {table} ADD CONSTRAINT {constraint} {definition};"


def _domain(change: Change) -> Iterator[str]:
    domain, constraint = change.parts
    yield f"ALTER DOMAIN {domain} DROP CONSTRAINT IF EXISTS {constraint};"
    if change.wanted:
        definition = _single(change.wanted, "CHECK ", "NOT NULL")
        yield f"ALTER DOMAIN {domain} ADD CONSTRAINT {constraint} {definition};"


_FIRING = {"D": "DISABLE", "R": "ENABLE REPLICA", "A": "ENABLE ALWAYS"}


def _trigger(change: Change) -> Iterator[str]:
    if "." not in change.name:
        raise NotPlain(change.name)  # An event trigger.
    table, trigger = change.parts
    is_rule = any(
        text.startswith("CREATE RULE ") for text in (change.now, change.wanted)
    )
    yield f"DROP {'RULE' if is_rule else 'TRIGGER'} IF EXISTS {trigger} ON {table};"
    if not change.wanted:
        return
    definition, firing = change.wanted, ""
    for letter, word in _FIRING.items():
        if definition.endswith(f") {letter}"):
            definition, firing = definition[:-2], word
    yield f"{_single(definition, 'CREATE TRIGGER ', 'CREATE CONSTRAINT TRIGGER ', 'CREATE RULE ')};"
    if firing:
        yield f"ALTER TABLE {table} {firing} TRIGGER {trigger};"


def _find_whole(change: Change, name: str) -> re.Match[str] | None:
    """A function's definition as its side has it, where the record was not cut."""
    definition = change.definitions.get("function_definition", {}).get(name, "")
    is_cut = len(definition) > MOST_CHARACTERS
    return None if is_cut else _DOLLARS.fullmatch(definition)


def _function_definition(change: Change, name: str) -> str:
    """What makes a function as its side has it; empty if that is not recorded in a plain form."""
    match = _find_whole(change, name)
    if match is None or f"${match['tag']}$" in match["body"] or "\\" in match[0]:
        return ""
    # Psql reads no variable within dollars; what stands before has none.
    if re.search(r"(?<!:):[\"'A-Za-z_]", match[0][: match.start("body")]):
        return ""
    return f"{match[0].strip()};"


def _function(change: Change) -> Iterator[str]:
    """By its whole definition; where only that of A's catalogue is missing, by what differs."""
    if not (change.now and change.wanted):
        raise NotPlain(change.name)
    if _find_whole(change, change.name):
        definition = _function_definition(change, change.name)
        if not definition:
            raise NotPlain(change.name)
        yield definition
        return
    now, wanted = change.now.split(" "), change.wanted.split(" ")
    name, _bracket, arguments = change.name.partition("(")
    arguments = arguments.removesuffix(")")
    is_otherwise_same = now[:1] == wanted[:1] and now[2:] == wanted[2:]
    if not (is_otherwise_same and _ARGUMENTS.fullmatch(arguments)):
        raise NotPlain(change.name)
    if wanted[1] not in _VOLATILITY:
        raise NotPlain(change.name)
    yield f"ALTER FUNCTION {quoted(name)}({arguments}) {_VOLATILITY[wanted[1]]};"


def _sequence(change: Change) -> Iterator[str]:
    match = re.fullmatch(r"CACHE (\d{1,18}) INCREMENT (-?\d{1,18})", change.wanted)
    if not change.now or match is None:
        raise NotPlain(change.name)
    yield f"ALTER SEQUENCE {quoted(change.name)} CACHE {match[1]} INCREMENT BY {match[2]};"


def _statistics(change: Change) -> Iterator[str]:
    yield f"DROP STATISTICS IF EXISTS {quoted(change.name)};"
    if change.wanted:
        made = change.definitions.get("statistics_definition", {}).get(change.name, "")
        yield f"{_single(made, 'CREATE STATISTICS ')};"


def _view(change: Change) -> Iterator[str]:
    if not (change.now and change.wanted):
        raise NotPlain(change.name)
    begin = re.match(r"WITH \([a-z0-9_=, ]{1,200}\) AS ", change.wanted)
    text = change.wanted[begin.end() :] if begin else change.wanted
    options = begin[0].removesuffix(" AS ") + " " if begin else ""
    definition = _single(text, "SELECT", "WITH", "(", "VALUES", "TABLE")
    view = quoted(change.name)
    if "$view$" in definition:
        raise NotPlain(change.name)
    # A view keeps its columns when it is replaced; with others it is made anew.
    yield (
        f"DO $view$ BEGIN CREATE OR REPLACE VIEW {view} {options}AS {definition};\n"
        "EXCEPTION WHEN invalid_table_definition THEN\n"
        f"DROP VIEW {view}; CREATE VIEW {view} {options}AS {definition};\nEND $view$;"
    )


def _policy(change: Change) -> Iterator[str]:
    table, policy = change.parts
    yield f"DROP POLICY IF EXISTS {policy} ON {table};"
    if change.wanted:
        yield f"CREATE POLICY {policy} ON {table} {_single(change.wanted, 'AS ', 'FOR ')};"


def _identity(change: Change) -> Iterator[str]:
    if change.wanted not in {"", "FULL", "NOTHING"}:
        raise NotPlain(change.wanted)
    yield (
        f"ALTER TABLE {quoted(change.name)} REPLICA IDENTITY {change.wanted or 'DEFAULT'};"
    )


def _prepared(change: Change) -> Iterator[str]:
    """A transaction that A has not is taken back, and vacuum then removes what it held."""
    if change.wanted or not re.fullmatch(r"[A-Za-z0-9_. -]{1,200}", change.name):
        raise NotPlain(change.name)
    yield f"ROLLBACK PREPARED '{change.name}';"


def _slot(change: Change) -> Iterator[str]:
    if change.wanted:
        raise NotPlain(change.name)
    quoted(change.name)
    yield (
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "  # noqa: S608
        f"WHERE slot_name = '{change.name}';"
    )


def _publication(change: Change) -> Iterator[str]:
    if change.wanted:
        raise NotPlain(change.name)
    yield f"DROP PUBLICATION IF EXISTS {quoted(change.name)};"


def _freshness(change: Change) -> Iterator[str]:
    if not (change.now and change.wanted):
        raise NotPlain(change.name)
    yield f"VACUUM ANALYZE {quoted(change.name)};"


def _bloat(change: Change) -> Iterator[str]:
    """Only towards the smaller size."""
    sizes = [float(text.removesuffix(" MB")) for text in (change.now, change.wanted)]
    if sizes[1] >= sizes[0]:
        raise NotPlain(change.name)
    yield f"VACUUM FULL {quoted(change.name)};"


def _default(change: Change) -> Iterator[str]:
    """What a role or the database sets."""
    alter = _alter(change.name)
    setting = _setting(change.name.partition(" (")[0])
    if not re.fullmatch(r"[A-Za-z0-9_., +-]{0,200}", change.wanted):
        raise NotPlain(change.wanted)
    if change.wanted:
        yield f"{alter} SET {setting} = '{change.wanted}';"
    else:
        yield f"{alter} RESET {setting};"


def _extension(change: Change) -> Iterator[str]:
    if not change.wanted or change.now:
        raise NotPlain(change.name)
    yield f"CREATE EXTENSION IF NOT EXISTS {quoted(change.name)};"


# Every kind that a database has (`runs.execution.evidence.objects`) or that follows from it; None
# where nothing here puts it back: then its set-up can be.
REPAIRS: Mapping[str, Repair | None] = {
    "relation": _relation,
    "index": _index,
    "column": _column,
    "constraint": _constraint,
    "trigger": _trigger,
    "function": _function,
    "sequence": _sequence,
    "statistics": _statistics,
    "freshness": _freshness,
    "extension": _extension,
    "view": _view,
    "policy": _policy,
    "domain": _domain,
    "identity": _identity,
    "slot": _slot,
    "publication": _publication,
    "prepared": _prepared,
    "bloat": _bloat,
    "default": _default,
    "database": None,
    "partition": None,
    "generated": _generated,
    "distribution": None,
    "rows": None,
}
