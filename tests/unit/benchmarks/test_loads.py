"""Counting loads by their processes: a doubled one must be seen."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.overhead import Timed, covered
from benchmarks.processes import counted


@pytest.fixture
def put_on(tmp_path) -> Iterator:
    """Let a process that looks like pgbench under load work for a moment."""
    # The kernel names a process by the file that was executed.
    program = tmp_path / "pgbench"
    program.symlink_to(sys.executable)
    with ExitStack() as stack:

        def start(attempt: str, *options: str) -> None:
            argv = ["/bin/pgbench", "-c", "import time; time.sleep(0.8)", *options]
            argv += ["-f", f"{tmp_path}/base/runs/{attempt}/script.sql@1"]
            process = stack.enter_context(subprocess.Popen(argv, executable=program))
            stack.callback(process.kill)

        yield start


def seen(tmp_path, act):
    with counted(tmp_path / "base") as loads:
        act()
        time.sleep(0.6)
    return loads


def test_each_load_of_an_attempt_is_counted(tmp_path, put_on):
    def act():
        for attempt in ("7-1", "7-2", "7-1"):
            put_on(attempt, "-T", "2")

    loads = seen(tmp_path, act)
    assert (loads.number, loads.by_attempt) == (3, {"7-1": 2, "7-2": 1})
    assert loads.doubled == ["7-1"]


def test_slices_of_an_attempt_are_not_doubled_unless_one_comes_again(tmp_path, put_on):
    def act(*seeds):
        for seed in seeds:
            put_on("7-1", "-T", "1", f"--random-seed={seed}")

    assert seen(tmp_path, lambda: act(1, 2)).doubled == []
    assert seen(tmp_path, lambda: act(3, 4, 3)).doubled == ["7-1"]


def test_what_loads_the_data_is_no_load_and_neither_is_that_of_others(tmp_path, put_on):
    def act():
        put_on("7-1", "-i")
        put_on("../../elsewhere/runs/7-1", "-T", "2")

    assert seen(tmp_path / "base", act).number == 0


BEGUN = datetime(2026, 11, 22, tzinfo=UTC)


def at(*spans):
    return [
        (BEGUN + timedelta(seconds=a), BEGUN + timedelta(seconds=b)) for a, b in spans
    ]


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ((), 0),
        (((0, 2), (3, 4)), 3),
        # Beside each other, one within the other, and in any order.
        (((1, 4), (0, 2)), 4),
        (((0, 10), (2, 3), (4, 5)), 10),
        (((0, 1), (1, 2)), 2),
    ],
)
def test_steps_beside_each_other_count_once(spans, seconds):
    assert covered(at(*spans)) == seconds


def test_the_rest_of_a_run_is_what_is_added():
    [(claimed, finished)] = at((0, 5))
    names = ("start", "pgbench", "read-settings", "monitor")
    steps = dict(zip(names, at((1, 3), (2, 4.5), (0.5, 1), (0, 5)), strict=True))
    run = Timed(claimed, finished, steps)
    assert run.added == 1.5
