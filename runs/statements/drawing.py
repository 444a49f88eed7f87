"""Parameters without a value: the columns that they are compared with, from which values are drawn.

pg_stat_statements keeps statements without their values. A value at a place of the column's own
order, drawn once, is one that its rows have, as often as they have it, and the same for all
versions.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from runs.statements.tokens import Statement, Token

# Values that are drawn for each parameter.
DRAWS = 3
LIMIT, OFFSET = "100", "0"
_COMPARES = frozenset({"=", "<", ">", "<=", ">=", "<>", "!="})
_BEGINS_TABLES = frozenset({"from", "join", "update", "into"})
# After one of these no table follows a comma.
_ENDS_TABLES = frozenset(
    {
        "except",
        "fetch",
        "for",
        "group",
        "having",
        "intersect",
        "limit",
        "offset",
        "on",
        "order",
        "returning",
        "select",
        "set",
        "union",
        "using",
        "values",
        "where",
        "window",
    }
)
_NO_ALIASES = _ENDS_TABLES | {
    "cross",
    "full",
    "inner",
    "join",
    "lateral",
    "left",
    "natural",
}
_NO_ALIASES |= {"right", "tablesample", "when", "only", "and", "or", "not"}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a statement of a unit, by its place in it, and the column it is compared with.

    `tables` are those that may have the column. With `other`, the number of another one, it is an
    end of a range: the lower one where `is_upper` is false. One with a `value` is not drawn.
    """

    statement: int
    number: int
    tables: tuple[str, ...] = ()
    column: str = ""
    other: int = 0
    is_upper: bool = False
    value: str = ""

    @property
    def source(self) -> str:
        """From what it is drawn, in words of SQL."""
        if self.value:
            return ""
        table = self.tables[0] if len(self.tables) == 1 else ""
        return f"{table}.{self.column}" if table else self.column

    def place(self, seed: str, draw: int) -> float:
        """Where in the order of the column the value of a draw is, from 0 to 1."""
        own_number = _number(f"{seed}/{self.statement}/{self.number}/{draw}")
        if not self.other:
            return own_number
        pair = _number(f"{seed}/{self.statement}/{self.other}/{draw}")
        return max(own_number, pair) if self.is_upper else min(own_number, pair)


def _number(text: str) -> float:
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48


def parameters(statement: Statement, place: int = 0) -> tuple[Parameter, ...] | None:
    """The parameters of a statement, which is the one at `place` of its unit.

    None if one of them is compared with no column.
    """
    reader = _Reader(statement, place)
    found: dict[int, Parameter] = {}
    for index, token in enumerate(reader.tokens):
        if token.kind != "parameter":
            continue
        parameter = reader.parameter(index)
        if parameter is None:
            return None
        found.setdefault(parameter.number, parameter)
    return tuple(found.values())


class _Reader:
    """A statement without its spaces, and the tables that it names."""

    def __init__(self, statement: Statement, place: int) -> None:
        self.tokens = [token for token in statement.tokens if token.kind != "space"]
        self._words = [token.lowered for token in self.tokens]
        self._place = place
        queries = {
            word
            for word, as_, begin in zip(
                self._words, self._words[1:], self._words[2:], strict=False
            )
            if as_ == "as" and begin in {"(", "materialized", "not"}
        }
        self._tables = {
            alias: table
            for alias, table in self._named_tables()
            if table not in queries
        }

    def parameter(self, index: int) -> Parameter | None:
        """The parameter at an index, if something is known of it."""
        number = int(self.tokens[index].text[1:])
        before, after = self._word(index - 1), self._word(index + 1)
        if before in {"limit", "offset"}:
            value = LIMIT if before == "limit" else OFFSET
            return Parameter(self._place, number, value=value)
        if before in _COMPARES:
            return self._compared(number, self._column_before(index - 1))
        if before == "between":
            other = self._number(index + 2) if after == "and" else 0
            return self._compared(number, self._column_before(index - 1), other)
        if before == "and" and self._word(index - 3) == "between":
            other = self._number(index - 2)
            column = self._column_before(index - 3)
            return self._compared(number, column, other, is_upper=True)
        if before in {"(", ","}:
            return self._read_list(number, index)
        if after in _COMPARES:
            return self._compared(number, self._column_from(index + 2))
        return None

    def _word(self, index: int) -> str:
        return self._words[index] if 0 <= index < len(self._words) else ""

    def _number(self, index: int) -> int:
        """That of the parameter at an index, 0 if it is none."""
        if not 0 <= index < len(self.tokens) or self.tokens[index].kind != "parameter":
            return 0
        return int(self.tokens[index].text[1:])

    def _read_list(self, number: int, index: int) -> Parameter | None:
        begin = index - 1
        while self._word(begin) == "," and self.tokens[begin - 1].kind in {
            "parameter",
            "string",
            "number",
        }:
            begin -= 2
        if self._word(begin) != "(" or self._word(begin - 1) != "in":
            return None
        end = begin - 2 if self._word(begin - 2) == "not" else begin - 1
        return self._compared(number, self._column_before(end))

    def _column_before(self, index: int) -> tuple[str, str] | None:
        """The qualifier and the name of the column that ends before an index."""
        if self._word(index - 1) == "not":
            index -= 1
        if not self._is_name(index - 1):
            return None
        if self._word(index - 2) == ".":
            return self._name(index - 3), self._name(index - 1)
        return "", self._name(index - 1)

    def _column_from(self, index: int) -> tuple[str, str] | None:
        if not self._is_name(index) or self._word(index + 1) == "(":
            return None
        if self._word(index + 1) == "." and self._is_name(index + 2):
            return self._name(index), self._name(index + 2)
        return "", self._name(index)

    def _is_name(self, index: int) -> bool:
        if not 0 <= index < len(self.tokens):
            return False
        token = self.tokens[index]
        return token.kind == "name" or (
            token.kind == "word" and token.lowered not in _NO_ALIASES
        )

    def _name(self, index: int) -> str:
        return _unquoted(self.tokens[index]) if self._is_name(index) else ""

    def _compared(
        self,
        number: int,
        column: tuple[str, str] | None,
        other: int = 0,
        *,
        is_upper: bool = False,
    ) -> Parameter | None:
        if column is None:
            return None
        qualifier, name = column
        # One that is no table is that of a subquery, whose columns are those of tables.
        named = [self._tables[qualifier]] if qualifier in self._tables else []
        tables = tuple(dict.fromkeys(named or self._tables.values()))
        if not tables:
            return None
        return Parameter(self._place, number, tables, name, other, is_upper)

    def _named_tables(self) -> Iterator[tuple[str, str]]:
        """The tables by their aliases, or by their own names."""
        is_table = is_list = False
        for index, word in enumerate(self._words):
            if word in _BEGINS_TABLES:
                is_table = is_list = True
            elif word == "," and is_list:
                is_table = True
            elif word in _ENDS_TABLES or word == "(":
                is_table = is_list = False
            elif is_table and word not in {"only", "lateral"} and self._is_name(index):
                is_table = False
                yield self._table(index)

    def _table(self, index: int) -> tuple[str, str]:
        name, end = self._name(index), index + 1
        if self._word(end) == "." and self._is_name(end + 1):
            name, end = f"{name}.{self._name(end + 1)}", end + 2
        if self._word(end) == "as":
            end += 1
        if self._is_name(end):
            return self._name(end), name
        return name.rpartition(".")[2], name


def _unquoted(token: Token) -> str:
    if token.kind == "name":
        return token.text[1:-1].replace('""', '"')
    return token.lowered


def sources(drawn: Sequence[Parameter]) -> tuple[str, ...]:
    """The columns from which the values of a unit are drawn."""
    return tuple(
        dict.fromkeys(parameter.source for parameter in drawn if parameter.source)
    )


def from_json(stored: Mapping[str, object]) -> Parameter:
    """A parameter that is stored."""
    tables = stored["tables"]
    names = tuple(tables) if isinstance(tables, list) else ()
    return Parameter(**{**stored, "tables": names})  # type: ignore[arg-type]
