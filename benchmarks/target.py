"""A target to break: an OpenSSH server behind a connection that can be cut, and a canary."""

import hashlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from benchlab.embedded.account import Account
from benchmarks import processes
from benchmarks.cut_line import CutLine
from tests.ssh.openssh import OpenSSH, login_name

FILL = "CREATE TABLE canary AS SELECT g, md5(g::text) FROM generate_series(1, 10000) g; CHECKPOINT"
LOOK = "SELECT pg_postmaster_start_time(), md5(string_agg(c::text, ',' ORDER BY g)) FROM canary c"
FOREIGN_BYTES = 100_000


class Canary:
    """A running cluster, and files, of the very account that BenchLab logs in as."""

    def __init__(self, folder: Path, bindir: Path, account: Account) -> None:
        self._folder, self._bindir, self._account = folder, bindir, account
        self._data = folder / "data"
        for each in (folder, folder / "files"):
            each.mkdir(mode=0o700)
            account.own(each)
        for number in range(20):
            file = folder / "files" / f"{number}"
            file.write_bytes(hashlib.sha256(bytes([number])).digest() * (FOREIGN_BYTES // 32))
            account.own(file)
        self._run("initdb", "-D", self._data, "-U", "canary", "-N", "--no-instructions")
        options = f"-k {folder} -c listen_addresses='' -c shared_buffers=16MB"
        control = ("pg_ctl", "-w", "-D", self._data)
        self._run(*control, "-l", folder / "log", "-o", options, "start")
        self._sql(FILL)
        self._first = self.look()

    def look(self) -> tuple[str, dict[str, str]]:
        """What it answers, with the time since when it runs, and its files' sums."""
        files = sorted((self._folder / "files").iterdir())
        sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
        try:
            return self._sql(LOOK), sums
        except subprocess.CalledProcessError as error:
            return f"does not answer: {error}", sums

    def is_as_it_was(self) -> bool:
        """Whether nothing about it has changed."""
        return self.look() == self._first

    def stop(self) -> None:
        """Stop the cluster."""
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "stop")

    def _sql(self, statement: str) -> str:
        at = ("-h", self._folder, "-U", "canary", "-d", "postgres")
        return self._run("psql", "-X", "-A", "-t", *at, "-c", statement)

    def _run(self, program: str, *arguments: str | Path) -> str:
        argv = [self._bindir / program, *arguments]
        environment = self._account.environment(self._folder)
        out = self._folder.with_name("canary.out")
        with out.open("w+b") as stream:
            process = self._account.spawn(
                argv, env=environment, cwd=self._folder, stdout=stream, stderr=stream
            )
            status = process.wait(120)
        said = out.read_text()
        if status != 0:
            raise subprocess.CalledProcessError(status, argv, said)
        return said


# A cluster of the smallest scale with its WAL, and the reserve that preflight requires.
DISK_MEGABYTES, MORE_A_CLUSTER = 2500, 1300
FAKETIME = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
)
PATIENCE_FOR_LEFTOVERS = 30.0


class Target:
    """base/ is BenchLab's, canary/ is not; as root both are on a small separate disk.

    Its clock can be set where libfaketime is found: each process there costs more then. None for
    `faketime` leaves the clock alone.
    """

    def __init__(
        self,
        folder: Path,
        account: Account,
        bindir: Path,
        faketime: str | None = "",
        *,
        clusters: int = 1,
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
        places = () if faketime is None else (faketime, *FAKETIME)
        self.faketime = next((each for each in places if Path(each).is_file()), "")
        self.line: CutLine | None = None

    @property
    def login(self) -> str:
        """The name to log in with."""
        return login_name(self.account)

    def start(self, public_key: str) -> CutLine:
        """Serve, and let that key in."""
        self.sshd.prepare(public_key)
        if self.faketime:
            self._follow_a_clock()
        self.sshd.start()
        self.line = CutLine(self.sshd.port)
        return self.line

    def stop(self) -> None:
        """End all of it, the processes of its sessions too."""
        if self.line is not None:
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
                    shared.with_name(f"sem.faketime_sem_{number}").unlink(missing_ok=True)

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
        frozen = [
            pid
            for pid in processes.with_children(self.sshd.process.pid)
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
        connections = len(processes.with_children(sshd.pid)) - 1 if sshd else 0
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
