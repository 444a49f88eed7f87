"""Scale-out on a real target: hash shards on nodes of their own, behind a coordinator."""

import os
import signal
from dataclasses import replace

import pytest

from runs.execution.errors import TargetProblem
from tests.ssh.arranging import NOTHING, arranged, artifact, nothing_is_left, with_contrib
from tests.ssh.directing import execute, watched, when_loaded

pytestmark = [pytest.mark.openssh, pytest.mark.usefixtures("loaded_before")]
PARAMETERS = {"scale": 1, "duration": 2, "clients": 2}


def cell(plan, cluster, size="fixed", load="update"):
    levels = {"cluster": cluster, "size": size, "load": load}
    return arranged(plan, "scale-out", levels, PARAMETERS)


def test_rows_are_spread_and_no_commit_is_cut_in_two(direct, plan, account, base_dir):
    director = direct(cell(with_contrib(plan, account), "fdw-2"))
    found = execute(director)
    counts = [line.split("\t") for line in artifact(found, "accounts-by-node.txt").splitlines()]
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
        pid = (base_dir / "clusters/run-7-node2/data/postmaster.pid").read_text().split()[0]
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
