"""The folder below which BenchLab writes on a target, and the marks that make removal safe.

base_dir/.benchlab            this folder belongs to that BenchLab
base_dir/clusters/...         clusters, each with its own mark
base_dir/runs/RUN-ATTEMPT/    one folder a run: steps/, the Unix socket
"""

import posixpath
from dataclasses import dataclass

from runs.execution.errors import TargetProblem
from runs.execution.ssh import Host
from runs.execution.steps import disk_full
from runs.wording import gettext_noop as _

# A Unix socket's path has at most 107 bytes; this is what BenchLab itself adds to base_dir.
LONGEST_BASE_DIR = 70

_CLAIM = """
set -u
umask 077
dir=$1 mark=$2
mkdir -p "$dir" || exit 90
cd "$dir" || exit 90
if [ -f .benchlab ]; then
    [ "$(cat .benchlab)" = "$mark" ] || { cat .benchlab; exit 91; }
elif [ -n "$(ls -A)" ]; then
    ls -A | head -n 5
    exit 92
else
    echo "$mark" >.benchlab || exit 90
fi
mkdir -p runs clusters || exit 90
command -v setsid >/dev/null || exit 93
df -Pk . | awk 'NR == 2 { print $4 }'
"""

_MARKED_FOLDER = """
set -u
umask 077
dir=$1 mark=$2
mkdir -p "$dir" && echo "$mark" >"$dir/.benchlab" || exit 90
"""

_REMOVE = """
set -u
dir=$1 mark=$2
[ -e "$dir" ] || exit 0
[ ! -L "$dir" ] && [ -f "$dir/.benchlab" ] && [ "$(cat "$dir/.benchlab")" = "$mark" ] || exit 91
rm -rf -- "$dir"
"""


@dataclass(frozen=True)
class BaseDir:
    """A base directory on a target, claimed by one BenchLab instance.

    `instance` is the random name of this BenchLab; two of them never share a folder.
    """

    path: str
    instance: str

    def below(self, *parts: str) -> str:
        """A path below the base directory. Raises ValueError for one that would lead out."""
        path = posixpath.normpath(posixpath.join(self.path, *parts))
        if not path.startswith(self.path.rstrip("/") + "/"):
            raise ValueError(f"{path} is not below {self.path}")
        return path

    def mark(self, path: str) -> str:
        """The text that marks a folder as made by this BenchLab at that very place."""
        return f"benchlab {self.instance} {posixpath.relpath(path, self.path)}"

    async def claim(self, host: Host) -> int:
        """Make the folder this BenchLab's own, or find that it is; return its free bytes.

        Raises TargetProblem `base_dir_foreign` where others keep files in it.
        """
        answer = await host.run(["sh", "-c", _CLAIM, "claim", self.path, self.mark(self.path)])
        if answer.exit_status != 0:
            found = (answer.stdout + answer.stderr).decode(errors="replace").strip()
            raise self._refusal(answer.exit_status, found)
        return int(answer.stdout) * 1024

    async def make_folder(self, host: Host, path: str) -> None:
        """Make a marked folder, which `remove` will later accept."""
        answer = await host.run(["sh", "-c", _MARKED_FOLDER, "make", path, self.mark(path)])
        if answer.exit_status != 0:
            raise self._refusal(answer.exit_status, answer.stderr.decode(errors="replace"))

    async def remove(self, host: Host, path: str) -> None:
        """Remove a folder that carries this BenchLab's mark; do nothing where there is none.

        Raises TargetProblem `not_ours` for a folder without the mark: it stays untouched.
        """
        self.below(path)
        answer = await host.run(["sh", "-c", _REMOVE, "remove", path, self.mark(path)])
        if answer.exit_status == 91:
            raise TargetProblem(
                f"{path} does not carry this BenchLab's mark and was left alone.",
                code="not_ours",
                remedy=_("Look at the folder on the server and remove it by hand if it is yours."),
            )
        if answer.exit_status != 0:
            raise self._refusal(answer.exit_status, answer.stderr.decode(errors="replace"))

    def _refusal(self, exit_status: int, found: str) -> TargetProblem:
        if "No space left" in found:
            return disk_full(self.path, found)
        if exit_status == 91:
            return TargetProblem(
                f"{self.path} belongs to another BenchLab ({found}).",
                code="base_dir_foreign",
                remedy=_("Give each BenchLab its own base directory on a server."),
            )
        if exit_status == 92:
            return TargetProblem(
                f"{self.path} holds files that BenchLab did not make: {found}",
                code="base_dir_foreign",
                remedy=_("Give an empty or new folder as base directory."),
            )
        if exit_status == 93:
            return TargetProblem(
                "The program setsid is missing on the server.",
                code="missing_program",
                remedy=_("Install util-linux on the server."),
            )
        return TargetProblem(
            f"Cannot write to {self.path}: {found}",
            code="base_dir_not_writable",
            remedy=_("Make the base directory writable for the user that BenchLab logs in as."),
        )
