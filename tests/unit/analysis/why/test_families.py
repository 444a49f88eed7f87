"""The table of causes: each counter of a row, planted, is a sign of what belongs to the row."""

from dataclasses import replace

import pytest

from runs.analysis.why import counters, families, suspects
from runs.analysis.why.families import FAMILIES
from runs.analysis.why.suspects import Side
from runs.postgresql_settings import comparing
from runs.postgresql_settings.catalogue import MAJORS, catalogue
from runs.why.selectors import words
from tests.unit.analysis.why.test_parts import PLAIN

# A member of each row: a setting, or the kind of a difference.
MEMBERS = {
    "jit": "jit_above_cost",
    "parallel": "max_parallel_workers_per_gather",
    "planner": "random_page_cost",
    "planning": "default_statistics_target",
    "memory": "work_mem",
    "commit": "synchronous_commit",
    "wal": "wal_compression",
    "checkpoints": "max_wal_size",
    "background": "bgwriter_delay",
    "vacuum": "autovacuum_naptime",
    "reading": "shared_buffers",
    "logging": "log_executor_stats",
    "logging_events": "log_lock_waits",
    "none": "track_io_timing",
}
KINDS = {
    "functions": "function",
    "index": "index",
    "relation": "relation",
    "trigger": "trigger",
    "statistics": "statistics",
}
COUNTED = [
    (name, view, column)
    for name in (*MEMBERS, *KINDS)
    for view, column in FAMILIES[name].counters
]
# Under which view and column a version has what several have by another name.
RAW = {
    ("checkpoints", "timed"): ("pg_stat_checkpointer", "num_timed"),
    ("checkpoints", "requested"): ("pg_stat_checkpointer", "num_requested"),
    ("checkpoints", "buffers_written"): ("pg_stat_checkpointer", "buffers_written"),
}
VIEWS = frozenset({"lsn", "log", "planning", "pg_stat_user_functions"})


def account(view, column, amount):
    if view == "planning":
        return replace(PLAIN, planning_ms=amount, views=VIEWS)
    raw_view, raw_column = RAW.get((view, column), (view, column))
    moved = {raw_view: {"": {raw_column: amount * PLAIN.transactions}}}
    return replace(PLAIN, counters=moved, views=VIEWS)


def difference_of(name, of_a, of_b):
    """The member of a row, between sides whose runs have these accounts."""
    sides = []
    for value, of_side in (("1", of_a), ("2", of_b)):
        kept = (
            {MEMBERS[name]: {"setting": value, "unit": ""}} if name in MEMBERS else {}
        )
        further = {KINDS[name]: {"x": value}} if name in KINDS else {}
        settings = comparing.read_server(kept, "17")
        sides.append(Side("17", 170006, settings, [of_side] * 3, further=further))
    differences = suspects.find(*sides, None)
    kind = KINDS.get(name, "setting")
    (suspect,) = (suspect for suspect in differences if suspect.kind == kind)
    return suspect


@pytest.mark.parametrize(("name", "view", "column"), COUNTED)
def test_a_counter_that_moved_beats_any_rule(name, view, column):
    """Whatever the load seems to do: the counter stands on the page, and so does this sign."""
    suspect = difference_of(
        name, account(view, column, 0.002), account(view, column, 1.0)
    )
    assert suspect.state == "acts"
    (moved,) = suspect.moved
    assert (moved.view, moved.column) == (view, column)
    assert f"{view}.{column}" in words.signs(suspect)


@pytest.mark.parametrize("name", [name for name in MEMBERS if FAMILIES[name].is_judged])
def test_no_sign_names_what_was_looked_at_and_what_was_not(name):
    same = replace(PLAIN, plans=[{"Plan": {"Node Type": "Result"}}])
    suspect = difference_of(name, same, same)
    assert suspect.is_candidate
    if FAMILIES[name].counters and set(FAMILIES[name].counters) <= {("log", "bytes")}:
        assert suspect.state == "not_judged"
    else:
        assert suspect.state == "no_sign"
        assert words.looked_at(suspect).startswith("did not move: ")


def test_a_row_without_counters_is_never_judged():
    suspect = difference_of("none", PLAIN, PLAIN)
    assert suspect.state == "not_judged"
    assert words.looked_at(suspect) == "no counter and no plan shows whether it acts"


@pytest.mark.parametrize("major", MAJORS)
def test_every_setting_has_a_row(major):
    for setting in catalogue(major).values():
        assert (
            families.find_setting_family(setting.name, setting.category).name
            in FAMILIES
        )


def test_every_counter_of_a_row_is_recorded_and_every_gap_has_words():
    for family in FAMILIES.values():
        for view, column in family.counters:
            assert column in counters.COLUMNS[view], (family.name, view, column)
        for code in family.unseen:
            assert code in words.UNSEEN, (family.name, code)
