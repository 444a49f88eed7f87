"""What a statement that makes data needs of PostgreSQL: constructs that older versions refuse."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from runs.statements.tokens import Statement

LONGEST_NAME = 100


@dataclass(frozen=True)
class Need:
    """A construct, as SQL writes it, the first major version that has it, and where it stands."""

    version: int
    construct: str
    where: str


# By the words of a statement, a space between them, and strings left out. Each is tried on servers
# before and after its version (`tests/unit/statements/test_needs.py`).
_CONSTRUCTS = tuple(
    (version, construct, re.compile(pattern))
    for version, construct, pattern in (
        (10, "PARTITION BY", r"^create (?:unlogged )?table .*\) partition by "),
        (10, "GENERATED AS IDENTITY", r" generated (?:always|by default) as identity"),
        (
            11,
            "PARTITION BY HASH",
            r"^create (?:unlogged )?table .*\) partition by hash ",
        ),
        (11, "CREATE PROCEDURE", r"^create (?:or replace )?procedure "),
        (11, "INCLUDE", r"^create (?:unique )?index .*\) include \("),
        (12, "GENERATED ALWAYS AS ... STORED", r" generated always as \(.*\) stored"),
        (
            14,
            "BEGIN ATOMIC",
            r"^create (?:or replace )?(?:function|procedure) .* begin atomic ",
        ),
        (
            14,
            "SET COMPRESSION",
            r"^alter table .* alter (?:column )?\S+ set compression ",
        ),
        (15, "NULLS NOT DISTINCT", r" nulls not distinct"),
        (17, "JSON_TABLE", r" json_table \("),
        (18, "GENERATED ALWAYS AS ... VIRTUAL", r" generated always as \(.*\) virtual"),
        (18, "uuidv7()", r" (?:pg_catalog \. )?uuidv7 \("),
        (18, "WITHOUT OVERLAPS", r" without overlaps"),
        (18, "NOT ENFORCED", r" not enforced"),
    )
)


def needs(statement: Statement) -> Iterator[Need]:
    """What a statement of DDL needs."""
    words = statement.words
    if not words or words[0] not in {"create", "alter"}:
        return
    text = " ".join(
        "''" if token.kind == "string" else token.lowered
        for token in statement.tokens
        if token.kind != "space"
    )
    for version, construct, pattern in _CONSTRUCTS:
        if pattern.search(text):
            yield Need(version, construct, _where(words))


def _where(words: tuple[str, ...]) -> str:
    """What a statement makes or changes: `table shop.orders`."""
    kinds = {"table", "index", "view", "function", "procedure", "domain", "type"}
    place = next((place for place, word in enumerate(words) if word in kinds), 0)
    names: list[str] = []
    for word in words[place + 1 :]:
        if word in {"if", "not", "exists", "only"}:
            continue
        if names and names[-1] != "." and word != ".":
            break
        names.append(word)
    return f"{words[place]} {''.join(names)}"[:LONGEST_NAME]
