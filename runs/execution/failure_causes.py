"""The cause behind a failed step: a restart, a full disk, a lost server, a cut network."""

from collections.abc import Sequence
from functools import partial

from runs.execution.bench import LAST_LINES, Bench
from runs.execution.clusters.further_clusters import Arrangement
from runs.execution.clusters.postgres import NOT_RUNNING
from runs.execution.errors import CommandTimeout, TargetProblem, TargetRestarted
from runs.execution.evidence import crashes
from runs.execution.nodes import Node
from runs.execution.steps.steps import NO_SPACE, disk_full, free_bytes
from runs.wording import gettext_noop as _

# The kernel makes a new one at each boot; a system without it never counts as restarted.
BOOT_ID = "/proc/sys/kernel/random/boot_id"

_MAKE_FOLDERS = """
boot=$1 now=$2
shift 2
mkdir -p "$@"
[ -e "$boot" ] || [ ! -r "$now" ] || { read -r id <"$now" && echo "$id" >"$boot"; }
"""
_COMPARE = '[ ! -s "$1" ] || [ ! -r "$2" ] || [ "$(cat "$1")" = "$(cat "$2")" ]'


async def make_folders_noting_boot(node: Node, folders: Sequence[str]) -> None:
    """Make the run's folder on a machine and folders in it; the first time, note there its boot."""
    words = ["sh", "-c", _MAKE_FOLDERS, "folders", _noted(node), BOOT_ID, *folders]
    await node.retry_on_host(
        partial(node.base.make_folder, path=node.directory, then=words)
    )


async def restarted(bench: Bench) -> list[str]:
    """The addresses of the run's machines that were restarted since it started."""
    addresses = []
    for node in bench.nodes:
        words = ["sh", "-c", _COMPARE, "boot", _noted(node), BOOT_ID]
        if (await bench.run(*words, on=node)).exit_status != 0:
            addresses.append(node.address)
    return addresses


def _noted(node: Node) -> str:
    return f"{node.directory}/boot"


# A crashed server logs the reason before the ends of hundreds of its backends.
LINES_TO_SEARCH = 2000
# With less space neither a log nor a tool's output can be written.
NOTHING_FREE_BYTES = 64 * 1024
# How pgbench reports, in all versions, that its server did not answer any more.
_LOST = (
    "the backend died",
    "timeout expired",
    "timed out",
    "No route to host",
    "Network is unreachable",
    "Connection refused",
)
# ... and the server's own messages, if the network was not the cause.
_ENDED = ("was terminated by signal", "terminating connection")


# What a database that is gone, or a full disk, may be behind.
TO_EXPLAIN = frozenset(
    ("command_failed", "step_failed", "password_not_set", "slice_incomplete")
)
# What was read from an output, which a full disk cuts off.
OF_OUTPUT = frozenset(
    (
        "address_unknown",
        "data_not_sent",
        "facts_unknown",
        "fio_failed",
        "no_free_port",
        "pooler_does_not_start",
        "rows_missing",
    )
)


async def explained(
    problem: TargetProblem, bench: Bench, *, taken_over: bool
) -> TargetProblem:
    """The problem, or its underlying cause; `taken_over` from a worker that was lost.

    Call it before anything is stopped or removed.
    """
    try:
        if problem.code in OF_OUTPUT:
            return await _no_space(problem, bench) or problem
        if problem.code in TO_EXPLAIN or problem.code.startswith("pgbench_"):
            return await _deeper(problem, bench, taken_over=taken_over)
    except CommandTimeout:
        pass
    return problem


async def _deeper(
    problem: TargetProblem, bench: Bench, *, taken_over: bool
) -> TargetProblem:
    if addresses := await restarted(bench):
        return TargetRestarted(
            _("%(addresses)s has restarted meanwhile: %(problem)s"),
            addresses=", ".join(addresses),
            problem=problem,
        )
    log = await bench.server_log(LINES_TO_SEARCH)
    if full := await _no_space(problem, bench, log):
        return full
    if not bench.is_serving:
        return problem
    if crash := crashes.first_crash(log):
        pid_of_server = await _postmaster(bench)
        kernel = await crashes.kernel_log(bench.database, pid_of_server)
        return crashes.named(problem, crash, log, kernel)
    if problem.code in crashes.OF_GENERATOR:
        return await _generator_killed(problem, bench)
    # It is taken to be there if its pg_ctl gives no clear answer.
    if (await bench.run(*bench.cluster.status())).exit_status not in NOT_RUNNING:
        if gone := await _gone(bench):
            return TargetProblem(
                "%(problem)s\n%(cause)s",
                code=gone.code,
                remedy=gone.remedy,
                problem=problem,
                cause=gone,
            )
        return (
            _out_of_reach(problem, bench)
            if _is_cut_off(problem, bench, log)
            else problem
        )
    if taken_over:
        return TargetRestarted(
            _("The cluster is gone since the worker was: %(problem)s"), problem=problem
        )
    end = "\n".join(log.splitlines()[-LAST_LINES:])
    return TargetProblem(
        _("%(problem)s\nPostgreSQL is not running any more. Its log ends:\n%(end)s"),
        code="postgres_stopped",
        remedy=_(
            "Read the server's log: out of memory, a crash, or somebody stopped it."
        ),
        problem=problem,
        end=end,
    )


async def _postmaster(bench: Bench) -> str:
    """Its process number; empty where it does not run."""
    pid_file = f"{bench.cluster.data}/postmaster.pid"
    first_line = (await bench.run("head", "-n", "1", pid_file)).stdout.decode().strip()
    return first_line if first_line.isdecimal() else ""


async def _generator_killed(problem: TargetProblem, bench: Bench) -> TargetProblem:
    """The problem, or that the kernel of a generating machine killed pgbench."""
    seconds = crashes.SLACK_SECONDS + float(bench.plan.parameters.get("duration") or 0)
    for node in bench.generators:
        kernel = await crashes.kernel_log(node)
        if line := kernel.line_of_program("pgbench", seconds=seconds):
            return crashes.out_of_memory(problem, line)
    return problem


async def _gone(bench: Bench) -> TargetProblem | None:
    for member in bench.members.values():
        begun = f"{member.cluster.data}/postmaster.opts"
        if (await bench.run("test", "-e", begun, on=member.node)).exit_status != 0:
            continue
        status = await bench.run(*member.cluster.status(), on=member.node)
        if status.exit_status in NOT_RUNNING:
            return await Arrangement(bench).gone(member)
    return None


def _is_cut_off(problem: TargetProblem, bench: Bench, log: str) -> bool:
    """Whether generators lost a server that logged no problem."""
    is_lost = any(phrase in problem.message for phrase in _LOST)
    return (
        bool(bench.plan.generators)
        and is_lost
        and not any(phrase in log for phrase in _ENDED)
    )


def _out_of_reach(problem: TargetProblem, bench: Bench) -> TargetProblem:
    generators = ", ".join(node.address for node in bench.generators)
    return TargetProblem(
        _(
            "%(problem)s\nPostgreSQL is still running and has ended no session: the network "
            "between %(generators)s and %(address)s was cut, or a firewall blocks it."
        ),
        code="database_out_of_reach",
        remedy=_("Repair the network between the machines, and queue the run again."),
        problem=problem,
        generators=generators,
        address=bench.database.address,
    )


async def _no_space(
    problem: TargetProblem, bench: Bench, log: str = ""
) -> TargetProblem | None:
    """The full disk of one of the machines, which may have kept its server from logging it."""
    lines = [
        line for line in f"{problem.message}\n{log}".splitlines() if NO_SPACE in line
    ]
    if lines:
        return disk_full(bench.database.base.path, lines[-1])
    for node in bench.nodes:
        free = await node.retry_on_host(partial(free_bytes, folder=node.base.path))
        if free is not None and free < NOTHING_FREE_BYTES:
            return node.charged(disk_full(node.base.path, problem.message))
    return None
