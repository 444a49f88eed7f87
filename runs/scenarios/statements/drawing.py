"""Values for parameters that have none: drawn from the data once, when they are loaded.

What is drawn is a row at a place of the column's order, which depends on the load and the data
alone: all versions get the same values. Who draws is the ordinary role, as an order may be a
function of the data.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from runs.execution.bench import Bench
from runs.scenarios.datasets import sending
from runs.scenarios.statements.connection import client
from runs.statements.content import LoadContent
from runs.statements.data_script import executed
from runs.statements.drawing import DRAWS, Parameter
from runs.statements.load import Unit
from runs.statements.tokens import fill_values, one

_TABLE = "benchlab_drawn.value"
_MAKE = (
    "CREATE SCHEMA benchlab_drawn",
    f"CREATE TABLE {_TABLE} (name text, draw integer, value text)",
)
_READ = f"""
SELECT name, draw, pg_catalog.encode(pg_catalog.convert_to(value, 'UTF8'), 'hex') FROM {_TABLE};
"""
# The first of the tables that has the column, and of its rows those at the places.
_DRAW = """
DO $draw$
DECLARE
    relation regclass;
BEGIN
    SELECT c.oid::regclass INTO relation
    FROM (VALUES {tables}) AS named (place, schema, name)
    JOIN pg_catalog.pg_class c ON c.relname = named.name AND c.relkind IN ('r', 'p', 'm', 'v', 'f')
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        AND (named.schema = n.nspname OR named.schema = '' AND n.nspname NOT LIKE 'pg\\_%')
    JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = {column} AND a.attnum > 0
    ORDER BY named.place, NOT pg_catalog.pg_table_is_visible(c.oid), n.nspname LIMIT 1;
    IF relation IS NULL THEN
        RETURN;
    END IF;
    EXECUTE pg_catalog.format(
        'INSERT INTO {into} '
        'SELECT drawn.name, drawn.draw, ordered.value::text '
        'FROM (VALUES {places}) AS drawn (name, draw, share) '
        'CROSS JOIN (SELECT count(%1$I) AS rows FROM %2$s) AS counted '
        'JOIN (SELECT %1$I AS value, row_number() OVER (ORDER BY %1$I) - 1 AS place '
        '      FROM %2$s WHERE %1$I IS NOT NULL) AS ordered '
        '    ON ordered.place = floor(drawn.share * counted.rows)::bigint',
        {column}, relation);
END
$draw$
"""
# To sort a column takes longer than a statement that uses its index.
_PATIENCE = 20


@dataclass(frozen=True)
class _Place:
    """A value that is needed: the name of its parameter, the draw, and its place in the order."""

    name: str
    draw: int
    share: float


async def draw(bench: Bench, load: LoadContent) -> None:
    """Draw the values of a load and keep them in its database, which all runs copy."""
    places = _places(load)
    if not places:
        return
    seconds = _PATIENCE * bench.parameters["statement_timeout"]
    lines = [
        "\\set ON_ERROR_STOP off",
        f"SET statement_timeout = '{seconds}s';",
        "SET extra_float_digits = 3;",
        *map(executed, _MAKE),
    ]
    for (tables, column), places_of_column in places.items():
        lines.append(executed(_draw(tables, column, places_of_column)))
    path = f"{bench.directory}/draw.sql"
    await sending.send_text(bench, "\n".join([*lines, ""]), path)
    await bench.step("draw-values", client(bench, path), check=False, is_private=True)


def _places(load: LoadContent) -> dict[tuple[tuple[str, ...], str], list[_Place]]:
    """What is drawn from each column: all in one go, since each sorts it."""
    places: dict[tuple[tuple[str, ...], str], list[_Place]] = defaultdict(list)
    for unit in load.units:
        for parameter in unit.drawn:
            if parameter.value:
                continue
            seed = f"{load.slug}/{unit.number}"
            places[parameter.tables, parameter.column] += [
                _Place(_name(unit, parameter), number, parameter.place(seed, number))
                for number in range(DRAWS)
            ]
    return places


def _name(unit: Unit, parameter: Parameter) -> str:
    return f"{unit.number}.{parameter.statement}.{parameter.number}"


def _draw(tables: Sequence[str], column: str, places: Sequence[_Place]) -> str:
    named = []
    for place, table in enumerate(tables):
        schema, _dot, name = table.rpartition(".")
        named.append(f"({place}, {_literal(schema)}, {_literal(name)})")
    # Within a string: of names and numbers alone.
    values = [
        f"(''{place.name}'', {place.draw}, {place.share:.12f})" for place in places
    ]
    return _DRAW.format(
        tables=", ".join(named),
        column=_literal(column),
        into=_TABLE,
        places=", ".join(values),
    )


def _literal(text: str) -> str:
    """A constant that ends no quote around it."""
    encoded = text.encode().hex()
    return f"pg_catalog.convert_from(pg_catalog.decode('{encoded}', 'hex'), 'UTF8')"


async def add_drawn_values(bench: Bench, load: LoadContent) -> LoadContent:
    """The load with the values that were drawn; a unit for which there are none has no sample."""
    if not any(unit.drawn for unit in load.units):
        return load
    path = f"{bench.directory}/drawn.sql"
    await sending.send_text(bench, _READ, path)
    result = await bench.step(
        "read-drawn-values", client(bench, path), check=False, is_private=True
    )
    values: dict[tuple[str, int], str] = {}
    for line in result.stdout.splitlines():
        name, number, value = line.split("\t")
        values[name, int(number)] = bytes.fromhex(value).decode()
    units = [
        replace(unit, samples=tuple(_samples(unit, values))) if unit.drawn else unit
        for unit in load.units
    ]
    return replace(load, units=tuple(units))


def _samples(
    unit: Unit, values: dict[tuple[str, int], str]
) -> Iterator[tuple[str, ...]]:
    for number in range(DRAWS):
        by_statement: dict[int, dict[int, str | None]] = defaultdict(dict)
        for parameter in unit.drawn:
            value = parameter.value or values.get((_name(unit, parameter), number))
            by_statement[parameter.statement][parameter.number] = value
        if any(None in drawn.values() for drawn in by_statement.values()):
            continue
        yield tuple(
            _add_values(text, by_statement[place])
            for place, text in enumerate(unit.samples[0])
        )


def _add_values(text: str, values: dict[int, str | None]) -> str:
    statement = one(text)
    return fill_values(statement, values) if statement and values else text
