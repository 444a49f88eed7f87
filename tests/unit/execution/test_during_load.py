"""What a server did by itself during a load, from how its counters moved."""

from types import SimpleNamespace

import pytest

from runs.execution.evidence import during_load

BYTES = {"pgbench_accounts": 900.0, "pgbench_branches": 8.0, "pgbench_history": 200.0}


def noted(moved, restarts=0):
    notes = []
    bench = SimpleNamespace(
        restarts=restarts,
        note=lambda code, _text, level="warning", **values: notes.append(
            (code, level, values)
        ),
    )
    during_load.note(bench, moved, BYTES)
    return notes


def test_the_checkpoint_of_a_restart_is_none_of_the_load():
    moved = {"pg_stat_checkpointer": {"": {"num_requested": 11}}}
    assert noted(moved, restarts=11) == []
    moved = {"pg_stat_checkpointer": {"": {"num_timed": 1, "num_requested": 11}}}
    (note,) = noted(moved, restarts=11)
    assert note == ("checkpoint_during_run", "warning", {"number": 1})


@pytest.mark.parametrize(
    ("view", "row", "number"),
    [
        ("pg_stat_bgwriter", {"checkpoints_timed": 1}, 1),
        (
            "pg_stat_bgwriter",
            {"checkpoints_timed": 1, "checkpoints_req": 2, "buffers_clean": 9},
            3,
        ),
        ("pg_stat_checkpointer", {"num_requested": 1, "num_done": 1}, 1),
        ("pg_stat_checkpointer", {"buffers_written": 7}, 0),
        ("pg_stat_bgwriter", {"buffers_alloc": 100}, 0),
    ],
)
def test_checkpoints_of_each_version(view, row, number):
    expected = (
        [("checkpoint_during_run", "warning", {"number": number})] if number else []
    )
    assert noted({view: {"": row}}) == expected


def test_autovacuum_of_what_is_large():
    tables = {
        "public pgbench_accounts": {"autovacuum_count": 1},
        "public pgbench_branches": {"autovacuum_count": 2, "autoanalyze_count": 2},
        "public pgbench_history": {"n_tup_ins": 5},
    }
    ((code, level, values),) = noted({"pg_stat_user_tables": tables})
    assert (code, level) == ("autovacuum_during_run", "info")
    assert values == {"tables": "pgbench_accounts"}
    assert noted({}) == []
