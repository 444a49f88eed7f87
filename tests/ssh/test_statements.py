"""A load of somebody's own on a real target: its data, its statements, and what is kept of them."""

import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from runs.execution.errors import TargetProblem
from runs.loads import sample
from runs.pair.clusters import Cluster, Installation
from runs.statements import content, data_script, load, trial
from runs.statements.content import LoadContent, LoadData
from runs.statements.dumps import DumpReader
from runs.statements.found import Found
from runs.statements.trial import TrialTimes
from tests.ssh.arranging import NOTHING, nothing_is_left, with_contrib
from tests.ssh.directing import execute

pytestmark = pytest.mark.openssh

SECRET = "a value that nobody else may see"
DUMP = f"""
\\restrict abc
SET statement_timeout = 0;
SET client_encoding = 'UTF8';
SELECT pg_catalog.set_config('search_path', '', false);
CREATE TABLE public.orders (id integer PRIMARY KEY, note text, "Amount" numeric);
ALTER TABLE public.orders OWNER TO somebody;
COPY public.orders (id, note, "Amount") FROM stdin;
1\t{SECRET}\t3.5
2\t\\\\! touch /tmp/never\t\\N
\\.

CREATE FUNCTION public.twice(n integer) RETURNS integer LANGUAGE sql AS $$ SELECT 2 * n $$;
INSERT INTO public.orders SELECT n, 'row ' || n, n FROM generate_series(3, 5000) AS n;
\\unrestrict abc
"""
STATEMENTS = f"""
SELECT count(*) FROM orders WHERE note = '{SECRET}';
UPDATE orders SET note = 'changed' WHERE id = 1;
BEGIN; INSERT INTO orders VALUES (9999, 'x', 1);
SELECT twice(21) FROM orders WHERE id = 9999; COMMIT;
SELECT 1 / (id - 1) FROM orders;
SELECT pg_read_file('/etc/passwd');
SELECT count(*) FROM orders WHERE note = 'changed';
SELECT pg_sleep(60);
"""


@pytest.fixture
def of_load(plan):
    """A plan of the scenario, and what a worker reads for it."""

    def make(text: str, data: LoadData) -> tuple:
        read = load.read(text)
        given = LoadContent("orders-1", content.new_key(), read.units, data)
        parameters = {"duration": 1, "passes": 3, "statement_timeout": 1, "disk_mb": 10}
        levels = {"version": "16.14", "load": "orders-1"}
        changed = replace(
            plan,
            scenario="statements",
            levels=levels,
            parameters=parameters,
            cluster_key="",
        )
        return changed, given

    return make


def executed(direct, plan, given):
    director = direct(plan)
    director.bench.load = given
    return execute(director), director


def test_statements_are_timed_and_only_the_key_of_the_load_opens_what_was_found(
    direct, of_load, base_dir
):
    data = LoadData("sql", script=data_script.read(DUMP).script)
    plan, given = of_load(STATEMENTS, data)
    findings, director = executed(direct, plan, given)

    files = {artifact.name: artifact.content for artifact in findings.artifacts}
    found = Found.from_json(content.opened(given.key, files[content.ARTIFACT]))
    units = {unit.text: unit for unit in given.units}
    by_text = {text: found.units[unit.number - 1] for text, unit in units.items()}
    codes = [
        by_text[text].code for text in sorted(units, key=lambda text: units[text].line)
    ]
    # Division by zero, no right to read files, the timeout. The transaction was rolled back.
    assert codes == ["00000", "00000", "00000", "22012", "42501", "57014"]
    counted = by_text["SELECT count(*) FROM orders WHERE note = ?"]
    assert counted.milliseconds > 0
    assert counted.executions >= 3 * 2  # two samples
    # What takes too long is not waited for in each pass.
    assert by_text["SELECT pg_sleep(?)"].executions == 1
    assert [node.title for node in counted.shapes[0].nodes] == [
        "Aggregate",
        "Seq Scan on orders",
    ]
    assert "QUERY PLAN" not in counted.plans[0]
    # What was changed is as it was: nobody finds the new value.
    assert counted.shapes[0].nodes[1].rows in {0.0, 1.0}
    transaction = next(unit for unit in given.units if unit.is_transaction)
    assert len(found.units[transaction.number - 1].shapes) == 2
    assert findings.measurements["load_statements"] == 3
    assert findings.measurements["load_failed"] == 3
    assert findings.measurements["load_call"] > 0

    told = repr(director.reporter.__dict__)
    kept = b"".join(file for name, file in files.items() if name != content.ARTIFACT)
    for secret in (SECRET, "orders WHERE", "6f7264657273"):
        assert secret not in told
        assert secret.encode() not in kept
        assert secret.encode() not in files[content.ARTIFACT]
    assert nothing_is_left(base_dir) == NOTHING


def test_data_that_cannot_be_loaded_end_the_run_with_the_reason(
    direct, of_load, base_dir
):
    script = data_script.read(
        "CREATE TABLE t (a integer); INSERT INTO t VALUES ('x');"
    ).script
    plan, given = of_load("SELECT 1", LoadData("sql", script=script))
    with pytest.raises(TargetProblem) as raised:
        executed(direct, plan, given)
    assert raised.value.code == "data_not_loaded"
    assert nothing_is_left(base_dir) == NOTHING


def in_parts(given, file):
    """A load whose dump is a file that comes in parts."""
    parts = [file[begin : begin + 10_000] for begin in range(0, len(file), 10_000)]

    async def read_part(number):
        return parts[number - 5]

    dump = DumpReader(10_000_000).take(file, is_last=True).dump
    data = LoadData(
        "dump",
        format=dump.format,
        first_part=5,
        parts=len(parts),
        list_text=dump.list_text,
    )
    return replace(given, data=data, read_part=read_part)


@pytest.fixture
def archive(binaries, account, test_folder):
    """What pg_dump -Fc writes of a database that needs 18 in one of its tables."""
    folder = Path(tempfile.mkdtemp(dir=test_folder))
    folder.chmod(0o711)
    bindir = binaries.postgresql18
    cluster = Cluster(Installation("18.0", bindir), folder / "cluster")
    cluster.make({})

    def make(text):
        def run(program, *arguments):
            argv = [bindir / program, *arguments]
            environment = cluster.environment()
            done = subprocess.run(
                argv,
                input=text.encode(),
                env=environment,
                check=True,
                capture_output=True,
            )
            return done.stdout

        run("psql", "-qX", "-v", "ON_ERROR_STOP=1")
        return run("pg_dump", "-Fc")

    cluster.start()
    yield make
    cluster.remove()
    shutil.rmtree(folder)


ROWS = "CREATE TABLE orders AS SELECT n AS id, 'row' AS note FROM generate_series(1, 9999) AS n;"


def test_an_uploaded_archive_is_restored_by_an_ordinary_role(
    direct, of_load, base_dir, archive
):
    rights = "CREATE ROLE clerk; ALTER TABLE orders OWNER TO clerk; GRANT ALL ON orders TO clerk;"
    plan, given = of_load("SELECT count(*) FROM orders;", LoadData("dump"))
    given = in_parts(given, archive(ROWS + rights))
    findings, _director = executed(direct, plan, given)
    files = {artifact.name: artifact.content for artifact in findings.artifacts}
    found = Found.from_json(content.opened(given.key, files[content.ARTIFACT]))
    assert found.units[0].shapes[0].nodes[1].rows == 9999
    assert nothing_is_left(base_dir) == NOTHING


def test_an_archive_that_is_not_restored_as_a_whole_ends_the_run(
    direct, of_load, base_dir, archive
):
    """What it lacks on one version would be called slow."""
    plan, given = of_load("SELECT count(*) FROM orders;", LoadData("dump"))
    new = "CREATE TABLE later (id uuid DEFAULT uuidv7());"
    with pytest.raises(TargetProblem) as raised:
        executed(direct, plan, in_parts(given, archive(ROWS + new)))
    assert raised.value.code == "data_not_loaded"
    assert "uuidv7" in str(raised.value)
    assert nothing_is_left(base_dir) == NOTHING


def test_a_load_that_was_removed_ends_the_run(direct, of_load, base_dir):
    plan, _given = of_load("SELECT 1", LoadData("pgbench", scale=1))
    with pytest.raises(TargetProblem) as raised:
        executed(direct, plan, None)
    assert raised.value.code == "load_missing"
    assert nothing_is_left(base_dir) == NOTHING


COUNTERS = """query,calls,total_time
SELECT count(*) FROM events WHERE kind = $1 AND at BETWEEN $2 AND $3,7,1
UPDATE events SET kind = $1 WHERE id = $2,5,1
SELECT * FROM events LIMIT $1,3,1
SELECT count(*) FROM nowhere WHERE kind = $1,2,1
SELECT $1,1,1
"""
EVENTS = """
CREATE TABLE events (id integer PRIMARY KEY, kind text, at date);
INSERT INTO events SELECT n, CASE WHEN n % 100 = 0 THEN 'it''s \\ rare' ELSE 'usual' END,
    date '2026-01-01' + n % 300 FROM generate_series(1, 5000) AS n;
"""


def test_values_that_a_load_lacks_are_drawn_from_its_data(direct, of_load, base_dir):
    data = LoadData("sql", script=data_script.read(EVENTS).script)
    plan, given = of_load(COUNTERS, data)
    rows = []
    for _version in range(2):
        findings, director = executed(direct, plan, given)
        files = {artifact.name: artifact.content for artifact in findings.artifacts}
        found = Found.from_json(content.opened(given.key, files[content.ARTIFACT]))
        units = {unit.text: found.units[unit.number - 1] for unit in given.units}
        missing = units.pop("SELECT count(*) FROM nowhere WHERE kind = ?")
        assert (missing.code, missing.milliseconds) == ("no_value", None)
        assert {unit.code for unit in units.values()} == {"00000"}
        counted = units[
            "SELECT count(*) FROM events WHERE kind = ? AND at BETWEEN ? AND ?"
        ]
        assert counted.executions >= 3 * 3
        scan = next(node for node in counted.shapes[0].nodes if "Scan" in node.title)
        # A value that rows have, and a range that is none the wrong way round.
        assert scan.rows > 0
        rows.append(scan.rows)
        assert units["SELECT * FROM events LIMIT ?"].shapes[0].nodes[0].rows == 100
        told = repr(director.reporter.__dict__)
        assert "usual" not in told
        assert b"usual".hex() not in told
    # The same values, whoever draws them.
    assert rows[0] == rows[1]
    assert nothing_is_left(base_dir) == NOTHING


def test_the_tables_of_pgbench_can_be_the_data(direct, of_load):
    text = "SELECT abalance FROM pgbench_accounts WHERE aid = 7;"
    plan, given = of_load(text, LoadData("pgbench", scale=1))
    findings, _director = executed(direct, plan, given)
    assert findings.measurements["load_statements"] == 1


def test_all_of_the_sample_can_be_executed(direct, of_load):
    plan, given = of_load(sample.STATEMENTS, LoadData("pgbench", scale=1))
    findings, _director = executed(direct, plan, given)
    assert findings.measurements["load_failed"] == 0


MIXED = """
SELECT abalance FROM pgbench_accounts WHERE aid = 7;
BEGIN; UPDATE pgbench_branches SET bbalance = 5 WHERE bid = 1;
SELECT bbalance FROM pgbench_branches WHERE bid = 1; COMMIT;
INSERT INTO pgbench_branches (bid, filler) VALUES (999, 'taken back');
SELECT count(*) FROM pgbench_branches WHERE filler = ':scale';
SELECT count(*) FROM pgbench_branches WHERE filler ~ '\\shell touch /tmp/never';
SELECT 1 / (bid - 1) FROM pgbench_branches;
SELECT tbalance FROM pgbench_tellers WHERE tid = 1;
"""


@pytest.fixture
def found_whole(direct, of_load):
    """What a run finds of the whole, by two clients, and the rows that it leaves."""

    def measure(text, failed=(), **changed):
        plan, given = of_load(text, LoadData("pgbench", scale=1))
        given = replace(given, failed=frozenset(failed))
        parameters = {**plan.parameters, "whole_clients": 2}
        director = direct(replace(plan, parameters=parameters, **changed))
        director.bench.load = given
        findings = execute(director)
        files = {artifact.name: artifact.content for artifact in findings.artifacts}
        found = Found.from_json(content.opened(given.key, files[content.ARTIFACT]))
        numbers = {unit.text: unit.number for unit in given.units}
        return found.whole, numbers, findings, director

    return measure


def test_the_load_as_a_whole_is_drawn_by_several_clients(found_whole, base_dir):
    """A branch that was not taken back could not be inserted again: pgbench would end."""
    whole, numbers, findings, director = found_whole(MIXED)
    assert whole.problem == "", whole.message
    assert whole.calls_per_second > 10
    assert findings.measurements["load_rate"] == whole.calls_per_second
    assert whole.failed == (numbers["SELECT ? / (bid - ?) FROM pgbench_branches"],)
    # What pgbench would read as its own; the commands of others never reach a shell.
    assert {text for text, number in numbers.items() if number in whole.unsafe} == {
        "SELECT count(*) FROM pgbench_branches WHERE filler = ?",
        "SELECT count(*) FROM pgbench_branches WHERE filler ~ ?",
    }
    assert len(whole.drawn) == 4
    told = repr(director.reporter.__dict__)
    assert "taken back" not in told
    assert nothing_is_left(base_dir) == NOTHING


def test_what_failed_on_another_version_is_left_out_here_too(found_whole):
    text = "SELECT tbalance FROM pgbench_tellers WHERE tid = 1; SELECT 2;"
    whole, _numbers, _findings, _director = found_whole(text, failed=[1])
    assert whole.failed == (1,)
    assert whole.drawn == (2,)
    whole, _numbers, findings, _director = found_whole(text, failed=[1, 2])
    assert (whole.problem, whole.calls_per_second) == ("nothing_left", None)
    assert "whole_not_measured" in {note.code for note in findings.notes}


def test_an_old_pgbench_measures_no_whole_and_the_run_says_so(found_whole):
    whole, _numbers, _findings, _director = found_whole(
        "SELECT 1;", client_version_num=100023
    )
    assert whole.problem == "old_client"


def test_more_statements_than_pgbench_has_scripts_are_all_drawn(found_whole):
    many = 150
    columns = [
        f"SELECT {', '.join(['tid'] * (n + 1))} FROM pgbench_tellers;"
        for n in range(many)
    ]
    whole, _numbers, _findings, _director = found_whole("\n".join(columns))
    assert whole.problem == "", whole.message
    assert len(whole.drawn) == many
    assert whole.calls_per_second > 10


ACCOUNTS = """
SELECT sum(abalance) FROM pgbench_accounts;
SELECT abalance FROM pgbench_accounts WHERE aid = 7;
"""
# Of scale 1, its pages have 8 kB.
PAGES = 1640
OLD, NEW = "9.6.24", "18.0"


@pytest.fixture
def cold(direct, of_load, account, binaries):
    """What a run of cold executions finds of each statement, by its text, and its findings."""

    def measure(version, arm=None):
        plan, given = of_load(ACCOUNTS, LoadData("pgbench", scale=1))
        if version == OLD:
            plan = with_contrib(plan, account, OLD)
        else:
            plan = replace(plan, bindir=str(binaries.postgresql18), version_num=180004)
        parameters = {**plan.parameters, "passes": 1, "cold": 1, "whole_clients": 2}
        levels = {**plan.levels, "version": version}
        if arm is not None:
            parameters |= {"duration": 2, trial.STATEMENT: 1}
            levels[trial.LEVEL] = arm
        director = direct(replace(plan, parameters=parameters, levels=levels))
        director.bench.load = given
        findings = execute(director)
        files = {artifact.name: artifact.content for artifact in findings.artifacts}
        if arm is not None:
            stored = content.opened(given.key, files[trial.ARTIFACT])
            return TrialTimes.from_json(stored).arms, findings
        found = Found.from_json(content.opened(given.key, files[content.ARTIFACT]))
        units = {unit.text: found.units[unit.number - 1] for unit in given.units}
        return units, found.whole, findings

    return measure


@pytest.mark.on_disk
@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_cold_execution_reads_all_of_its_table_from_the_disk(cold, base_dir, version):
    """By the kernel's counters, for which a read from the system's cache is none."""
    units, whole, findings = cold(version)
    summed = units["SELECT sum(abalance) FROM pgbench_accounts"]
    (plan,) = summed.shapes
    assert plan.blocks_read >= PAGES
    assert summed.read_bytes >= PAGES * 8192
    found_one = units["SELECT abalance FROM pgbench_accounts WHERE aid = ?"]
    # Two pages of the index and one of the table, and the catalogue of a new session.
    assert found_one.shapes[0].blocks_read >= 2
    assert 0 < found_one.read_bytes < summed.read_bytes / 2
    assert whole.calls_per_second > 0
    codes = {note.code for note in findings.notes}
    assert "cold_executions" in codes
    # Those of the restarts are none of the load.
    assert "checkpoint_during_run" not in codes
    assert nothing_is_left(base_dir) == NOTHING


@pytest.mark.on_disk
def test_a_trial_is_cold_where_the_answer_was(cold):
    arms, findings = cold(NEW, trial.level({"enable_seqscan": "off"}))
    assert list(arms) == ["B", "B again", "enable_seqscan"]
    assert {len(times) for times in arms.values()} == {2}
    assert "cold_executions" in {note.code for note in findings.notes}


def test_what_is_always_in_memory_is_not_called_cold(cold, base_dir):
    kind = subprocess.check_output(["stat", "-f", "-c", "%T", base_dir], text=True)
    if kind.strip() != "tmpfs":
        pytest.skip("the tests' folder is on a disk")
    with pytest.raises(TargetProblem) as raised:
        cold(NEW)
    assert raised.value.code == "not_cold"
    assert nothing_is_left(base_dir) == NOTHING


@pytest.fixture
def tried(direct, of_load):
    """The times of the arms of a trial of the first statement, and the run's findings."""

    def measure(text, arm):
        plan, given = of_load(text, LoadData("pgbench", scale=1))
        parameters = {**plan.parameters, "duration": 2, trial.STATEMENT: 1}
        levels = {**plan.levels, trial.LEVEL: arm}
        director = direct(replace(plan, parameters=parameters, levels=levels))
        director.bench.load = given
        findings = execute(director)
        files = {artifact.name: artifact.content for artifact in findings.artifacts}
        stored = content.opened(given.key, files[trial.ARTIFACT])
        return TrialTimes.from_json(stored).arms, findings, director

    return measure


def test_a_statement_is_tried_with_settings_put_back_in_turn(tried):
    """Without its index scans the statement reads the table: the arm's setting holds."""
    text = "SELECT abalance AS secret_name FROM pgbench_accounts WHERE aid = 4711;"
    without_index = {"enable_indexscan": "off", "enable_bitmapscan": "off"}
    arms, findings, director = tried(text, trial.level(without_index))
    assert list(arms) == ["B", "B again", *without_index, "all"]
    assert {len(times) for times in arms.values()} == {2}
    assert min(arms["all"].values()) > 2 * max(arms["B"].values())
    assert findings.measurements["load_statements"] == 1
    assert "secret_name" not in repr(director.reporter.__dict__)
    arms, _findings, _director = tried(text, "A")
    assert list(arms) == ["A"]


def test_a_setting_that_is_refused_gives_its_arm_no_time(tried):
    """A session may not set it: its times would be those of B."""
    settings = {"shared_buffers": "1MB", "work_mem": "64kB"}
    arms, _findings, _director = tried("SELECT 1;", trial.level(settings))
    assert list(arms) == ["B", "B again", "work_mem"]


def test_a_client_that_fails_among_others_costs_the_whole_and_nothing_else(found_whole):
    """Alone it gets its lock; of two clients one does not wait for it."""
    text = """
    BEGIN; SELECT bid FROM pgbench_branches FOR UPDATE NOWAIT; SELECT pg_sleep(0.02); COMMIT;
    SELECT 1;
    """
    whole, _numbers, findings, _director = found_whole(text)
    assert (whole.problem, whole.calls_per_second) == ("ended", None)
    assert "could not obtain lock" in whole.message
    assert findings.measurements["load_statements"] == 2
    assert "load_rate" not in findings.measurements
    assert "obtain lock" not in repr([note.message for note in findings.notes])
