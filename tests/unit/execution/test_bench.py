"""Steps of a run by their names."""

import asyncio

import pytest

from tests.unit.benches import bench_of


def test_two_different_steps_do_not_share_a_name():
    """The second would silently get the result of the first."""
    bench = bench_of()

    def step(*argv: str, stdin: str = ""):
        return asyncio.run(bench.step("lag", argv, stdin=stdin))

    # Nobody connects to these machines: a step that is let through ends in the bench's own way.
    for _time in range(2):
        with pytest.raises(AssertionError, match="nothing of this asks a machine"):
            step("psql", stdin="SELECT 1")
    for argv, stdin in ((("psql",), "SELECT 2"), (("psql", "-q"), "SELECT 1")):
        with pytest.raises(ValueError, match="'lag'"):
            step(*argv, stdin=stdin)
