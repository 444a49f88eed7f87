"""Four machines on networks of their own: network namespaces with a real OpenSSH server in each.

    worker ─── bastion ─── db ──────┐
                 │ │        │       │
                 │ └─ load ─┘    standby
                 └──────────────────┘

Each line is a separate link and can be cut. Only the bastion is reached from outside; it forwards
no packets, so that db and load are reached by SSH through it and in no other way. Whoever makes
them must be root; names carry the process's number, so that several processes may do so at once.
"""

import contextlib
import ipaddress
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchlab.embedded.account import Account
from benchmarks.processes import Process, concerning
from tests.ssh.openssh import OpenSSH, login_name, short_folder

# Nobody's networks: outside one for benchmarks (RFC 2544), inside one for documentation (RFC 5737).
OUTSIDE = ipaddress.ip_network("198.18.0.0/15")
BASTION_INSIDE, DB_ADDRESS = "203.0.113.1", "203.0.113.2"
BASTION_TO_LOAD, LOAD_ADDRESS = "203.0.113.5", "203.0.113.6"
LOAD_TO_DB, DB_TO_LOAD = "203.0.113.9", "203.0.113.10"
BASTION_TO_STANDBY, STANDBY_ADDRESS = "203.0.113.13", "203.0.113.14"
STANDBY_TO_DB, DB_TO_STANDBY = "203.0.113.17", "203.0.113.18"


def run(*argv: str, check: bool = True) -> str:
    """What a command of this machine prints."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(argv)}: {done.stderr or done.stdout}")
    return done.stdout


def why_not() -> str:
    """Why this process cannot make network namespaces; empty where it can."""
    if os.getuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "ip is missing: apt install iproute2"
    name = f"bl{os.getpid()}-try"
    made = subprocess.run(
        ["ip", "netns", "add", name], capture_output=True, text=True, check=False
    )
    run("ip", "netns", "del", name, check=False)
    return (
        ""
        if made.returncode == 0
        else f"no network namespace can be made: {made.stderr}"
    )


@dataclass(frozen=True)
class Link:
    """A link between two machines, by the end that is switched off to cut it.

    `routes` are those of the end by (address, gateway): the kernel forgets them with the device.
    """

    namespace: str
    device: str
    routes: tuple[tuple[str, str], ...] = ()

    def cut(self) -> None:
        """Drop every packet silently, as when a cable is pulled."""
        run("ip", "-n", self.namespace, "link", "set", self.device, "down")

    def mend(self) -> None:
        """Let packets pass again."""
        run("ip", "-n", self.namespace, "link", "set", self.device, "up")
        for address, gateway in self.routes:
            run("ip", "-n", self.namespace, "route", "replace", address, "via", gateway)


@dataclass
class Machine:
    """A network namespace with sshd; `base` is the base directory of the server registered."""

    namespace: str
    address: str
    sshd: OpenSSH
    base: Path

    @property
    def username(self) -> str:
        """Whom to log in as."""
        return login_name(self.sshd.account)

    def run(self, *argv: str) -> "subprocess.CompletedProcess[str]":
        """Run a command in its network, by root."""
        command = ["ip", "netns", "exec", self.namespace, *argv]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=30, check=False
        )

    def listening(self) -> set[str]:
        """`address:port` of everything that listens there on TCP, but for its sshd."""
        lines = self.run("ss", "-Hltn").stdout.splitlines()
        return {line.split()[3] for line in lines} - {
            f"{self.address}:{self.sshd.port}"
        }

    def processes(self) -> list[Process]:
        """What runs of BenchLab's there."""
        return concerning(f"{self.base}/")

    def folders(self) -> list[str]:
        """What lies of runs and clusters in the base directory."""
        return [
            str(path)
            for kind in ("runs", "clusters")
            for path in self.base.glob(f"{kind}/*")
        ]

    def begin_anew(self) -> None:
        """Have an empty base directory, as another BenchLab would find the machine."""
        shutil.rmtree(self.base, ignore_errors=True)

    def stop(self) -> None:
        """End sshd and everything else that runs in this network."""
        self.sshd.stop()
        for pid in run("ip", "netns", "pids", self.namespace, check=False).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        run("ip", "netns", "del", self.namespace, check=False)
        shutil.rmtree(self.sshd.folder, ignore_errors=True)
        shutil.rmtree(self.base.parent, ignore_errors=True)


@dataclass(frozen=True)
class Network:
    """The machines and the links between them."""

    bastion: Machine
    db: Machine
    load: Machine
    standby: Machine
    outer: Link
    bastion_to_db: Link
    load_to_db: Link
    standby_to_db: Link
    bastion_to_standby: Link

    @property
    def machines(self) -> tuple[Machine, ...]:
        """All of them."""
        return self.bastion, self.db, self.load, self.standby


@contextmanager
def network(sshd_binary: str, account: Account) -> Iterator[Network]:
    """Make it; and take it away whatever happens, with all that runs there."""
    prefix = f"bl{os.getpid()}"
    outside = list(OUTSIDE.subnets(new_prefix=30))
    here, there = outside[os.getpid() % len(outside)].hosts()
    machines: list[Machine] = []
    try:
        addresses = {
            "b": str(there),
            "d": DB_ADDRESS,
            "l": LOAD_ADDRESS,
            "s": STANDBY_ADDRESS,
        }
        for name, address in addresses.items():
            machines.append(_machine(f"{prefix}-{name}", address, sshd_binary, account))
        bastion, db, load, standby = machines
        _lay_outer(prefix, str(here), bastion)
        _lay(
            bastion,
            "to-db",
            f"{BASTION_INSIDE}/30",
            db,
            "to-bastion",
            f"{DB_ADDRESS}/30",
        )
        _lay(
            bastion,
            "to-load",
            f"{BASTION_TO_LOAD}/30",
            load,
            "to-bastion",
            f"{LOAD_ADDRESS}/30",
        )
        _lay(db, "to-load", f"{DB_TO_LOAD}/30", load, "to-db", f"{LOAD_TO_DB}/30")
        run("ip", "-n", load.namespace, "route", "add", DB_ADDRESS, "via", DB_TO_LOAD)
        own, other = f"{BASTION_TO_STANDBY}/30", f"{STANDBY_ADDRESS}/30"
        _lay(bastion, "to-standby", own, standby, "to-bastion", other)
        own, other = f"{DB_TO_STANDBY}/30", f"{STANDBY_TO_DB}/30"
        _lay(db, "to-standby", own, standby, "to-db", other)
        run(
            "ip",
            "-n",
            standby.namespace,
            "route",
            "add",
            DB_ADDRESS,
            "via",
            DB_TO_STANDBY,
        )
        run(
            "ip",
            "-n",
            db.namespace,
            "route",
            "add",
            STANDBY_ADDRESS,
            "via",
            STANDBY_TO_DB,
        )
        for machine in machines:
            machine.sshd.start()
        yield Network(
            *machines,
            outer=Link(bastion.namespace, "outer"),
            bastion_to_db=Link(bastion.namespace, "to-db"),
            load_to_db=Link(db.namespace, "to-load"),
            standby_to_db=Link(
                db.namespace, "to-standby", ((STANDBY_ADDRESS, STANDBY_TO_DB),)
            ),
            bastion_to_standby=Link(bastion.namespace, "to-standby"),
        )
    finally:
        for machine in machines:
            machine.stop()
        run("ip", "link", "del", prefix, check=False)


def reaches(address: str, port: int, *, within_s: float = 1.0) -> bool:
    """Whether this process, as a worker would, gets a TCP connection to there."""
    try:
        with socket.create_connection((address, port), timeout=within_s):
            return True
    except OSError:
        return False


def _machine(
    namespace: str, address: str, sshd_binary: str, account: Account
) -> Machine:
    run("ip", "netns", "add", namespace)
    folder = short_folder()
    account.own(folder)
    sshd = OpenSSH(
        sshd_binary, short_folder(), account, address=address, namespace=namespace
    )
    sshd.prepare("")
    machine = Machine(namespace, address, sshd, folder / "lab")
    run("ip", "-n", namespace, "link", "set", "lo", "up")
    forwarding = "echo 0 >/proc/sys/net/ipv4/ip_forward"
    machine.run("sh", "-c", forwarding)
    return machine


def _lay_outer(device: str, here: str, bastion: Machine) -> None:
    run(
        "ip",
        "link",
        "add",
        device,
        "type",
        "veth",
        "peer",
        "name",
        "outer",
        "netns",
        bastion.namespace,
    )
    run("ip", "address", "add", f"{here}/30", "dev", device)
    run("ip", "link", "set", device, "up")
    _address(bastion, "outer", f"{bastion.address}/30")


def _lay(
    one: Machine,
    device: str,
    address: str,
    other: Machine,
    its_device: str,
    its_address: str,
) -> None:
    end = ["type", "veth", "peer", "name", its_device, "netns", other.namespace]
    run("ip", "-n", one.namespace, "link", "add", device, *end)
    _address(one, device, address)
    _address(other, its_device, its_address)


def _address(machine: Machine, device: str, address: str) -> None:
    run("ip", "-n", machine.namespace, "address", "add", address, "dev", device)
    run("ip", "-n", machine.namespace, "link", "set", device, "up")
