"""What goes wrong, where it is at fault, and what happens: the table of docs/execution.md.

A fault is charged to one place. What is at fault on this worker's host blames no server; what is at
fault on a server holds its queue and fails no run; only what a run itself does ends it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Scope = Literal["worker", "way", "server", "run", "BenchLab"]


@dataclass(frozen=True)
class Fault:
    """A row: the cause in words, its codes, where it is at fault, and what happens."""

    cause: str
    scope: Scope
    effect: str
    codes: tuple[str, ...] = ()


FAULTS: Sequence[Fault] = (
    Fault(
        "a worker's own host: a file it may not read, open files, memory, its firewall",
        "worker",
        "no server is blamed; its runs go back without an attempt, it takes none for a minute, and "
        "`/readyz` and `/workers/` say so. Others go on",
        ("worker_fault",),
    ),
    Fault(
        "a worker is of an older release, or its host may not log in (any more)",
        "worker",
        "it takes nothing, and says so. Others go on",
    ),
    Fault(
        "a worker or its machine is killed, frozen or cut off",
        "worker",
        "after 20 s of silence another continues in the middle of the step",
        ("no_heartbeat", "taken_over"),
    ),
    Fault(
        "a worker is stopped, or misses the end of a step for 5 minutes",
        "worker",
        "another continues, also with the runs that take turns with it",
        ("worker_stopped", "end_not_seen", "turns_stopped"),
    ),
    Fault(
        "the connection to a server breaks",
        "way",
        "opened again with back-off (1 s to 1 min); the step continues there and is picked up",
        ("connection_lost",),
    ),
    Fault(
        "a hop is away, refuses the key, or shows another host key",
        "way",
        "the runs behind it wait, and are tried as those of a server that is away",
        ("hop_unreachable", "hop_login_refused", "hop_key_changed"),
    ),
    Fault(
        "a server cannot be reached",
        "server",
        "its runs wait; it is tried every 30 s, and less often the longer it is away, up to every "
        "5 minutes",
        ("host_unreachable",),
    ),
    Fault(
        "a server refuses the login",
        "server",
        "its runs wait; asked again after 30 s, 2 and 7 minutes, then every 5, and at once by "
        "*Inspect*",
        ("login_refused",),
    ),
    Fault(
        "a server shows another host key",
        "server",
        "its runs wait until a person has compared it; the confirmed one again is believed",
        ("host_key_changed",),
    ),
    Fault(
        "its SSH key cannot be decrypted",
        "server",
        "its runs wait; the page names the key that is missing",
        ("private_key_unreadable",),
    ),
    Fault(
        "base directory not writable or not mounted",
        "server",
        "all its runs wait; pages say since when, how many, and what to do. Checks after 30 s and "
        "then less often, up to every 5 minutes, find it mended. A run is begun again as often as "
        "its campaign says (3), then fails",
        ("base_dir_not_writable", "other_file_system"),
    ),
    Fault(
        "a program of PostgreSQL missing or without a library",
        "server",
        "the same. A program that stays away for an hour was removed: runs that need it fail then, "
        "the others go on",
        ("missing_program",),
    ),
    Fault(
        "the disk is or becomes full",
        "server",
        "the same; below 128 MB a step is stopped and the target cleaned up",
        ("disk_almost_full", "disk_full", "disk_too_small"),
    ),
    Fault(
        "its login shell executes nothing, or it opens too few sessions",
        "server",
        "the same",
        ("no_report", "too_few_sessions"),
    ),
    Fault(
        "a copy of the results database uses the server",
        "server",
        "before it starts anything the run waits, and "
        "[nothing runs](deployment.md#a-copy-of-the-results-database) until somebody says who "
        "measures",
        ("lease_behind",),
    ),
    Fault(
        "the server restarts",
        "server",
        "a new attempt, up to the campaign's limit (3)",
        ("target_restarted",),
    ),
    Fault(
        "a machine cannot be restored, or cleaned up",
        "server",
        "nothing new is measured on it before it is inspected, or [cleaned up](#clean-up)",
        ("not_set_back", "cleanup_incomplete", "not_swept"),
    ),
    Fault(
        "a generator loses the database for over a minute",
        "run",
        "the run fails; both machines are cleaned",
        ("database_out_of_reach",),
    ),
    Fault(
        "PostgreSQL ends in the middle",
        "run",
        "the run fails, with the end of the server's log",
        ("postgres_stopped",),
    ),
    Fault(
        "a process of PostgreSQL, or pgbench, is killed or crashes",
        "run",
        "the run fails, with the line of the server's log, whether it recovered, and the kernel's "
        "line where it can be read",
        ("server_process_killed", "server_process_crashed", "out_of_memory"),
    ),
    Fault(
        "a step hangs",
        "run",
        "it is ended; the run fails with the step's name and limit (on a disk that does not "
        "answer, 3 minutes later)",
        ("step_timeout",),
    ),
    Fault(
        "a run loses more than 20 workers",
        "run",
        "cleaned up; a new attempt",
        ("lost_for_good",),
    ),
    Fault(
        "BenchLab itself fails after the load",
        "BenchLab",
        "processes are ended; the run's folder stays with the output, and the message says where",
        ("internal_error",),
    ),
    Fault(
        "Redis loses everything, does not answer, or takes nothing (full, or a replica)",
        "BenchLab",
        "nothing is lost: the queue is a table; new runs start when it answers",
    ),
    Fault(
        "the results database is away",
        "BenchLab",
        "workers retry for some minutes, then let go; nothing is removed on targets",
        ("no_heartbeat", "taken_over"),
    ),
)


def as_markdown() -> str:
    """The table as docs/execution.md has it."""
    lines = [
        "| what goes wrong | at fault | what happens | code |",
        "|---|---|---|---|",
    ]
    for fault in FAULTS:
        codes = ", ".join(f"`{code}`" for code in fault.codes)
        lines.append(f"| {fault.cause} | {fault.scope} | {fault.effect} | {codes} |")
    return "\n".join(lines) + "\n"
