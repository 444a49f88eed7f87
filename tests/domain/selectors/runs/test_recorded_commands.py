"""What is read of a run for its shell script."""

import pytest

from runs.models import Command, Run
from runs.reports.load_machines import RecordedGenerator
from runs.reports.shell_script import shell_script
from runs.selectors.runs import recorded_commands as recorded
from tests import factories

pytestmark = pytest.mark.django_db

GENERATOR = {
    "name": "load1",
    "server_id": 2,
    "host": "192.0.2.2",
    "port": 2222,
    "username": "bench",
    "base_dir": "/srv/load",
    "client_bindir": "/usr/lib/pg18",
    "client_version_num": 180004,
    "address_of_database": "10.0.0.1",
}


def test_the_machines_of_the_load_come_from_the_plan():
    plan = {
        "base_dir": "/srv/bl",
        "version_num": 160014,
        "bindir": "/usr/lib/pg16",
        "generators": [GENERATOR],
    }
    run = factories.run(plan=plan, state=Run.State.FINISHED)
    argv = [
        "env",
        "PGPASSFILE=/srv/load/runs/7-1/pgpass",
        "/usr/lib/pg18/pgbench",
        "-h",
        "10.0.0.1",
    ]
    Command.objects.create(
        run=run, attempt=1, ordinal=1, step="pgbench-load1", host="load server", argv=argv
    )
    [found] = recorded.of_run(Run.objects.select_related("cell", "cluster").get())

    assert found.generators == (
        RecordedGenerator("load1", "/srv/load", "/usr/lib/pg18", "10.0.0.1"),
    )
    script = shell_script("run", "A run", [found])
    assert "LOAD1=${LOAD1:?set it to user@host of load1}" in script
    assert "bench@" not in script
    assert "2222" not in script
    assert 'PGPASSFILE="$BASE"/runs/7-1/pgpass "$PG"/pgbench -h "$DB_HOST"' in script
    assert "BENCHLAB_ONE_MACHINE" not in script
