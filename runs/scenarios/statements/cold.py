"""Cold executions: before each the server is restarted, and its files are dropped from memory.

All versions are treated alike, and without root: only newer ones could empty their buffers while
they run. What a disk or its controller keeps in memory of its own stays there. A session begins
anew as well, so a cold execution reads the catalogue as the first one after a restart does.

Whether it was cold is not believed but counted: what the server's processes have read from storage
meanwhile, by the kernel's own counters.
"""

import re

from runs.execution.bench import Bench
from runs.execution.clusters import file_cache
from runs.execution.errors import TargetProblem
from runs.wording import gettext_noop as _

# The parameter: 1 for cold executions.
COLD = "cold"
# What a restart with empty caches takes about, in milliseconds: so long no statement is executed.
RESTART_MS = 2000.0

_READ = re.compile(r"^#read (\d{1,18})$", re.MULTILINE)
# usage: sh -c "$this" read DATA COMMAND...
# Ends the output of the command with what all processes of the server have read from storage until
# its sessions were gone, in bytes; with nothing where the kernel does not tell. What has ended
# counts with the postmaster, once that has waited for it.
_COUNT_READS = r"""
export LC_ALL=C
read -r postmaster <"$1/postmaster.pid" || exit
shift
children() {
    list=
    read -r list <"/proc/$postmaster/task/$postmaster/children"
    set -- $list
    number=$#
}
sum() {
    children
    bytes=$(for pid in $list $postmaster; do cat "/proc/$pid/io"; done 2>/dev/null |
        awk '$1 == "read_bytes:" { n++; sum += $2 } END { if (n) printf "%.0f", sum }')
}
known=
[ -r "/proc/$postmaster/task/$postmaster/children" ] && sum && known=$bytes
before=$number
"$@"
status=$?
if [ -n "$known" ]; then
    tries=0
    while children && [ $number -gt $before ] && [ $tries -lt 40 ]; do
        tries=$((tries + 1))
        sleep 0.05
    done
    sum
    [ -z "$bytes" ] || echo "#read $((bytes - known))"
fi
exit $status
"""


def is_cold(bench: Bench) -> bool:
    """Whether the run's executions are cold."""
    return bool(bench.parameters.get(COLD))


async def restart(bench: Bench, name: str) -> float:
    """Restart the server with empty caches, in steps of this name; when that began."""
    cluster = bench.cluster
    bench.restarts += 1
    stopped = await bench.step(f"stop-{name}", cluster.stop(), serving=cluster)
    await file_cache.forget(bench, [cluster.data], step=f"forget-{name}")
    await bench.step(f"start-{name}", cluster.start(), serving=cluster)
    return stopped.started


def counting_reads(bench: Bench) -> tuple[str, ...]:
    """The words before a command after which it says what the server has read meanwhile."""
    return "sh", "-c", _COUNT_READS, "read", bench.cluster.data


def bytes_read(printed: str) -> int | None:
    """What the server has read while the command of a step ran; None where that is not known."""
    match = _READ.search(printed)
    return int(match[1]) if match else None


def not_cold(bench: Bench) -> TargetProblem:
    """The server read nothing: not even its catalogue, so its files were in memory."""
    return TargetProblem(
        _(
            "The caches cannot be emptied: restarted, PostgreSQL read nothing from a disk below "
            "%(path)s."
        ),
        code="not_cold",
        remedy=_(
            "Give the server a base directory on a disk (files in tmpfs are always in memory), or "
            "measure warm."
        ),
        path=bench.database.base.path,
    )
