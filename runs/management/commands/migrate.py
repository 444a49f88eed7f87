"""Django's `migrate`, for which requests never wait long: see benchlab.gentle_migrations."""

from typing import Any

from django.core.checks import Tags
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader

from benchlab import baseline
from benchlab.gentle_migrations import LockWaits, forget_steps
from runs.services.database import is_wait

# With one of these, somebody only looks, or wants certain migrations.
_OTHERWISE = frozenset(
    ("app_label", "check_unapplied", "fake", "fake_initial", "plan", "prune", "run_syncdb")
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

    def _has_migrated(self, *args: Any, **options: Any) -> bool:
        try:
            if not any(options[each] for each in _OTHERWISE):
                self._build(connections[options["database"]], options["verbosity"])
            super().handle(*args, **options)
        except OperationalError as error:
            if not is_wait(error):
                raise
            if not self._waits.goes_on:
                text = f"It was cut off: {str(error).splitlines()[0]}."
                raise CommandError(f"{text} See “Updates” in docs/deployment.md.") from error
            self._waits.pause(error)
            return False
        return True

    def _build(self, connection: BaseDatabaseWrapper, verbosity: int) -> None:
        """Give a new database its tables; Django applies what is newer than these."""
        loader = MigrationLoader(None, load=False)
        loader.load_disk()
        if baseline.build(connection, wanted=set(loader.disk_migrations)) and verbosity > 0:
            number = len(baseline.names())
            self.stdout.write(
                f"A new database: its tables are made at once, as {number} migrations leave them."
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
