"""Which boot of a machine a run began in: what failed after another one failed of the restart."""

from collections.abc import Sequence

from runs.execution.bench import Bench
from runs.execution.nodes import Node

# Made anew by the kernel at each boot; a system without it is never taken for restarted.
BOOT_ID = "/proc/sys/kernel/random/boot_id"

_MAKE_FOLDERS = """
boot=$1 now=$2
shift 2
mkdir -p "$@"
[ -e "$boot" ] || [ ! -r "$now" ] || cat "$now" >"$boot"
"""
_COMPARE = '[ ! -s "$1" ] || [ ! -r "$2" ] || [ "$(cat "$1")" = "$(cat "$2")" ]'


async def make_folders(bench: Bench, node: Node, folders: Sequence[str]) -> None:
    """Make folders of the run on a machine; the first time, note there which boot it is in."""
    words = ["sh", "-c", _MAKE_FOLDERS, "folders", _noted(node), BOOT_ID, *folders]
    await bench.run(*words, on=node)


async def restarted(bench: Bench) -> list[str]:
    """The addresses of the run's machines that are in another boot than when it began."""
    found = []
    for node in bench.nodes:
        words = ["sh", "-c", _COMPARE, "boot", _noted(node), BOOT_ID]
        if (await bench.run(*words, on=node)).exit_status != 0:
            found.append(node.address)
    return found


def _noted(node: Node) -> str:
    return f"{node.directory}/boot"
