"""`benchlab-versions`: one command on each version of this machine."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from runs.access.services import projects, tokens
from runs.analysis.inference import Inference
from runs.models import Measurement, Run
from runs.pair import clusters, versions
from runs.pair.clusters import Cluster, Installation, installed, major_of
from runs.pair.measuring import Execution
from runs.pair.versions import Measured, Order, judged, main
from runs.workloads.services import scenarios
from tests.unit.postgresql_settings import servers

ROOT = Path(__file__).parents[2]
OLD, NEW = "9.6", "18"


@pytest.fixture(scope="module")
def bindirs():
    """The folders of an old and of a new version, as arguments."""
    folder_of = {
        major_of(server.version): server.bindir for server in servers.installed()
    }
    if OLD not in folder_of:
        pytest.skip(f"PostgreSQL {OLD} is missing: script/lab says why")
    return [
        word for major in (OLD, NEW) for word in ("--bindir", str(folder_of[major]))
    ]


@pytest.fixture
def folder(test_folder):
    """A folder that the servers' account can enter."""
    made = Path(tempfile.mkdtemp(dir=test_folder))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def environment(folder, monkeypatch):
    """That of the program, whose temporary files are in that folder."""
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return {**os.environ}


def printed(milliseconds):
    text = f"elapsed={milliseconds:.3f} ms lower\n".encode()
    return Execution(text, b"", 0.1, 0.1, 0)


def run(*arguments, **options):
    command = [sys.executable, "-m", "runs.pair.versions", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, **options
    )


def is_alive(pid):
    """Whether it runs; one that has ended may wait for its parent to ask."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except FileNotFoundError:
        return False


def left_behind(folder):
    return [path for path in folder.iterdir() if path.name.startswith("benchlab-")]


def test_a_command_finds_a_fresh_server_of_each_version(
    bindirs, folder, environment, tmp_path
):
    """Each execution has the data of --setup, and nothing of the executions before it."""
    seen, result = tmp_path / "seen", tmp_path / "result.json"
    seen.touch(mode=0o666)
    statement = (
        "INSERT INTO notes VALUES (2); SELECT count(*), current_setting('work_mem'), "
        "current_setting('server_version_num') FROM notes"
    )
    done = run(
        f"{OLD},{NEW}",
        *bindirs,
        "--setup",
        "psql -qc 'CREATE TABLE notes AS SELECT 1 AS n'",
        "--set",
        "work_mem=7MB",
        "--rounds",
        "2",
        "--json",
        str(result),
        "--",
        f'psql -XAtqc "{statement}" >> {seen}; '
        'echo "elapsed=$([ $BENCHLAB_VERSION = 18 ] && echo 200 || echo 100) ms lower"',
        env=environment,
    )

    assert done.returncode == 1, done.stderr
    assert "PostgreSQL 18 is slower than 9.6" in done.stdout
    rows = [line.split("|") for line in seen.read_text().split()]
    assert [row[:2] for row in rows] == [["2", "7MB"]] * 4
    assert sorted(int(row[2]) // 10_000 for row in rows) == [9, 9, 18, 18]
    found = json.loads(result.read_text())
    assert found["versions"]["18"]["values"] == [200, 200]
    assert found["installations"].keys() == {OLD, NEW}
    assert left_behind(folder) == []


def test_all_runs_can_be_uploaded_as_a_campaign(
    bindirs, folder, environment, live_server, settings
):
    """With the version and the settings of their servers, so that its pages compare versions."""
    settings.RATE_TOKEN = 0
    scenarios.sync()
    token = tokens.create(
        name="upload", scopes=["upload"], project=projects.default()
    ).text
    done = run(
        f"{OLD},{NEW}",
        *bindirs,
        "--set",
        "work_mem=7MB",
        "--rounds",
        "2",
        "--campaign",
        "suite",
        "--scenario",
        "test-suite",
        "--",
        'echo "elapsed=$([ $BENCHLAB_VERSION = 18 ] && echo 200 || echo 100) ms lower"',
        env=environment | {"BENCHLAB_URL": live_server.url, "BENCHLAB_TOKEN": token},
    )
    assert done.returncode == 1, done.stderr
    assert f"uploaded: {live_server.url}/campaigns/suite/" in done.stderr
    runs = list(Run.objects.filter(campaign__slug="suite").select_related("cell"))
    assert sorted(
        (major_of(row.cell.version), row.repeat, row.state) for row in runs
    ) == [(major, number, "finished") for major in (NEW, OLD) for number in (1, 2)]
    known = [row.settings.settings["work_mem"]["setting"] for row in runs]
    assert known == ["7MB"] * 4
    values = Measurement.objects.filter(run__in=runs, metric__name="elapsed")
    # In seconds.
    assert sorted(row.value for row in values) == [0.1, 0.1, 0.2, 0.2]


def test_a_campaign_needs_a_token_before_anything_is_measured(bindirs, environment):
    left = {
        name: value
        for name, value in environment.items()
        if not name.startswith("BENCHLAB_")
    }
    done = run(f"{OLD},{NEW}", *bindirs, "--campaign", "suite", "--", "true", env=left)
    assert done.returncode == 64
    assert "BENCHLAB_URL" in done.stderr


def test_the_line_of_the_guide_compares_what_is_installed(
    bindirs, folder, environment, monkeypatch
):
    """That of loads.md, with fewer rounds, from the oldest version on."""
    guide = (ROOT / "docs/loads.md").read_text()
    line = re.search(r"^benchlab-versions (13\.\.18 .*)$", guide, re.MULTILINE)[1]
    words = line.replace("13..18", f"{OLD},{NEW}").replace("--rounds 5", "--rounds 2")
    (folder / "dump.sql").write_text("CREATE TABLE notes AS SELECT 1 AS n;\n")
    program = folder / "run-tests.sh"
    program.write_text('#!/bin/sh\npsql -XAtqc "SELECT count(*) FROM notes"\n')
    program.chmod(0o755)
    monkeypatch.chdir(folder)
    versions_of_line, *others = shlex.split(words)

    assert main([versions_of_line, *bindirs, *others]) in (0, 1, 2)
    assert "**seconds: PostgreSQL 18" in (folder / "versions.md").read_text()


def test_a_version_on_which_the_command_fails_is_named_and_left_out(
    bindirs, environment
):
    measured = versions.measure(
        Order(
            # JIT came with 11.
            "psql -XAtqc 'SHOW jit'",
            tuple(installed(map(Path, bindirs[1::2]))[major] for major in (OLD, NEW)),
            rounds=2,
        )
    )

    assert measured.majors == [NEW]
    assert "unrecognized configuration parameter" in measured.failed[OLD]
    assert judged(measured) is None


def test_a_setting_that_no_server_takes_is_said_with_its_words(bindirs, environment):
    done = run(
        f"{OLD},{NEW}", *bindirs, "--set", "work_men=7MB", "--", "true", env=environment
    )

    assert done.returncode == 2
    assert done.stderr.count('unrecognized configuration parameter "work_men"') >= 2


def test_one_that_is_stopped_leaves_nothing_behind(
    bindirs, folder, environment, tmp_path
):
    command = [sys.executable, "-m", "runs.pair.versions", f"{OLD},{NEW}", *bindirs]
    started = tmp_path / "started"
    process = subprocess.Popen(
        [*command, "--", f"touch {started}; sleep 300"],
        cwd=ROOT,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not started.exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    [made] = left_behind(folder)
    pids = [
        int(path.read_text().split()[0])
        for path in made.glob("run-*/data/postmaster.pid")
    ]

    process.send_signal(signal.SIGTERM)
    told = process.communicate(timeout=120)[1]

    assert process.returncode == 2, told
    assert len(pids) == 1
    assert not is_alive(pids[0])
    assert left_behind(folder) == []


def test_all_versions_are_judged_together():
    """A wide table has wider intervals than a pair of the same figures."""
    figures = {
        "13": (100, 101, 99.5),
        "14": (100.4, 99.8, 100.9),
        "18": (120, 121, 119),
    }
    measured = Measured(
        {
            major: [printed(value) for value in values]
            for major, values in figures.items()
        }
    )
    pair = Measured({major: measured.executions[major] for major in ("13", "18")})

    found, of_pair = judged(measured), judged(pair)

    assert [step.head for step in found.steps] == ["14", "18"]
    assert found.sentence.startswith("elapsed: PostgreSQL 18 is slower than 13, ")
    assert found.exit_code == 1

    def width(inference: Inference) -> float:
        return inference.high / inference.low

    assert found.steps[-1].found.verdict == of_pair.steps[-1].found.verdict == "slower"
    assert width(found.steps[-1].found) != width(of_pair.steps[-1].found)


def test_versions_that_failed_are_in_the_sentence():
    executions = {major: [printed(100), printed(101)] for major in ("13", "14", "18")}
    found = judged(Measured(executions, {"14": "no such function"}))

    assert found.sentence.endswith("; it fails on PostgreSQL 14.")
    assert "| 14 | fails: no such function |" in versions.as_markdown(found)


@pytest.mark.parametrize(
    ("version", "major"),
    [("9.6.24", "9.6"), ("10.23", "10"), ("18.4", "18"), ("19beta1", "19")],
)
def test_a_major_version_is_what_people_call_it(version, major):
    assert major_of(version) == major
    assert Installation(version, Path("/")).major == major


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["13..18"], "write the command after --"),
        (["13..18", "--"], "there is no command after --"),
        (["8.4,9.0", "--", "true"], "is not installed here"),
        (["97..99", "--", "true"], "it takes from 2 to 20"),
        (["9.6,18", "--set", "work_mem", "--", "true"], "NAME=VALUE"),
        (["9.6,18", "--rounds", "1", "--", "true"], "a number of rounds"),
    ],
)
def test_wrong_use_is_said_and_nothing_is_made(arguments, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 64
    assert said in capsys.readouterr().err


def test_a_password_keeps_others_of_the_machine_out(bindirs, folder):
    installation = installed([Path(bindirs[-1])])[NEW]
    cluster = Cluster(installation, folder / "made")
    try:
        cluster.make({})
        cluster.start()
        environment = {**os.environ, **cluster.environment()}
        asked = ["psql", "-XAtwqc", "SELECT 1"]
        known = subprocess.run(asked, env=environment, capture_output=True, check=False)
        environment["PGPASSWORD"] = "another"
        guessed = subprocess.run(
            asked, env=environment, capture_output=True, text=True, check=False
        )
    finally:
        cluster.remove()

    assert known.stdout == b"1\n"
    assert "password authentication failed" in guessed.stderr
    assert not cluster.folder.exists()


def test_who_is_root_needs_an_account_for_servers(monkeypatch):
    monkeypatch.setattr(clusters, "ACCOUNTS", ("no-such-account",))
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    with pytest.raises(clusters.ClusterFailed, match="as an ordinary user"):
        clusters.server_account()
