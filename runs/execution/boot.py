"""Which boot of a machine a run started in: tells failures caused by a restart from others."""

from collections.abc import Sequence
from functools import partial

from runs.execution.bench import Bench
from runs.execution.nodes import Node

# The kernel makes a new one at each boot; a system without it never counts as restarted.
BOOT_ID = "/proc/sys/kernel/random/boot_id"

_MAKE_FOLDERS = """
boot=$1 now=$2
shift 2
mkdir -p "$@"
[ -e "$boot" ] || [ ! -r "$now" ] || { read -r id <"$now" && echo "$id" >"$boot"; }
"""
_COMPARE = '[ ! -s "$1" ] || [ ! -r "$2" ] || [ "$(cat "$1")" = "$(cat "$2")" ]'


async def make_folders(node: Node, folders: Sequence[str]) -> None:
    """Make the run's folder on a machine and folders in it; the first time, note there its boot."""
    words = ["sh", "-c", _MAKE_FOLDERS, "folders", _noted(node), BOOT_ID, *folders]
    await node.on_host(partial(node.base.make_folder, path=node.directory, then=words))


async def restarted(bench: Bench) -> list[str]:
    """The addresses of the run's machines that were restarted since it started."""
    found = []
    for node in bench.nodes:
        words = ["sh", "-c", _COMPARE, "boot", _noted(node), BOOT_ID]
        if (await bench.run(*words, on=node)).exit_status != 0:
            found.append(node.address)
    return found


def _noted(node: Node) -> str:
    return f"{node.directory}/boot"
