"""Every fault once, in two real campaigns of an instance of their own."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.instance.conftest import REPOSITORY

pytestmark = [pytest.mark.instance, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def rows(tmp_path_factory, sshd_binary) -> list[dict[str, Any]]:
    """What benchmarks.faults has counted."""
    counted = tmp_path_factory.mktemp("faults") / "rows.json"
    subprocess.run(
        [sys.executable, "-m", "benchmarks.faults", "--together", "--json", str(counted)],
        cwd=REPOSITORY,
        check=False,
        timeout=580,
    )
    return list(json.loads(counted.read_text()))


@pytest.mark.parametrize("index", [0, 1], ids=["no-run-fails", "runs-may-fail"])
def test_a_campaign_survives_every_fault_and_harms_nothing(rows, index):
    row = rows[index]
    assert row["wrong"] == []
    assert (row["tries"], row["survived"]) == (1, 1)


def test_faults_were_really_injected(rows):
    names = rows[0]["fault"] + rows[1]["fault"]
    for name in (
        *("kill-worker", "restart-host", "restart-target", "cut-connection"),
        *("lose-redis", "restart-database", "kill-pgbench"),
    ):
        assert name in names
    assert rows[1]["states"].get("failed", 0) >= 1
