"""A run whose load came from other machines, done again by hand: over ssh, to two real sshd."""

import os
import shutil
from dataclasses import replace

import pytest

from runs.reports.load_machines import RecordedGenerator
from runs.reports.recorded_runs import RecordedCommand, RecordedRun
from runs.reports.shell_script import shell_script
from tests.by_hand import run_by_hand
from tests.ssh.directing import execute, left_running
from tests.ssh.openssh import login_name, short_folder
from tests.ssh.test_generators import direct, kept, machines, plan  # noqa: F401

pytestmark = [
    pytest.mark.openssh,
    pytest.mark.skipif(shutil.which("ssh") is None, reason="ssh is missing"),
]


def recorded(director) -> RecordedRun:
    of = director.plan
    hosts = {each.name: each.host for each in of.generators}
    return RecordedRun(
        title=f"Run {of.run_id}",
        base_dir=of.base_dir,
        programs=(("16.14", of.bindir), ("18.4", of.client_bindir)),
        commands=tuple(
            RecordedCommand(
                each.name,
                hosts.get(each.name.rpartition("-")[2], of.host),
                each.argv,
                each.stdin,
                each.exit_status,
            )
            for each in director.reporter.commands
        ),
        generators=tuple(
            RecordedGenerator(
                name=each.name,
                base_dir=each.base_dir,
                bindir=each.client_bindir,
                address_of_database=each.address_of_database,
            )
            for each in of.generators
        ),
    )


@pytest.fixture
def hand(account, key_pair, machines):  # noqa: F811
    """Run a script as somebody whose key the machines of the load know."""
    folder = short_folder()
    key = folder / "key"
    key.write_text(key_pair[0])
    key.chmod(0o600)
    if account.switch:
        os.chown(key, account.uid, account.gid)
    words = f"ssh -F none -i {key} -o BatchMode=yes -o StrictHostKeyChecking=no"
    words += f" -o LogLevel=ERROR -o UserKnownHostsFile={folder}/known"
    places = {}
    for number, each in enumerate(machines[1:], start=1):
        places[f"LOAD{number}"] = f"{login_name(each.sshd.account)}@{each.sshd.address}"
        places[f"LOAD{number}_SSH"] = f"-p {each.sshd.port}"
        places[f"LOAD{number}_BASE"] = f"{folder}/load{number}"

    def run(script, **more):
        return run_by_hand(
            script, folder, account, **{"BENCHLAB_SSH": words, **places, **more}
        )

    run.folder = folder
    yield run
    assert not list(folder.glob("load*"))
    assert not (folder / "base").exists()
    assert left_running(folder) == []
    shutil.rmtree(folder)


@pytest.fixture
def script(direct, plan, kept):  # noqa: F811
    if not kept:
        director = direct(plan)
        execute(director)
        kept["script"] = shell_script("run-7", "A run", [recorded(director)])
    return kept["script"]


def test_a_run_with_two_machines_of_load_can_be_done_by_hand(script, hand, machines):  # noqa: F811
    assert "PASSWORD='" in script
    done = hand(script, DB_HOST="127.0.0.9")
    assert done.status == 0, done.stderr
    assert done.stdout.count("tps = ") == 2
    assert done.stdout.index("== pgbench-load2") < done.stdout.index("tps = ")
    assert "number of transactions above" not in done.stderr


def test_a_machine_that_cannot_be_reached_is_named_and_nothing_is_left(script, hand):
    done = hand(script, LOAD2_SSH="-p 1")
    assert done.status == 1
    assert "Look at LOAD2" in done.stderr


def test_a_load_that_is_not_let_in_ends_it_and_cleans_up(script, hand):
    done = hand(script, ADMIT_1="127.0.0.77/32")
    assert done.status == 1
    assert "This step ended with exit status" in done.stderr
    assert "tps = " not in done.stdout


def test_a_machine_that_is_not_named_is_asked_for(script, hand):
    done = hand(script, LOAD2="")
    assert done.status != 0
    assert "LOAD2: set it to user@host of load2" in done.stderr


def test_what_lies_on_a_machine_of_the_load_is_left_alone(script, hand):
    taken = hand.folder / "load1"
    taken.mkdir()
    (taken / "mine").touch()
    done = hand(script)
    assert done.status == 1
    assert (taken / "mine").exists()
    shutil.rmtree(taken)


def test_the_run_of_one_machine_of_load_can_be_done_by_hand(direct, plan, hand):  # noqa: F811
    director = direct(
        replace(plan, generators=plan.generators[:1], cluster_key="alone")
    )
    execute(director)
    done = hand(shell_script("run-7", "A run", [recorded(director)]))
    assert done.status == 0, done.stderr
    assert done.stdout.count("tps = ") == 1
