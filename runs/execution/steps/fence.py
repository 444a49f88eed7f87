"""The fence on a target: of two workers with the same server, the one with the older token stops.

The results database gives each claim of a server a higher token, which is left on the target as an
empty file. A worker that was given up and wakes up again finds a higher one there, and starts
nothing any more. Files are only added, so two workers cannot undo each other's work.

A copy of the results database, restored or cloned, gives the same tokens. So each claim leaves a
second empty file, `TOKEN.MARK`: its mark names the epoch of the results database, and is drawn anew
for each claim. Whoever finds a token that is newer than the last one of its own database, and not
from this claim, has a copy that measures here too, and starts nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from runs.execution.errors import Detached
from runs.execution.ssh.hosts import Answer, Host

# Ends the script if a higher token is there. Nothing here forks.
_STOP_IF_BEHIND = """
for lease in "$1"/*; do
    [ "${lease##*/}" -gt "$2" ] 2>/dev/null && { echo "benchlab-fence ${lease##*/}"; exit 96; }
done
"""
# Runs before a step is looked at; it removes the fence's two arguments.
CHECK = f"{_STOP_IF_BEHIND}shift 2\n"
# Ends the script if a token above $3 is there that is not of this claim, whose mark is $4. A token
# without a mark is of a release before there were marks.
_STOP_IF_COPIED = """
for lease in "$1"/*; do
    name=${lease##*/}
    [ "$name" != "$2.$4" ] || continue
    for marked in "$lease".*; do [ ! -e "$marked" ] || continue 2; done
    [ "${name%%.*}" -gt "$3" ] 2>/dev/null && { echo "benchlab-fence $name"; exit 96; }
done
"""
# Two workers may raise it at the same time: the lower one sees the other's token afterwards.
_RAISE = f"""
{_STOP_IF_COPIED}{_STOP_IF_BEHIND}
umask 077
if mkdir -p "$1" && : >"$1/$2.$4" && : >"$1/$2"; then
    for lease in "$1"/*; do
        name=${{lease##*/}}
        if [ "${{name%%.*}}" -lt "$2" ] 2>/dev/null; then rm -f "$lease"; fi
    done
fi
{_STOP_IF_COPIED}{_STOP_IF_BEHIND}exit 0
"""
BEHIND = 96
_MARKER = b"benchlab-fence "
# More than any token: the last claim is not compared.
_ANY = 2**62
_REPORTED = re.compile(rb"benchlab-fence (\d{1,18})(?:\.([0-9a-f-]{1,40}))?")


class LeaseLost(Detached):
    """A newer claim has the target: `token`. This worker starts nothing there any more.

    `epoch` is that of the results database that gave it, where its mark says so.
    """

    server_id: int | None = None

    def __init__(self, token: int, mark: str = "") -> None:
        super().__init__(f"The target has been claimed again, as {token}.")
        self.token = token
        epoch, _, nonce = mark.partition("-")
        self.epoch = int(epoch) if nonce and epoch.isdecimal() else None


@dataclass(frozen=True)
class Fence:
    """The tokens of one server are in `directory`; `token` is this worker's.

    `last` is the last one before it that its results database knows, None if it has been said that
    no other one is in use. `mark` names this claim: the epoch, a hyphen, and something random.
    """

    directory: str
    token: int
    last: int | None = None
    mark: str = "0-0"

    @property
    def arguments(self) -> tuple[str, str]:
        """The arguments of CHECK."""
        return self.directory, str(self.token)

    @property
    def raising(self) -> tuple[str, ...]:
        """The command that leaves the token there; `raise_if_behind` reads its answer."""
        last = str(_ANY if self.last is None else self.last)
        return ("sh", "-c", _RAISE, "raise", *self.arguments, last, self.mark)

    def guard(self, script: str, words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """A script and its words with CHECK before it; `lease_lost` reads what that says."""
        return CHECK + script, (*self.arguments, *words)

    async def check(self, host: Host) -> None:
        """Raise LeaseLost if a higher token is there."""
        raise_if_behind(await host.run(["sh", "-c", CHECK, "check", *self.arguments]))


def raise_if_behind(reply: Answer) -> None:
    """Raise LeaseLost if the answer reports a higher token."""
    if reply.exit_status == BEHIND and _MARKER in reply.stdout:
        raise lease_lost(reply.stdout)


def lease_lost(printed: bytes) -> LeaseLost:
    """The error that CHECK's output reports."""
    report = _REPORTED.search(printed)
    if report is None:
        return LeaseLost(0)
    return LeaseLost(int(report[1]), (report[2] or b"").decode())
