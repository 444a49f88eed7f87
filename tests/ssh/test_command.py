"""A command of the machine's owner on a real target: executed, read, timed, limited and refused."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from runs.execution.errors import Detached, TargetProblem
from runs.scenarios import registry
from tests.ssh.arranging import NOTHING, arranged, artifact, nothing_is_left
from tests.ssh.directing import execute, names, watched

pytestmark = pytest.mark.openssh
PARAMETERS = {"time_limit": 60, "scale": 0, "disk_mb": 10}
PGBENCH = "#!/bin/sh\nexec pgbench -n -t 20 -c 2\n"


@pytest.fixture
def commands(base_dir, account) -> Path:
    """The folder that the machine's owner fills, before BenchLab comes for the first time."""
    folder = base_dir / "commands"
    folder.mkdir()
    account.own(folder)
    return folder


@pytest.fixture
def put(commands, account):
    """Put a script there."""

    def write(name: str, text: str, mode: int = 0o700) -> Path:
        path = commands / name
        path.write_text(text)
        path.chmod(mode)
        account.own(path)
        return path

    return write


@pytest.fixture
def command_plan(plan):
    """The plan of a command's run, on the older of two versions unless it is another."""

    def make(name="bench.sh", **parameters):
        levels = {"version": "16.14", "command": name}
        return arranged(plan, "command", levels, PARAMETERS | parameters)

    return make


def notes(found) -> list[str]:
    return [note.code for note in found.notes]


def on_18(plan, binaries):
    return replace(
        plan,
        run_id=plan.run_id + 1,
        bindir=str(binaries.postgresql18),
        version_num=180004,
        levels=plan.levels | {"version": "18.4"},
    )


def test_what_pgbench_prints_in_a_command_is_read_on_each_version(
    direct, command_plan, put, base_dir, binaries
):
    put("bench.sh", PGBENCH)
    old = command_plan(scale=1)
    for plan, version in ((old, "16.14"), (on_18(old, binaries), "18.4")):
        found = execute(direct(plan))
        assert found.server_version == version
        assert found.measurements["tps"] > 0
        assert found.measurements["wall_seconds"] > 0
        assert found.tool_name == "pgbench"
        assert "tps = " in artifact(found, "stdout.txt")
        assert not {"output_not_read", "output_in_doubt"} & {*notes(found)}
    left = nothing_is_left(base_dir)
    assert left == NOTHING
    assert names(base_dir / "commands") == ["bench.sh"]


def test_a_command_that_prints_nothing_is_timed_in_its_own_folder_with_the_runs_server(
    direct, command_plan, put, base_dir
):
    seen = put("seen", "", mode=0o600)
    put(
        "suite",
        "#!/bin/sh\nexec >>" + str(seen) + "\n"
        "echo $# $PWD ${PGPASSWORD-none} $BENCHLAB_VERSION\n"
        'psql -XAtc "SELECT version(), count(*) FROM pg_tables '
        "WHERE schemaname = 'public'\"\n: >left-behind\n",
    )
    found = execute(direct(command_plan("suite")))
    assert found.measurements.keys() & {"wall_seconds", "tps"} == {"wall_seconds"}
    assert 0 < found.measurements["wall_seconds"] < 60
    assert {"output_not_read", "short_command"} <= {*notes(found)}
    arguments, server_line = seen.read_text().splitlines()
    assert re.fullmatch(rf"0 {base_dir}/runs/\S+/work none 16", arguments)
    assert re.match(r"PostgreSQL 16\.14.*\|0$", server_line)
    assert nothing_is_left(base_dir) == NOTHING
    assert sorted(names(base_dir / "commands")) == ["seen", "suite"]


def test_a_command_that_fails_is_quoted_and_what_it_printed_is_kept(
    direct, command_plan, put, base_dir
):
    put("bench.sh", "#!/bin/sh\necho 'tps = 5'\necho two tests failed >&2\nexit 3\n")
    director = direct(command_plan())
    with pytest.raises(TargetProblem) as told:
        execute(director)
    assert told.value.code == "command_failed"
    assert "exit status 3:\ntps = 5\ntwo tests failed" in told.value.message
    assert artifact(director.bench.findings, "stderr.txt") == "two tests failed\n"
    assert not director.bench.findings.measurements
    assert nothing_is_left(base_dir) == NOTHING


def test_a_command_that_hangs_is_ended_at_its_limit(
    direct, command_plan, put, base_dir
):
    put("bench.sh", "#!/bin/sh\necho begun\nsleep 1000\n")
    director = direct(command_plan(time_limit=1))
    director.bench.look_s = 0.5
    with pytest.raises(TargetProblem) as told:
        execute(director)
    assert told.value.code == "step_timeout"
    assert artifact(director.bench.findings, "command.out") == "begun\n"
    assert nothing_is_left(base_dir) == NOTHING


def test_another_worker_attaches_to_a_command_that_runs(
    direct, command_plan, put, base_dir
):
    begun = put("begun", "", mode=0o600)
    put("bench.sh", f"#!/bin/sh\necho once >>{begun}\nsleep 3\necho qps=7 queries/s\n")

    def leave_it(director):
        while not begun.read_text() or director.bench.running_step != "command":
            yield "go_on"
        while True:
            yield "detach"

    first = direct(command_plan())
    with pytest.raises(Detached):
        watched(first, leave_it(first))
    found = execute(direct(command_plan(), taken_over=True))
    assert begun.read_text() == "once\n"
    assert found.measurements["wall_seconds"] >= 2.9
    assert found.measurements["qps"] == 7
    assert nothing_is_left(base_dir) == NOTHING


def test_figures_with_names_of_their_own_are_counted_and_left_to_the_file(
    direct, command_plan, put
):
    put(
        "bench.sh",
        "#!/bin/sh\necho tps=12.5 tps\n"
        "echo rows_migrated=100 rows neutral\necho qps=3 ms higher\n",
    )
    found = execute(direct(command_plan()))
    assert found.measurements["tps"] == 12.5
    assert not {"rows_migrated", "qps"} & found.measurements.keys()
    (note,) = (note for note in found.notes if note.code == "figures_left_out")
    assert note.message.startswith("2 figures ")


def test_a_run_that_its_tool_calls_failed_has_its_time_alone_and_is_in_doubt(
    direct, command_plan, put
):
    put(
        "bench.sh",
        "#!/bin/sh\necho 'SELECT fail' >bad.sql\npgbench -n -t 5 -f bad.sql\nexit 0\n",
    )
    found = execute(direct(command_plan()))
    assert found.measurements.keys() & {"wall_seconds", "tps"} == {"wall_seconds"}
    (note,) = (note for note in found.notes if note.code == "output_in_doubt")
    assert note.level == "warning"
    assert note.message.startswith("What the command printed of pgbench: ")


def planted(folder: Path, outside: Path) -> dict[str, str]:
    """What is no command, by its name, and the code of its refusal."""
    (folder / "folder").mkdir()
    (folder / "plain").write_text(PGBENCH)
    (folder / "plain").chmod(0o644)
    outside.write_text("#!/bin/sh\necho outside\n")
    outside.chmod(0o755)
    (folder / "leaves").symlink_to(outside)
    os.mkfifo(folder / "pipe")
    return {
        "absent": "command_missing",
        "folder": "command_irregular",
        "leaves": "command_is_link",
        "pipe": "command_irregular",
        "plain": "command_not_executable",
    }


def test_what_is_no_command_any_more_is_not_executed(
    direct, command_plan, commands, tmp_path
):
    codes = planted(commands, tmp_path / "outside")
    told = {}
    for number, name in enumerate([*codes, "../commands/plain", "-c", ".hidden"]):
        plan = replace(command_plan(name), run_id=100 + number)
        director = direct(plan)
        with pytest.raises(TargetProblem) as problem:
            execute(director)
        told[name] = problem.value.code
        assert "command" not in director.reporter.steps
    odd = dict.fromkeys(("../commands/plain", "-c", ".hidden"), "command_name")
    assert told == codes | odd


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("bench.sh", True),
        ("a" * 80, True),
        ("a" * 81, False),
        ("x/y", False),
        ("..", False),
        (".profile", False),
        ("-rf", False),
        ("a b", False),
        ("a\n", False),
        ("é", False),
        ("", False),
        (3, False),
    ],
)
def test_a_command_is_the_name_of_a_file(name, is_one):
    (factor,) = registry.get("command").factors
    assert factor.accepts(name) is is_one
