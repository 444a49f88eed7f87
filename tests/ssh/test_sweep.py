"""Sweeping what runs that were given up left on a real target, and nothing else."""

import asyncio
import os
import shutil
import subprocess
import threading
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from runs.execution.ssh import ssh
from runs.execution.steps import base_dir as base_dirs
from runs.execution.steps import steps
from runs.execution.steps.base_dir import BaseDir
from runs.models import Campaign, Lease, PreparedCluster, Run, Server
from runs.queue.services import attempts, leases, supervision, sweeping, transitions
from runs.servers.services import logins, servers, ssh_keys
from runs.servers.services import logins as ways
from runs.shared.errors import ServiceError
from runs.tasks import execute_next
from tests import factories
from tests.ssh.directing import left_running, names
from tests.ssh.openssh import OpenSSH, login_name, short_folder

pytestmark = [
    pytest.mark.openssh,
    pytest.mark.usefixtures("loaded_before"),
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def openssh(sshd_binary, account):
    """An sshd that lets BenchLab's own key in."""
    target = OpenSSH(sshd_binary, short_folder(), account)
    target.prepare(servers.public_key())
    target.start()
    yield target
    target.stop()
    shutil.rmtree(target.folder)


@pytest.fixture
def server(openssh, account, base_dir) -> Server:
    made = factories.server(
        "rack",
        address="127.0.0.1",
        port=openssh.port,
        username=login_name(account),
        base_dir=str(base_dir),
        host_key=openssh.host_key,
        ssh_key=ssh_keys.default(),
    )
    Lease.objects.get_or_create(server=made)
    return made


@pytest.fixture
def elsewhere(account):
    """A folder of the same user outside of the base directory."""
    folder = short_folder()
    if account.switch:
        os.chown(folder, account.uid, account.gid)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def on_target(server):
    """Run a coroutine function with a connection and the base directory."""

    def run(act):
        way, instance = ways.way_to(server), logins.instance_name()

        async def connected():
            async with await ways.connect_along(way) as host:
                base = BaseDir(server.base_dir, instance)
                await base.claim(host)
                return await act(host, base)

        return asyncio.run(connected())

    return run


@pytest.fixture
def folders(on_target):
    """Make marked folders, given by their paths relative to the base directory."""

    def make(*paths: str) -> None:
        async def act(host, base):
            for path in paths:
                await base.make_folder(host, base.join(path))

        on_target(act)

    return make


def test_what_belongs_to_no_open_run_is_removed(server, folders, base_dir):
    waiting = factories.run(server=server, attempt=2, plan={"cluster_key": "3-abc"})
    done = factories.run(server=server, state=Run.State.FINISHED)
    kept = [f"runs/{waiting.pk}-2", "clusters/3-abc", f"clusters/run-{waiting.pk}"]
    left = [
        f"runs/{waiting.pk}-1",
        f"runs/{done.pk}-1",
        "clusters/9-old",
        f"clusters/run-{done.pk}",
    ]
    folders(*kept, *left)

    removed = sweeping.sweep(server=server).removed

    assert set(removed) == {f"{base_dir}/{path}" for path in left}
    assert names(base_dir / "runs") == [f"{waiting.pk}-2"]
    assert set(names(base_dir / "clusters")) == {"3-abc", f"run-{waiting.pk}"}


def test_what_does_not_carry_the_mark_of_its_place_stays(
    server, folders, base_dir, account
):
    folders("runs/1-1")
    (base_dir / "runs" / "by-hand").mkdir()
    (base_dir / "clusters" / "link").symlink_to(base_dir / "runs" / "by-hand")
    shutil.copytree(base_dir / "runs" / "1-1", base_dir / "clusters" / "moved")

    assert sweeping.sweep(server=server).removed == (f"{base_dir}/runs/1-1",)
    assert names(base_dir / "runs") == ["by-hand"]
    assert set(names(base_dir / "clusters")) == {"link", "moved"}


def test_a_base_directory_of_another_benchlab_is_left_alone(server, folders, base_dir):
    folders("runs/1-1")
    (base_dir / ".benchlab").write_text("benchlab ffffffffffffffff .\n")

    assert sweeping.sweep(server=server) == sweeping.Swept((), ())
    assert names(base_dir / "runs") == ["1-1"]


def test_processes_end_in_all_folders_and_those_that_nobody_needs_go(
    server, folders, on_target, base_dir, binaries
):
    bindir = binaries.postgresql18
    waiting = factories.run(server=server, plan={"cluster_key": "3-abc"})
    folders("clusters/3-abc", "runs/999999-1")

    async def make(host, base):
        data = base.join("clusters/3-abc/data")
        made = await host.run([f"{bindir}/initdb", "-D", data, "-U", "benchlab", "-N"])
        assert made.exit_status == 0, made.stderr

    async def start(host, base):
        data = base.join("clusters/3-abc/data")
        options = f'-k "{base.join("runs/999999-1")}" -c listen_addresses='
        log = base.join("runs/999999-1/log")
        started = await host.run(
            [f"{bindir}/pg_ctl", "start", "-w", "-D", data, "-l", log, "-o", options]
        )
        assert started.exit_status == 0, started.stdout

    on_target(make)
    on_target(start)
    assert sweeping.sweep(server=server) == sweeping.Swept(
        (f"{base_dir}/runs/999999-1",), ()
    )
    assert left_running(base_dir) == []
    assert names(base_dir / "clusters") == ["3-abc"]

    waiting.delete()
    folders("runs/999999-1")
    on_target(start)
    assert left_running(base_dir)
    assert len(sweeping.sweep(server=server).removed) == 2
    assert left_running(base_dir) == []
    assert names(base_dir / "clusters") == []


@pytest.mark.parametrize("linked", ["clusters/run-999999/data", "clusters"])
def test_another_ones_postgresql_behind_a_link_is_not_stopped(
    server, folders, base_dir, account, elsewhere, linked
):
    """A person has put a link to other data where BenchLab's own were."""
    folders("clusters/run-999999")
    own, moved = base_dir / "clusters", elsewhere / "run-999999" / "data"
    assert account.succeeds("mkdir", "-p", moved)
    assert account.succeeds(
        "cp", own / "run-999999" / ".benchlab", elsewhere / "run-999999"
    )
    if linked == "clusters":
        assert account.succeeds("rm", "-r", own)
        assert account.succeeds("ln", "-s", elsewhere, own)
    else:
        assert account.succeeds("ln", "-s", moved, own / "run-999999" / "data")
    with account.spawn(
        ["sleep", "60"], env={"PATH": "/usr/bin:/bin"}, cwd=moved
    ) as process:
        (moved / "postmaster.pid").write_text(f"{process.pid}\n")
        try:
            assert sweeping.sweep(server=server).removed == ()
            assert process.poll() is None
        finally:
            process.kill()
    assert (moved / "postmaster.pid").exists()


def test_a_server_that_measures_is_not_swept(server, folders, base_dir):
    factories.campaign(on=server, factors={"version": ["16.14"]}, repeats=1)
    assert leases.claim(server_id=server.pk, holder="worker") is not None
    folders("runs/999999-1")

    with pytest.raises(ServiceError) as told:
        sweeping.sweep(server=server)
    assert told.value.code == "server_busy"
    assert names(base_dir / "runs") == ["999999-1"]


def test_a_removal_that_hangs_is_tried_again_when_the_server_answers(
    server, folders, base_dir, monkeypatch
):
    folders("runs/999999-1")
    Server.objects.filter(pk=server.pk).update(needs_sweep=True)
    with monkeypatch.context() as hanging:
        hanging.setattr(ssh, "SECONDS_TO_NOTICE", 0.5)
        hanging.setattr(base_dirs, "REMOVAL_SECONDS", 1)
        hanging.setattr(base_dirs, "_REMOVE", "sleep 300; :")
        sweeping.sweep_where_needed(server_id=server.pk)
    server.refresh_from_db()
    assert (server.state, server.problem_code) == ("unreachable", "command_timeout")
    assert server.needs_sweep
    Server.objects.filter(pk=server.pk).update(checked_at="2020-01-01T00:00:00Z")

    execute_next(server.pk)

    assert names(base_dir / "runs") == []
    server.refresh_from_db()
    assert (server.state, server.needs_sweep) == ("ready", False)


def test_a_removal_that_the_login_shell_did_not_start_is_tried_again(
    server, folders, base_dir, openssh
):
    folders("runs/999999-1")
    Server.objects.filter(pk=server.pk).update(needs_sweep=True)
    kept = (openssh.folder / "sshd_config").read_text()
    ignoring = 'case "$SSH_ORIGINAL_COMMAND" in *-mindepth*) exit 0 ;; esac'
    openssh.configure(f'ForceCommand {ignoring}; eval "$SSH_ORIGINAL_COMMAND"')
    sweeping.sweep_where_needed(server_id=server.pk)
    server.refresh_from_db()
    assert (server.needs_sweep, names(base_dir / "runs")) == (True, ["999999-1"])
    assert "login shell" in server.events.get(code="not_swept").message

    (openssh.folder / "sshd_config").write_text(kept)
    openssh.configure("")
    Server.objects.filter(pk=server.pk).update(sweep_after=None)
    sweeping.sweep_where_needed(server_id=server.pk)
    server.refresh_from_db()
    assert (server.needs_sweep, names(base_dir / "runs")) == (False, [])


def test_a_server_that_cannot_be_set_back_measures_nothing_until_it_is(
    server, folders, base_dir, allow, governed
):
    folders("runs/999999-1", "runs/999998-1")
    (base_dir / "runs/999999-1/was-governor").write_text("powersave\n")
    governed("performance", "performance")
    Server.objects.filter(pk=server.pk).update(needs_sweep=True)
    factories.campaign(on=server, factors={"version": ["16.14"]}, repeats=1)
    allow()

    execute_next(server.pk)

    server.refresh_from_db()
    assert (server.state, server.problem_code) == ("refused", "not_set_back")
    assert (server.needs_sweep, Run.objects.get().state) == (True, "queued")
    assert names(base_dir / "runs") == ["999999-1"]
    # Its run waits, so it is looked at again.
    assert server.pk in supervision._servers_with_work()

    allow("governor")
    servers.inspect(server=server)
    sweeping.sweep_where_needed(server_id=server.pk)

    server.refresh_from_db()
    assert (server.state, server.needs_sweep) == ("ready", False)
    assert governed() == ["powersave"] * 2
    assert names(base_dir / "runs") == []


def test_a_run_given_up_while_its_server_was_away_is_swept_when_it_is_back(
    server, folders, openssh, base_dir
):
    campaign = factories.campaign(on=server, factors={"version": ["16.14"]}, repeats=1)
    claim = leases.claim(server_id=server.pk, holder="worker")
    folders(f"runs/{claim.run_id}-1")
    transitions.transition(
        run_id=claim.run_id, to="lost", code="host_unreachable", token=claim.token
    )
    Server.objects.filter(pk=server.pk).update(
        state="unreachable", checked_at="2020-01-01T00:00:00Z"
    )
    transitions.cancel(run=Run.objects.get(pk=claim.run_id))
    assert Campaign.objects.get(pk=campaign.pk).state == "cancelled"
    assert server.pk in supervision._servers_with_work()

    execute_next(server.pk)

    assert names(base_dir / "runs") == []
    server.refresh_from_db()
    assert (server.state, server.needs_sweep) == ("ready", False)
    assert server.pk not in supervision._servers_with_work()


def test_what_an_error_of_benchlab_left_stays_until_somebody_asks(
    server, folders, base_dir
):
    errored = factories.run(
        server=server, state=Run.State.ERRORED, plan={"generators": []}
    )
    another = factories.run(server=server, state=Run.State.ERRORED)
    folders(f"runs/{errored.pk}-1", f"runs/{another.pk}-1")
    Server.objects.filter(pk=server.pk).update(needs_sweep=True)
    sweeping.sweep_where_needed(server_id=server.pk)
    assert len(names(base_dir / "runs")) == 2

    attempts.retry(run=errored)

    sweeping.sweep_where_needed(server_id=server.pk)
    assert names(base_dir / "runs") == [f"{another.pk}-1"]
    sweeping.sweep(server=server)
    assert names(base_dir / "runs") == []


def test_the_command_says_what_it_removed(server, folders, base_dir):
    folders("runs/5-1")
    said = StringIO()
    call_command("sweep", "--server", "rack", stdout=said)
    assert said.getvalue().splitlines() == [
        f"rack: removed {Path(base_dir)}/runs/5-1",
        "rack: 1 removed",
    ]


def test_the_command_names_servers_that_could_not_be_swept(server, openssh):
    openssh.stop()
    said = StringIO()
    with pytest.raises(CommandError, match="rack"):
        call_command("sweep", stderr=said)
    assert "cannot be reached" in said.getvalue()


def test_the_command_ends_with_an_error_when_something_was_left(
    server, folders, base_dir
):
    folders("runs/5-1", "clusters/run-5")
    (base_dir / "clusters/run-5/data").symlink_to("/nowhere")
    said, wrong = StringIO(), StringIO()
    with pytest.raises(CommandError, match="rack"):
        call_command("sweep", stdout=said, stderr=wrong)
    assert "rack: 1 removed" in said.getvalue()
    assert "symbolic link leads out" in wrong.getvalue()
    assert "Remove the link" in wrong.getvalue()


def test_what_does_not_end_keeps_new_runs_away_until_it_has(
    server, folders, base_dir, monkeypatch
):
    factories.campaign(on=server, factors={"version": ["16.14"]}, repeats=1)
    folders("runs/999999-1")
    Server.objects.filter(pk=server.pk).update(needs_sweep=True)
    with monkeypatch.context() as hanging:
        hanging.setattr(steps, "_STOP", "exit 1")
        execute_next(server.pk)

        server.refresh_from_db()
        assert (server.state, server.was_swept_in_vain) == ("ready", True)
        assert Run.objects.get().state == "queued"
        assert names(base_dir / "runs") == ["999999-1"]
        assert server.pk not in supervision._servers_with_work()
        (event,) = server.events.all()
        assert event.code == "not_swept"
        assert "does not end" in event.message
        assert "Look at the process" in event.message
        with pytest.raises(CommandError):
            call_command("sweep", stderr=StringIO())
        assert server.events.count() == 1
    servers.inspect(server=server)
    sweeping.sweep_where_needed(server_id=server.pk)

    server.refresh_from_db()
    assert (server.needs_sweep, server.sweep_after) == (False, None)
    assert names(base_dir / "runs") == []
    assert server.events.filter(code="swept").count() == 1
    assert leases.claim(server_id=server.pk, holder="worker") is not None


# No signal from within ends the first process of a PID namespace, not even KILL.
IN_ITS_OWN_NAMESPACE = """
set -eu
mount --bind "$1" /etc/passwd
"$2" -f "$3/sshd_config" -E "$3/log"
cd "$4"
exec setpriv --reuid "$5" --regid "$6" --clear-groups sleep 60
"""


@pytest.fixture
def first_process(openssh, account):
    """Serve the target in a PID namespace whose first process works in a folder of ours."""
    if not account.switch or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv")

    def begin(folder):
        openssh.stop()
        (openssh.folder / "log").unlink()
        given = [
            openssh._passwd(),
            openssh.binary,
            openssh.folder,
            folder,
            account.uid,
            account.gid,
        ]
        unshare = [
            "unshare",
            "--pid",
            "--fork",
            "--mount-proc",
            "--propagation",
            "private",
        ]
        shell = ["sh", "-c", IN_ITS_OWN_NAMESPACE, "sh", *map(str, given)]
        openssh.process = subprocess.Popen([*unshare, *shell], start_new_session=True)
        openssh._wait()

    return begin


def test_a_postgresql_that_does_not_stop_is_told_and_looked_at_again(
    server, folders, openssh, base_dir, account, first_process, monkeypatch
):
    monkeypatch.setattr("runs.execution.clusters.postgres.SECONDS_BETWEEN_SIGNALS", 0)
    folders("clusters/run-999999", "runs/999999-1")
    data = base_dir / "clusters/run-999999/data"
    assert account.succeeds("mkdir", data)
    (data / "postmaster.pid").write_text("1\n")
    first_process(data)

    swept = sweeping.sweep(server=server)

    assert swept.removed == (f"{base_dir}/runs/999999-1",)
    assert [problem.code for problem in swept.left] == ["postgres_does_not_stop"]
    server.refresh_from_db()
    assert server.was_swept_in_vain
    assert server.pk not in supervision._servers_with_work()
    Server.objects.filter(pk=server.pk).update(sweep_after="2020-01-01T00:00:00Z")
    assert server.pk in supervision._servers_with_work()
    openssh.stop()
    openssh.start()
    execute_next(server.pk)
    assert names(base_dir / "clusters") == []


def test_a_sweep_that_is_asked_for_while_one_goes_on_is_not_forgotten(
    server, folders, monkeypatch
):
    run = factories.run(server=server, state=Run.State.CANCELLED)
    transitions.sweep_later(run)
    connect = ways.connect_along

    def ask():
        transitions.sweep_later(run)
        connection.close()

    async def ask_and_connect(way):
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join(timeout=30)
        return await connect(way)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(ways, "connect_along", ask_and_connect)
        sweeping.sweep_where_needed(server_id=server.pk)
    server.refresh_from_db()
    assert server.needs_sweep
    sweeping.sweep_where_needed(server_id=server.pk)
    server.refresh_from_db()
    assert not server.needs_sweep


@pytest.mark.parametrize("role", ["database", "generator"])
def test_nothing_is_removed_beside_the_load_of_a_run_that_lost_its_worker(
    server, folders, base_dir, role
):
    """Its load goes on, and its figures count when another worker takes it over."""
    ended = factories.campaign(state="finished")
    directory = f"{base_dir}/clusters/9-old"
    PreparedCluster.objects.create(
        server=server, campaign=ended, key="9-old", directory=directory
    )
    folders("clusters/9-old", "runs/999999-1")
    away = factories.server("away", state="refused")
    generators = [{"server_id": each.pk} for each in (server, away)]
    database = server if role == "database" else away
    lost = factories.run(server=database, state="lost", plan={"generators": generators})
    Server.objects.filter(pk=server.pk).update(needs_sweep=True)

    execute_next(server.pk)

    assert names(base_dir / "clusters") == ["9-old"]
    assert names(base_dir / "runs") == ["999999-1"]
    with pytest.raises(ServiceError, match="measuring"):
        sweeping.sweep(server=server)
    Run.objects.filter(pk=lost.pk).update(state="failed")
    execute_next(server.pk)
    assert names(base_dir / "clusters") == []
    assert names(base_dir / "runs") == []


def test_a_generator_is_swept_before_the_next_run_puts_load_on_from_it(
    server, folders, base_dir
):
    database = factories.server("database", versions=["16.14"])
    Lease.objects.create(server=database)
    campaign = factories.campaign(
        on=database, factors={"version": ["16.14"]}, repeats=2
    )
    campaign.runs.update(plan={"generators": [{"server_id": server.pk}]})
    claim = leases.claim(server_id=database.pk, holder="worker")
    run = Run.objects.get(pk=claim.run_id)
    folders(f"runs/{run.pk}-1")
    transitions.sweep_later(run)
    transitions.transition(run_id=run.pk, to="failed", code="x", token=claim.token)
    Server.objects.filter(pk=database.pk).update(needs_sweep=False)

    assert leases.claim(server_id=database.pk, holder="worker") is None
    assert {server.pk, database.pk} <= supervision._servers_with_work()
    execute_next(server.pk)

    assert names(base_dir / "runs") == []
    assert leases.claim(server_id=database.pk, holder="worker") is not None
