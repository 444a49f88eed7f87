"""A target to break: an OpenSSH server behind a connection that can be cut, and a canary."""

import hashlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psycopg

from benchlab.embedded.account import Account
from benchlab.embedded.descendants import descendants
from benchlab.embedded.postgresql import EmbeddedPostgreSQL
from benchmarks import processes
from benchmarks.cut_line import CutLine
from tests.ssh.openssh import OpenSSH, login_name

FILL = "CREATE TABLE canary AS SELECT g, md5(g::text) FROM generate_series(1, 10000) g"
LOOK = "SELECT pg_postmaster_start_time(), md5(string_agg(c::text, ',' ORDER BY g)) FROM canary c"
FOREIGN_BYTES = 100_000


class Canary:
    """A running cluster, and files, of the very account that BenchLab logs in as."""

    def __init__(self, folder: Path, bindir: Path, account: Account) -> None:
        self._files = folder / "files"
        for each in (folder, self._files):
            each.mkdir(mode=0o755)
            account.own(each)
        for number in range(20):
            file = self._files / f"{number}"
            file.write_bytes(
                hashlib.sha256(bytes([number])).digest() * (FOREIGN_BYTES // 32)
            )
            account.own(file)
        self._cluster = EmbeddedPostgreSQL(
            bindir, folder / "postgresql", account=account
        )
        self._cluster.start()
        self._ask(FILL)
        self._first = self.look()

    def look(self) -> tuple[str, dict[str, str]]:
        """What it answers, with the time since when it runs, and its files' sums."""
        files = sorted(self._files.iterdir())
        sums = {
            file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files
        }
        try:
            return str(self._ask(LOOK)), sums
        except psycopg.Error as error:
            return f"does not answer: {error}", sums

    def is_as_it_was(self) -> bool:
        """Whether nothing about it has changed."""
        return self.look() == self._first

    def stop(self) -> None:
        """Stop the cluster."""
        self._cluster.stop()

    def _ask(self, statement: str) -> Any:
        with psycopg.connect(self._cluster.url) as connection:
            found = connection.execute(statement)
            return found.fetchone() if found.description else None


# A cluster of the smallest scale with its WAL, and the reserve that preflight requires.
DISK_MEGABYTES, MORE_A_CLUSTER = 2500, 1300
FAKETIME = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
)
PATIENCE_FOR_LEFTOVERS = 30.0


class Target:
    """base/ is BenchLab's, canary/ is not; as root both are on a small separate disk.

    As a `victim` it is behind `line`, and its clock can be set where libfaketime is found: each
    process there costs more then.
    """

    def __init__(
        self,
        folder: Path,
        account: Account,
        bindir: Path,
        *,
        clusters: int,
        is_victim: bool,
    ) -> None:
        self.account = account
        self.disk = folder / "disk"
        self.disk.mkdir()
        self.has_own_disk = os.getuid() == 0 and _mount(self.disk, clusters)
        account.own(self.disk)
        self.base = self.disk / "base"
        self.canary = Canary(self.disk / "canary", bindir, account)
        self.sshd = OpenSSH(_sshd(), folder / "ssh", account)
        self.clock = folder / "clock"
        places = FAKETIME if is_victim else ()
        self.faketime = next((each for each in places if Path(each).is_file()), "")

    @property
    def login(self) -> str:
        """The name to log in with."""
        return login_name(self.account)

    def start(self, public_key: str) -> None:
        """Serve, and let that key in."""
        self.sshd.prepare(public_key)
        if self.faketime:
            self._follow_a_clock()
        self.sshd.start()
        self.line = CutLine(self.sshd.port)

    def stop(self) -> None:
        """End all of it, the processes of its sessions too."""
        self.line.close()
        self.sshd.stop()
        self.canary.stop()
        for process in processes.concerning(str(self.base)):
            processes.kill(process.pid)
        if self.has_own_disk:
            subprocess.run(["umount", "-l", str(self.disk)], check=True)
        if self.faketime:
            # libfaketime forgets two files in memory for each process that started another
            # program.
            for shared in Path("/dev/shm").glob("faketime_shm_*"):
                number = shared.name.rpartition("_")[2]
                if not Path("/proc", number).exists():
                    shared.unlink(missing_ok=True)
                    shared.with_name(f"sem.faketime_sem_{number}").unlink(
                        missing_ok=True
                    )

    def set_clock(self, seconds: int) -> None:
        """Let every process of later and present sessions see another time than it is."""
        draft = self.clock.with_name("clock.new")
        draft.write_text(f"{seconds:+d}\n")
        draft.chmod(0o644)
        draft.rename(self.clock)

    def load_generators(self) -> set[int]:
        """The pgbench that put load on right now, by number."""
        return {each.pid for each in processes.running(self.base)}

    def follows_the_clock(self) -> bool:
        """Whether a process of BenchLab's here takes its time from `set_clock`."""
        here = processes.concerning(f"{self.base}/")
        return any(processes.has_mapped(each.pid, self.faketime) for each in here)

    def postmaster(self) -> int | None:
        """The PostgreSQL that is measured, if one runs."""
        for file in self.base.glob("clusters/*/data/postmaster.pid"):
            first = file.read_text().partition("\n")[0]
            if first.isdigit() and Path(f"/proc/{first}").exists():
                return int(first)
        return None

    def stop_sshd_for(self, seconds: float) -> bool:
        """Freeze the server and the processes of its connections, but not what runs in them.

        Tells whether there was a connection.
        """
        if self.sshd.process is None:
            return False
        server = self.sshd.process.pid
        frozen = [
            pid
            for pid in (server, *(each.pid for each in descendants(server)))
            if _name(pid).startswith("sshd")
        ]
        for pid in frozen:
            processes.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        for pid in frozen:
            processes.kill(pid, signal.SIGCONT)
        return len(frozen) > 1

    def restart(self, seconds_away: float) -> bool:
        """Let every process of it vanish at once, as in a restart; sshd comes back after a while.

        What tells one boot from the next is the kernel's, so runs are made to remember another.
        Tells whether anything of BenchLab's was there, if only a connection.
        """
        sshd = self.sshd.process
        connections = len(descendants(sshd.pid)) if sshd else 0
        self.sshd.stop()
        gone = [each.pid for each in processes.concerning(f"{self.base}/")]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in gone:
                processes.kill(pid, number)
        for noted in self.base.glob("runs/*/boot"):
            noted.write_text("another boot\n")
        time.sleep(seconds_away)
        self.sshd.start()
        return bool(gone or connections > 0)

    def leftovers(self) -> list[str]:
        """What stays of BenchLab's below the base directory, after some patience."""
        until = time.monotonic() + PATIENCE_FOR_LEFTOVERS
        while (left := self._leftovers()) and time.monotonic() < until:
            time.sleep(0.5)
        return left

    def _leftovers(self) -> list[str]:
        folders = [*self.base.glob("runs/*"), *self.base.glob("clusters/*")]
        running = processes.concerning(f"{self.base}/")
        return [*map(str, folders), *(" ".join(each.argv)[:200] for each in running)]

    def _follow_a_clock(self) -> None:
        self.set_clock(0)
        variables = {
            "LD_PRELOAD": self.faketime,
            "FAKETIME_TIMESTAMP_FILE": self.clock,
            "FAKETIME_CACHE_DURATION": 1,
            "FAKETIME_DONT_FAKE_MONOTONIC": 1,
        }
        words = " ".join(f"{name}={value}" for name, value in variables.items())
        with (self.sshd.folder / "sshd_config").open("a") as configuration:
            configuration.write(f"SetEnv {words}\n")


def _mount(folder: Path, clusters: int) -> bool:
    megabytes = DISK_MEGABYTES + MORE_A_CLUSTER * (clusters - 1)
    options = f"size={megabytes}m,mode=755"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "benchlab-faults", str(folder)],
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


def _sshd() -> str:
    found = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if found is None:
        raise SystemExit("sshd is missing: apt install openssh-server")
    return found
