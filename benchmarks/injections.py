"""The faults, each a real one: what it breaks, what mends it, and what it needs."""

import contextlib
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import processes
from benchmarks.cut_line import CutLine
from benchmarks.target import Target
from benchmarks.whole_instance import WholeInstance

SECONDS_FOR_A_VICTIM = 60.0
SSHD_STOPS_SECONDS = 30.0
CLOCK_JUMPS_SECONDS = (-86_400, -3_600, -30, 30, 3_600, 86_400)
FILLER = "filler"
# Within them the campaign that writes loads its data and begins with its second run.
SECONDS_OF_WRITING = 16.0
# From the begin of the first load to shortly before the end of the second one.
SECONDS_OF_TWO_LOADS = 4.5


@dataclass(frozen=True)
class Broken:
    """What faults are injected into."""

    instance: WholeInstance
    target: Target
    line: CutLine
    server_id: int
    frozen_s: float = SSHD_STOPS_SECONDS


Inject = Callable[[Broken, random.Random], None]


@dataclass(frozen=True)
class Campaign:
    """What a fault hits: runs of `duration` seconds."""

    scenario: str = "fixed-point-read"
    scale: int = 1
    duration: int = 2


@dataclass(frozen=True)
class Fault:
    """A fault without `codes` costs time but no run; others may fail runs with one of these.

    One that `waits_itself` draws its moment from when its victim is there.
    """

    name: str
    inject: Inject
    codes: frozenset[str] = frozenset()
    waits_itself: bool = False
    campaign: Campaign = Campaign()
    mend: Callable[[Broken], None] = lambda broken: None
    missing: Callable[[Broken], str] = lambda broken: ""

    @property
    def is_invisible(self) -> bool:
        """Whether no run may fail of it."""
        return not self.codes


def kill_worker(broken: Broken, chance: random.Random) -> None:
    """The one that has the run, or either where no one has."""
    from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance

    pid = own_queue.holder(broken.server_id).rpartition(":")[2]
    workers = broken.instance.workers()
    processes.kill(int(pid) if pid and int(pid) in workers else chance.choice(workers))


def kill_workers(broken: Broken, _chance: random.Random) -> None:
    """All of them at once."""
    for pid in broken.instance.workers():
        processes.kill(pid)


def restart_host(broken: Broken, _chance: random.Random) -> None:
    """Everything of BenchLab's own vanishes at once, and starts again as after a power cut."""
    broken.instance.restart_host()


def restart_target(broken: Broken, chance: random.Random) -> None:
    """Everything on the target vanishes at once; it is back after some seconds."""
    broken.target.restart(chance.uniform(0, 6))


def cut_connection(broken: Broken, chance: random.Random) -> None:
    """Reset every connection, and let none in for some seconds."""
    broken.line.cut()
    time.sleep(chance.uniform(0, 6))
    broken.line.mend()


def lose_redis(broken: Broken, _chance: random.Random) -> None:
    """Kill Redis, and remove what it has saved before it starts again."""
    data = broken.instance.var / "services" / "redis" / "data"
    broken.instance.kill("redis")
    for file in data.iterdir():
        file.unlink(missing_ok=True)


def restart_database(broken: Broken, chance: random.Random) -> None:
    """Shut the results database down fast, or crash it."""
    broken.instance.kill("postgresql", chance.choice((signal.SIGINT, signal.SIGKILL)))


def freeze_sshd(broken: Broken, _chance: random.Random) -> None:
    """Neither connections nor new ones answer for a while; what runs on the target goes on."""
    broken.target.stop_sshd_for(broken.frozen_s)


def fill_disk(broken: Broken, chance: random.Random) -> None:
    """Let somebody else take the whole disk, or all but 60 MB of it, while a run is in progress."""
    disk = broken.target.disk
    if _await(lambda: list(broken.target.base.glob("runs/*"))):
        time.sleep(chance.uniform(0, SECONDS_OF_WRITING))
    left = chance.choice((0, 60)) * 1_000_000
    room = shutil.disk_usage(disk).free - left
    with (disk / FILLER).open("wb") as filler, contextlib.suppress(OSError):
        os.posix_fallocate(filler.fileno(), 0, max(room, 1))


def empty_disk(broken: Broken) -> None:
    """Give the disk back."""
    (broken.target.disk / FILLER).unlink(missing_ok=True)


def kill_pgbench(broken: Broken, chance: random.Random) -> None:
    """Whichever puts load on at a random moment, or the next one."""
    _strike(broken.target.load_generators, chance)
    for pid in broken.target.load_generators():
        processes.kill(pid)


def kill_postgres(broken: Broken, chance: random.Random) -> None:
    """The postmaster that is measured at a random moment, or the next one."""
    _strike(broken.target.postmaster, chance)
    if pid := broken.target.postmaster():
        processes.kill(pid)


def skew_clock(broken: Broken, chance: random.Random) -> None:
    """Let the target's clock jump by seconds, an hour or a day, forward or back."""
    broken.target.set_clock(chance.choice(CLOCK_JUMPS_SECONDS))


def set_clock_right(broken: Broken) -> None:
    """Let it show the time again."""
    broken.target.set_clock(0)


def _strike(victim: Callable[[], object], chance: random.Random) -> None:
    """Wait for a moment at which the victim is there, any within two short runs."""
    if _await(victim):
        time.sleep(chance.uniform(0, SECONDS_OF_TWO_LOADS))
        _await(victim)


def _await(victim: Callable[[], object]) -> bool:
    until = time.monotonic() + SECONDS_FOR_A_VICTIM
    while not victim():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _needs_disk(broken: Broken) -> str:
    return "" if broken.target.has_own_disk else "skipped: only root can mount a small disk"


def _needs_faketime(broken: Broken) -> str:
    return "" if broken.target.faketime else "skipped: libfaketime is not installed"


FAULTS = (
    Fault("kill-worker", kill_worker),
    Fault("kill-workers", kill_workers),
    Fault("restart-host", restart_host),
    Fault("restart-target", restart_target),
    Fault("cut-connection", cut_connection),
    Fault("lose-redis", lose_redis),
    Fault("restart-database", restart_database),
    Fault("freeze-sshd", freeze_sshd),
    Fault(
        "kill-pgbench",
        kill_pgbench,
        codes=frozenset(("pgbench_interrupted",)),
        waits_itself=True,
    ),
    Fault(
        "kill-postgres",
        kill_postgres,
        codes=frozenset(("postgres_stopped", "postgres_does_not_start")),
        waits_itself=True,
    ),
    Fault(
        "fill-disk",
        fill_disk,
        codes=frozenset(("disk_full", "disk_almost_full", "disk_too_small")),
        waits_itself=True,
        campaign=Campaign("fixed-point-update", scale=2, duration=7),
        mend=empty_disk,
        missing=_needs_disk,
    ),
    Fault("skew-clock", skew_clock, mend=set_clock_right, missing=_needs_faketime),
)
