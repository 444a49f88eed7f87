"""Commands and configuration of a cluster."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from runs.execution import director
from runs.execution.clusters.initdb_options import options_for
from runs.execution.clusters.listening import checked
from runs.execution.clusters.postgres import Cluster
from runs.execution.errors import TargetProblem
from runs.execution.plan import RunPlan
from runs.execution.ssh.login_shell import shell_line
from runs.execution.steps.base_dir import BaseDir, is_plain_path


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(
        "/pg/bin", 90224, "/client/bin", "/base/clusters/x", "/base/runs/1-1/s", "/log"
    )


def test_settings_are_quoted_and_nothing_listens_on_the_network(cluster):
    _argv, text = cluster.configure({"search_path": "it's \\ here", "work_mem": "1MB"})
    assert text.splitlines()[1:] == [
        "# BenchLab",
        "listen_addresses = ''",
        "search_path = 'it''s \\\\ here'",
        "work_mem = '1MB'",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("archive_command", "cp %p /tmp"),
        ("Restore_Command", "curl x | sh"),
        ("ssl_passphrase_command", "true; id"),
        ("plperl.on_init", "system 'id'"),
        ("shared_preload_libraries", "pg_prewarm, /tmp/x"),
        ("dynamic_library_path", "/tmp"),
        ("work_mem", "1MB'\nport = 1"),
        ("work_mem = 1\narchive_command", "cp %p /tmp"),
    ],
)
def test_what_would_run_something_or_needs_more_than_a_line_is_refused(
    cluster, name, value
):
    with pytest.raises(TargetProblem) as refused:
        cluster.configure({name: value})
    assert refused.value.code == "setting_refused"
    assert "Leave the setting out" in refused.value.remedy


def test_a_command_that_does_nothing_is_written(cluster):
    _argv, text = cluster.configure({"archive_command": "true"})
    assert "archive_command = 'true'" in text.splitlines()


def test_an_old_initdb_is_not_given_an_option_that_it_does_not_know(cluster):
    assert "-N" not in cluster.initdb([])
    assert "-N" in Cluster("/b", 90300, "/b", "/c", "/s", "/log").initdb([])


def test_initdb_options_come_through(cluster):
    assert cluster.initdb(["--no-locale"])[-1] == "--no-locale"


def test_one_function_quotes_for_the_shell():
    assert shell_line(["a b", "$x", "'"]) == """'a b' '$x' ''"'"''"""
    with pytest.raises(ValueError, match="null byte"):
        shell_line(["a\0"])


@pytest.mark.parametrize(
    ("version", "wanted", "given"),
    [
        (90224, (), ()),
        (90305, (), ("-N",)),
        (90305, ("--data-checksums",), ("-N", "--data-checksums")),
        (90305, ("-k",), ("-N", "--data-checksums")),
        (170006, ("--no-data-checksums",), ("-N",)),
        (170006, ("--wal-segsize=64",), ("-N", "--wal-segsize=64")),
        (180000, (), ("-N", "--no-data-checksums")),
        (180000, ("--data-checksums",), ("-N", "--data-checksums")),
    ],
)
def test_checksums_are_where_they_were_asked_for_and_nowhere_else(
    version, wanted, given
):
    assert options_for(version, wanted) == given


@pytest.mark.parametrize(
    ("version", "option", "reason"),
    [
        (90224, "--data-checksums", r"--data-checksums from PostgreSQL 9\.3 on"),
        (90224, "-k", r"-k from PostgreSQL 9\.3 on"),
        (100023, "--wal-segsize=64", "--wal-segsize from PostgreSQL 11 on"),
    ],
)
def test_an_option_that_came_later_is_refused_with_the_reason(version, option, reason):
    with pytest.raises(ValueError, match=reason):
        options_for(version, [option])


@pytest.mark.parametrize(
    "path", ["/b", "/var/tmp/bench_lab-1.0", "/a/.b", "/Users/Jo Doe/x", "/家/x"]
)
def test_plain_paths_are_allowed(path):
    assert is_plain_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "b",
        "/b/",
        "/b//c",
        "/b/../c",
        "/b,c",
        "/b$c",
        "/b`c",
        "//b",
        "/b\n",
        '/b"c',
        "/b'c",
    ],
)
def test_others_are_not(path):
    assert not is_plain_path(path)


def test_a_mark_names_the_benchlab_and_the_very_place():
    base = BaseDir("/lab", "instance")
    assert base.mark("/lab/clusters/a") != base.mark("/lab/clusters/b")
    assert base.mark("/lab/clusters/a") != BaseDir("/lab", "other").mark(
        "/lab/clusters/a"
    )


@pytest.mark.parametrize(
    "address", ["192.0.2.1", "fe80::1%eth0", "db1.example.org", "0db", "10.0.0.0"]
)
def test_one_address_is_accepted(address):
    assert checked(address) == address


@pytest.mark.parametrize(
    "address",
    ["0.0.0.0", "0", "0x0", "0:0:0:0:0:0:0:0", "::", "*", "", "a,b", "a b", '"$(id)"'],
)
def test_every_address_and_what_a_shell_reads_is_refused(address):
    with pytest.raises(TargetProblem) as problem:
        checked(address)
    assert problem.value.code == "address_unknown"


# What a pg_ctl does that looks for the server's end or start only now and then.
SLOW = "printf 'waiting....'; {}; exec sleep 20"
PID_FILE = "%s\n/data\n%s\n5432\n/s\n\n0 0\n%s   \n"


def promptly(tmp_path, cluster, argv, script: str) -> tuple[int, str, float]:
    """Exit status, output and seconds of a script in place of pg_ctl, and what goes before it."""
    at = replace(cluster, directory=str(tmp_path))
    begun = time.monotonic()
    done = subprocess.run(
        [*at.promptly(argv), "sh", "-c", script, "pg_ctl", at.data],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, time.monotonic() - begun


@pytest.mark.parametrize("status", ["ready", "standby"])
def test_a_server_that_has_started_is_not_waited_for_any_longer(
    tmp_path, cluster, status
):
    file = tmp_path / "data/postmaster.pid"
    file.parent.mkdir()
    file.write_text(PID_FILE % (77, 1700000000, "ready"))  # of one that was killed
    new = replace(cluster, version_num=180004)
    write = (
        f"sleep 0.1; printf '{PID_FILE % (78, 1700000001, status)}' >$1/postmaster.pid"
    )
    exit_status, said, seconds = promptly(
        tmp_path, new, new.start(), SLOW.format(write)
    )
    assert (exit_status, said) == (0, "waiting.... done\nserver started\n")
    assert 0.1 < seconds < 5


def test_the_memory_of_a_server_that_starts_slowly_is_noted(tmp_path, cluster):
    """pg_ctl sees it first, as where the machine is busy: it ends before it was looked for."""
    (tmp_path / "data").mkdir()
    new = replace(cluster, version_num=180004)
    mapped = tmp_path / "maps.py"
    name = f"/dev/shm/PostgreSQL.{os.getpid()}"
    mapped.write_text(
        "import mmap, os, sys, time\n"
        f"with open({name!r}, 'wb+') as file:\n"
        "    file.truncate(4096)\n"
        "    memory = mmap.mmap(file.fileno(), 4096)\n"
        "print(os.getpid(), flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, mapped], stdout=subprocess.PIPE, text=True
    ) as server:
        pid = int(server.stdout.readline())
        ready = PID_FILE % (pid, 1700000001, "ready")
        start = f"printf '{ready}' >$1/postmaster.pid"
        try:
            promptly(tmp_path, new, new.start(), start)
            assert (tmp_path / "shared-memory").read_text() == f"{name}\n"
        finally:
            server.kill()
            Path(name).unlink()


def test_a_server_that_has_stopped_is_not_waited_for_any_longer(tmp_path, cluster):
    file = tmp_path / "data/postmaster.pid"
    file.parent.mkdir()
    file.write_text("77\n/data\n")
    remove = "sleep 0.1; rm $1/postmaster.pid"
    exit_status, said, seconds = promptly(
        tmp_path, cluster, cluster.stop(), SLOW.format(remove)
    )
    assert (exit_status, said) == (0, "waiting.... done\nserver stopped\n")
    assert 0.1 < seconds < 5


@pytest.mark.parametrize("status", ["ready", "starting"])
def test_what_pg_ctl_says_of_a_server_that_does_not_start_is_kept(
    tmp_path, cluster, status
):
    file = tmp_path / "data/postmaster.pid"
    file.parent.mkdir()
    file.write_text(PID_FILE % (77, 1700000000, status))
    new = replace(cluster, version_num=180004)
    refuse = "sleep 0.1; echo stopped waiting; exit 3"
    exit_status, said, _seconds = promptly(tmp_path, new, new.start(), refuse)
    assert (exit_status, said) == (3, "stopped waiting\n")
    file.unlink()
    exit_status, said, _seconds = promptly(tmp_path, new, new.stop(), refuse)
    assert (exit_status, said) == (3, "stopped waiting\n")


def test_an_old_server_does_not_write_down_that_it_is_ready(cluster):
    assert cluster.promptly(cluster.start()) == ()
    assert cluster.promptly(cluster.stop()) != ()


# The release that is measured is the one that was asked for, or nothing is measured.


def plan(version: str, number: int) -> RunPlan:
    # fmt: off
    return RunPlan(
        run_id=7, campaign="c", scenario="s", host="h", port=22, username="u", base_dir="/b",
        bindir="/p/bin", version_num=number, client_bindir="/p/bin", client_version_num=number,
        settings={}, initdb_options=(), levels={"version": version}, parameters={}, cluster_key="",
    )
    # fmt: on


def served(version: str, number: int) -> dict[str, dict[str, str]]:
    return {
        "server_version": {"setting": version},
        "server_version_num": {"setting": str(number)},
    }


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (("16.14", 160014), ("16.14 (Debian 16.14-1.pgdg120+1)", 160014)),
        (("9.6.24", 90624), ("9.6.24", 90624)),
        (("19beta1", 190000), ("19beta1 (Debian 19~beta1-1.pgdg120+1)", 190000)),
        (("19devel", 190000), ("19devel", 190000)),
        (("11.2", 110002), ("11.2-YB-2.17", 110002)),
    ],
)
def test_the_release_that_was_asked_for_is_measured(wanted, said):
    director.require_release(plan(*wanted), served(*said))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (("16.14", 160014), ("16.15 (Debian 16.15-1.pgdg120+1)", 160015)),
        (("9.6.24", 90624), ("9.5.24", 90524)),
        (("19beta1", 190000), ("19beta2", 190000)),
        (("19beta1", 190000), ("19.0", 190000)),
        (("17.2", 170002), ("18.4", 180004)),
    ],
)
def test_another_release_in_the_same_place_is_not_measured(wanted, said):
    with pytest.raises(
        TargetProblem, match=f"/p/bin .* {wanted[0]} .* {said[0].split()[0]}"
    ) as told:
        director.require_release(plan(*wanted), served(*said))
    assert told.value.code == "installation_changed"
    assert "Inspect the server again" in told.value.remedy
