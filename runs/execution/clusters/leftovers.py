"""Leftovers on a target: folders with this BenchLab's mark, and what still runs in them."""

import re

from runs.execution.clusters import postgres
from runs.execution.machine.treating import set_back
from runs.execution.ssh.hosts import Host
from runs.execution.steps.base_dir import BaseDir
from runs.execution.steps.steps import stop_all

# Each marked folder with its mark, in two lines; nothing if the base directory is not ours.
_LIST = """
[ "$(cat "$1/.benchlab" 2>/dev/null)" = "$2" ] || exit 0
for dir in "$1"/runs/* "$1"/clusters/*; do
    [ -d "$dir" ] && [ ! -L "$dir" ] && [ -f "$dir/.benchlab" ] || continue
    echo "$dir"
    head -n 1 "$dir/.benchlab"
done
exit 0
"""


async def marked(host: Host, base: BaseDir) -> list[str]:
    """Folders with this BenchLab's mark for exactly that place; runs first, the newest first.

    If several runs could not restore their machine, the oldest knows its original state, so it
    comes last.
    """
    listing = await host.run(
        ["sh", "-c", _LIST, "list", base.path, base.mark(base.path)]
    )
    lines = listing.stdout.decode(errors="replace").splitlines()
    runs, marks = base.join("runs"), zip(lines[::2], lines[1::2], strict=False)

    def age(path: str) -> tuple[bool, list[int]]:
        folder, _slash, name = path.rpartition("/")
        return folder == runs, [int(number) for number in re.findall(r"\d+", name)]

    return sorted(
        (path for path, mark in marks if mark == base.mark(path)), key=age, reverse=True
    )


async def end(host: Host, base: BaseDir, path: str) -> None:
    """End what still runs in a folder, and restore the machine to the state stored there.

    Raises TargetProblem `step_does_not_end`, `not_set_back`, `postgres_does_not_stop`, `not_ours`
    or `leads_out`; with the last two nothing was ended.
    """
    await stop_all(host, f"{path}/steps", base.checked(host, path))
    await set_back(host, path)
    await postgres.stop_in(host.run, path)


async def remove(host: Host, base: BaseDir, path: str) -> None:
    """End what still runs in a leftover folder, restore the machine, and remove the folder.

    Raises as `end` does; then the folder stays.
    """
    await end(host, base, path)
    await base.remove(host, path)
