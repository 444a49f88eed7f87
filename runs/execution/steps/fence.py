"""The fence on a target: of two workers with the same server, the one with the older token stops.

The results database gives each claim of a server a higher token, which is left on the target as an
empty file. A worker that was given up and wakes up again finds a higher one there, and starts
nothing any more. Files are only added, so two workers cannot undo each other's work.
"""

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
# Two workers may raise it at the same time: the lower one sees the other's token afterwards.
_RAISE = f"""
{_STOP_IF_BEHIND}
umask 077
if mkdir -p "$1" && : >"$1/$2"; then
    for lease in "$1"/*; do
        if [ "${{lease##*/}}" -lt "$2" ] 2>/dev/null; then rm -f "$lease"; fi
    done
fi
{_STOP_IF_BEHIND}exit 0
"""
BEHIND = 96
_MARKER = b"benchlab-fence "


class LeaseLost(Detached):
    """A newer claim has the target: `token`. This worker starts nothing there any more."""

    def __init__(self, token: int) -> None:
        super().__init__(f"The target has been claimed again, as {token}.")
        self.token = token


@dataclass(frozen=True)
class Fence:
    """The tokens of one server are in `directory`; `token` is this worker's."""

    directory: str
    token: int

    @property
    def arguments(self) -> tuple[str, str]:
        """The arguments of CHECK."""
        return self.directory, str(self.token)

    @property
    def raising(self) -> tuple[str, ...]:
        """The command that leaves the token there; `raise_if_behind` reads its answer."""
        return ("sh", "-c", _RAISE, "raise", *self.arguments)

    def before(self, script: str, words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
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
    number = printed.partition(_MARKER)[2].split()[:1]
    return LeaseLost(int(number[0]) if number else 0)
