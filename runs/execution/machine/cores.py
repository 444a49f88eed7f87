"""Runs PostgreSQL on a number of processor cores: chooses them, and checks that it uses them.

A campaign chooses the number; the list depends on the machine: one hardware thread of each core,
one socket filled before the next, further threads of the same cores last. The choice is a durable
step, so a worker that takes the run over uses the same list.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.execution.machine import cpus
from runs.execution.machine.sections import number_in
from runs.wording import gettext_noop as _

# The processors that this account may use, then their cores, sockets and nodes.
_SHOW = """
export LC_ALL=C
sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status
lscpu -p=CPU,CORE,SOCKET,NODE 2>/dev/null | grep -v '^#'
"""
# Whether the affinity can be set, and which one the command then has.
_TRY = ["grep", "Cpus_allowed_list", "/proc/self/status"]
_OF_POSTMASTER = """
read -r pid <"$1/postmaster.pid" &&
    sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$pid/status"
"""


@dataclass(frozen=True)
class Thread:
    """A hardware thread: the number of the CPU, and its core, socket and NUMA node."""

    cpu: int
    core: int
    socket: int
    node: int


@dataclass(frozen=True)
class Choice:
    """The chosen CPUs; and how many of them are second threads of a core already in use."""

    cpus: tuple[int, ...]
    second_threads: int
    sockets: int


async def pin(bench: Bench) -> None:
    """Prepare the stopped cluster to start on the plan's number of cores.

    Raises TargetProblem `cores_not_there`, `affinity_refused`.
    """
    step_result = await bench.step("show-cores", ["sh", "-c", _SHOW], check=False)
    allowed, threads = read(step_result.stdout)
    treatment = bench.plan.treatment
    if treatment.server_cpus:
        allowed &= cpus.parse(treatment.server_cpus)
    if treatment.pgbench_cpus and not bench.plan.generators:
        allowed -= cpus.parse(treatment.pgbench_cpus)
    wanted_cores = bench.plan.cores
    if wanted_cores > len(allowed):
        raise _too_many(bench, wanted_cores, len(allowed))
    choice = choose(wanted_cores, allowed, threads)
    chosen = cpus.spelled(choice.cpus)
    tried = await bench.step("try-affinity", [*cpus.pinned(chosen), *_TRY], check=False)
    if tried.exit_status != 0:
        raise _refused(bench, chosen, tried.stderr)
    bench.cluster = replace(bench.cluster, cpus=chosen)


async def check(bench: Bench) -> None:
    """Check that the server is on its CPUs; store them. Raises TargetProblem `affinity_refused`."""
    argv = ["sh", "-c", _OF_POSTMASTER, "affinity", bench.cluster.data]
    step_result = await bench.step("read-affinity", argv, check=False)
    actual_cpus = step_result.stdout.strip()
    if step_result.exit_status != 0 or cpus.parse(actual_cpus) != cpus.parse(
        bench.cluster.cpus
    ):
        raise _refused(bench, bench.cluster.cpus, actual_cpus or step_result.stderr)
    _allowed, threads = read(
        (await bench.step("show-cores", ["sh", "-c", _SHOW])).stdout
    )
    _note(bench, sorted(cpus.parse(actual_cpus)), threads)


def read(text: str) -> tuple[frozenset[int], list[Thread]]:
    """(CPUs that may be used, threads) of the machine; what lscpu does not show counts as 0."""
    first_line, *lines = text.splitlines() or [""]
    threads = []
    for line in lines:
        words = line.split(",")
        numbers = [number_in(word) for word in words]
        if len(words) == 4 and numbers[0] is not None:
            core = numbers[1] if numbers[1] is not None else numbers[0]
            threads.append(Thread(numbers[0], core, numbers[2] or 0, numbers[3] or 0))
    return cpus.parse(first_line), threads


def choose(number: int, allowed: frozenset[int], threads: Sequence[Thread]) -> Choice:
    """The first `number` CPUs: cores of one socket and node after the other, then second threads.

    A CPU that lscpu does not show is a core by itself. Each level includes those of the smaller
    ones, so a curve has no steps caused by a different part of the machine.
    """
    thread_of_cpu = {thread.cpu: thread for thread in threads}
    usable = [thread_of_cpu.get(cpu, Thread(cpu, cpu, 0, 0)) for cpu in sorted(allowed)]
    last_rank: dict[tuple[int, int], int] = {}
    ranked = []
    for thread in usable:
        core = (thread.socket, thread.core)
        rank = last_rank[core] = last_rank.get(core, -1) + 1
        ranked.append((rank, thread.socket, thread.node, thread.core, thread.cpu))
    chosen = sorted(ranked)[:number]
    return Choice(
        cpus=tuple(ranks[-1] for ranks in chosen),
        second_threads=sum(ranks[0] > 0 for ranks in chosen),
        sockets=len({ranks[1] for ranks in chosen}),
    )


def _note(bench: Bench, used: Sequence[int], threads: Sequence[Thread]) -> None:
    choice = choose(len(used), frozenset(used), threads)
    text = _(
        "PostgreSQL ran on the CPUs %(cpus)s of %(sockets)s socket(s); the load's share of them "
        "is in it where pgbench ran on the same machine."
    )
    numbers = cpus.spelled(used)
    bench.note("cores_used", text, level="info", cpus=numbers, sockets=choice.sockets)
    if choice.second_threads:
        bench.note(
            "second_threads",
            _(
                "%(number)s of the %(all)s CPUs are second threads of a core that is used "
                "already: this is not the same experiment as with so many cores."
            ),
            number=choice.second_threads,
            all=len(used),
        )


def _too_many(bench: Bench, wanted_cores: int, present_cores: int) -> TargetProblem:
    return TargetProblem(
        _("%(wanted)s cores are asked for; %(there)s may be used on %(address)s."),
        code="cores_not_there",
        remedy=_(
            "Choose fewer cores, or leave more of them to PostgreSQL in the treatment."
        ),
        wanted=wanted_cores,
        there=present_cores,
        address=bench.database.address,
    )


def _refused(bench: Bench, wanted_cpus: str, message: str) -> TargetProblem:
    return TargetProblem(
        _("%(address)s does not let PostgreSQL run on the CPUs %(wanted)s: %(said)s"),
        code="affinity_refused",
        remedy=_(
            "Install util-linux (taskset) there, and let BenchLab's user set CPU affinity: a "
            "container or a service manager may forbid sched_setaffinity."
        ),
        address=bench.database.address,
        wanted=wanted_cpus,
        said=message.strip()[-300:],
    )
