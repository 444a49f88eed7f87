"""A machine that restarts between two steps: what fails then is not the run's own fault."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from runs.execution import explaining
from runs.execution.errors import TargetProblem, TargetRestarted
from tests.ssh.directing import left_running, names, watched, when_measuring

pytestmark = [
    pytest.mark.openssh,
    pytest.mark.skipif(
        not Path(explaining.BOOT_ID).exists(), reason="only Linux numbers its boots"
    ),
]
prepared = pytest.mark.usefixtures("prepared")


def killed_while_loaded(director, base_dir, *, in_another_boot: bool):
    """Kill PostgreSQL under the load; as by a restart, or in the same boot."""

    def kill() -> None:
        [noted] = base_dir.glob("runs/*/boot")
        assert noted.read_text() == Path(explaining.BOOT_ID).read_text()
        if in_another_boot:
            noted.write_text("another\n")
        subprocess.run(["pkill", "-KILL", "-f", f"postgres.*{base_dir}"], check=False)

    def orders():
        is_due = True
        for order in when_measuring(director, "cancel"):
            if order == "cancel" and is_due:
                is_due = False
                kill()
            yield "go_on"

    with pytest.raises(TargetProblem) as told:
        watched(director, orders())
    return told.value


@pytest.mark.parametrize("in_another_boot", [True, False])
@prepared
def test_what_fails_after_a_restart_is_told_as_a_restart(direct, plan, base_dir, in_another_boot):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 30}))
    problem = killed_while_loaded(director, base_dir, in_another_boot=in_another_boot)
    assert isinstance(problem, TargetRestarted) == in_another_boot
    assert problem.code == ("target_restarted" if in_another_boot else "postgres_stopped")
    assert left_running(base_dir) == []
    assert names(base_dir / "runs") == []
