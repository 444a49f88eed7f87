"""The tables of a new database, made at once as all migrations up to some would leave them.

To migrate an empty database through each of them takes a processor eight seconds, most of which
Django spends on models as they were between two migrations. A database that has any of them goes on
with them. (`replaces` of Django 5 cannot stand for migrations that replace others themselves.)
"""

import re
from collections.abc import Set
from pathlib import Path

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder

# Written by `python -m tests.migrated`.
BASELINE = Path(__file__).parents[1] / "runs" / "migrations" / "baseline.sql"
_RECORDED = re.compile(r"^\('(\w+)', '(\w+)', now\(\)\)[,;]$", re.MULTILINE)
# Of two programs that begin at once one makes the tables. Any number that is nobody else's.
_LOCK = 7_310_582_946


def names() -> frozenset[tuple[str, str]]:
    """The migrations that it stands for, by application and name."""
    return frozenset((app, name) for app, name in _RECORDED.findall(BASELINE.read_text()))


def build(database: BaseDatabaseWrapper, *, wanted: Set[tuple[str, str]]) -> bool:
    """Make the tables where no migration was applied yet, in one transaction; whether it did.

    Nothing is made that is not `wanted`: where it lacks one of these migrations, they are applied
    one by one.
    """
    if not names() <= wanted:
        return False
    with transaction.atomic(using=database.alias), database.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        if MigrationRecorder(database).applied_migrations():
            return False
        cursor.execute(BASELINE.read_text())
    return True
