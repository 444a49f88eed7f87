"""Faults that storms have besides those of `injections`: of the machines, the ways to them, the
instance's services, its queue, and copies of it.
"""

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import redis

from benchlab.embedded.descendants import descendants
from benchmarks import processes
from benchmarks.cut_line import CutLine
from benchmarks.injections import (
    AWAY,
    FAULTS,
    OF_SSHD,
    Broken,
    Fault,
    awaited,
    restart_sshd,
    set_option,
    strike_at,
)
from benchmarks.restored_copy import RestoredCopy

SECONDS_FOR_A_BLAME = 30.0
SLOW_SECONDS, HELD_UP_SECONDS, FROZEN_SECONDS = 10.0, 8.0, 5.0
WITHOUT_SERVICE_SECONDS = 10.0
DELAYS_SECONDS = (0.05, 0.4)
LOSSES = (0.02, 0.2)
CLONED_SECONDS = 12.0
ELSEWHERE, ELSEWHERE_SECONDS = "127.0.0.66", 15.0
# Standard input, output and error: what is open stays open, and nothing else can be opened.
STREAMS = 3
NO_DESCRIPTORS = "Too many open files"
GROUPS = Path("/sys/fs/cgroup/memory")
# What PostgreSQL may still take, when what it has already counts for nothing: less than a process.
LEFT_BYTES = 100_000
OF_SERVER_PROCESSES = frozenset(
    (
        "server_process_killed",
        "server_process_crashed",
        "out_of_memory",
        "postgres_stopped",
        "postgres_does_not_start",
    )
)
NOT_WRITABLE = frozenset(("base_dir_not_writable",))


# What people do, and copies.


def cancel_run(_broken: Broken, chance: random.Random) -> bool:
    """One run, mostly one at work."""
    from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance

    return own_queue.cancel_run(chance)


def cancel_campaign(_broken: Broken, chance: random.Random) -> bool:
    """All that a campaign has left."""
    from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance

    return own_queue.cancel_campaign(chance)


def register_again(broken: Broken, _chance: random.Random) -> bool:
    """The machine is registered a second time, by another way, and has runs as that too."""
    from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance

    target = broken.target
    if not broken.twins:
        broken.twins.append(
            own_queue.register(
                f"{own_queue.name_of(broken.server_id)} again",
                port=target.port_of_second_line(),
                username=target.login,
                must_be_ready=False,
                base_dir=str(target.twin_base),
                bindirs=[str(target.bindir)],
            )
        )
    own_queue.queue("Of a second registration", broken.twins[0], repeats=2, duration=3)
    return True


def clone_machine(broken: Broken, chance: random.Random) -> bool:
    """It shows the machine-id of another one, as its clone does, and both go on measuring."""
    from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance

    origin = chance.choice(broken.neighbours).target
    broken.target.show_machine_id(origin.own_machine_id)
    hit = awaited(
        lambda: own_queue.machine_id_of(broken.server_id) == origin.own_machine_id
    )
    if hit:
        time.sleep(CLONED_SECONDS)
    return hit


def be_itself(broken: Broken) -> None:
    """It shows its own machine-id again."""
    broken.target.show_machine_id(broken.target.own_machine_id)


def restore_copy(broken: Broken, chance: random.Random) -> bool:
    """A copy of the results database works besides the original: with its key, or without."""
    copy = RestoredCopy(broken.instance, broken.target.bindir)
    try:
        copy.restore(has_key=chance.random() < 0.5)
        if not copy.is_behind():
            return False
        copy.start()
        copy.wait_until_held()
        broken.wrong.extend(copy.harm())
        return True
    finally:
        copy.stop()


# Machines.


def hide_pgbench(broken: Broken, _chance: random.Random) -> bool:
    """As while a package is updated, until a run has missed it."""
    path = broken.target.bindir / "pgbench"
    return broken.target.mounted("mount", "--bind", "/dev/null", str(path)) and (
        _is_blamed(broken, "missing_program")
    )


def show_pgbench(broken: Broken) -> None:
    """It is there again."""
    broken.target.mounted("umount", str(broken.target.bindir / "pgbench"))


def mount_read_only(broken: Broken, _chance: random.Random) -> bool:
    """The disk, as after a fault of it, until a run has met it."""
    disk = str(broken.target.disk)
    return (
        broken.target.mounted("mount", "--bind", disk, disk)
        and broken.target.mounted("mount", "-o", "remount,bind,ro", disk)
        and _is_blamed(broken, *NOT_WRITABLE)
    )


def mount_writable(broken: Broken) -> None:
    """What stands in it meanwhile can write again as well."""
    disk = str(broken.target.disk)
    if broken.target.mounted("mount", "-o", "remount,bind,rw", disk):
        broken.target.mounted("umount", "--lazy", disk)


def take_base_away(broken: Broken, _chance: random.Random) -> bool:
    """The base directory belongs to root, and nobody else may look into it."""
    broken.target.lock_base()
    return _is_blamed(broken, *NOT_WRITABLE)


def give_base_back(broken: Broken) -> None:
    """As BenchLab has made it."""
    broken.target.unlock_base()


def show_other_host_key(broken: Broken, _chance: random.Random) -> bool:
    """As a machine does that has the address now, until somebody has seen it."""
    folder = broken.target.sshd.folder
    shutil.copy2(folder / "host_key", folder / "host_key.own")
    shutil.copy2(folder / "host_key.pub", folder / "host_key.pub.own")
    broken.target.sshd.new_host_key()
    restart_sshd(broken)
    return _is_blamed(broken, "host_key_changed")


def show_own_host_key(broken: Broken) -> None:
    """The confirmed one again."""
    folder = broken.target.sshd.folder
    if (folder / "host_key.own").exists():
        (folder / "host_key.own").rename(folder / "host_key")
        (folder / "host_key.pub.own").rename(folder / "host_key.pub")
        restart_sshd(broken)


def ask_for_password(broken: Broken, _chance: random.Random) -> bool:
    """A prompt in place of the key, until somebody has seen it."""
    set_option(broken, "PubkeyAuthentication", "no")
    set_option(broken, "PasswordAuthentication", "yes")
    restart_sshd(broken)
    return _is_blamed(broken, "login_refused")


def take_key(broken: Broken) -> None:
    """The key lets in again."""
    set_option(broken, "PubkeyAuthentication", "yes")
    set_option(broken, "PasswordAuthentication", "no")
    restart_sshd(broken)


def freeze_pgbench(broken: Broken, chance: random.Random) -> bool:
    """The load generator stands still for seconds, as a paused virtual machine does."""
    strike_at(broken.target.load_generators, chance)
    return _freeze(broken.target.load_generators())


def freeze_postgres(broken: Broken, chance: random.Random) -> bool:
    """All processes of the cluster that is measured stand still."""
    strike_at(broken.target.postmaster, chance)
    return _freeze(set(_of_cluster(broken)))


def _freeze(pids: set[int]) -> bool:
    frozen = [pid for pid in pids if processes.kill(pid, signal.SIGSTOP)]
    try:
        time.sleep(FROZEN_SECONDS)
    finally:
        for pid in frozen:
            processes.kill(pid, signal.SIGCONT)
    return bool(frozen)


def kill_backend(broken: Broken, chance: random.Random) -> bool:
    """A child of the postmaster, whichever."""
    strike_at(broken.target.load_generators, chance)
    children = _of_cluster(broken)[1:]
    return bool(children) and processes.kill(chance.choice(children))


def lack_memory(broken: Broken, chance: random.Random) -> bool:
    """The cluster's processes get into a group in which the kernel has no memory for them."""
    strike_at(broken.target.load_generators, chance)
    group = _group(broken)
    group.mkdir(exist_ok=True)
    (group / "memory.limit_in_bytes").write_text(str(LEFT_BYTES))
    for pid in _of_cluster(broken):
        with contextlib.suppress(ProcessLookupError):
            (group / "cgroup.procs").write_text(str(pid))

    def is_killed() -> bool:
        broken.target.connect_once()
        return _killed_in(group) > 0

    return awaited(is_killed, WITHOUT_SERVICE_SECONDS)


def give_memory_back(broken: Broken) -> None:
    """What is left in the group goes back to where it was."""
    group = _group(broken)
    if not group.exists():
        return
    (group / "memory.limit_in_bytes").write_text("-1")
    for _time in range(100):
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (GROUPS / "cgroup.procs").write_text(pid)
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.1)


def _group(broken: Broken) -> Path:
    return GROUPS / f"benchlab-storm-{os.getpid()}-{broken.server_id}"


def _killed_in(group: Path) -> int:
    words = (group / "memory.oom_control").read_text().split()
    return int(words[words.index("oom_kill") + 1])


def _of_cluster(broken: Broken) -> list[int]:
    """The postmaster that is measured, and its children."""
    pid = broken.target.postmaster()
    return [pid, *(each.pid for each in descendants(pid))] if pid else []


def _is_blamed(
    broken: Broken, *codes: str, seconds: float = SECONDS_FOR_A_BLAME
) -> bool:
    """Whether the page of one of its registrations says so within that time."""
    from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance

    return awaited(lambda: own_queue.is_blamed(broken.server_ids, codes), seconds)


# Ways.


def slow_line(broken: Broken, chance: random.Random) -> bool:
    """Each packet takes tenths of a second, both ways."""
    broken.target.line.delay_seconds = chance.uniform(*DELAYS_SECONDS)
    return _passes(broken, SLOW_SECONDS)


def lose_packets(broken: Broken, chance: random.Random) -> bool:
    """A part of all packets is lost, and sent again."""
    broken.target.line.loss = chance.uniform(*LOSSES)
    return _passes(broken, SLOW_SECONDS)


def stall_line(broken: Broken, _chance: random.Random) -> bool:
    """Nothing arrives for seconds, and then all of it."""
    broken.target.line.stall()
    time.sleep(HELD_UP_SECONDS)
    broken.target.line.mend()
    return _passes(broken, 1.0)


def _passes(broken: Broken, seconds: float) -> bool:
    before = broken.target.line.passed
    time.sleep(seconds)
    return broken.target.line.passed > before


def mend_line(broken: Broken) -> None:
    """As fast as ever."""
    broken.target.line.mend()


def reset_connections(broken: Broken, _chance: random.Random) -> bool:
    """Each that is open; new ones pass."""
    before = broken.target.line.broken
    broken.target.line.reset()
    time.sleep(0.5)
    return broken.target.line.broken > before


def lead_elsewhere(broken: Broken, chance: random.Random) -> bool:
    """The machine's name leads to another machine, or to nobody, until somebody has seen it."""
    assert broken.names is not None
    to_other = chance.random() < 0.5
    other = chance.choice(broken.neighbours).target
    with contextlib.ExitStack() as stack:
        if to_other:
            line = CutLine(
                other.sshd.port, address=ELSEWHERE, port=broken.target.line.port
            )
            stack.callback(line.close)
        name_address(broken, ELSEWHERE)
        broken.target.line.reset()
        return _is_blamed(
            broken, "host_key_changed" if to_other else "host_unreachable"
        )


def name_address(broken: Broken, address: str = "127.0.0.1") -> None:
    """Let the machine's name lead to that address from now on."""
    if broken.names is not None:
        lines = broken.names.read_text().splitlines(keepends=True)
        others = [line for line in lines if not line.endswith(f" {broken.name}\n")]
        broken.names.write_text("".join([*others, f"{address} {broken.name}\n"]))


# The instance's services.


def take_descriptors(broken: Broken, chance: random.Random) -> bool:
    """One worker can open nothing more, until its log says so and some seconds longer."""
    workers = broken.instance.workers_by_name()
    if not workers:
        return False
    name = chance.choice(sorted(workers))
    log = broken.instance.var / "logs" / f"{name}.log"
    before = log.read_text(errors="replace").count(NO_DESCRIPTORS)
    limit, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if not _limit_descriptors(workers[name], STREAMS):
        return False
    try:
        return awaited(
            lambda: log.read_text(errors="replace").count(NO_DESCRIPTORS) > before,
            SECONDS_FOR_A_BLAME,
        )
    finally:
        time.sleep(WITHOUT_SERVICE_SECONDS)
        _limit_descriptors(workers[name], limit)


def _limit_descriptors(pid: int, number: int) -> bool:
    """As the process's own account: root itself may not do it in every container."""
    try:
        owner = Path(f"/proc/{pid}").stat()
    except OSError:
        return False
    is_root = os.getuid() == 0
    command = ["prlimit", f"--pid={pid}", f"--nofile={number}:"]
    done = subprocess.run(
        command,
        user=owner.st_uid if is_root else None,
        group=owner.st_gid if is_root else None,
        extra_groups=[] if is_root else None,
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def fill_redis(broken: Broken, _chance: random.Random) -> bool:
    """It has no memory for another message."""
    with _redis(broken) as client:
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", "1")
    time.sleep(WITHOUT_SERVICE_SECONDS)
    return True


def empty_redis(broken: Broken) -> None:
    """As much memory as before."""
    with _redis(broken) as client:
        client.config_set("maxmemory", "256mb")
        client.config_set("maxmemory-policy", "volatile-lru")


def make_redis_read_only(broken: Broken, _chance: random.Random) -> bool:
    """It is a replica of a Redis that is not there, as after a failover."""
    with _redis(broken) as client:
        client.replicaof("127.0.0.1", "1")
    time.sleep(WITHOUT_SERVICE_SECONDS)
    return True


def make_redis_writable(broken: Broken) -> None:
    """It is on its own again."""
    with _redis(broken) as client:
        client.replicaof("NO", "ONE")


@contextmanager
def _redis(broken: Broken) -> "Iterator[redis.Redis]":
    address = broken.instance.variables["REDIS_URL"]
    with redis.Redis.from_url(address, socket_timeout=10) as client:
        yield client


def freeze_redis(broken: Broken, _chance: random.Random) -> bool:
    """It does not answer for some seconds."""
    pid = broken.instance.pids().get("redis")
    return pid is not None and _freeze({pid})


def freeze_database(broken: Broken, _chance: random.Random) -> bool:
    """The results database does not answer for some seconds."""
    pid = broken.instance.pids().get("postgresql")
    return pid is not None and _freeze({pid, *(each.pid for each in descendants(pid))})


def drop_database_connections(broken: Broken, _chance: random.Random) -> bool:
    """Each connection to the results database is ended there."""
    others = """
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE usename = current_user AND pid <> pg_backend_pid()"""
    with psycopg.connect(broken.instance.variables["DATABASE_URL"]) as connection:
        row = connection.execute(others).fetchone()
    return bool(row and row[0])


def kill_control(broken: Broken, _chance: random.Random) -> bool:
    """Who gives up the runs of silent workers."""
    return broken.instance.kill("control")


def close_artifacts(broken: Broken, _chance: random.Random) -> bool:
    """Nothing can be written into the folders of raw files while runs end."""
    from benchmarks import own_queue  # noqa: PLC0415 - Django is set up by the instance

    before = own_queue.finished()
    for folder in _folders_of_artifacts(broken):
        folder.chmod(0o500)
    return awaited(lambda: own_queue.finished() > before, SECONDS_FOR_A_BLAME)


def open_artifacts(broken: Broken) -> None:
    """They can be written again."""
    for folder in _folders_of_artifacts(broken):
        folder.chmod(0o700)


def _folders_of_artifacts(broken: Broken) -> list[Path]:
    top = broken.instance.artifacts
    return [top, *(path for path in top.glob("**/*") if path.is_dir())]


def _needs_root(broken: Broken) -> str:
    return "" if broken.target.has_own_identity else "it needs root"


def _needs_groups(broken: Broken) -> str:
    is_there = (GROUPS / "memory.limit_in_bytes").exists()
    return _needs_root(broken) or ("" if is_there else "no control groups of memory")


def _needs_name(broken: Broken) -> str:
    return "" if broken.name and broken.names else "it is registered by its address"


def _nothing(_broken: Broken) -> None: ...


def _of_machine(
    name: str,
    inject: Callable[[Broken, random.Random], bool],
    mend: Callable[[Broken], None] = _nothing,
    *,
    codes: frozenset[str] = frozenset(),
    blames: frozenset[str] = frozenset(),
    missing: Callable[[Broken], str] = _needs_root,
) -> Fault:
    return Fault(
        name, inject, "machine", codes=codes, blames=blames, mend=mend, missing=missing
    )


OF_STORMS = (
    *FAULTS,
    *OF_SSHD,
    Fault("cancel-run", cancel_run, "queue"),
    Fault("cancel-campaign", cancel_campaign, "queue"),
    Fault("restored-copy", restore_copy, "services"),
    _of_machine("second-registration", register_again),
    _of_machine(
        "cloned-machine",
        clone_machine,
        be_itself,
        codes=frozenset(("machine_taken",)),
    ),
    _of_machine(
        "no-pgbench",
        hide_pgbench,
        show_pgbench,
        codes=frozenset(("missing_program",)),
        blames=frozenset(("missing_program",)),
    ),
    _of_machine(
        "read-only",
        mount_read_only,
        mount_writable,
        codes=NOT_WRITABLE | OF_SERVER_PROCESSES,
        blames=NOT_WRITABLE,
    ),
    _of_machine(
        "base-of-root",
        take_base_away,
        give_base_back,
        codes=NOT_WRITABLE | OF_SERVER_PROCESSES,
        blames=NOT_WRITABLE,
    ),
    _of_machine(
        "other-host-key",
        show_other_host_key,
        show_own_host_key,
        blames=AWAY | {"host_key_changed"},
    ),
    _of_machine(
        "password-prompt",
        ask_for_password,
        take_key,
        blames=AWAY | {"login_refused"},
    ),
    _of_machine("freeze-pgbench", freeze_pgbench),
    _of_machine("freeze-postgres", freeze_postgres),
    _of_machine("kill-backend", kill_backend, codes=OF_SERVER_PROCESSES),
    _of_machine(
        "out-of-memory",
        lack_memory,
        give_memory_back,
        codes=OF_SERVER_PROCESSES,
        missing=_needs_groups,
    ),
    _of_machine("slow-line", slow_line, mend_line, blames=AWAY),
    _of_machine("lose-packets", lose_packets, mend_line, blames=AWAY),
    _of_machine("stall-line", stall_line, mend_line, blames=AWAY),
    _of_machine("reset-connections", reset_connections, blames=AWAY),
    _of_machine(
        "name-elsewhere",
        lead_elsewhere,
        name_address,
        codes=frozenset(("database_out_of_reach", "address_unknown")),
        blames=AWAY | {"host_key_changed"},
        missing=_needs_name,
    ),
    Fault("no-descriptors", take_descriptors, "services"),
    Fault("full-redis", fill_redis, "services", mend=empty_redis),
    Fault(
        "read-only-redis", make_redis_read_only, "services", mend=make_redis_writable
    ),
    Fault("freeze-redis", freeze_redis, "services"),
    Fault("freeze-database", freeze_database, "services"),
    Fault("drop-database-connections", drop_database_connections, "services"),
    Fault("kill-control", kill_control, "services"),
    Fault("close-artifacts", close_artifacts, "services", mend=open_artifacts),
)
