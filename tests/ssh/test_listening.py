"""What a generator needs to reach the database, found and left there by a real OpenSSH server."""

from pathlib import Path

import pytest

from runs.execution.clusters import listening
from runs.execution.errors import TargetProblem

pytestmark = pytest.mark.openssh


def problem_of(on_bench, act) -> TargetProblem:
    with pytest.raises(TargetProblem) as told:
        on_bench(act)
    return told.value


def source(bench):
    return listening.source_of(bench, bench.database, "127.0.0.1")


def test_ip_is_found_where_the_path_of_a_user_does_not_lead(on_bench, monkeypatch):
    few = "mkdir $HOME/few; cd $HOME/few; PATH=/usr/bin:/bin\n"
    few += "ln -s /usr/bin/awk /usr/bin/sed /usr/bin/getent .; PATH=$PWD\n"
    monkeypatch.setattr(listening, "_SOURCE", few + listening._SOURCE)
    assert on_bench(source) == "127.0.0.1/32"


def test_a_machine_without_ip_is_told_what_to_install(on_bench, monkeypatch):
    elsewhere = listening._SOURCE.replace("PATH=$PATH:/usr/sbin:/sbin", "PATH=/nowhere")
    monkeypatch.setattr(listening, "_SOURCE", elsewhere)
    problem = problem_of(on_bench, source)
    assert problem.code == "missing_program"
    assert "iproute2" in problem.remedy


def test_a_password_that_does_not_fit_on_the_disk_is_told_as_a_full_disk(on_bench):
    async def act(bench):
        await bench.run("ln", "-s", "/dev/full", listening.passfile_of(bench.database))
        await listening._leave(
            bench.database, listening.passfile_of(bench.database), b"*:*:*:*:secret\n"
        )

    problem = problem_of(on_bench, act)
    assert problem.code == "disk_full"
    assert "secret" not in problem.message


def test_a_password_that_cannot_be_left_is_told(on_bench):
    async def act(bench):
        await bench.run("mkdir", listening.passfile_of(bench.database))
        await listening._leave(
            bench.database, listening.passfile_of(bench.database), b"*:*:*:*:secret\n"
        )

    assert problem_of(on_bench, act).code == "password_not_set"


def test_a_password_that_the_database_does_not_take_is_told(on_bench):
    # Nothing listens on its socket: psql gives up.
    problem = problem_of(on_bench, listening.give_password)
    assert problem.code == "password_not_set"
    assert "psql" in problem.message


def test_a_server_whose_ports_are_all_in_use_is_told(on_bench, monkeypatch):
    lines = [
        f"   0: 0100007F:{port:04X} 00000000:0000 0A" for port in range(20000, 30000)
    ]

    async def act(bench):
        listed = Path(bench.directory, "tcp")
        listed.write_text(
            "\n".join(["  sl  local_address rem_address   st", *lines, ""])
        )
        listed.chmod(0o644)
        script = listening._FREE_PORT.replace(
            "/proc/net/tcp /proc/net/tcp6", str(listed)
        )
        monkeypatch.setattr(listening, "_FREE_PORT", script)
        await listening.prepare(bench)

    problem = problem_of(on_bench, act)
    assert problem.code == "no_free_port"
    assert "20000 to 29999" in problem.remedy
