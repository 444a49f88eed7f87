"""A target's setup as docs/target-setup.md has it: its commands, and what sudo then allows."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchlab.embedded.account import Account
from runs.campaigns.services import campaigns
from runs.execution.errors import TargetProblem
from runs.execution.machine import privileged
from runs.models import Run, Server
from runs.queue.services import execution, leases
from runs.servers.services import edits as server_edits
from runs.servers.services import host_keys, preflight, servers
from runs.workloads.services import scenarios
from tests import factories
from tests.ssh.openssh import OpenSSH, short_folder

pytestmark = pytest.mark.openssh


# The commands of docs/target-setup.md, executed as they stand there.
# They see an /etc and a /home of their own: those of this machine serve other tests as well.


DOCUMENT = Path(__file__).parents[2] / "docs" / "target-setup.md"
# As sshd has it where nobody changed it: keys lie in the user's home, and modes are looked at.
OURS_ALONE = ("AuthorizedKeysFile", "StrictModes")
# Other tests run at the same time.
OF_THIS_MACHINE = {"host_busy"}


# For as long as this lives, its mount namespace has copies that nobody else sees.
OWN_FOLDERS = """
cp -a /etc "$1/etc" && mkdir "$1/home" && mount --bind "$1/etc" /etc && mount --bind "$1/home" /home
touch "$1/made" && exec sleep 600
"""


@dataclass(frozen=True)
class Host:
    """A host that is set up by the document for a user of its own; `pid` holds its namespace."""

    user: str
    base_dir: Path
    pid: int

    def block(self, heading: str, number: int = 1) -> str:
        """A block of commands below a heading, for this user and folder."""
        section = DOCUMENT.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
        found = re.findall(r"```\n(.*?)```", section, re.DOTALL)[number - 1]
        found = found.replace("/srv/benchlab", str(self.base_dir))
        # Not where it stands for the key's comment.
        return re.sub(r"\bbenchlab\b(?!')", self.user, found)

    def inside(self, *argv: str) -> list[str]:
        """The command line that executes argv there."""
        return ["nsenter", "-t", str(self.pid), "-m", *argv]

    def execute(self, commands: str, *, given: str = "") -> str:
        """As root, in one shell that ends at the first error; what it prints."""
        done = subprocess.run(
            self.inside("sh", "-euc", commands),
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture
def host() -> Iterator[Host]:
    if os.getuid() != 0:
        pytest.skip("adding a user needs root")
    above = short_folder()
    command = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        OWN_FOLDERS,
    ]
    with subprocess.Popen(
        [*command, "own", str(above)], start_new_session=True
    ) as holder:
        while not (above / "made").exists():
            assert holder.poll() is None
            time.sleep(0.05)
        host = Host("benchlab", above / "lab", holder.pid)
        try:
            yield host
            host.execute(host.block("Taking BenchLab off again"))
            # Other tests have fragments of their own there at the same time.
            listed = host.execute(
                "cut -d: -f1 /etc/passwd; ls /home /etc/sudoers.d"
            ).split()
        finally:
            os.killpg(holder.pid, signal.SIGKILL)
    assert not {"benchlab", "benchlab.new"} & set(listed)
    assert not host.base_dir.exists()
    shutil.rmtree(above)


@pytest.fixture
def sshd(sshd_binary, host) -> Iterator[OpenSSH]:
    """That host's sshd, for every user of it."""
    folder = short_folder()
    started = folder / "sshd"
    started.write_text(f'#!/bin/sh\nexec {" ".join(host.inside(sshd_binary))} "$@"\n')
    started.chmod(0o755)
    server = OpenSSH(str(started), folder, Account("root", 0, 0, switch=False))
    server.prepare("")
    configuration = folder / "sshd_config"
    lines = configuration.read_text().splitlines()
    kept = [line for line in lines if not line.startswith(OURS_ALONE)]
    configuration.write_text("\n".join([*kept, ""]))
    Path("/run/sshd").mkdir(exist_ok=True)
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder)


def set_up(host: Host) -> None:
    """Sections 1 to 3, and the narrower line for the key."""
    host.execute(host.block("1. A user that only BenchLab uses"))
    host.execute(host.block("2. Its folder, on the disk that shall be measured"))
    told = "3. The public key"
    example = re.compile(r"ssh-ed25519 AAAA\.\.\. \w+")
    let_in = example.sub(servers.public_key(), host.block(told))
    host.execute(let_in)
    narrow = example.sub(servers.public_key(), host.block(told, 2))
    keys = f"/home/{host.user}/.ssh/authorized_keys"
    assert host.execute(f"cat {keys}").strip() == servers.public_key()
    host.execute(f"cat >{keys}", given=narrow.replace("192.0.2.10", "127.0.0.1"))


def registered(host: Host, sshd: OpenSSH, bindir: Path) -> Server:
    """Section 6, with the fingerprint that the host itself prints."""
    server = servers.register(
        name="Set up by hand",
        address="127.0.0.1",
        port=sshd.port,
        username=host.user,
        base_dir=str(host.base_dir),
        bindirs=[str(bindir)],
    )
    command = host.block("6. Register and confirm")
    command = command.replace(
        "/etc/ssh/ssh_host_ed25519_key.pub", f"{sshd.folder}/host_key.pub"
    )
    printed = subprocess.run(
        command.split(), capture_output=True, text=True, check=True
    )
    fingerprint = printed.stdout.split()[1]
    return servers.inspect(
        server=host_keys.confirm(server=server, fingerprint=fingerprint)
    )


def allow_dropping_caches(host: Host, server: Server) -> Server:
    """The section on privileged actions."""
    told = "Privileged actions (optional)"
    fields = {
        name: getattr(server, name)
        for name in (
            "name",
            "address",
            "port",
            "username",
            "base_dir",
            "bindirs",
            "ssh_key",
        )
    }
    to = server_edits.Edit(**fields, jump=None, privileges=["drop_caches"])
    server = servers.inspect(server=server_edits.edit(server=server, to=to))
    lines = privileged.sudoers(host.user, ["drop_caches"])
    assert host.block(told).splitlines()[1] == lines.splitlines()[1]
    host.execute(f"cat >/etc/sudoers.d/{host.user}.new", given=lines)
    host.execute(host.block(told, 2))
    return server


@pytest.mark.django_db(transaction=True)
def test_a_host_set_up_by_the_document_serves_a_campaign(host, sshd, binaries):
    scenarios.sync()
    set_up(host)
    server = registered(host, sshd, binaries.postgresql18)
    assert server.state == Server.State.READY, server.problem
    if shutil.which("visudo"):
        server = allow_dropping_caches(host, server)
    found = preflight.check_server(server)
    assert [each.code for each in found.findings if each.level == "error"] == []
    assert {each.code for each in found.findings} <= OF_THIS_MACHINE
    campaign = campaigns.create(
        draft=factories.draft(
            server,
            title="After ten minutes",
            installations=list(
                server.installations.filter(bindir=str(binaries.postgresql18))
            ),
        )
    )
    execution.execute(leases.claim(server_id=server.pk, holder="test"))
    run = campaign.runs.get()
    assert run.state == Run.State.FINISHED, run.message


# Privileged actions: sudo on a real machine allows just what the fragment says.


@pytest.mark.refused
@pytest.mark.parametrize("names", [[], ["drop_caches"], list(privileged.NAMES)])
@pytest.mark.parametrize("username", ["benchlab", "BENCH", "bench-lab.2"])
def test_sudo_reads_the_fragment(tmp_path, names, username):
    if shutil.which("visudo") is None:
        pytest.skip("visudo is missing: apt install sudo")
    text = privileged.sudoers(username, names)
    assert text.count("NOPASSWD") == sum(
        len(privileged.action(n).commands) for n in names
    )
    assert "*" not in text
    fragment = tmp_path / "benchlab"
    fragment.write_text(text)
    fragment.chmod(0o440)
    command = ["visudo", "-cf", fragment]
    checked = subprocess.run(command, check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr + checked.stdout


@pytest.mark.refused
def test_without_a_fragment_everything_is_refused(allow, on_host):
    assert on_host(lambda host: privileged.refused(host, privileged.NAMES)) == list(
        privileged.NAMES
    )


@pytest.mark.refused
def test_just_what_was_ticked_is_allowed(allow, on_host):
    allow("drop_caches", "perf")
    assert on_host(lambda host: privileged.refused(host, privileged.NAMES)) == [
        "governor"
    ]


@pytest.mark.refused
@pytest.mark.parametrize(
    "argv",
    [
        ["sysctl", "-w", "vm.drop_caches=1"],
        ["sysctl", "-w", "vm.drop_caches=3", "kernel.panic=1"],
        ["sysctl", "-w", "kernel.core_pattern=|/tmp/x"],
        ["sh", "-c", "id"],
    ],
)
def test_nothing_beside_the_exact_command_lines_is_allowed(allow, on_host, argv):
    allow(*privileged.NAMES)
    answer = on_host(lambda host: host.run(["sudo", "-n", *argv]))
    assert answer.exit_status != 0
    assert b"password is required" in answer.stderr


@pytest.mark.refused
def test_an_action_that_is_not_ticked_is_not_even_tried():
    with pytest.raises(TargetProblem) as told:
        privileged.build_root_command("drop_caches", privileged.DROP_CACHES, [])
    assert told.value.code == "privilege_missing"
    assert "sudoers" in told.value.remedy


@pytest.mark.refused
def test_a_governor_that_is_not_in_the_list_is_refused_here():
    command = (privileged.CPUPOWER, "frequency-set", "-g", "x; reboot")
    with pytest.raises(ValueError, match="no command of governor"):
        privileged.build_root_command("governor", command, ["governor"])
