"""What a generator needs to reach the database, found and left there by a real OpenSSH server."""

import asyncio
from functools import partial

import pytest

from runs.execution import listening
from runs.execution.errors import TargetProblem

pytestmark = pytest.mark.openssh


@pytest.fixture
def on_bench(direct, plan):
    """Run a coroutine function with the bench of a run whose folders are there."""

    def run(act):
        bench = direct(plan).bench
        node = bench.database

        async def prepared():
            await node.claim()
            await node.on_host(partial(node.base.make_folder, path=node.directory))
            await bench.run("mkdir", node.steps_directory)
            try:
                return await act(bench)
            finally:
                await bench.close()

        return asyncio.run(prepared())

    return run


def problem_of(on_bench, act) -> TargetProblem:
    with pytest.raises(TargetProblem) as told:
        on_bench(act)
    return told.value


def source(bench):
    return listening._source(bench, bench.database, "127.0.0.1")


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
        await bench.run("ln", "-s", "/dev/full", listening.passfile(bench.database))
        await listening._leave(bench.database, b"*:*:*:*:secret\n")

    problem = problem_of(on_bench, act)
    assert problem.code == "disk_full"
    assert "secret" not in problem.message


def test_a_password_that_cannot_be_left_is_told(on_bench):
    async def act(bench):
        await bench.run("mkdir", listening.passfile(bench.database))
        await listening._leave(bench.database, b"*:*:*:*:secret\n")

    assert problem_of(on_bench, act).code == "password_not_set"
