"""SQL takes the values of choices from the models, so that a choice has one place in the code."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from django.apps import apps
from django.db import models

from tests.each import check_each

ROOT = Path(__file__).parents[2]
# Migrations keep the values of their time. Engines read PostgreSQL's own views and know no model.
WITHOUT_MODELS = ("runs/migrations", "runs/execution", "runs/scenarios", "runs/tools")
SOURCES = sorted(
    path
    for package in ("runs", "benchlab")
    for path in (ROOT / package).rglob("*.py")
    if not path.relative_to(ROOT).as_posix().startswith(WITHOUT_MODELS)
)


def choices_of(model: type[models.Model]) -> dict[str, set[str]]:
    """The columns of a model that have choices or a check for a list, with their values."""
    found = {
        field.column: set(field.flatchoices) for field in model._meta.concrete_fields
    }
    values = {
        name: {str(value) for value, _label in each} for name, each in found.items()
    }
    for check in model._meta.constraints:
        if isinstance(getattr(check, "condition", None), models.Q):
            for condition in check.condition.children:
                if isinstance(condition, tuple) and condition[0].endswith("__in"):
                    values[condition[0].removesuffix("__in")].update(condition[1])
    return {name: each - {""} for name, each in values.items() if each - {""}}


OF_TABLES = {
    model._meta.db_table: choices_of(model)
    for model in apps.get_app_config("runs").get_models()
}
COLUMNS = sorted({column for columns in OF_TABLES.values() for column in columns})
VALUES = {
    value for of in OF_TABLES.values() for values in of.values() for value in values
}
QUOTED = re.compile(r"'(\w+)'")
COMPARED = re.compile(
    rf"\b(?:{'|'.join(COLUMNS)})\)?(?:::\w+)?\s*(?:=|<>|!=|(?:NOT )?IN\b)[^']{{0,12}}'(\w+)'"
)
TABLE = re.compile(r"\bruns_\w+")
STATEMENT = re.compile(r"\b(?:SELECT|INSERT|UPDATE|DELETE|COPY)\b")


def literals(text: str) -> list[str]:
    """The choices that a piece of SQL writes out: of the tables it names, or of any if of none."""
    tables = TABLE.findall(text)
    if tables and STATEMENT.search(text):
        own = {
            value
            for name in tables
            for of in OF_TABLES.get(name, {}).values()
            for value in of
        }
        return [value for value in QUOTED.findall(text) if value in own]
    return [value for value in COMPARED.findall(text) if value in VALUES]


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Every string of a module with its line; what an f-string inserts is left out."""
    parts = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts.update(map(id, node.values))
            pieces = (
                each.value if isinstance(each, ast.Constant) else "{}"
                for each in node.values
            )
            yield node.lineno, "".join(map(str, pieces))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in parts
        ):
            yield node.lineno, node.value


def test_sql_takes_choices_from_the_models():
    def check(path: Path) -> None:
        source = path.read_text()
        if VALUES.isdisjoint(QUOTED.findall(source)):
            return
        found = [
            f"line {line}: {value}"
            for line, text in texts(source)
            for value in literals(text)
        ]
        assert found == []

    assert len(SOURCES) > 200
    check_each(SOURCES, check)


def test_a_choice_that_sql_writes_out_is_found():
    samples = {
        "SELECT id FROM runs_run WHERE state = 'finished'": ["finished"],
        "SELECT 'sealed', id FROM runs_sealrequest": ["sealed"],
        "SELECT count(*) FILTER (WHERE to_state IN ('lost')) FROM runs_runevent": [
            "lost"
        ],
        "run.state <> 'queued'": ["queued"],
        "(state)::text = 'queued'": ["queued"],
        "NOT state NOT IN ('queued')": ["queued"],
        # A value of another table, a value of no model, and words.
        "SELECT 'campaign', id FROM runs_campaign": [],
        "SELECT pid FROM pg_stat_replication WHERE state = 'backup'": [],
        "The state 'finished' is the last one.": [],
        "SELECT id FROM runs_run WHERE state = %(finished)s": [],
    }

    assert {text: literals(text) for text in samples} == samples
