"""Treats the machines of a run as its plan says, and restores their original settings.

They are written down before anything is changed, so whoever ends the run can restore them: the
worker that started it, another one that took it over, or the clean-up that finds its folder.

Each action is a durable step, so the run's commands show it and a worker that takes the run over
does nothing twice. The original state is stored in the run's folder first (`set_back`).
"""

import shlex
from functools import partial

from runs.execution.bench import Bench
from runs.execution.errors import TargetProblem
from runs.execution.machine import cpus, privileged
from runs.execution.nodes import Node
from runs.execution.ssh.hosts import Host
from runs.execution.steps.steps import StepResult
from runs.wording import gettext_noop as _

NOT_SET_BACK = "not_set_back"
# sudo asks a directory of users, which may not answer.
LIMIT_SECONDS = 120.0
# Exit statuses of KEEP.
NOT_THERE, NOT_KNOWN = 4, 3
# usage: sh -c "$this" keep FOLDER NAME ALLOWED FILES...     (ALLOWED: values between blanks)
KEEP = """
was=$1/was-$2 new=$1/new-$2 allowed=$3
shift 3
if [ ! -f "$was" ]; then
    found=$(cat "$@" 2>/dev/null | sort -u)
    [ -n "$found" ] || exit 4
    case " $allowed " in
    *" $found "*) ;;
    *) printf '%s\\n' "$found"; exit 3 ;;
    esac
    printf '%s\\n' "$found" >"$new" && mv "$new" "$was" || exit 1
fi
cat "$was"
"""
# What could not be set is as it was: there is nothing to restore.
# usage: sh -c "$this" forget FOLDER NAME PATTERN
FORGET = """
[ "$(cat $3 2>/dev/null | sort -u)" != "$(cat "$1/was-$2" 2>/dev/null)" ] || rm -f "$1/was-$2"
"""
_SCRIPT = """
failed=0
for was in "$1"/was-*; do
    [ -f "$was" ] || continue
    read -r value <"$was"
    case ${{was##*/was-}}=$value in
{cases}
    *) echo "$was holds $value"; false ;;
    esac && rm -f "$was" || failed=1
done >&2
exit $failed
"""


def _script() -> str:
    cases = [
        f"    {name}={value}) sudo -n {shlex.join(command)} ;;"
        for name, values in privileged.SETTINGS.items()
        for value, command in values.items()
    ]
    return _SCRIPT.format(cases="\n".join(cases))


def argv_to_set_back(folder: str) -> tuple[str, ...]:
    """Restore what a run's folder on that machine says; nothing if it says nothing."""
    return ("sh", "-c", _script(), "set-back", folder)


async def set_back(host: Host, folder: str) -> None:
    """Restore a machine's state before a run. Raises TargetProblem `not_set_back`."""
    reply = await host.run(argv_to_set_back(folder), timeout_s=LIMIT_SECONDS)
    if reply.exit_status != 0:
        raise not_set_back(str(host.address), reply.stderr.decode(errors="replace"))


def not_set_back(machine_name: str, output: str) -> TargetProblem:
    """A machine still has a setting from a run."""
    return TargetProblem(
        _("%(where)s is not set back to what it was before the run: %(said)s"),
        code=NOT_SET_BACK,
        remedy=_(
            "Nothing is measured there until then. Install the sudoers fragment that the server's "
            "page shows, and inspect the server again: then it is set back."
        ),
        where=machine_name,
        said=output.strip()[-500:],
    )


GOVERNOR_FILES = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"
PARANOIA_FILES = "/proc/sys/kernel/perf_event_paranoid"
NO_SUCH_SETTING = {"governor": "no_cpufreq", "perf": "no_perf_events"}
_ALLOWED = ["grep", "Cpus_allowed_list", "/proc/self/status"]
# A pattern of file names, which the shell must expand.
_KEEP_BY_PATTERN = 'pattern=$4\nset -- "$1" "$2" "$3" $pattern\n' + KEEP


async def check_cpus(bench: Bench) -> None:
    """Before anything is started on them: check that the machines have these processors.

    Raises TargetProblem `cpus_not_there`.
    """
    treatment = bench.plan.treatment
    if treatment.server_cpus:
        await _check_cpus(bench, bench.database, "server", treatment.server_cpus)
    if treatment.pgbench_cpus:
        for node in bench.generators:
            await _check_cpus(bench, node, "pgbench", treatment.pgbench_cpus)
    if treatment.server_cpus or treatment.pgbench_cpus:
        _note_cpus(bench)


async def treat_machines(bench: Bench) -> None:
    """Treat the machines before the prepared, stopped cluster is started for measuring.

    Raises TargetProblem `privilege_missing`, `cannot_be_set_back`, `no_cpufreq`.
    """
    treatment = bench.plan.treatment
    if treatment.governor:
        await _set_governor(bench, treatment.governor)
    if treatment.cold_cache:
        await _empty_caches(bench)


async def change(bench: Bench, node: Node, name: str, files: str, value: str) -> str:
    """Set something on a machine after storing its original state, which is returned."""
    step = _named(bench, node, f"keep-{name}")
    allowed = " ".join(privileged.SETTINGS[name])
    argv = ["sh", "-c", _KEEP_BY_PATTERN, "keep", node.directory, name, allowed, files]
    done = await bench.step(step, argv, check=False, on=node)
    if done.exit_status in {NOT_THERE, NOT_KNOWN}:
        raise _cannot_be_set_back(node, name, done)
    if done.exit_status != 0:
        raise privileged.failed(name, done.stderr + done.stdout)
    command = privileged.SETTINGS[name][value]
    try:
        await _run_as_root(
            bench, node, name, command, step=_named(bench, node, f"set-{name}")
        )
    except TargetProblem as problem:
        if problem.code == "privilege_missing":
            argv = ["sh", "-c", FORGET, "forget", node.directory, name, files]
            await bench.run(*argv, on=node)
        raise
    return done.stdout.strip()


async def set_back_now(bench: Bench) -> None:
    """Restore every machine, as steps that the run's commands show.

    Raises TargetProblem if a step does not end; the result must not be lost for that.
    """
    for node in reversed(bench.nodes):
        if not _may_be_changed(bench, node) or not set(privileged.SETTINGS) & set(
            node.privileges
        ):
            continue
        step = _named(bench, node, "set-back")
        argv = argv_to_set_back(node.directory)
        limit = LIMIT_SECONDS
        done = await bench.step(
            step, argv, check=False, limit_s=limit, floor_bytes=0, on=node
        )
        if done.exit_status != 0:
            problem = not_set_back(node.address, done.stderr)
            await bench.reporter.event("cleanup_incomplete", problem)


async def set_back_whatever_was(bench: Bench, node: Node) -> None:
    """Restore a machine if its folder says so. Raises TargetProblem `not_set_back`.

    The last one first: two may be the same.
    """
    if _may_be_changed(bench, node):
        await node.retry_on_host(partial(set_back, folder=node.directory))


def _may_be_changed(bench: Bench, node: Node) -> bool:
    treatment = bench.plan.treatment
    return bool(treatment.governor) or (treatment.profile and node is bench.database)


async def _empty_caches(bench: Bench) -> None:
    """The cluster is stopped, so what the server itself would cache is gone as well."""
    await bench.step("write-out", ["sync"])
    node = bench.database
    await _run_as_root(
        bench, node, "drop_caches", privileged.DROP_CACHES, step="drop-caches"
    )
    message = _(
        "Measured with cold caches: the machine's file caches were emptied before PostgreSQL was "
        "started, and nothing was read ahead."
    )
    bench.note("cold_cache", message, level="info")


async def _set_governor(bench: Bench, governor: str) -> None:
    """On the database's machine, and on those generators where it is ticked."""
    chosen = [bench.database]
    chosen += [node for node in bench.nodes[1:] if "governor" in node.privileges]
    for node in chosen:
        was = await change(bench, node, "governor", GOVERNOR_FILES, governor)
        text = _(
            "%(address)s: CPU governor %(governor)s during the run, %(was)s before."
        )
        values = {"address": node.address, "governor": governor, "was": was}
        bench.note("governor_set", text, level="info", **values)


async def _run_as_root(
    bench: Bench, node: Node, name: str, command: privileged.Command, *, step: str
) -> None:
    argv = privileged.build_root_command(name, command, node.privileges)
    done = await bench.step(step, argv, check=False, on=node)
    if done.exit_status != 0:
        raise privileged.failed(name, done.stderr + done.stdout)


async def _check_cpus(
    bench: Bench, node: Node, cpus_text: str, wanted_cpus: str
) -> None:
    """The kernel silently drops unknown processors from a list, unless all are unknown."""
    step = _named(bench, node, f"check-cpus-of-{cpus_text}")
    step_result = await bench.step(
        step, [*cpus.pinned(wanted_cpus), *_ALLOWED], check=False, on=node
    )
    actual_cpus = step_result.stdout.partition(":")[2]
    if step_result.exit_status == 0 and cpus.parse(actual_cpus) == cpus.parse(
        wanted_cpus
    ):
        return
    output = actual_cpus.strip() or step_result.stderr.strip()[-300:]
    raise TargetProblem(
        _("%(address)s does not give the CPUs %(wanted)s: %(said)s"),
        code="cpus_not_there",
        remedy=_(
            "Choose CPUs that the server has, and install util-linux (taskset) there."
        ),
        address=node.address,
        wanted=wanted_cpus,
        said=output,
    )


def _note_cpus(bench: Bench) -> None:
    server, pgbench = (
        bench.plan.treatment.server_cpus,
        bench.plan.treatment.pgbench_cpus,
    )
    if server and pgbench:
        text = _("Pinned: PostgreSQL on CPUs %(server)s, pgbench on CPUs %(pgbench)s.")
    elif server:
        text = _("Pinned: PostgreSQL on CPUs %(server)s.")
    else:
        text = _("Pinned: pgbench on CPUs %(pgbench)s.")
    bench.note("cpus_pinned", text, level="info", server=server, pgbench=pgbench)


def _cannot_be_set_back(node: Node, name: str, result: StepResult) -> TargetProblem:
    state = " and ".join(result.stdout.split())
    reason = f"it is {state}" if state else "the machine has no such setting"
    return TargetProblem(
        "%(address)s: %(title)s: %(reason)s",
        code="cannot_be_set_back" if state else NO_SUCH_SETTING[name],
        remedy=_(
            "Only what can be set back exactly is changed. Give all its processors one governor "
            "that BenchLab knows, or leave this out of the campaign."
        ),
        address=node.address,
        title=privileged.action(name).title,
        reason=reason,
    )


def _named(bench: Bench, node: Node, step: str) -> str:
    return step if node is bench.database else f"{step}-{node.name}"
