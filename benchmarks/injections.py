"""The faults, all real: what each one breaks, how it is repaired, and what it needs.

Each reports whether it hit anything: one that came too late says nothing about BenchLab.
"""

import contextlib
import os
import random
import re
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from benchlab.embedded.descendants import descendants
from benchmarks import processes
from benchmarks.target import Target
from benchmarks.whole_instance import WholeInstance

SECONDS_FOR_A_VICTIM = 60.0
SSHD_STOPS_SECONDS = 8.0
SECONDS_OF_WRITING = 2.0
# Longer than the silence after which a run is given up, which `faults` sets to 6 s.
FROZEN_SECONDS = 12.0
CLOCK_JUMPS_SECONDS = (-86_400, -3_600, -30, 30, 3_600, 86_400)
FILLER = "filler"
SHELLS = ("/usr/bin/zsh", "/bin/bash")
MANY, SSHD_IS_SCARCE_SECONDS = "100", 6.0
BIT_BYTES, LITTLE_BYTES, MOST_BITS = 64_000_000, 1_000_000, 500
# From the begin of the first load to shortly before the end of the second one.
SECONDS_OF_TWO_LOADS = 4.5


@dataclass(frozen=True, eq=False)
class Broken:
    """What faults are injected into.

    A storm has `neighbours`, other machines; `names` leads to them where `name` is the address of
    this one; `twins` are further registrations of this machine, and `wrong` is what a fault itself
    has seen that must not be.
    """

    instance: WholeInstance
    target: Target
    server_id: int
    name: str = ""
    names: Path | None = None
    neighbours: "list[Broken]" = field(default_factory=list)
    twins: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def server_ids(self) -> frozenset[int]:
        """All registrations of the machine."""
        return frozenset((self.server_id, *self.twins))

    def harm(self) -> list[str]:
        """What was left on the target, or changed there."""
        target, found = self.target, list(self.wrong)
        if left := target.leftovers():
            found.append(f"left on {target.base}: {left}")
        if not target.canary.is_as_it_was():
            found.append(
                f"the canary or the files of others at {target.base} have changed"
            )
        return found


# Whether it hit.
Inject = Callable[[Broken, random.Random], bool]
# What it breaks; two faults never break the same thing at once.
Place = Literal["machine", "services", "queue"]
# How a server's page may say that it cannot be reached, or stays silent.
AWAY = frozenset(("host_unreachable", "connection_lost", "command_timeout"))
DISK_CODES = frozenset(("disk_full", "disk_almost_full", "disk_too_small"))


@dataclass(frozen=True)
class Fault:
    """A fault without `codes` costs time but no run; others may fail runs with one of these.

    `blames` are the codes with which a server's page may say that it cannot be used. One that
    `waits_itself` draws its moment from when its victim is there.
    """

    name: str
    inject: Inject
    place: Place
    codes: frozenset[str] = frozenset()
    blames: frozenset[str] = frozenset()
    waits_itself: bool = False
    mend: Callable[[Broken], None] = lambda broken: None
    missing: Callable[[Broken], str] = lambda broken: ""

    @property
    def is_invisible(self) -> bool:
        """Whether no run may fail of it."""
        return not self.codes


def kill_worker(broken: Broken, chance: random.Random) -> bool:
    """The one that has the run, or either if none has."""
    pid = _one_worker(broken, chance)
    return pid is not None and processes.kill(pid)


def freeze_worker(broken: Broken, chance: random.Random) -> bool:
    """The same stands still until another has taken the run over, and goes on."""
    pid = _one_worker(broken, chance)
    if pid is None or not processes.kill(pid, signal.SIGSTOP):
        return False
    time.sleep(FROZEN_SECONDS)
    processes.kill(pid, signal.SIGCONT)
    return True


def _one_worker(broken: Broken, chance: random.Random) -> int | None:
    from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance

    pid = own_queue.holder(broken.server_id).rpartition(":")[2]
    workers = broken.instance.workers()
    if not workers:
        return None
    return int(pid) if pid and int(pid) in workers else chance.choice(workers)


def kill_workers(broken: Broken, _chance: random.Random) -> bool:
    """All of them at once."""
    killed = [processes.kill(pid) for pid in broken.instance.workers()]
    return any(killed)


def restart_host(broken: Broken, _chance: random.Random) -> bool:
    """Everything of BenchLab's own vanishes at once, and starts again as after a power cut."""
    broken.instance.restart_host()
    return True


def restart_target(broken: Broken, chance: random.Random) -> bool:
    """Everything on the target vanishes at once; it is back after some seconds."""
    return broken.target.restart(chance.uniform(0, 6))


def cut_connection(broken: Broken, chance: random.Random) -> bool:
    """Reset every connection, and let none in for some seconds."""
    before = broken.target.line.broken
    broken.target.line.cut()
    time.sleep(chance.uniform(0, 6))
    # Between two runs there may be none to cut for a moment.
    hit = awaited(lambda: broken.target.line.broken > before)
    broken.target.line.mend()
    return hit


def lose_redis(broken: Broken, _chance: random.Random) -> bool:
    """Kill Redis, and remove what it has saved before it starts again."""
    data = broken.instance.var / "services" / "redis" / "data"
    hit = broken.instance.kill("redis")
    for file in data.iterdir():
        file.unlink(missing_ok=True)
    return hit


def restart_database(broken: Broken, chance: random.Random) -> bool:
    """Shut the results database down fast, or crash it."""
    return broken.instance.kill(
        "postgresql", chance.choice((signal.SIGINT, signal.SIGKILL))
    )


def freeze_sshd(broken: Broken, _chance: random.Random) -> bool:
    """Neither connections nor new ones answer for a while; what runs on the target goes on."""
    return broken.target.stop_sshd_for(SSHD_STOPS_SECONDS)


def fill_disk(broken: Broken, chance: random.Random) -> bool:
    """Fill the disk, completely or up to 60 MB, while a run is in progress."""
    folders = broken.target.base / "runs"
    if awaited(lambda: list(folders.glob("*"))):
        time.sleep(chance.uniform(0, SECONDS_OF_WRITING))
    is_in_progress = awaited(lambda: list(folders.glob("*")))
    return (
        _fill(broken.target.disk, chance.choice((0, 60)) * 1_000_000) and is_in_progress
    )


def _fill(disk: Path, left: int) -> bool:
    """Take all of a disk except this many bytes; return whether that was done.

    Bit by bit, as others take some of it too: a single large allocation would just fail.
    """
    size = 0
    with (disk / FILLER).open("wb") as filler:
        for _time in range(MOST_BITS):
            room = shutil.disk_usage(disk).free - left
            if room < LITTLE_BYTES:
                return True
            with contextlib.suppress(OSError):
                bit = min(room, BIT_BYTES)
                os.posix_fallocate(filler.fileno(), size, bit)
                size += bit
    return False


def empty_disk(broken: Broken) -> None:
    """Give the disk back."""
    (broken.target.disk / FILLER).unlink(missing_ok=True)


def kill_pgbench(broken: Broken, chance: random.Random) -> bool:
    """Whichever puts load on at a random moment, or the next one."""
    strike_at(broken.target.load_generators, chance)
    killed = [processes.kill(pid) for pid in broken.target.load_generators()]
    return any(killed)


def kill_postgres(broken: Broken, chance: random.Random) -> bool:
    """The postmaster that is measured at a random moment, or the next one."""
    strike_at(broken.target.postmaster, chance)
    pid = broken.target.postmaster()
    return pid is not None and processes.kill(pid)


def skew_clock(broken: Broken, chance: random.Random) -> bool:
    """Let the target's clock jump by seconds, an hour or a day, forward or back."""
    broken.target.set_clock(chance.choice(CLOCK_JUMPS_SECONDS))
    return awaited(broken.target.follows_the_clock)


def set_clock_right(broken: Broken) -> None:
    """Let it show the time again."""
    broken.target.set_clock(0)


def change_shell(broken: Broken, chance: random.Random) -> bool:
    """The account gets zsh with strict and noisy files, or bash with such; all must log in anew."""
    shell = chance.choice([each for each in SHELLS if Path(each).exists()])
    home = broken.target.sshd.folder / "home"
    for name in (".zshenv", ".bashrc"):
        (home / name).write_text("set -eu\necho Welcome\n")
    return _with_sshd(broken, shell=shell, startups=MANY)


def allow_few_to_start(broken: Broken, _chance: random.Random) -> bool:
    """Most new connections are dropped before they log in, for some seconds (MaxStartups)."""
    _with_sshd(broken, shell=broken.target.sshd.shell, startups="1:80:3")
    time.sleep(SSHD_IS_SCARCE_SECONDS)
    return _with_sshd(broken, shell=broken.target.sshd.shell, startups=MANY)


def set_shell_back(broken: Broken) -> None:
    """Give the account its plain shell again."""
    if broken.target.sshd.shell != "/bin/sh":
        _with_sshd(broken, shell="/bin/sh", startups=MANY)


def _with_sshd(broken: Broken, *, shell: str, startups: str) -> bool:
    """Start sshd with them. Whether somebody was connected, who must connect again."""
    set_option(broken, "MaxStartups", startups)
    broken.target.sshd.shell = shell
    return restart_sshd(broken)


def set_option(broken: Broken, name: str, value: str) -> None:
    """Write a line of sshd's configuration, which counts from its next start on."""
    configuration = broken.target.sshd.folder / "sshd_config"
    text = configuration.read_text()
    others = re.sub(rf"(?m)^{name} .*\n", "", text)
    configuration.write_text(f"{name} {value}\n{others}")


def restart_sshd(broken: Broken) -> bool:
    """Start sshd again; what runs goes on. Whether somebody was connected."""
    sshd = broken.target.sshd
    was_used = sshd.process is not None and bool(descendants(sshd.process.pid))
    sshd.drop_connections()
    sshd.stop(connections=False)
    sshd.start()
    return was_used


def _needs_shells(broken: Broken) -> str:
    is_there = any(Path(each).exists() for each in SHELLS)
    return (
        ""
        if broken.target.account.switch and is_there
        else "another login shell needs root"
    )


def strike_at(victim: Callable[[], object], chance: random.Random) -> None:
    """Wait for a moment at which the victim is there, any within two short runs."""
    if awaited(victim):
        time.sleep(chance.uniform(0, SECONDS_OF_TWO_LOADS))
        awaited(victim)


def awaited(
    victim: Callable[[], object], seconds: float = SECONDS_FOR_A_VICTIM
) -> bool:
    """Whether it comes while a campaign goes on, within so many seconds."""
    from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance

    until = time.monotonic() + seconds
    while not victim():
        if time.monotonic() > until or own_queue.is_over():
            return False
        time.sleep(0.1)
    return True


def _needs_disk(broken: Broken) -> str:
    return (
        ""
        if broken.target.has_own_disk
        else "no small disk can be mounted: that needs root"
    )


def _needs_faketime(broken: Broken) -> str:
    return (
        ""
        if broken.target.faketime
        else "libfaketime is missing: apt install libfaketime"
    )


FAULTS = (
    Fault("kill-worker", kill_worker, "services"),
    Fault("kill-workers", kill_workers, "services"),
    Fault("freeze-worker", freeze_worker, "services"),
    Fault("restart-host", restart_host, "services"),
    Fault("restart-target", restart_target, "machine", blames=AWAY),
    Fault("cut-connection", cut_connection, "machine", blames=AWAY),
    Fault("lose-redis", lose_redis, "services"),
    Fault("restart-database", restart_database, "services"),
    Fault("freeze-sshd", freeze_sshd, "machine", blames=AWAY),
    Fault(
        "kill-pgbench",
        kill_pgbench,
        "machine",
        codes=frozenset(("pgbench_interrupted",)),
        waits_itself=True,
    ),
    Fault(
        "kill-postgres",
        kill_postgres,
        "machine",
        codes=frozenset(("postgres_stopped", "postgres_does_not_start")),
        waits_itself=True,
    ),
    Fault(
        "fill-disk",
        fill_disk,
        "machine",
        codes=DISK_CODES,
        blames=DISK_CODES,
        waits_itself=True,
        mend=empty_disk,
        missing=_needs_disk,
    ),
    Fault(
        "skew-clock",
        skew_clock,
        "machine",
        mend=set_clock_right,
        missing=_needs_faketime,
    ),
)
# Of storms, which have them beside those above.
OF_SSHD = (
    Fault(
        "other-shell",
        change_shell,
        "machine",
        blames=AWAY,
        mend=set_shell_back,
        missing=_needs_shells,
    ),
    Fault("max-startups", allow_few_to_start, "machine", blames=AWAY),
)
