"""Stops the PostgreSQL in a cluster's folder without its own programs, which may be gone."""

from pathlib import Path

from runs.execution.errors import TargetProblem
from runs.execution.ssh import COMMAND_SECONDS, Commands
from runs.wording import gettext_noop as _

# A fast shutdown writes a checkpoint.
SECONDS_BETWEEN_SIGNALS = 60
SIGNALS = 3
_STOP = (Path(__file__).parent / "stop_cluster.sh").read_text()


def argv(directory: str) -> tuple[str, ...]:
    """Stop the server of a folder: fast, immediate, KILL; exit status 1 if it still runs."""
    return ("sh", "-c", _STOP, "stop", f"{directory}/data", str(SECONDS_BETWEEN_SIGNALS))


async def stop(host: Commands, directory: str) -> bool:
    """Stop it; whether its cluster is prepared. Raises TargetProblem `postgres_does_not_stop`.

    Check first (`BaseDir.checked`) whether the folder is ours.
    """
    patience = SIGNALS * SECONDS_BETWEEN_SIGNALS + COMMAND_SECONDS
    answer = await host.run(argv(directory), timeout_s=patience)
    if answer.exit_status != 0:
        raise does_not_stop(directory)
    return answer.stdout.startswith(b"prepared\n")


def does_not_stop(directory: str) -> TargetProblem:
    """A server that even KILL did not end."""
    return TargetProblem(
        f"PostgreSQL in {directory} does not stop.",
        code="postgres_does_not_stop",
        remedy=_("Look at the process on the server; it may wait for its disk."),
    )
