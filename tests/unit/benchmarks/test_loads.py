"""Counting loads by their processes: a doubled one must be seen."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from benchmarks.loads import counted


@pytest.fixture
def put_on(tmp_path) -> Iterator:
    """Let a process that looks like pgbench under load work for a moment."""
    with ExitStack() as stack:

        def start(attempt: str, *options: str) -> None:
            argv = ["/bin/pgbench", "-c", "import time; time.sleep(0.8)", *options]
            argv += ["-f", f"{tmp_path}/base/runs/{attempt}/script.sql@1"]
            process = stack.enter_context(subprocess.Popen(argv, executable=sys.executable))
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


def test_what_loads_the_data_is_no_load_and_neither_is_that_of_others(tmp_path, put_on):
    def act():
        put_on("7-1", "-i")
        put_on("../../elsewhere/runs/7-1", "-T", "2")

    assert seen(tmp_path / "base", act).number == 0
