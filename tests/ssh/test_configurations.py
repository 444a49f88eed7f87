"""Configurations on a real server: what it shows of them, and what it says of wrong ones."""

from dataclasses import replace

import pytest

from runs.execution.errors import TargetProblem
from runs.execution.plan import RunPlan
from runs.postgresql_settings.comparing import read_server
from runs.postgresql_settings.fitting import fit
from tests.ssh.directing import execute

pytestmark = [pytest.mark.openssh, pytest.mark.usefixtures("loaded_before")]

OLD = {
    "checkpoint_segments": "8",
    "work_mem": "24MB",
    "wal_level": "hot_standby",
    "port": "1",
}


@pytest.fixture(params=["16", "18"])
def plan(request, plan, binaries) -> RunPlan:
    """A run with a configuration of 9.3, as each embedded version gets it."""
    bindir = {"16": binaries.postgresql16, "18": binaries.postgresql18}[request.param]
    fitted = fit(OLD, request.param, written_for="9.3")
    return replace(
        plan,
        bindir=str(bindir),
        version_num={"16": 160014, "18": 180004}[request.param],
        settings={**fitted.settings, "shared_buffers": "32MB"},
        levels={"version": request.param, "clients": 1},
        parameters={"scale": 1, "duration": 1},
        cluster_key="",
    )


def test_translated_settings_are_read_back_as_applied_and_no_command_of_them_is_run(
    direct, plan, tmp_path
):
    touched = tmp_path / "touched"
    tmp_path.chmod(0o777)
    wanted = {
        "wal_level": "replica",
        "archive_mode": "on",
        "archive_timeout": "1s",
        "archive_command": f"touch {touched}",
    }
    fitted = fit(wanted, plan.levels["version"])
    found = execute(
        direct(replace(plan, settings={**plan.settings, **fitted.settings}))
    )
    shown = read_server(found.settings, plan.levels["version"])
    assert {name: shown[name].text for name in plan.settings} == {
        "work_mem": "24MB",
        "wal_level": "replica",
        "max_wal_size": "384MB",
        "min_wal_size": "272MB",
        "shared_buffers": "32MB",
    }
    assert not any(shown[name].is_default for name in ("work_mem", "max_wal_size"))
    assert "port" not in shown
    assert shown["archive_mode"].text == "on"
    assert shown["archive_command"].text == "true"
    assert not touched.exists()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"work_mem": "1kB"},
            '1 kB is outside the valid range for parameter "work_mem"',
        ),
        (
            {"checkpoint_segments": "8"},
            'unrecognized configuration parameter "checkpoint_segments"',
        ),
        (
            {"shared_preload_libraries": "not_there"},
            'could not access file "not_there"',
        ),
    ],
)
def test_what_the_server_refuses_fails_with_its_own_words(direct, plan, wrong, said):
    with pytest.raises(TargetProblem) as told:
        execute(direct(replace(plan, settings={**plan.settings, **wrong})))
    assert told.value.code == "postgres_does_not_start"
    assert said in told.value.message


def test_a_plan_that_was_queued_with_a_command_is_refused_before_it_is_written(
    direct, plan, tmp_path
):
    touched = tmp_path / "touched"
    wanted = {"archive_mode": "on", "archive_command": f"touch {touched}"}
    with pytest.raises(TargetProblem) as told:
        execute(direct(replace(plan, settings={**plan.settings, **wanted})))
    assert told.value.code == "setting_refused"
    assert not touched.exists()
