"""Causes of many kinds, planted on real servers: none is excluded, and no sentence is false.

Each case makes one difference (or several) between two sides with the same program. The page must
list the cause; where the difference is sure it must be among the first three, and an ablation that
puts it back must not say that it has no effect.
"""

import re
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from django.db import connection

from benchlab.embedded.places import Places, var_from_environment
from benchlab.lab import folders, releases
from runs.campaigns.services import campaigns
from runs.configurations.services import configurations
from runs.configurations.services.contents import Content
from runs.execution.machine.treatment import Treatment
from runs.models import Cell, Run, Workload
from runs.queue.services import execution, leases
from runs.why.selectors.answers import answer_explanation
from runs.why.services import ablations
from runs.why.services.explanations import explain
from runs.workloads.services import scenarios
from tests import factories
from tests.ssh.initialised import quick_bindir
from tests.started import wait_for_lab

pytestmark = [pytest.mark.openssh, pytest.mark.django_db(transaction=True)]

WITH_ICU = Path("/usr/lib/postgresql/15/bin")
TABLE = """CREATE TABLE t (id int PRIMARY KEY, k int, v text);
INSERT INTO t SELECT i, (i * 7919) % 20000, md5(i::text) FROM generate_series(1, 20000) i;
CREATE INDEX t_k ON t (k);
"""
ANALYZED = f"{TABLE}ANALYZE;\n"
BY_K = "\\set k random(1, 20000)\n"
COUNT = f"{BY_K}SELECT count(v) FROM t WHERE k = :k;\n"
UPDATE = f"{BY_K}UPDATE t SET v = 'x' WHERE k = :k;\n"
# What no answer may contain: a rule by proxy stated as a fact, a name for the rest.
FALSE = re.compile(
    r"cannot act|does not act|code or the build|refuted|[Nn]othing that differs can be put back"
)


@dataclass(frozen=True)
class Plant:
    """A script on tables that `setup` makes; what B has otherwise, as a pair of A and B.

    `causes` are the keys of what makes the difference; `answer` is what the ablation says, if it
    is tried.
    """

    script: str
    causes: tuple[str, ...]
    setup: tuple[str, str] = (ANALYZED, ANALYZED)
    settings: tuple[dict[str, str], dict[str, str]] = ({}, {})
    initdb: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    treatment: tuple[dict[str, str], dict[str, str]] = ({}, {})
    has_own_tables: bool = True
    needs_icu: bool = False
    clients: int = 1
    answer: str = ""
    decoys: tuple[str, ...] = field(default=())


def off(*names):
    return ({}, dict.fromkeys(names, "off"))


INDEX_SCANS = ("enable_indexscan", "enable_bitmapscan", "enable_indexonlyscan")
FUNCTION = """CREATE FUNCTION f(x int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN RETURN (SELECT count(v) FROM t WHERE k = x); END $$;
"""
TRIGGER = """CREATE TABLE log (k int, at timestamptz);
CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO log VALUES (NEW.k, clock_timestamp());
    PERFORM count(*) FROM generate_series(1, 2000);
    RETURN NEW;
END $$;
CREATE TRIGGER g AFTER UPDATE ON t FOR EACH ROW EXECUTE PROCEDURE g();
"""
JOINED = """CREATE TABLE t (id int PRIMARY KEY, k int);
INSERT INTO t SELECT i, i % 3000 FROM generate_series(1, 20000) i;
CREATE TABLE u (k int, w int);
INSERT INTO u SELECT (i * 7) % 3000, i FROM generate_series(1, 20000) i;
CREATE INDEX u_k ON u (k);
"""
TOAST = """CREATE TABLE t (id int PRIMARY KEY, v text);
ALTER TABLE t ALTER v SET STORAGE EXTERNAL;
INSERT INTO t SELECT i, repeat(md5(i::text), 3000) FROM generate_series(1, 600) i;
"""
WORDS = """CREATE TABLE t (v text);
INSERT INTO t SELECT md5(i::text) FROM generate_series(1, 4000) i;
"""
PARENT = """CREATE TABLE p (id int PRIMARY KEY);
INSERT INTO p SELECT generate_series(0, 20000);
"""
SEVEN = "CREATE FUNCTION h() RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN 7; END $$;"
TARGET = {"default_statistics_target": "10000"}

PLANTS = {
    "row locks": Plant(
        "\\set aid random(1, 100000 * :scale)\nBEGIN;\n"
        "SELECT abalance FROM pgbench_accounts WHERE aid = :aid FOR UPDATE;\nEND;\n",
        ("synchronous_commit",),
        ("", ""),
        ({"synchronous_commit": "off"}, {}),
        has_own_tables=False,
        answer="Putting synchronous_commit back explains",
    ),
    "plans in a function": Plant(
        f"{BY_K}SELECT f(:k);\n",
        INDEX_SCANS,
        (ANALYZED + FUNCTION, ANALYZED + FUNCTION),
        off(*INDEX_SCANS),
        answer="it needs them all",
    ),
    "planning": Plant(
        "\\set x random(1, 20000)\nSELECT count(*) FROM t JOIN u USING (k) WHERE t.id = :x;\n",
        ("default_statistics_target",),
        (f"{JOINED}ANALYZE;", f"{JOINED}ANALYZE;"),
        ({}, TARGET),
        answer="Putting default_statistics_target back explains",
    ),
    "log of the executor": Plant(
        COUNT,
        ("log_executor_stats",),
        settings=({}, {"log_executor_stats": "on"}),
        answer="Putting log_executor_stats back explains",
    ),
    "each suffices": Plant(
        "SELECT k, v FROM t ORDER BY k LIMIT 1;\n",
        ("enable_indexscan", "random_page_cost"),
        settings=({}, {"enable_indexscan": "off", "random_page_cost": "1000000"}),
        answer="So each of the two suffices",
    ),
    "collation of ICU": Plant(
        "SELECT max(v) FROM (SELECT v FROM t ORDER BY v OFFSET 100) s;\n",
        ("initdb options",),
        (WORDS, WORDS),
        ({}, {"track_functions": "all"}),
        (
            (),
            ("--locale-provider=icu", "--icu-locale=en", "--encoding=UTF8"),
        ),
        needs_icu=True,
        answer="Putting options of initdb back explains",
        decoys=("track_functions",),
    ),
    "commit delay": Plant(
        "simple-update",
        ("commit_delay",),
        settings=({}, {"commit_delay": "10000", "commit_siblings": "0"}),
        answer="Putting commit_delay back explains",
    ),
    "index": Plant(
        UPDATE,
        ("index t_k", "setup init_sql"),
        (ANALYZED, f"{ANALYZED}DROP INDEX t_k;\n"),
        answer="Putting index t_k back explains",
    ),
    "trigger": Plant(
        UPDATE,
        ("trigger t.g", "setup init_sql"),
        (ANALYZED, ANALYZED + TRIGGER),
        answer="Putting trigger t.g back explains",
    ),
    "unlogged": Plant(
        UPDATE,
        ("relation t", "setup init_sql"),
        (ANALYZED, f"{ANALYZED}ALTER TABLE t SET UNLOGGED;\n"),
    ),
    "checksums": Plant(
        "select-only", ("initdb options",), initdb=((), ("--data-checksums",))
    ),
    "TOAST from disk": Plant(
        "\\set x random(1, 600)\nSELECT length(v) FROM t WHERE id = :x;\n",
        ("shared_buffers",),
        (TOAST, TOAST),
        ({"shared_buffers": "256MB"}, {"shared_buffers": "1MB"}),
    ),
    "log of statements": Plant(
        COUNT,
        ("log_statement", "log_min_duration_statement"),
        settings=({}, {"log_statement": "all", "log_min_duration_statement": "0"}),
    ),
    "isolation": Plant(
        COUNT,
        ("default_transaction_isolation",),
        settings=({}, {"default_transaction_isolation": "serializable"}),
    ),
    "consistency of WAL": Plant(
        "simple-update",
        ("wal_consistency_checking",),
        settings=({}, {"wal_consistency_checking": "all"}),
    ),
    "one processor": Plant(
        "tpcb-like",
        ("treatment server_cpus", "treatment pgbench_cpus"),
        treatment=({}, {"server_cpus": "0", "pgbench_cpus": "0"}),
        clients=2,
    ),
    # Kinds that came later.
    "statistics missing": Plant(
        "\\set k random(1, 200)\nSELECT count(*) FROM t a JOIN t b USING (k) WHERE a.id < :k;\n",
        ("setup init_sql",),
        (ANALYZED, f"{TABLE}ALTER TABLE t SET (autovacuum_enabled = off);\n"),
    ),
    "type of a column": Plant(
        "SELECT sum(k) FROM t;\n",
        ("column t.k", "setup init_sql"),
        (ANALYZED, f"{ANALYZED}ALTER TABLE t ALTER k TYPE numeric;\n"),
        answer="Putting column t.k back explains",
    ),
    "cache of a sequence": Plant(
        "SELECT nextval('s');\n",
        ("sequence s", "setup init_sql"),
        ("CREATE SEQUENCE s CACHE 1000;", "CREATE SEQUENCE s CACHE 1;"),
    ),
    "foreign key": Plant(
        f"{BY_K}UPDATE t SET k = :k WHERE id = :k;\n",
        ("constraint t.t_k_fkey", "setup init_sql"),
        (
            ANALYZED + PARENT,
            f"{ANALYZED}{PARENT}ALTER TABLE t ADD FOREIGN KEY (k) REFERENCES p;",
        ),
    ),
    "volatile function": Plant(
        "SELECT count(*) FROM t WHERE k = h();\n",
        ("function h()", "setup init_sql"),
        (ANALYZED + SEVEN, ANALYZED + SEVEN.replace("STABLE", "VOLATILE")),
        answer="Putting function h() back explains",
    ),
    "sort on disk": Plant(
        "SELECT max(v) FROM (SELECT v FROM t ORDER BY v OFFSET 100) s;\n",
        ("work_mem",),
        settings=({"work_mem": "64MB"}, {"work_mem": "64kB"}),
    ),
    "half of the processors for parallel plans": Plant(
        "SELECT count(*) FROM pgbench_accounts;\n",
        ("max_parallel_workers_per_gather", "max_parallel_workers"),
        ("", ""),
        (
            {"max_parallel_workers_per_gather": "2"},
            {"max_parallel_workers_per_gather": "0"},
        ),
        has_own_tables=False,
    ),
}


@pytest.fixture
def server_of(racks, binaries, account, test_folder):
    """A server with the programs of 18 for the load, and with those that a plant needs."""

    def made(plant):
        if plant.needs_icu:
            if not WITH_ICU.exists():
                pytest.skip("PostgreSQL 15 with ICU is missing: Debian's postgresql-15")
            return racks(1, [binaries.postgresql18, WITH_ICU])[0]
        wait_for_lab()
        places = Places(var_from_environment({}))
        (version,) = (
            release.version for release in releases.every() if release.major == "17"
        )
        folder = folders.versions_folder(places, account) / version / "bin"
        if not (folder / "postgres").exists():
            pytest.skip(f"PostgreSQL {version} is missing: script/lab says why")
        return racks(
            1, [binaries.postgresql18, quick_bindir(folder, test_folder, account)]
        )[0]

    return made


def work_off(server):
    while claim := leases.claim(server_id=server.pk, holder="worker"):
        execution.execute(claim)


def planted(plant, server, rounds):
    """The keys of the cells of both sides, measured."""
    scenarios.sync()
    levels = [plant.script, plant.script]
    if "\n" in plant.script or plant.script.endswith(";"):
        workload = factories.workload("own")
        first = workload.versions.get()
        first.scripts = [{"name": "own", "text": plant.script, "weight": 1}]
        first.init_sql, first.has_own_tables = plant.setup[0], plant.has_own_tables
        first.save()
        levels = ["own@1", "own@1"]
        if plant.setup[0] != plant.setup[1]:
            first.pk, first.number, first.init_sql = None, 2, plant.setup[1]
            first.save()
            levels = ["own@1", "own@2"]
    assert Workload.objects.count() <= 1
    content = [
        configurations.create(
            name=name, description="", content=Content(dict(settings), tuple(options))
        )
        for name, settings, options in zip(
            "ab", plant.settings, plant.initdb, strict=True
        )
    ]
    is_of_two = plant.treatment[0] != plant.treatment[1] or levels[0] != levels[1]
    folder = "/usr" if plant.needs_icu else "lab"
    common = {
        "scenario": "pgbench",
        "installations": [
            program
            for program in server.installations.all()
            if folder in program.bindir
        ],
        "parameters": {
            "duration": 2,
            "warm_up": 0,
            "rate": 0,
            "max_tries": 0,
            "random_seed": 0,
            "fillfactor": 100,
        },
        "repeats": rounds,
    }
    drafts = []
    for index in range(2 if is_of_two else 1):
        of_level = {
            "script": [levels[index]],
            "scale": [1],
            "clients": [plant.clients],
            "query_mode": ["simple"],
            "connection": ["kept"],
        }
        drafts.append(
            factories.draft(
                server,
                title=f"side {index}",
                levels=of_level,
                configuration=content[index],
                more_configurations=[] if is_of_two else [content[1]],
                treatment=Treatment.of(plant.treatment[index]),
                **common,
            )
        )
    made = [campaigns.create(draft=draft) for draft in drafts]
    work_off(server)
    cells = Cell.objects.filter(campaign__in=made).order_by("campaign_id", "ordinal")
    a, b = (cell.pk for cell in cells)
    return a, b


def report(name, explanation, answer):
    """A row of the table in docs/why.md, as the log has it."""
    first = [
        (row.key, row.state, row.signs or row.looked) for row in answer.differences[:4]
    ]
    print(f"\nPLANT {name}: {answer.sentence}\n  {first}\n  {answer.ablation.notes}")


def is_sure(explanation):
    difference = explanation.difference
    return difference is not None and (
        difference.seconds.is_apart
        or (difference.cpu is not None and difference.cpu.is_apart)
    )


@pytest.mark.slow
@pytest.mark.full_load
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", PLANTS)
def test_a_cause_is_listed_and_nothing_false_is_said(server_of, admin_user, name):
    plant = PLANTS[name]
    a, b = planted(plant, server_of(plant), rounds=4)
    explanation = explain(a, b, reader=admin_user)
    answer = answer_explanation(explanation)
    report(name, explanation, answer)
    assert explanation.obstacle == "", answer.sentence
    assert not FALSE.search(answer.sentence), answer.sentence
    rows = {row.key: row for row in answer.differences}
    assert plant.causes[0] in rows
    assert all(rows[cause].can_try for cause in plant.causes if cause in rows)
    if is_sure(explanation):
        keys = [row.key for row in answer.differences if row.can_try]
        assert set(plant.causes) & set(keys[:3]), keys
    assert not Run.objects.filter(state=Run.State.FAILED).exists()
    connection.close()


@pytest.mark.slow
@pytest.mark.full_load
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "name", [name for name, plant in PLANTS.items() if plant.answer]
)
def test_what_is_put_back_answers_with_all_its_arms(server_of, admin_user, name):
    """On a machine that others use it may stay undecided, and then must say so."""
    plant = PLANTS[name]
    server = server_of(plant)
    a, b = planted(plant, server, rounds=2)
    found = explain(a, b, reader=admin_user)
    ablations.start(found=found, by=admin_user)
    begun = time.monotonic()
    work_off(server)
    explanation = explain(a, b, reader=admin_user)
    answer = answer_explanation(explanation)
    report(
        f"{name}, put back in {(time.monotonic() - begun) / 60:.1f} min",
        explanation,
        answer,
    )
    assert not FALSE.search(answer.sentence), answer.sentence
    proofs = explanation.proofs
    proven = {share.name for proof in proofs for share in proof.explained}
    assert not proven & set(plant.decoys)
    undecided = all(
        not proof.has_effect
        or any(share.answer == "undecided" for share in proof.suspects)
        for proof in proofs
    )
    assert plant.answer in answer.sentence or undecided, answer.sentence
    assert not Run.objects.filter(state=Run.State.FAILED).exists()
    connection.close()
