"""Differences: all are listed, and what points to each orders them."""

import json
from dataclasses import replace

from runs.analysis.why import parts, plan_reads, suspects
from runs.analysis.why.suspects import Side, Suspect
from runs.postgresql_settings import comparing
from tests.unit.analysis.why.test_parts import PLAIN


def settings(major, **printed):
    rows = {
        name: {"setting": value, "unit": unit, "source": "configuration file"}
        for name, (value, unit) in printed.items()
    }
    return comparing.read_server(rows, major)


def side(major, number, account=PLAIN, **printed):
    return Side(major, number, settings(major, **printed), [account] * 3)


def plan(*nodes, **more):
    found = {}
    for name in reversed(nodes):
        found = {"Node Type": name, **({"Plans": [found]} if found else {})}
    return {"statement": "SELECT 1", "Plan": found, **more}


def states(differences):
    return {suspect.name: suspect.state for suspect in differences}


PARALLEL = "max_parallel_workers_per_gather"


def test_a_changed_default_that_changes_the_plan_comes_first():
    serial = replace(PLAIN, plans=[plan("Aggregate", "Seq Scan")], jit=None)
    gathered = replace(
        PLAIN, plans=[plan("Aggregate", "Gather", "Aggregate", "Seq Scan")]
    )
    a = side("9.6", 90624, serial, **{PARALLEL: ("0", "")}, random_page_cost=("4", ""))
    b = side(
        "10", 100023, gathered, **{PARALLEL: ("2", "")}, random_page_cost=("3", "")
    )
    found = suspects.find(a, b, None)
    # The plan that differs is the first, in a sentence of its own.
    assert [suspect.kind for suspect in found] == ["plan", "setting", "setting"]
    assert [suspect.name for suspect in found[1:]] == [PARALLEL, "random_page_cost"]
    assert found[1].put_back == {PARALLEL: "0"}
    assert "parallel_differs" in found[1].evidence


def test_nothing_is_excluded_and_what_was_not_looked_at_is_named():
    """The same plan and no write says nothing of planning, functions, and row locks."""
    reads = {"pg_stat_database": {"": {"blks_hit": 5000.0}}}
    same = replace(PLAIN, plans=[plan("Index Scan")], counters=reads, jit=False)
    values = {
        "jit": ("off", "on"),
        "random_page_cost": ("4", "2"),
        "default_statistics_target": ("100", "10000"),
        "synchronous_commit": ("off", "on"),
        "checkpoint_timeout": ("300", "900"),
        "shared_buffers": ("16384", "128"),
        "log_executor_stats": ("off", "on"),
        "track_io_timing": ("off", "on"),
        "autovacuum_naptime": ("60", "30"),
    }
    a = side(
        "17", 170006, same, **{name: (old, "") for name, (old, _new) in values.items()}
    )
    b = side(
        "17", 170006, same, **{name: (new, "") for name, (_old, new) in values.items()}
    )
    differences = suspects.find(a, b, None)
    assert {suspect.name for suspect in differences} == set(values)
    assert all(suspect.is_candidate for suspect in differences)
    assert states(differences) == {
        **dict.fromkeys(values, "no_sign"),
        # Nothing that these runs recorded shows it: the log was not measured, no counter tells.
        "log_executor_stats": "not_judged",
        "track_io_timing": "not_judged",
    }
    by_name = {suspect.name: suspect for suspect in differences}
    assert "planning.ms" in by_name["default_statistics_target"].unseen
    assert "log.bytes" in by_name["log_executor_stats"].unseen
    assert "pg_stat_wal.wal_sync" in by_name["synchronous_commit"].looked
    assert "lsn.bytes" not in by_name["synchronous_commit"].looked


def test_plans_within_functions_are_not_looked_at_where_a_function_is():
    with_function = {"function": {"f(integer)": "plpgsql"}}
    same = replace(PLAIN, plans=[plan("Result")], objects=with_function)
    a = side("17", 170006, same, enable_indexscan=("on", ""))
    b = side("17", 170006, same, enable_indexscan=("off", ""))
    (suspect,) = suspects.find(a, b, None)
    assert "functions" in suspect.unseen
    nested = replace(same, has_nested=True)
    a = side("17", 170006, nested, enable_indexscan=("on", ""))
    b = side("17", 170006, nested, enable_indexscan=("off", ""))
    (suspect,) = suspects.find(a, b, None)
    assert "functions" not in suspect.unseen


def test_the_same_amount_in_another_unit_is_no_suspect():
    a = side("9.6", 90624, max_wal_size=("64", "16MB"))
    b = side("10", 100023, max_wal_size=("1024", "MB"))
    assert suspects.find(a, b, None) == []


def test_a_setting_that_the_older_version_lacks_gets_what_it_did_without():
    a = side("17", 170006)
    b = side("18", 180000, io_method=("worker", ""), io_workers=("3", ""))
    found = suspects.find(a, b, None)
    assert [(each.name, each.put_back) for each in found] == [
        ("io_method", {"io_method": "sync"})
    ]


def test_compilers_and_checksums_are_named_and_no_setting_mends_them():
    old = replace(
        PLAIN, built="PostgreSQL 10.23 on x86_64, compiled by gcc (GCC) 4.4.7, 64-bit"
    )
    new = replace(
        PLAIN, built="PostgreSQL 11.22 on x86_64, compiled by gcc (GCC) 7.5.0, 64-bit"
    )
    a = side("10", 100023, old, data_checksums=("off", ""))
    b = side("11", 110022, new, data_checksums=("on", ""))
    found = {suspect.kind: suspect for suspect in suspects.find(a, b, None)}
    assert (found["build"].a, found["build"].b) == (
        "gcc (GCC) 4.4.7",
        "gcc (GCC) 7.5.0",
    )
    assert not found["build"].is_candidate
    assert not found["checksums"].is_candidate


def test_more_than_six_are_tried_by_halves():
    names = [
        f"track_{name}" for name in ("activities", "counts", "io_timing", "functions")
    ]
    names += ["track_commit_timestamp", "track_activity_query_size", "compute_query_id"]
    a = side("14", 140019, **dict.fromkeys(names, ("a", "")))
    b = side("14", 140019, **dict.fromkeys(names, ("b", "")))
    differences = suspects.find(a, b, None)
    first, second = suspects.plan_trials(differences)
    assert [len(first.members), len(second.members)] == [4, 3]
    assert first.put_back.keys() | second.put_back.keys() == set(names)
    assert suspects.number_of_arms([first, second]) == 8
    assert suspects.plan_trials(differences[:6]) == differences[:6]


def test_what_an_ablation_keeps_is_read_again():
    a = side("17", 170006, synchronous_commit=("off", ""))
    b = side("17", 170006, synchronous_commit=("on", ""))
    (suspect,) = suspects.find(a, b, None)
    assert Suspect.from_json(json.loads(json.dumps(suspect.to_json()))) == suspect
    # As BenchLab kept it before.
    kept = {
        "kind": "setting",
        "name": "jit",
        "a": "off",
        "b": "on",
        "put_back": {"jit": "off"},
    }
    kept |= {"reason": "", "evidence": [], "parts": [], "rank": 1.0}
    assert Suspect.from_json(kept).key == "jit"


def test_a_set_up_a_treatment_and_initdb_are_put_back_by_the_plan_of_a_run():
    further = ({"setup": {"init_sql": ""}}, {"setup": {"init_sql": "DROP INDEX t_k"}})
    a, b = (replace(side("17", 170006), further=of_side) for of_side in further)
    (suspect,) = suspects.find(a, b, None)
    assert (suspect.kind, suspect.plan_parts) == ("setup", ("setup",))
    assert suspect.is_candidate


def test_a_kind_that_one_side_did_not_record_is_no_difference():
    a = side("17", 170006)
    b = replace(a, further={"trigger": {"t.g": "CREATE TRIGGER"}})
    assert suspects.find(a, b, None) == []
    with_none = replace(a, further={"trigger": {}})
    assert [suspect.kind for suspect in suspects.find(with_none, b, None)] == [
        "trigger"
    ]


def test_blocked_time_that_moved_is_a_sign_of_what_waits_for_the_disk():
    """As of commit_delay, which moves no counter."""
    waiting = [
        replace(PLAIN, tps=PLAIN.tps / factor, round=number)
        for number, factor in SLOWER
    ]
    quick = [replace(PLAIN, round=number) for number, _factor in SLOWER]
    difference = parts.compare(
        *(list(map(parts.split, side)) for side in (quick, waiting))
    )
    assert "blocked" in difference.moved
    a, b = (
        Side("17", 170006, settings("17", commit_delay=(value, "us")), of_side)
        for value, of_side in (("0", quick), ("10000", waiting))
    )
    (suspect,) = suspects.find(a, b, difference)
    assert (suspect.state, suspect.evidence) == ("acts", ("blocked_moved",))


SLOWER = [(1, 3.0), (2, 3.01), (3, 2.99)]


def test_a_scan_below_a_limit_reads_no_more_than_that():
    scan = {"Node Type": "Index Scan", "Relation Name": "t", "Index Name": "t_k"}
    limited = {
        "Node Type": "Limit",
        "Plan Rows": 1,
        "Plans": [{**scan, "Plan Rows": 20000}],
    }
    whole = {"Node Type": "Seq Scan", "Relation Name": "t", "Plan Rows": 5}
    sort = {
        "Node Type": "Limit",
        "Plan Rows": 1,
        "Plans": [{"Node Type": "Sort", "Plans": [whole]}],
    }
    relations = {"t": {"kind": "r", "bytes": 1, "tuples": 20000}}
    a, b = (
        side("17", 170006, replace(PLAIN, plans=[{"Plan": tree}], relations=relations))
        for tree in (limited, sort)
    )
    of_a, of_b = plan_reads.compare(a, b)
    assert (of_a.rows, of_a.index) == (1, "t_k")
    assert (of_b.rows, of_b.index) == (20000, "")


def test_columns_of_a_table_that_one_side_lacks_are_no_further_differences():
    further = {"relation": {"t": "TABLE"}, "column": {"t.a": "integer"}}
    with_log = {
        "relation": {"t": "TABLE", "log": "TABLE"},
        "column": {"t.a": "integer", "log.k": "integer"},
    }
    a, b = (
        replace(side("17", 170006), further=of_side) for of_side in (further, with_log)
    )
    assert [suspect.key for suspect in suspects.find(a, b, None)] == ["relation log"]


def of_data(**further):
    """A side of an own script, of which this much is recorded; updates move orders' blocks."""
    return replace(
        side("17", 170006),
        further={"setup": {"init_sql": str(further)}, **further},
    )


def with_blocks(of_side, hits):
    rows = {"public orders": {"heap_blks_hit": hits * PLAIN.transactions}}
    account = replace(PLAIN, counters={"pg_statio_user_tables": rows})
    return replace(of_side, accounts=[account] * 3)


def test_a_table_whose_own_counters_moved_comes_before_others_and_the_set_up():
    relations = {"orders": "TABLE", "other": "TABLE"}
    a = with_blocks(of_data(relation=relations), 2.0)
    changed = {name: f"{text} fillfactor=50" for name, text in relations.items()}
    b = with_blocks(of_data(relation=changed), 9.0)
    differences = suspects.find(a, b, None)
    assert [suspect.key for suspect in differences] == [
        "relation orders",
        "setup init_sql",
        "relation other",
    ]
    # A counter of another table is a sign, too, and a weak one.
    assert differences[2].state == "acts"


def test_a_function_that_changed_comes_before_settings_that_nothing_shows():
    a = of_data(function={"f()": "sql v COST 100"})
    b = of_data(function={"f()": "sql s COST 100"})
    kept = settings("17", deadlock_timeout=("1000", "ms"))
    other = settings("17", deadlock_timeout=("3000", "ms"))
    differences = suspects.find(
        replace(a, settings=kept), replace(b, settings=other), None
    )
    assert differences[0].key == "function f()"


def test_what_is_seldom_logged_comes_after_what_logs_each_statement():
    logged = {"log": {"": {"bytes": 500.0 * PLAIN.transactions}}}
    loud = replace(PLAIN, counters=logged, views=frozenset({"log"}))
    quiet = replace(PLAIN, views=frozenset({"log"}))
    names = ("log_lock_waits", "log_statement")
    a = side("17", 170006, quiet, **dict.fromkeys(names, ("off", "")))
    b = side("17", 170006, loud, **dict.fromkeys(names, ("all", "")))
    differences = suspects.find(a, b, None)
    assert [suspect.name for suspect in differences] == [
        "log_statement",
        "log_lock_waits",
    ]


def test_what_follows_from_another_setting_is_no_difference_of_its_own():
    def printed(shared, wal):
        rows = {
            "shared_buffers": (shared, "configuration file"),
            "wal_buffers": (wal, "override"),
        }
        return comparing.read_server(
            {
                name: {"setting": value, "unit": "8kB", "source": source}
                for name, (value, source) in rows.items()
            },
            "17",
        )

    a, b = side("17", 170006), side("17", 170006)
    differences = suspects.find(
        replace(a, settings=printed("32768", "1024")),
        replace(b, settings=printed("128", "8")),
        None,
    )
    assert [suspect.name for suspect in differences] == ["shared_buffers"]


def test_what_follows_from_another_partitioning_is_not_listed_part_by_part():
    def parts(text):
        return {
            "partition": {
                "m partitioned": text,
                "m_0": f"PARTITION OF m FOR VALUES {text}",
                "m_1": f"PARTITION OF m FOR VALUES {text}!",
            },
            "distribution": {
                f"m_{number}.k": f"n_distinct {len(text)}.000" for number in (0, 1)
            },
        }

    differences = suspects.find(
        of_data(**parts("HASH (account)")), of_data(**parts("RANGE (id)")), None
    )
    assert {suspect.key for suspect in differences} == {
        "partition m partitioned",
        "setup init_sql",
    }


def test_of_many_the_set_up_is_put_back_without_the_objects_that_it_makes():
    setup = Suspect("setup", "init_sql", "a", "b", plan_parts=("setup",))
    objects = [
        Suspect("index", f"i{number}", "a", "", statements=("CREATE INDEX",))
        for number in range(6)
    ]
    setting = Suspect("setting", "jit", "off", "on", put_back={"jit": "off"})
    assert suspects.plan_trials([setup, *objects, setting]) == [setup, setting]
    assert [half.kind for half in suspects.plan_trials([*objects, setting])] == [
        "group"
    ] * 2
