"""The files of clusters in the memory of their machine: dropped without root."""

from collections.abc import Sequence

from runs.execution.bench import Bench
from runs.wording import gettext_noop as _

# Drops files that are on disk from the cache; dd does it for a file's owner (nocache, count=0), and
# is started for each: so not for those of initdb's own databases, with numbers below 16384.
_FORGET = r"""
export LC_ALL=C
for folder; do sync -f "$folder" 2>/dev/null || sync; done
find -L "$@" -type f -size +0 ! -path '*/base/[0-9]/*' ! -path '*/base/1[0-5][0-9][0-9][0-9]/*' \
    2>/dev/null | while read -r file; do
    dd if="$file" iflag=nocache count=0 2>/dev/null || exit 1
done
"""


async def forget(bench: Bench, folders: Sequence[str], *, step: str) -> None:
    """Have the system forget the files of folders, whose servers are stopped.

    The run says so where it cannot.
    """
    argv = ["sh", "-c", _FORGET, "forget", *folders]
    done = await bench.step(step, argv, check=False)
    if done.exit_status != 0:
        bench.note(
            "cache_kept",
            _("The system's cache may still hold the files of the cluster."),
        )
