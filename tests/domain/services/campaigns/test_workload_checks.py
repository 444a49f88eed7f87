"""Programs that a workload would have psql or pgbench run: tried on both, and refused."""

import os
import subprocess

import pytest
from django.db import connection

from benchlab.embedded.account import myself
from benchlab.embedded.binaries import postgresql_binaries
from runs.services.campaigns import workloads
from runs.services.campaigns.workloads import WorkloadContent
from runs.tools.pgbench.script_check import GivenScript

pytestmark = pytest.mark.django_db(transaction=True)

# Each makes a file; MARK is its path.
OF_PSQL = (
    "\\! touch MARK",
    "SELECT 1 \\! touch MARK",
    "SELECT 1;\nSELECT 2 AS a \\g | touch MARK",
    "SELECT 'it''s' \\! touch MARK",
    "SELECT $a$ ' $a$ \\! touch MARK",
    "/* ' */ SELECT 1 \\! touch MARK",
    "-- nothing\r\\! touch MARK",
    "SET standard_conforming_strings = off;\nSELECT '\\' ' \\! touch MARK",
    "SET client_encoding = sjis;\nSELECT 'あ', ' \\! touch MARK",
    "SELECT 1 AS a \\gset\n\\copy (SELECT 1) TO PROGRAM 'touch MARK'",
    "SELECT 1 \\set b `touch MARK`",
)
OF_PGBENCH = (
    "\\shell touch MARK\nSELECT 1;",
    "SELECT 1; \\shell touch MARK",
    "SELECT 1 \\SHELL touch MARK",
    "SELECT 1; \\ \\\n shell touch MARK",
    "SELECT 1; -- nothing\r\\shell touch MARK",
    "SELECT 1; \\setshell a sh -c 'touch MARK; echo 1'",
)


@pytest.fixture
def run(tmp_path):
    """Run a program of PostgreSQL 18 against the tests' database; whether the mark was made."""
    bindir = postgresql_binaries(tmp_path, myself()).postgresql18
    place = connection.settings_dict
    variables = {
        "PGHOST": place["HOST"], "PGPORT": str(place["PORT"]), "PGUSER": place["USER"],
        "PGPASSWORD": place["PASSWORD"], "PGDATABASE": place["NAME"],
    }  # fmt: skip
    mark = tmp_path / "mark"

    def ran(program, *options, text):
        script = tmp_path / "script.sql"
        script.write_bytes(text.replace("MARK", str(mark)).encode())
        argv = [bindir / program, *options, "-f", script]
        environment = os.environ | variables
        subprocess.run(argv, check=False, env=environment, capture_output=True, timeout=20)
        found = mark.exists()
        mark.unlink(missing_ok=True)
        return found

    return ran


def refused(**content):
    scripts = content.pop("scripts", (GivenScript("read", "SELECT 1;"),))
    return [each.code for each in workloads.faults(WorkloadContent(scripts=scripts, **content))]


def test_what_psql_runs_as_a_program_is_refused_as_sql_before_the_load(run):
    ran = [sql for sql in OF_PSQL if run("psql", "-X", "-q", text=sql)]
    assert ran == list(OF_PSQL)
    assert [refused(init_sql=sql) for sql in OF_PSQL] == [["psql_command"]] * len(OF_PSQL)
    assert refused(init_sql="INSERT INTO a SELECT 'it''s', $$ ! $$; -- 1 / 2") == []


def test_what_pgbench_runs_as_a_program_is_refused_as_a_script(run, settings):
    ran = [text for text in OF_PGBENCH if run("pgbench", "-n", "-t", "1", text=text)]
    assert ran == list(OF_PGBENCH)
    for text in OF_PGBENCH:
        assert "shell" in refused(scripts=(GivenScript("a", text),))
    settings.ALLOW_SHELL_SCRIPTS = True
    assert refused(scripts=(GivenScript("a", OF_PGBENCH[1]),)) == []
