"""Every version of the lab as a server: initdb, start, load, read, copy, update and stop."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchlab.embedded.places import Places, var_from_environment
from benchlab.lab import folders, releases
from runs.configurations.services.configurations import FIXED_POINT
from runs.execution.machine.target_facts import version_num
from runs.execution.plan import RunPlan
from runs.scenarios import registry
from tests.ssh.directing import execute, left_running
from tests.ssh.initialised import quick_bindir
from tests.started import wait_for_lab

pytestmark = pytest.mark.openssh


# The oldest, the last with recovery.conf, and the newest; the others come with script/test --all.
OFTEN = {"9.3", "11", "18"}
RELEASES = [
    pytest.param(
        each, id=each.major, marks=[] if each.major in OFTEN else [pytest.mark.slow]
    )
    for each in releases.every()
]


@pytest.fixture(params=RELEASES)
def bindir(request, account, test_folder) -> Path:
    """The binaries that script/lab made; skipped where it could not."""
    wait_for_lab()
    places = Places(var_from_environment({}))
    found = folders.versions_folder(places, account) / request.param.version / "bin"
    if not (found / "postgres").exists():
        pytest.skip(
            f"PostgreSQL {request.param.version} is missing: script/lab says why"
        )
    return quick_bindir(found, test_folder, account)


@pytest.fixture
def plan(plan, bindir) -> RunPlan:
    """A reading run with the built-in configuration and the pgbench of 18."""
    version = bindir.parent.name
    return replace(
        plan,
        bindir=str(bindir),
        version_num=version_num(f"postgres (PostgreSQL) {version}"),
        settings=FIXED_POINT | {"shared_buffers": "64MB", "fsync": "off"},
        levels={"version": version, "clients": 2},
        parameters={"scale": 1, "duration": 1},
        cluster_key="read",
    )


def test_every_lab_version_serves_a_read_and_an_update_run(direct, plan, base_dir):
    settings = (
        registry.get("fixed-point-update")
        .cluster(plan.version_num, plan.levels)
        .settings
    )
    read = execute(direct(plan))
    update = execute(
        direct(
            replace(
                plan,
                run_id=8,
                scenario="fixed-point-update",
                settings=plan.settings | dict(settings),
                cluster_key="",
                template_key="update",
            )
        )
    )
    for found in (read, update):
        assert found.server_version == plan.levels["version"]
        assert found.tool_version.startswith("18.")
        assert found.measurements["tps"] > 0
        assert found.settings["data_checksums"]["setting"] == "off"
        warnings = {note.code for note in found.notes if note.level == "warning"}
        # The machine of the tests may be one of several on a host.
        assert warnings <= {"steal_time"}
    assert left_running(base_dir) == []
