"""What was killed and is not reaped yet: a postmaster, a step, in a container without an init."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from benchlab.embedded.account import Account
from runs.execution import steps
from runs.execution.postgres import Cluster


@pytest.fixture
def postmaster(account: Account, base_dir: Path):
    """A process of the account in the place of a postmaster; nobody reaps it before the end."""
    with account.spawn(["sleep", "600"], env={"PATH": "/usr/bin:/bin"}, cwd=Path("/")) as process:
        yield process
        process.kill()


@pytest.fixture
def cluster(account: Account, base_dir: Path, binaries, postmaster) -> Cluster:
    data = base_dir / "cluster" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("18\n")
    (data / "postmaster.pid").write_text(f"{postmaster.pid}\n{data}\n")
    (data / "postmaster.opts").write_text("postgres\n")
    for path in (data.parent, data, *data.iterdir()):
        account.own(path)
    return Cluster(
        bindir=os.fspath(binaries.postgresql18),
        version_num=180000,
        client_bindir=os.fspath(binaries.postgresql18),
        directory=os.fspath(data.parent),
        socket_dir=os.fspath(base_dir),
        log=os.fspath(base_dir / "log"),
    )


def is_running(account: Account, cluster: Cluster) -> bool:
    return account.succeeds(*cluster.status())


def test_a_process_that_lives_is_running(account, cluster):
    assert is_running(account, cluster)


def test_a_killed_postmaster_does_not_run_though_nobody_has_reaped_it(account, cluster, postmaster):
    os.kill(postmaster.pid, signal.SIGKILL)
    until = time.monotonic() + 5
    while state(postmaster) != "Z":
        assert time.monotonic() < until
        time.sleep(0.02)
    assert account.succeeds(cluster.bindir + "/pg_ctl", "status", "-D", cluster.data)
    assert not is_running(account, cluster)


@pytest.mark.openssh
def test_a_killed_step_has_ended_though_nobody_has_reaped_it(
    on_host, account, base_dir, postmaster, monkeypatch
):
    monkeypatch.setattr(steps, "SECONDS_BETWEEN_SIGNALS", 1)
    stat = Path(f"/proc/{postmaster.pid}/stat").read_text().rpartition(") ")[2]
    step = base_dir / "steps" / "one"
    step.mkdir(parents=True)
    (step / "process").symlink_to(f"{postmaster.pid} {stat.split()[19]}")

    on_host(lambda host: steps.stop_all(host, f"{base_dir}/steps"))

    assert state(postmaster) == "Z"


def state(process: "subprocess.Popen[bytes]") -> str:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2][0]
