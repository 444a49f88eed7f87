"""A target to break: an OpenSSH server behind a connection that can be cut, and a canary.

As root it is a machine of its own to whoever logs in: sessions see a machine-id and a boot id that
no other target has, in a mount namespace.
"""

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import time
import uuid
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
# Of postmaster.pid: the folder of the socket, after the port.
SOCKET_LINE = 4
MACHINE_ID, BOOT_ID = "/etc/machine-id", "/proc/sys/kernel/random/boot_id"


class Target:
    """base/ is BenchLab's, canary/ is not; as root both are on a small separate disk.

    twin/ is the base directory of a second registration, if there is one.

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
        self.account, self.bindir = account, bindir
        self.disk = folder / "disk"
        self.disk.mkdir()
        self.has_own_disk = os.getuid() == 0 and _mount(self.disk, clusters)
        account.own(self.disk)
        self.base, self.twin_base = self.disk / "base", self.disk / "twin"
        self.canary = Canary(self.disk / "canary", bindir, account)
        self.sshd = OpenSSH(_sshd(), folder / "ssh", account)
        self.clock = folder / "clock"
        self.machine_id, self.boot_id = folder / "machine-id", folder / "boot-id"
        self.own_machine_id = uuid.uuid4().hex
        self.has_own_identity = (
            account.switch and is_victim and Path(MACHINE_ID).is_file()
        )
        self.second_line: CutLine | None = None
        self._mode_of_base = 0o755
        places = FAKETIME if is_victim else ()
        self.faketime = next((each for each in places if Path(each).is_file()), "")

    @property
    def login(self) -> str:
        """The name to log in with."""
        return login_name(self.account)

    def start(self, public_key: str) -> None:
        """Serve, and let that key in."""
        self.sshd.prepare(public_key)
        if self.has_own_identity:
            self.show_machine_id(self.own_machine_id)
            self._boot()
            self.sshd.binds = {
                str(self.machine_id): MACHINE_ID,
                str(self.boot_id): BOOT_ID,
            }
        if self.faketime:
            self._follow_a_clock()
        self.sshd.start()
        self.line = CutLine(self.sshd.port)

    def stop(self) -> None:
        """End all of it, the processes of its sessions too."""
        self.line.close()
        if self.second_line:
            self.second_line.close()
        self.sshd.stop()
        self.canary.stop()
        for base in self.bases:
            for process in processes.concerning(str(base)):
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

    @property
    def bases(self) -> tuple[Path, ...]:
        """The base directories that it may have."""
        return self.base, self.twin_base

    def port_of_second_line(self) -> int:
        """Another port that leads to the same sshd, for a second registration."""
        if self.second_line is None:
            self.second_line = CutLine(self.sshd.port)
        return self.second_line.port

    def show_machine_id(self, machine_id: str) -> None:
        """Let sessions see this one from now on; `own_machine_id` is its own."""
        # In place: what is mounted is the file, and not its name.
        self.machine_id.write_text(f"{machine_id}\n")
        self.machine_id.chmod(0o644)

    def lock_base(self) -> None:
        """Give the base directory to root, whom nobody else may follow into it."""
        self._mode_of_base = self.base.stat().st_mode
        os.chown(self.base, 0, 0)
        self.base.chmod(0o700)

    def unlock_base(self) -> None:
        """Give it back as it was."""
        self.account.own(self.base)
        self.base.chmod(self._mode_of_base & 0o7777)

    def mounted(self, *arguments: str) -> bool:
        """Mount or unmount for its sessions alone, as root; whether that was done."""
        if self.sshd.process is None:
            return False
        command = ["nsenter", "--mount", "--target", str(self.sshd.process.pid)]
        done = subprocess.run([*command, *arguments], capture_output=True, check=False)
        return done.returncode == 0

    def set_clock(self, seconds: int) -> None:
        """Let every process of later and present sessions see another time than it is."""
        draft = self.clock.with_name("clock.new")
        draft.write_text(f"{seconds:+d}\n")
        draft.chmod(0o644)
        draft.rename(self.clock)

    def load_generators(self) -> set[int]:
        """The pgbench that put load on right now, by number."""
        return {each.pid for base in self.bases for each in processes.running(base)}

    def follows_the_clock(self) -> bool:
        """Whether a process of BenchLab's here takes its time from `set_clock`."""
        here = self._processes()
        return any(processes.has_mapped(each.pid, self.faketime) for each in here)

    def postmaster(self) -> int | None:
        """The PostgreSQL that is measured, if one runs."""
        lines = self._of_postmaster()
        return int(lines[0]) if lines else None

    def connect_once(self) -> None:
        """Let the PostgreSQL that is measured start a process, whether or not it lets us in."""
        lines = self._of_postmaster()
        if len(lines) > SOCKET_LINE:
            with contextlib.suppress(psycopg.Error):
                psycopg.connect(
                    host=lines[SOCKET_LINE],
                    port=lines[SOCKET_LINE - 1],
                    dbname="postgres",
                    user="postgres",
                    connect_timeout=2,
                ).close()

    def _of_postmaster(self) -> list[str]:
        for base in self.bases:
            for file in base.glob("clusters/*/data/postmaster.pid"):
                lines = file.read_text().splitlines()
                if lines and lines[0].isdigit() and Path(f"/proc/{lines[0]}").exists():
                    return lines
        return []

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

        What tells one boot from the next is the kernel's: sessions see another one from now on, or,
        where they see that of this machine, runs are made to remember another.
        Tells whether anything of BenchLab's was there, if only a connection.
        """
        sshd = self.sshd.process
        connections = len(descendants(sshd.pid)) if sshd else 0
        self.sshd.stop()
        gone = [each.pid for each in self._processes()]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in gone:
                processes.kill(pid, number)
        if self.has_own_identity:
            self._boot()
        else:
            for noted in self.base.glob("runs/*/boot"):
                noted.write_text("another boot\n")
        time.sleep(seconds_away)
        self.sshd.start()
        return bool(gone or connections > 0)

    def leftovers(self) -> list[str]:
        """What stays of BenchLab's below its base directories, after some patience."""
        until = time.monotonic() + PATIENCE_FOR_LEFTOVERS
        while (left := self._leftovers()) and time.monotonic() < until:
            time.sleep(0.5)
        return left

    def _leftovers(self) -> list[str]:
        folders = [
            folder
            for base in self.bases
            for folder in (*base.glob("runs/*"), *base.glob("clusters/*"))
        ]
        running = [" ".join(each.argv)[:200] for each in self._processes()]
        return [*map(str, folders), *running]

    def _processes(self) -> list[processes.Process]:
        """BenchLab's on this target."""
        return [
            each for base in self.bases for each in processes.concerning(f"{base}/")
        ]

    def _boot(self) -> None:
        self.boot_id.write_text(f"{uuid.uuid4()}\n")
        self.boot_id.chmod(0o644)

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
