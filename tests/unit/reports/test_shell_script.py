"""Recorded commands as a shell script: its words, and what a real shell makes of it."""

import shutil
from datetime import UTC, datetime

import pytest

from benchlab.embedded.account import service_account
from runs.reports.recorded_runs import RecordedCommand, RecordedRun
from runs.reports.shell_script import shell_script
from runs.reports.shell_words import Folders
from tests.by_hand import run_by_hand
from tests.ssh.openssh import short_folder

HOST = "192.0.2.1"
BASE = "/srv/benchlab"
FOLDERS = Folders(
    {BASE: "BASE", "/srv/benchlab/pg/bin": "PG_16_14", "/usr/lib/pg": "PG_9_6_24"}
)


def command(step, *argv, **more):
    return RecordedCommand(step, HOST, argv, **more)


def recorded(*commands, base=BASE, programs=(("16.14", "/usr/bin"),)):
    return RecordedRun("Run 7: clients 2", base, programs, commands)


@pytest.fixture
def folder():
    made = short_folder()
    yield made
    shutil.rmtree(made)


@pytest.fixture
def run_script(folder):
    account = service_account()

    def run(script, **more):
        return run_by_hand(script, folder, account, **more)

    return run


@pytest.mark.parametrize(
    ("argument", "word"),
    [
        ("plain", "plain"),
        ("", "''"),
        ("two words", "'two words'"),
        ("it's", "'it'\"'\"'s'"),
        ("/srv/benchlab", '"$BASE"'),
        ("/srv/benchlab/runs/7-1", '"$BASE"/runs/7-1'),
        ("/srv/benchlab-other/x", "/srv/benchlab-other/x"),
        ("/backup/srv/benchlab/x", "/backup/srv/benchlab/x"),
        ("--data=/srv/benchlab/d", '--data="$BASE"/d'),
        ('-k "/srv/benchlab/s"', "'-k \"'\"$BASE\"'/s\"'"),
        ("/srv/benchlab/pg/bin/psql", '"$PG_16_14"/psql'),
        ("/usr/lib/pg/pgbench", '"$PG_9_6_24"/pgbench'),
        ("$(rm -rf x)", "'$(rm -rf x)'"),
    ],
)
def test_an_argument_is_quoted_and_its_folders_are_variables(argument, word):
    assert FOLDERS.word(argument) == word


def test_a_null_byte_is_refused():
    with pytest.raises(ValueError, match="null byte"):
        FOLDERS.word("a\0b")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1;\n",
        "no newline at the end",
        "END_OF_INPUT\nEND_OF_INPUT_\n",
        "\\set aid random(1, :aid_max)\n$HOME `id` $(id) \\\\ 'x' \"y\"\n",
        f"at {BASE}/x: \\set $HOME `id` \\\n",
    ],
)
@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_an_input_arrives_as_it_was(text, shell, run_script, folder):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is missing")
    script = shell_script("7", "x", [recorded(command("say", "cat", stdin=text))])
    done = run_script(script, shell=shell)
    assert done.status == 0, done.stderr
    ended = text if text.endswith("\n") else f"{text}\n"
    expected = ended.replace(BASE, str(folder / "base"))
    assert f"== say\n{expected}" in done.stdout


def test_the_folders_of_the_run_are_made_before_its_steps_and_removed_at_the_end(
    run_script, folder
):
    write = command(
        "write",
        "sh",
        "-c",
        'cat >"$1"; ls -d "$1"',
        "w",
        f"{BASE}/runs/7-1/a b.sql",
        stdin="x\n",
    )
    done = run_script(shell_script("7", "x", [recorded(write)]))
    assert done.status == 0, done.stderr
    assert f"{folder}/base/runs/7-1/a b.sql" in done.stdout
    assert not (folder / "base").exists()


@pytest.mark.parametrize(
    "words",
    [(f"{BASE}/clusters/shared",), (f"{BASE}/clusters/shared", "/usr/bin/postgres")],
    ids=["as recorded up to 0.3.0", "with the program"],
)
def test_a_prepared_cluster_stays_for_the_next_run_whatever_else_its_mark_names(
    words, run_script
):
    mark = command("mark-prepared", "sh", "-c", 'touch "$1/prepared"', "mark", *words)
    use = command("use", "ls", f"{BASE}/clusters/shared/prepared", f"{BASE}/runs/8-1")
    done = run_script(shell_script("both", "x", [recorded(mark), recorded(use)]))
    assert done.status == 0, done.stderr


def test_a_folder_can_be_kept(run_script, folder):
    script = shell_script("7", "x", [recorded(command("say", "true"))])
    done = run_script(script, BENCHLAB_KEEP="yes")
    assert done.status == 0
    assert (folder / "base").is_dir()


def test_what_lies_in_an_existing_folder_is_left_alone(run_script, folder):
    (folder / "base").mkdir()
    (folder / "base" / "mine").touch()
    done = run_script(shell_script("7", "x", [recorded(command("say", "true"))]))
    assert done.status == 1
    assert "Set BENCHLAB_BASE to a folder that does not exist yet" in done.stderr
    assert (folder / "base" / "mine").exists()


def test_the_first_failure_ends_it_and_cleans_up(run_script, folder):
    steps = recorded(command("bad", "false"), command("never", "echo", "reached"))
    done = run_script(shell_script("7", "x", [steps]))
    assert done.status == 1
    assert "reached" not in done.stdout
    assert not (folder / "base").exists()


@pytest.mark.parametrize(("status", "ends"), [(3, 0), (4, 1)])
def test_a_failure_that_was_recorded_is_expected(status, ends, run_script):
    step = command("bad", "sh", "-c", "exit 3", exit_status=status)
    done = run_script(shell_script("7", "x", [recorded(step)]))
    assert done.status == ends


def test_missing_programs_are_told_before_anything_is_made(run_script, folder):
    steps = recorded(command("x", "true"), programs=(("16.14", "/nowhere/bin"),))
    done = run_script(shell_script("7", "x", [steps]))
    assert done.status == 1
    assert "There is no /nowhere/bin here; set the variable PG_" in done.stderr


def test_a_base_folder_too_long_for_a_socket_is_told(run_script, folder):
    step = command("x", "true", "-h", f"{BASE}/runs/7-1/s")
    folder = folder / ("long" * 25)
    done = run_script(
        shell_script("7", "x", [recorded(step)]), BENCHLAB_BASE=str(folder)
    )
    assert done.status == 1
    assert "shorter path" in done.stderr


@pytest.mark.parametrize(
    "step",
    [
        "look-for-cluster",
        "stop-what-was-left-3-abc",
        "read-settings",
        "monitor",
        "monitor-print",
        "monitor-standby1",
    ],
)
def test_steps_that_only_looked_are_left_out(step):
    steps = recorded(command(step, "secretly"), command("say", "true"))
    assert "secretly" not in shell_script("7", "x", [steps])


def test_an_input_that_was_not_kept_whole_is_not_run_in_part(run_script, folder):
    stdin = "SELECT\n[... 70000 characters ...]\n1;"
    done = run_script(
        shell_script("7", "x", [recorded(command("big", "cat", stdin=stdin))])
    )
    assert done.status == 1
    assert "too long for the record" in done.stderr


def test_several_machines_are_told():
    other = RecordedCommand("standby", "192.0.2.2", ("true",))
    script = shell_script("7", "x", [recorded(command("primary", "true"), other)])
    assert "Several machines took part" in script
    assert "# standby, 192.0.2.2" in script


def test_comments_tell_times_and_cannot_be_ended_by_a_title():
    step = command(
        "x",
        "true",
        started_at=datetime(2026, 11, 21, 10, 0, 5, tzinfo=UTC),
        seconds=2.5,
    )
    script = shell_script("7", "mine\nrm -rf /", [recorded(step)])
    assert "# x, 192.0.2.1, 2026-11-21 10:00:05 UTC, 2.5 s" in script
    assert "# mine rm -rf /" in script


def test_a_cluster_is_emptied_before_initdb():
    data = f"{BASE}/clusters/run-7/data"
    script = shell_script(
        "7", "x", [recorded(command("initdb", "/usr/bin/initdb", "-D", data))]
    )
    assert (
        'fresh "$BASE"/clusters/run-7\n"$PG_16_14"/initdb -D "$BASE"/clusters/run-7/data'
        in script
    )


def test_a_prepared_cluster_stays_for_the_runs_that_share_it():
    mark = command("mark-prepared", "sh", "-c", "x", "mark", f"{BASE}/clusters/shared")
    script = shell_script(
        "7", "x", [recorded(mark, command("x", "ls", f"{BASE}/runs/7-1"))]
    )
    assert 'rm -rf "$BASE"/runs/7-1\n' in script


def test_two_sets_of_binaries_of_one_version_get_names_of_their_own():
    programs = (("16.14", "/usr/bin"), ("16.14", "/bin"))
    script = shell_script("7", "x", [recorded(command("x", "true"), programs=programs)])
    assert "PG_16_14=${PG_16_14:-/usr/bin}" in script
    assert "PG_16_14_2=${PG_16_14_2:-/bin}" in script


def test_nothing_recorded_is_no_script():
    with pytest.raises(ValueError, match="nothing"):
        shell_script("7", "x", [recorded(command("read-settings", "true"))])
