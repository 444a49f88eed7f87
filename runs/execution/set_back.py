"""The original settings of a machine: stored in the run's folder, and restored from there.

They are written down before anything is changed, so whoever ends the run can restore them: the
worker that started it, another one that took it over, or the clean-up that finds its folder.
"""

import shlex

from runs.execution import privileged
from runs.execution.errors import TargetProblem
from runs.execution.ssh import Host
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
