"""Several machines of a run that ends: each is cleaned up independently."""

import asyncio
import shutil
from dataclasses import replace

import pytest

from runs.execution.base_dir import BaseDir
from runs.execution.errors import Cancelled, TargetProblem
from tests.ssh.conftest import INSTANCE
from tests.ssh.directing import execute, left_running, names, processes_below, watched
from tests.ssh.test_generators import (  # noqa: F401
    alone,
    cancel_when_loaded,
    direct,
    machines,
    plan,
)

pytestmark = pytest.mark.openssh


def test_one_that_refuses_does_not_keep_the_others_from_being_cleaned(
    direct,  # noqa: F811
    plan,  # noqa: F811
    machines,  # noqa: F811
):
    endless = replace(plan, parameters={"scale": 1, "duration": 600})
    database, refusing, other = machines
    mark = refusing.base_dir / "runs" / "7-1" / ".benchlab"
    director = direct(endless)
    marked = []

    def orders():
        for order in cancel_when_loaded(machines):
            if order == "cancel":
                marked.append(mark.read_text())
                mark.write_text("somebody else's\n")
            yield order

    with pytest.raises(Cancelled):
        watched(director, orders())

    assert [code for code, _message in director.reporter.events] == ["cleanup_incomplete"]
    for machine in (database, other):
        assert left_running(machine.base_dir) == []
        assert names(machine.base_dir / "runs") == []
    assert processes_below(refusing.base_dir)
    assert names(refusing.base_dir / "runs") == ["7-1"]
    mark.write_text(marked[0])
    with pytest.raises(Cancelled):
        watched(direct(endless, taken_over=True), iter(["cancel"] * 100))
    assert left_running(refusing.base_dir) == []


def test_a_shared_cluster_that_does_not_start_for_them_is_removed(
    direct,  # noqa: F811
    plan,  # noqa: F811
    machines,  # noqa: F811
):
    database = machines[0]
    cluster = database.base_dir / "clusters" / "shared"
    shutil.rmtree(cluster, ignore_errors=True)

    async def make():
        base = BaseDir(str(database.base_dir), INSTANCE)
        async with await database.connect() as host:
            await base.claim(host)
            await base.make_folder(host, str(cluster))
            await host.run(["mkdir", str(cluster / "data")])
            await host.run(["tee", str(cluster / "prepared")], stdin=b"run 6\n")

    asyncio.run(make())
    with pytest.raises(TargetProblem) as told:
        execute(direct(alone(plan)))
    assert told.value.code == "postgres_does_not_start"
    assert names(database.base_dir / "clusters") == []
