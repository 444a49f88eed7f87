"""Plans of several clusters for tests, as the service would freeze them."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from benchlab.embedded.account import Account
from benchlab.embedded.places import Places, var_from_environment
from benchlab.lab import folders
from runs.execution.machine.target_facts import version_num
from runs.execution.plan import ClusterPlan, RunPlan
from runs.scenarios import registry
from tests.ssh.directing import left_running, names
from tests.ssh.initialised import quick_bindir
from tests.started import wait_for_lab

# The wheels have no contrib.
DEBIAN = Path("/usr/lib/postgresql/15/bin")
NOTHING = ([], [], [])


def arranged(plan: RunPlan, slug: str, levels: dict, parameters: dict) -> RunPlan:
    """The plan of a cell of that scenario, with its clusters on the database's machine."""
    scenario = registry.find_by_levels(slug, levels)
    wanted = scenario.cluster(plan.version_num, levels)
    settings = {
        "shared_buffers": "32MB",
        "fsync": "off",
        **wanted.settings,
        **wanted.required,
    }
    clusters = tuple(
        ClusterPlan(
            name=each.name,
            role=each.role,
            origin=each.origin,
            machine="db",
            bindir=plan.bindir,
            version_num=plan.version_num,
            psql_bindir=plan.client_bindir,
            settings={**(settings if each.origin == "initdb" else {}), **each.settings},
        )
        for each in scenario.arrangement(plan.version_num, levels)
    )
    return replace(
        plan,
        scenario=slug,
        levels=levels,
        parameters=parameters,
        settings=settings,
        cluster_key="",
        clusters=clusters,
    )


def with_contrib(plan: RunPlan, account: Account, version: str = "16.10") -> RunPlan:
    """The plan on a PostgreSQL with contrib: that of script/lab, or Debian's.

    CI fails where neither is there, a laptop skips.
    """
    wait_for_lab()
    lab = (
        folders.versions_folder(Places(var_from_environment({})), account)
        / version
        / "bin"
    )
    found = next((each for each in (lab, DEBIAN) if (each / "postgres").exists()), None)
    if found is None:
        missing = "no PostgreSQL with contrib is there: script/lab makes one"
        if os.environ.get("CI"):
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)
    bindir = quick_bindir(found, Path(os.environ["BENCHLAB_TEST_FOLDER"]), account)
    asked = [found / "postgres", "--version"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True)
    return replace(plan, bindir=str(bindir), version_num=version_num(said.stdout))


def artifact(found, name: str) -> str:
    """The text of a file of the run."""
    return next(each.content.decode() for each in found.artifacts if each.name == name)


def nothing_is_left(base_dir: Path) -> tuple:
    """Processes, clusters and run folders that are still there; NOTHING is right."""
    return (
        left_running(base_dir),
        names(base_dir / "clusters"),
        names(base_dir / "runs"),
    )
