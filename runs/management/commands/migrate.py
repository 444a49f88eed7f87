"""Django's `migrate`, for which requests never wait long: see benchlab.gentle_migrations."""

from typing import Any

from django.core.checks import Tags
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations import Migration
from django.db.migrations.recorder import MigrationRecorder

from benchlab.gentle_migrations import LockWaits, forget_steps
from runs.operations.services import host_roles
from runs.shared.database import is_wait

HOSTS = "runs_workerhost"

# A migration of 0.2 that 0.1 lacks, and what stands for it in a new database.
LAST_OF_0_2 = "0054_reads_by_campaign"
REPLACEMENT = "0001_squashed_0054_reads_by_campaign"
# With one of these, somebody only looks, or wants certain migrations.
_OTHERWISE = frozenset(
    (
        "app_label",
        "check_unapplied",
        "fake",
        "fake_initial",
        "plan",
        "prune",
        "run_syncdb",
    )
)


class Command(migrate.Command):
    """Web, control and workers may go on meanwhile: it waits for them, and they not for it."""

    # Those of addresses load all pages, which takes longer than to make all tables.
    requires_system_checks = (Tags.database, Tags.models, Tags.security)
    _waits: LockWaits

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate; again from the migration that got no lock, which is rolled back."""
        connection = connections[options["database"]]
        self._waits = LockWaits(connection, self._tell)
        with connection.execute_wrapper(self._waits.execute):
            while not self._has_migrated(*args, **options):
                pass
            if not (options["plan"] or options["check_unapplied"]):
                forget_steps(connection)
                # A joined host's role has what it was granted, and no new table.
                if connection.introspection.table_names().count(HOSTS):
                    host_roles.grant_all()

    def _has_migrated(self, *args: Any, **options: Any) -> bool:
        try:
            if not any(options[option] for option in _OTHERWISE):
                self._refuse_older(connections[options["database"]])
            super().handle(*args, **options)
        except OperationalError as error:
            if not is_wait(error):
                raise
            if not self._waits.goes_on:
                text = f"It was cut off: {str(error).splitlines()[0]}."
                raise CommandError(
                    f"{text} See “Updates” in docs/deployment.md."
                ) from error
            self._waits.pause(error)
            return False
        return True

    def _refuse_older(self, connection: BaseDatabaseWrapper) -> None:
        """Releases before 0.2 have migrations that are not here any more."""
        applied = {
            name
            for app, name in MigrationRecorder(connection).applied_migrations()
            if app == "runs"
        }
        if applied and not applied & {LAST_OF_0_2, REPLACEMENT}:
            raise CommandError(
                "The results database is of a release older than 0.2. Update to 0.2 first, and from"
                " there to this version: see “Updates” in docs/deployment.md."
            )

    def migration_progress_callback(
        self, action: str, migration: Migration | None = None, fake: bool = False
    ) -> None:
        """Know which migration is at work."""
        if action == "apply_start" and migration is not None:
            self._waits.begin(migration)
        super().migration_progress_callback(action, migration, fake)

    def _tell(self, line: str) -> None:
        self.stdout.write(f"\n    {line}")
