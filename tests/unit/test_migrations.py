"""Migrations do not lock a large table for as long as it takes to read or write it.

Of what comes after the last one below: indexes are made concurrently, constraints are added
unvalidated, new columns have a default in the database or are null, and rows are changed in
batches by a migration that is not one transaction.
"""

from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
)
from django.db import models
from django.db.migrations import Migration, RunPython, RunSQL
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import (
    AddConstraint,
    AddField,
    AddIndex,
    AlterField,
    RemoveIndex,
    SeparateDatabaseAndState,
)

from benchlab.gentle_migrations import InSteps

# A new database goes through what stands for these, and no other does.
LAST_WITHOUT_RULE = 54
# Tables that grow with runs.
LARGE = frozenset(
    [
        "run",
        "measurement",
        "series",
        "runevent",
        "command",
        "artifact",
        "cell",
        "cellsummary",
        "seal",
        "sealrequest",
    ]
)


def faults(migration):
    """What locks a large table in this migration."""
    made = {
        each.name.lower() for each in migration.operations if hasattr(each, "bases")
    }
    for operation in _flat(migration.operations):
        if isinstance(operation, RunPython | RunSQL):
            if migration.atomic:
                yield f"{operation}: rows are changed in batches, with atomic = False"
            continue
        table = str(getattr(operation, "model_name", "")).lower()
        if table in LARGE - made and (fault := _fault(operation)):
            yield f"{table}: {fault}"


def _flat(operations):
    for each in operations:
        if isinstance(each, SeparateDatabaseAndState):
            yield from _flat(each.database_operations)
        else:
            yield each


def _fault(operation):
    if isinstance(operation, AddIndex) and not isinstance(
        operation, AddIndexConcurrently
    ):
        return "AddIndexConcurrently, with atomic = False"
    if type(operation) is RemoveIndex:
        return "RemoveIndexConcurrently, with atomic = False"
    if isinstance(operation, AddConstraint) and not isinstance(
        operation, AddConstraintNotValid
    ):
        return "AddConstraintNotValid, and ValidateConstraint in the next migration"
    if isinstance(operation, AlterField):
        return "AlterField may write the table: SeparateDatabaseAndState where only choices change"
    if isinstance(operation, AddField):
        field = operation.field
        has_default = field.has_db_default() or field.null
        if not has_default:
            return "a new column is null or has a db_default"
        # A reference that is null everywhere is not looked up.
        if field.db_index or field.unique:
            return (
                "a new column without index: db_index=False, and AddIndexConcurrently"
            )
    return ""


def test_no_migration_locks_a_large_table():
    loader = MigrationLoader(None)
    found = {
        name: list(faults(migration))
        for (app, name), migration in loader.disk_migrations.items()
        if app == "runs" and int(name[:4]) > LAST_WITHOUT_RULE
    }
    assert {name: told for name, told in found.items() if told} == {}


def test_the_old_version_can_store_rows_while_a_migration_runs():
    """Its web services go on until they are replaced, and know nothing of new columns."""
    loader = MigrationLoader(None)
    needed = [
        f"{name}: {operation.model_name}.{operation.name}"
        for (app, name), migration in loader.disk_migrations.items()
        if app == "runs" and int(name[:4]) > LAST_WITHOUT_RULE
        for operation in _flat(migration.operations)
        if isinstance(operation, AddField)
        and not (operation.field.null or operation.field.many_to_many)
        and not operation.field.has_db_default()
    ]
    assert needed == []


def test_what_is_not_one_transaction_goes_on_where_it_was_cut_off():
    """Of InSteps, whatever kills it; `migrate` passes over an index that is there already."""
    loader = MigrationLoader(None)
    cut = [
        name
        for (app, name), migration in loader.disk_migrations.items()
        if app == "runs" and int(name[:4]) > LAST_WITHOUT_RULE
        if not (migration.atomic or isinstance(migration, InSteps))
        if not all(
            isinstance(each, AddIndexConcurrently) for each in migration.operations
        )
    ]
    assert cut == []


def test_the_rule_knows_what_locks():
    index = models.Index(fields=["code"], name="i")
    check = models.CheckConstraint(condition=models.Q(attempt__gte=0), name="c")
    cases = {
        AddIndex("Run", index): True,
        AddIndexConcurrently("run", index): False,
        AddIndex("Server", index): False,
        AddConstraint("run", check): True,
        AddConstraintNotValid("run", check): False,
        AlterField("measurement", "value", models.FloatField()): True,
        AddField("run", "a", models.IntegerField(default=0)): True,
        AddField("run", "a", models.IntegerField(null=True)): False,
        AddField("run", "a", models.IntegerField(db_default=0)): False,
        AddField("run", "a", models.IntegerField(null=True, db_index=True)): True,
        AddField(
            "run", "a", models.ForeignKey("runs.Run", models.CASCADE, null=True)
        ): True,
        RunSQL("UPDATE runs_run SET attempt = 1"): True,
    }
    wrong = []
    for operation, locks in cases.items():
        migration = Migration("0099_x", "runs")
        migration.operations = [operation]
        if bool(list(faults(migration))) != locks:
            wrong.append(operation)
    assert wrong == []
