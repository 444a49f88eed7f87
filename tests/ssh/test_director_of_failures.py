"""Runs that fail: what is told of them, and what they leave on a real OpenSSH server."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from runs.execution.director import Director
from runs.execution.errors import TargetProblem
from runs.execution.watch import Order
from tests.ssh.directing import execute, left_running, names, watched, when_measuring

pytestmark = pytest.mark.openssh
prepared = pytest.mark.usefixtures("prepared")


def failing(director: Director) -> TargetProblem:
    with pytest.raises(TargetProblem) as told:
        execute(director)
    return told.value


def test_a_postgres_that_does_not_start_shows_the_end_of_its_log(direct, plan, base_dir):
    problem = failing(direct(replace(plan, settings={"shared_buffers": "1EB"})))
    assert problem.code == "postgres_does_not_start"
    assert "shared_buffers" in problem.message
    assert names(base_dir / "clusters") == []
    assert names(base_dir / "runs") == []


def test_a_missing_binary_is_named(direct, plan):
    problem = failing(direct(replace(plan, bindir="/opt/postgresql-9.2/bin")))
    assert problem.code == "missing_program"
    assert "/opt/postgresql-9.2/bin/initdb" in problem.message


@prepared
def test_a_release_that_was_upgraded_in_place_is_not_measured(direct, plan, base_dir):
    director = direct(replace(plan, levels={"version": "16.13", "clients": 2}, version_num=160013))
    problem = failing(director)
    assert problem.code == "installation_changed"
    assert "16.13 any more: the server says that it is 16." in problem.message
    assert "pgbench" not in director.reporter.steps
    assert left_running(base_dir) == []


@pytest.mark.parametrize("taken_over", [False, True])
def test_what_fails_before_postgres_runs_is_told_as_it_is(direct, plan, taken_over):
    broken = replace(plan, initdb_options=("--wal-segsize=3",))
    problem = failing(direct(broken, taken_over=taken_over))
    assert problem.code == "step_failed"
    assert "Step initdb" in problem.message


def test_a_scale_too_big_for_the_disk_is_refused_before_loading(direct, plan):
    director = direct(replace(plan, parameters={"scale": 100_000, "duration": 1}))
    problem = failing(director)
    assert problem.code == "disk_too_small"
    assert "initdb" not in director.reporter.steps


@prepared
def test_a_server_killed_under_the_load_fails_the_run_and_keeps_the_output(direct, plan, base_dir):
    director = direct(replace(plan, parameters={"scale": 1, "duration": 30}))

    def orders() -> Iterator[Order]:
        for order in when_measuring(director, "cancel"):
            if order == "cancel":
                subprocess.run(["pkill", "-QUIT", "-f", f"postgres -D {base_dir}"], check=False)
                subprocess.run(["pkill", "-QUIT", "-f", f"postgres.*{base_dir}"], check=False)
            yield "go_on"

    with pytest.raises(TargetProblem) as told:
        watched(director, orders())
    assert told.value.code == "postgres_stopped"
    assert "immediate shutdown" in told.value.message
    kept = {
        artifact.name: artifact.content.decode() for artifact in director.bench.findings.artifacts
    }
    assert "progress:" in kept["pgbench.err"]
    assert "immediate shutdown" in kept["server.log"]
    assert director.bench.findings.measurements == {}
    assert left_running(base_dir) == []


def test_foreign_files_in_the_base_directory_are_left_alone(direct, plan, base_dir):
    (base_dir / "precious").write_text("data")
    problem = failing(direct(plan))
    assert problem.code == "base_dir_foreign"
    assert "precious" in problem.message
    assert (base_dir / "precious").read_text() == "data"
    assert names(base_dir) == ["precious"]


def test_the_base_directory_of_another_benchlab_is_left_alone(direct, plan, base_dir):
    (base_dir / ".benchlab").write_text("benchlab another .\n")
    assert failing(direct(plan)).code == "base_dir_foreign"


def test_a_folder_without_our_mark_is_not_removed(on_host, base, base_dir):
    folder = base_dir / "clusters" / "foreign"
    folder.mkdir(parents=True)
    (folder / "data").write_text("precious")

    async def act(host):
        with pytest.raises(TargetProblem) as told:
            await base.remove(host, str(folder))
        return told.value.code

    assert on_host(act) == "not_ours"
    assert (folder / "data").exists()


def test_a_path_that_leads_out_of_the_base_directory_is_refused(base):
    for path in ("../other", "/etc", "clusters/../../other", "."):
        with pytest.raises(ValueError, match="not below"):
            base.below(path)
