"""Leftovers: folders with this BenchLab's mark on a target that belong to no run any more."""

import re
from collections.abc import Set

from runs.execution import stopping
from runs.execution.base_dir import BaseDir
from runs.execution.set_back import set_back
from runs.execution.ssh import Host
from runs.execution.steps import stop_all

# Each marked folder with its mark, in two lines; nothing where the base directory is not ours.
_LIST = """
[ "$(cat "$1/.benchlab" 2>/dev/null)" = "$2" ] || exit 0
for dir in "$1"/runs/* "$1"/clusters/*; do
    [ -d "$dir" ] && [ ! -L "$dir" ] && [ -f "$dir/.benchlab" ] || continue
    echo "$dir"
    head -n 1 "$dir/.benchlab"
done
exit 0
"""


async def leftovers(host: Host, base: BaseDir, live: Set[str]) -> list[str]:
    """Marked folders below `runs` and `clusters` that are not among `live`; runs first, the newest.

    `live` holds paths relative to the base directory, such as `runs/7-1`. A folder without this
    BenchLab's mark for that very place is not listed. Of runs that could not set their machine
    back the oldest knows how it was, so that it has the last word.
    """
    runs = base.below("runs")

    def age(path: str) -> tuple[bool, list[int]]:
        folder, _slash, name = path.rpartition("/")
        return folder == runs, [int(number) for number in re.findall(r"\d+", name)]

    found = await _marked(host, base)
    return sorted(found - {base.below(path) for path in live}, key=age, reverse=True)


async def kept(host: Host, base: BaseDir, live: Set[str]) -> list[str]:
    """Marked folders below `runs` and `clusters` that are among `live`."""
    return sorted(await _marked(host, base) & {base.below(path) for path in live})


async def end(host: Host, base: BaseDir, path: str) -> None:
    """End what still runs in a folder, and set the machine back to what is noted there.

    Raises TargetProblem `step_does_not_end`, `not_set_back`, `postgres_does_not_stop`, `not_ours`
    or `leads_out`; with the last two nothing was ended.
    """
    await base.check(host, path)
    await stop_all(host, f"{path}/steps")
    await set_back(host, path)
    await stopping.stop(host, path)


async def remove(host: Host, base: BaseDir, path: str) -> None:
    """End what still runs in a leftover folder, set the machine back, and remove the folder.

    Raises as `end` does; then the folder is left.
    """
    await end(host, base, path)
    await base.remove(host, path)


async def _marked(host: Host, base: BaseDir) -> set[str]:
    """Folders with this BenchLab's mark for that very place."""
    answer = await host.run(["sh", "-c", _LIST, "list", base.path, base.mark(base.path)])
    lines = answer.stdout.decode(errors="replace").splitlines()
    marks = dict(zip(lines[::2], lines[1::2], strict=False))
    return {path for path, mark in marks.items() if mark == base.mark(path)}
