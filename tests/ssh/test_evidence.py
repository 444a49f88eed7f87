"""What explains a number, on a real target: system calls, stacks, waits, statements, I/O."""

import json
import shutil
from dataclasses import replace

import pytest

from benchlab.embedded.account import service_account
from runs.execution import evidence
from runs.execution.treatment import Treatment
from tests.ssh.arranging import NOTHING, arranged, artifact, nothing_is_left, with_contrib
from tests.ssh.directing import execute

pytestmark = [
    pytest.mark.openssh,
    pytest.mark.usefixtures("loaded_before"),
    pytest.mark.hurried,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is missing"),
]


def updating(plan, clients=2, seconds=3, **treatment):
    """A fixed-point update of which evidence is taken."""
    cell = {"version": "16.14", "clients": clients}
    made = arranged(plan, "fixed-point-update", cell, {"scale": 1, "duration": seconds})
    return replace(made, treatment=Treatment(**treatment))


def table(found, name):
    """The rows of a table of evidence, as mappings."""
    kept = json.loads(artifact(found, f"evidence-{name}.json"))
    return [dict(zip(kept["columns"], row, strict=True)) for row in kept["rows"]]


def test_system_calls_waits_and_io_are_kept_as_tables(direct, plan, base_dir, monkeypatch):
    # The pauses of the load leave a few looks without any wait.
    monkeypatch.setattr(evidence, "WAITS_A_SECOND", 40)
    found = execute(direct(updating(plan, syscalls=True, waits=True, io=True)))
    calls = {row["call"]: row for row in table(found, "syscalls")}
    # Each transaction comes by the socket: the backends were followed from their beginning.
    transactions = found.measurements["transactions"]
    assert sum(int(calls[name]["calls"]) for name in calls if "recv" in name) >= transactions
    assert "traced" in [note.code for note in found.notes]
    waits = table(found, "waits")
    assert abs(sum(float(row["share"]) for row in waits) - 100) < 2
    assert {each.name for each in found.series} & {"waits_cpu", "waits_client", "waits_io"}
    rows = table(found, "io")
    assert any(row["backend_type"] == "client backend" and int(row["hits"]) > 0 for row in rows)
    assert nothing_is_left(base_dir) == NOTHING


@pytest.mark.full_load
def test_who_waits_for_a_semaphore_is_told_by_function(direct, plan, base_dir):
    found = execute(direct(updating(plan, clients=16, seconds=5, stacks=True)))
    rows = table(found, "stacks")
    assert rows[0]["call"] in {"futex", "semop", "semtimedop"}
    assert any("PGSemaphore" in row["stack"] for row in rows)
    assert nothing_is_left(base_dir) == NOTHING


def test_the_statements_of_the_load_are_kept_and_not_those_before_it(direct, plan, base_dir):
    plan = with_contrib(updating(plan, statements=True), service_account())
    settings = {**plan.settings, "shared_preload_libraries": "pg_stat_statements"}
    found = execute(direct(replace(plan, settings=settings)))
    rows = table(found, "statements")
    update = next(row for row in rows if row["query"].startswith("UPDATE pgbench_accounts"))
    assert int(update["calls"]) == int(update["rows"]) >= found.measurements["transactions"]
    assert not any("vacuum" in row["query"].lower() for row in rows)
    assert nothing_is_left(base_dir) == NOTHING
