"""What a machine's recording says of a result: idle processors, stolen ones, a busy generator.

The recordings are real ones of vmstat, of two busy processors. No machine of this project's loses
time to others, and none is idle for long: for those the columns `st` and `id` are set.
"""

from pathlib import Path

import pytest

from runs.execution.monitors import Watched, conclude
from runs.tools.vmstat import reader as vmstat
from tests.unit.benches import bench_of, codes

RECORDED = Path(__file__).parents[2] / "samples" / "vmstat" / "1_4.txt"
BEGUN = 1_800_000_000.0


def watched(node: str, **columns: tuple[int, ...]) -> Watched:
    """The recording of a machine, with other values in some columns."""
    title, header, first, *rows = RECORDED.read_text().splitlines()
    words = [row.split() for row in rows]
    for name, values in columns.items():
        for row, value in zip(words, values, strict=True):
            row[header.split().index(name)] = str(value)
    text = "\n".join([title, header, first, *(" ".join(row) for row in words), ""])
    return Watched(node, BEGUN, vmstat.read(text))


def concluded(*machines: Watched):
    """The bench after a load of three seconds, which the three samples lie in."""
    bench = bench_of(*(each.node for each in machines[1:]))
    for each in machines:
        bench.load_spans[each.node] = (BEGUN, BEGUN + 3)
    conclude(bench, machines)
    return bench


def test_a_busy_machine_by_itself_leaves_no_note():
    bench = concluded(watched("db"))
    assert bench.findings.measurements == {"cpu_idle": 0.0}
    assert codes(bench) == []


@pytest.mark.parametrize(
    ("stolen", "is_told"),
    [((0, 0, 0), False), ((2, 2, 2), False), ((0, 6, 0), False), ((0, 7, 0), True)],
)
def test_more_than_2_percent_taken_by_other_machines_is_told(stolen, is_told):
    assert codes(concluded(watched("db", st=stolen))) == ["steal_time"] * is_told


def test_what_was_stolen_before_and_after_the_load_is_not_told():
    bench = bench_of()
    bench.load_spans["db"] = (BEGUN + 1, BEGUN + 2)
    conclude(bench, [watched("db", st=(90, 0, 90))])
    assert codes(bench) == []


def test_the_machine_that_others_took_time_from_is_named():
    bench = concluded(watched("db"), watched("load1", st=(10, 20, 30)))
    [note] = bench.findings.notes
    assert note.code == "steal_time"
    assert note.message.startswith("load1: ")
    assert "20.0 %" in note.message


@pytest.mark.parametrize(
    ("database", "generator", "is_told"),
    [
        ((50, 60, 70), (0, 0, 0), True),
        ((50, 60, 70), (9, 9, 9), True),
        # Neither has anything left: the database may be what is measured.
        ((0, 0, 0), (0, 0, 0), False),
        ((20, 20, 20), (0, 0, 0), False),
        ((21, 21, 21), (0, 0, 0), True),
        ((50, 60, 70), (10, 10, 10), False),
        # As it should be.
        ((0, 0, 0), (50, 60, 70), False),
    ],
)
def test_a_generator_is_saturated_where_it_is_busy_and_the_database_is_not(
    database, generator, is_told
):
    bench = concluded(watched("db", id=database), watched("load1", id=generator))
    assert codes(bench) == ["generator_saturated"] * is_told
    assert bench.findings.measurements["cpu_idle"] == sum(database) / 3


def test_only_the_generator_that_is_saturated_is_named():
    bench = concluded(
        watched("db", id=(60, 60, 60)), watched("load1", id=(50, 50, 50)), watched("load2")
    )
    [note] = bench.findings.notes
    assert note.message.startswith("load2 had 0 % of its processors idle and the database 60 %")
