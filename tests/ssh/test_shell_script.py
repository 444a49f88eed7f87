"""What a real run recorded, done again by hand from its shell script."""

import re
import shutil
from dataclasses import replace

import pytest

from runs.execution.plan import RunPlan
from runs.reports.recorded_runs import RecordedCommand, RecordedRun
from runs.reports.shell_script import shell_script
from tests.by_hand import run_by_hand
from tests.ssh.directing import execute, left_running
from tests.ssh.openssh import short_folder

pytestmark = pytest.mark.openssh


@pytest.fixture
def plan(plan) -> RunPlan:
    return replace(plan, parameters={"scale": 1, "duration": 1})


@pytest.fixture
def hand(account):
    folder = short_folder()
    yield lambda script: run_by_hand(script, folder, account)
    assert not (folder / "base").exists()
    assert left_running(folder) == []
    shutil.rmtree(folder)


def recorded(director) -> RecordedRun:
    plan = director.plan
    return RecordedRun(
        title=f"Run {plan.run_id}",
        base_dir=plan.base_dir,
        programs=(("16.14", plan.bindir), ("18.4", plan.client_bindir)),
        commands=tuple(
            RecordedCommand(
                each.name, plan.host, each.argv, each.stdin, each.exit_status
            )
            for each in director.reporter.commands
        ),
    )


def measured(stdout: str) -> list[float]:
    """Every tps that pgbench printed."""
    return [
        float(found) for found in re.findall(r"^tps = ([\d.]+)", stdout, re.MULTILINE)
    ]


@pytest.mark.parametrize(
    "changed",
    [
        {"cluster_key": "shared"},
        {
            "scenario": "fixed-point-update",
            "cluster_key": "",
            "template_key": "template",
        },
        {"scenario": "fixed-point-update", "cluster_key": ""},
    ],
    ids=["shared cluster", "copies of a template", "clusters of their own"],
)
def test_the_runs_of_a_campaign_can_be_done_one_after_the_other(
    direct, plan, hand, changed
):
    directors = [direct(replace(plan, run_id=run_id, **changed)) for run_id in (7, 8)]
    for director in directors:
        execute(director)
    done = hand(
        shell_script("both", "Two runs", [recorded(each) for each in directors])
    )
    assert done.status == 0, done.stderr
    assert len(found := measured(done.stdout)) == 2
    assert min(found) > 0
    assert "# from (us)" in done.stdout.partition("== count-latencies")[2]
