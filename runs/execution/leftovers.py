"""Leftovers on a target: folders with this BenchLab's mark, and what still runs in them.

The original settings of a machine: stored in the run's folder, and restored from there.

They are written down before anything is changed, so whoever ends the run can restore them: the
worker that started it, another one that took it over, or the clean-up that finds its folder.
"""

import re
import shlex

from runs.execution import privileged, stopping
from runs.execution.base_dir import BaseDir
from runs.execution.errors import TargetProblem
from runs.execution.ssh import Host
from runs.execution.steps import stop_all
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


def argv(folder: str) -> tuple[str, ...]:
    """Restore what a run's folder on that machine says; nothing if it says nothing."""
    return ("sh", "-c", _script(), "set-back", folder)


async def set_back(host: Host, folder: str) -> None:
    """Restore a machine's state before a run. Raises TargetProblem `not_set_back`."""
    answer = await host.run(argv(folder), timeout_s=LIMIT_SECONDS)
    if answer.exit_status != 0:
        raise not_set_back(str(host.address), answer.stderr.decode(errors="replace"))


def not_set_back(where: str, said: str) -> TargetProblem:
    """A machine still has a setting from a run."""
    return TargetProblem(
        f"{where} is not set back to what it was before the run: {said.strip()[-500:]}",
        code=NOT_SET_BACK,
        remedy=_(
            "Nothing is measured there until then. Install the sudoers fragment that the server's "
            "page shows, and inspect the server again: then it is set back."
        ),
    )


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
    answer = await host.run(["sh", "-c", _LIST, "list", base.path, base.mark(base.path)])
    lines = answer.stdout.decode(errors="replace").splitlines()
    runs, marks = base.below("runs"), zip(lines[::2], lines[1::2], strict=False)

    def age(path: str) -> tuple[bool, list[int]]:
        folder, _slash, name = path.rpartition("/")
        return folder == runs, [int(number) for number in re.findall(r"\d+", name)]

    return sorted((path for path, mark in marks if mark == base.mark(path)), key=age, reverse=True)


async def end(host: Host, base: BaseDir, path: str) -> None:
    """End what still runs in a folder, and restore the machine to the state stored there.

    Raises TargetProblem `step_does_not_end`, `not_set_back`, `postgres_does_not_stop`, `not_ours`
    or `leads_out`; with the last two nothing was ended.
    """
    await stop_all(base.checked(host, path), f"{path}/steps")
    await set_back(host, path)
    await stopping.stop(host, path)


async def remove(host: Host, base: BaseDir, path: str) -> None:
    """End what still runs in a leftover folder, restore the machine, and remove the folder.

    Raises as `end` does; then the folder stays.
    """
    await end(host, base, path)
    await base.remove(host, path)
