"""Suspects: only what differs, can act, and belongs to a part that moved."""

from dataclasses import replace

from runs.analysis.why import suspects
from runs.analysis.why.suspects import Side
from runs.postgresql_settings import comparing
from tests.unit.analysis.why.test_parts import PLAIN


def settings(major, **printed):
    rows = {
        name: {"setting": value, "unit": unit, "source": "default"}
        for name, (value, unit) in printed.items()
    }
    return comparing.of_server(rows, major)


def side(major, number, account=PLAIN, **printed):
    return Side(major, number, settings(major, **printed), [account] * 3)


def plan(*nodes, **more):
    found = {}
    for name in reversed(nodes):
        found = {"Node Type": name, **({"Plans": [found]} if found else {})}
    return {"statement": "SELECT 1", "Plan": found, **more}


def reasons(found):
    return {each.name: each.reason for each in found}


PARALLEL = "max_parallel_workers_per_gather"


def test_a_changed_default_that_changes_the_plan_comes_first():
    serial = replace(PLAIN, plans=[plan("Aggregate", "Seq Scan")], jit=None)
    gathered = replace(PLAIN, plans=[plan("Aggregate", "Gather", "Aggregate", "Seq Scan")])
    a = side("9.6", 90624, serial, **{PARALLEL: ("0", "")}, random_page_cost=("4", ""))
    b = side("10", 100023, gathered, **{PARALLEL: ("2", "")}, random_page_cost=("3", ""))
    found = suspects.find(a, b, None)
    assert [each.name for each in found if each.is_candidate] == [PARALLEL, "random_page_cost"]
    assert found[0].put_back == {PARALLEL: "0"}
    assert "parallel_differs" in found[0].evidence
    assert [each.kind for each in found if not each.put_back] == ["plan"]


def test_what_cannot_act_says_why():
    reads = {"pg_stat_database": {"": {"blks_hit": 5000.0}}}
    same = replace(PLAIN, plans=[plan("Index Scan")], counters=reads, jit=False)
    a = side(
        "11",
        110022,
        same,
        jit=("off", ""),
        random_page_cost=("4", ""),
        work_mem=("4096", "kB"),
        wal_compression=("off", ""),
        checkpoint_timeout=("300", "s"),
        effective_io_concurrency=("1", ""),
        plan_cache_mode=("auto", ""),
        track_io_timing=("off", ""),
        autovacuum_naptime=("60", "s"),
    )
    b = side(
        "12",
        120022,
        same,
        jit=("on", ""),
        random_page_cost=("2", ""),
        work_mem=("8192", "kB"),
        wal_compression=("on", ""),
        checkpoint_timeout=("900", "s"),
        effective_io_concurrency=("16", ""),
        plan_cache_mode=("force_custom_plan", ""),
        track_io_timing=("on", ""),
        autovacuum_naptime=("30", "s"),
    )
    assert reasons(suspects.find(a, b, None)) == {
        "track_io_timing": "",
        "jit": "no_jit",
        "random_page_cost": "plans_same",
        "plan_cache_mode": "not_prepared",
        "work_mem": "no_memory_used",
        "wal_compression": "nothing_written",
        "checkpoint_timeout": "no_checkpoint",
        "effective_io_concurrency": "nothing_read",
        "autovacuum_naptime": "no_vacuum",
    }


def test_the_same_amount_in_another_unit_is_no_suspect():
    a = side("9.6", 90624, max_wal_size=("64", "16MB"))
    b = side("10", 100023, max_wal_size=("1024", "MB"))
    assert suspects.find(a, b, None) == []


def test_a_setting_that_the_older_version_lacks_gets_what_it_did_without():
    a = side("17", 170006)
    b = side("18", 180000, io_method=("worker", ""), io_workers=("3", ""))
    found = suspects.find(a, b, None)
    assert [(each.name, each.put_back) for each in found] == [("io_method", {"io_method": "sync"})]


def test_compilers_and_checksums_are_named_and_no_setting_mends_them():
    old = replace(PLAIN, built="PostgreSQL 10.23 on x86_64, compiled by gcc (GCC) 4.4.7, 64-bit")
    new = replace(PLAIN, built="PostgreSQL 11.22 on x86_64, compiled by gcc (GCC) 7.5.0, 64-bit")
    a = side("10", 100023, old, data_checksums=("off", ""))
    b = side("11", 110022, new, data_checksums=("on", ""))
    found = {each.kind: each for each in suspects.find(a, b, None)}
    assert (found["build"].a, found["build"].b) == ("gcc (GCC) 4.4.7", "gcc (GCC) 7.5.0")
    assert not found["build"].is_candidate
    assert not found["checksums"].is_candidate


def test_at_most_six_go_to_proof():
    names = [f"track_{each}" for each in ("activities", "counts", "io_timing", "functions")]
    names += ["track_commit_timestamp", "track_activity_query_size", "compute_query_id"]
    a = side("14", 140019, **dict.fromkeys(names, ("a", "")))
    b = side("14", 140019, **dict.fromkeys(names, ("b", "")))
    found = suspects.find(a, b, None)
    assert len([each for each in found if each.is_candidate]) == 6
    assert [each.reason for each in found if not each.is_candidate] == ["rank"]
