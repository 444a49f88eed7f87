"""Servers that work together on one target: shards behind a coordinator, and foreign tables."""

import os
import signal
from dataclasses import replace

import pytest

from runs.execution.errors import TargetProblem
from runs.scenarios.foreign_tables import ForeignTables
from tests.ssh.arranging import (
    NOTHING,
    arranged,
    artifact,
    nothing_is_left,
    with_contrib,
)
from tests.ssh.directing import execute, watched, when_loaded

pytestmark = [pytest.mark.openssh, pytest.mark.usefixtures("loaded_before")]


# Scale-out on a real target: hash shards on nodes of their own, behind a coordinator.


PARAMETERS = {"scale": 1, "duration": 2, "clients": 2}


def cell(plan, cluster, size="fixed", load="update"):
    levels = {"cluster": cluster, "size": size, "load": load}
    return arranged(plan, "scale-out", levels, PARAMETERS)


def test_rows_are_spread_and_no_commit_is_cut_in_two(direct, plan, account, base_dir):
    director = direct(cell(with_contrib(plan, account), "fdw-2"))
    found = execute(director)
    counts = [
        line.split("\t")
        for line in artifact(found, "accounts-by-node.txt").splitlines()
    ]
    assert [name for name, _rows in counts] == ["node1", "node2"]
    assert sum(int(rows) for _name, rows in counts) == 100_000
    assert all(45_000 < int(rows) < 55_000 for _name, rows in counts)
    # A key is looked up on one node, by its key.
    assert artifact(found, "plan.txt").count("Remote SQL") == 1
    assert found.measurements["tps"] > 0
    assert found.measurements["failed_transactions"] == 0
    assert "balances_differ" not in [note.code for note in found.notes]
    assert nothing_is_left(base_dir) == NOTHING


def test_a_size_per_node_grows_with_the_nodes(direct, plan, account, base_dir):
    director = direct(cell(with_contrib(plan, account), "fdw-2", "per-node", "read"))
    found = execute(director)
    assert found.measurements["accounts_on_a_node"] > 95_000
    argv = next(c.argv for c in director.reporter.commands if c.name == "pgbench")
    assert "scale=2" in argv
    assert nothing_is_left(base_dir) == NOTHING


def test_a_node_that_ends_under_the_load_ends_the_run(direct, plan, account, base_dir):
    made = cell(with_contrib(plan, account), "fdw-2")
    director = direct(replace(made, parameters=PARAMETERS | {"duration": 60}))

    def kill():
        pid = (
            (base_dir / "clusters/run-7-node2/data/postmaster.pid")
            .read_text()
            .split()[0]
        )
        os.kill(int(pid), signal.SIGKILL)

    with pytest.raises(TargetProblem) as caught:
        watched(director, when_loaded(director, kill))
    assert caught.value.code == "cluster_gone"
    assert "node2" in caught.value.message
    assert nothing_is_left(base_dir) == NOTHING


def test_postgresql_alone_is_the_reference(direct, plan, base_dir):
    director = direct(cell(plan, "postgresql"))
    found = execute(director)
    assert "load" in director.reporter.steps
    assert found.measurements["tps"] > 0
    assert nothing_is_left(base_dir) == NOTHING


# Foreign tables on a real target: a server with two others that are copies of it.


FOREIGN = {"scale": 1, "duration": 2, "warm_up": 1}


def foreign_cell(plan, operation="select", pattern=1, location="local"):
    levels = {
        "operation": operation,
        "pattern": pattern,
        "table_location": location,
        "clients": 1,
    }
    return arranged(plan, "foreign-tables", levels, FOREIGN)


def test_both_tables_are_joined_here_though_each_lies_elsewhere(
    direct, plan, account, base_dir
):
    director = direct(foreign_cell(with_contrib(plan, account), pattern=4))
    found = execute(director)
    explained = artifact(found, "plan.txt")
    # On one server the join would be sent there, and be one statement.
    assert explained.count("Remote SQL") == 2
    assert {"server-external1.log", "settings-external2.json"} <= {
        a.name for a in found.artifacts
    }
    assert found.measurements["tps"] > 0
    argv = next(c.argv for c in director.reporter.commands if c.name == "pgbench")
    assert "prepared" in argv
    assert nothing_is_left(base_dir) == NOTHING


def test_a_row_is_written_on_the_other_server(direct, plan, account, base_dir):
    director = direct(foreign_cell(with_contrib(plan, account), "insert", 1, "foreign"))

    class Counting(ForeignTables):
        async def measure(self, bench):
            await super().measure(bench)
            sql = "SELECT count(*) FROM public.pgbench_history;"
            for at in ("main", "external1"):
                rows[at] = int(await bench.sql(f"count-{at}", sql, at=at))

    rows = {}
    director.procedure = director.preparing.procedure = Counting()
    found = execute(director)
    assert rows["main"] == 0
    assert rows["external1"] >= found.measurements["transactions"] > 0
    assert nothing_is_left(base_dir) == NOTHING


def test_a_server_that_dies_after_the_last_look_in_the_load_is_noticed(
    direct, plan, account, base_dir
):
    class Dying(ForeignTables):
        async def measure(self, bench):
            await super().measure(bench)
            path = base_dir / "clusters/run-7-external1/data/postmaster.pid"
            os.kill(int(path.read_text().split()[0]), signal.SIGKILL)

    director = direct(foreign_cell(with_contrib(plan, account)))
    director.procedure = director.preparing.procedure = Dying()
    with pytest.raises(TargetProblem) as caught:
        execute(director)
    assert caught.value.code == "cluster_gone"
    assert "external1" in caught.value.message
    assert nothing_is_left(base_dir) == NOTHING


def test_an_installation_without_the_extension_is_told(direct, plan, base_dir):
    """The wheels have no contrib."""
    with pytest.raises(TargetProblem) as caught:
        execute(direct(foreign_cell(plan, pattern=2)))
    assert caught.value.code == "missing_extension"
    assert nothing_is_left(base_dir) == NOTHING
