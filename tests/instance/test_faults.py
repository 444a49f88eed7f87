"""Every fault once, in two real campaigns of an instance of their own."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from benchmarks.injections import FAULTS
from tests.instance.conftest import REPOSITORY
from tests.ssh.openssh import short_folder
from tests.started import prepare

pytestmark = [pytest.mark.instance, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def rows(tmp_path_factory, sshd_binary, test_folder) -> list[dict[str, Any]]:
    """What benchmarks.faults has counted."""
    counted = tmp_path_factory.mktemp("faults") / "rows.json"
    folder = short_folder()
    prepare(folder / "var", test_folder, is_migrated=True)
    options = ["--folder", str(folder), "--json", str(counted)]
    subprocess.run(
        [sys.executable, "-m", "benchmarks.faults", *options],
        cwd=REPOSITORY,
        check=False,
        timeout=580,
    )
    return list(json.loads(counted.read_text()))


@pytest.mark.parametrize("index", [0, 1], ids=["no-run-fails", "runs-may-fail"])
def test_a_campaign_survives_every_fault_and_harms_nothing(rows, index):
    row = rows[index]
    assert row["wrong"] == []
    assert row["survived"] == row["tries"] >= 1


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_fault_really_hit_a_campaign(rows, fault):
    row = rows[0 if fault.is_invisible else 1]
    if why := row["impossible"].get(fault.name):
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    assert row["hits"].get(fault.name) == 1


def test_a_run_fails_of_what_ends_its_database_or_its_load(rows):
    assert rows[1]["states"].get("failed", 0) >= 1
