"""The folder that BenchLab writes to on a target, and the marks that make removal safe.

base_dir/.benchlab            this folder belongs to that BenchLab
base_dir/clusters/...         clusters, each with its own mark
base_dir/runs/RUN-ATTEMPT/    one folder per run: steps/, the Unix socket
base_dir/builds/COMMIT/       an installation that was built, if that is allowed (see `building`)
base_dir/leases/SERVER/       who has the server (see `fence`)
base_dir/commands/            the owner's programs, which are executed and never written
"""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runs.execution.errors import ServerFault, TargetProblem
from runs.execution.ssh.hosts import COMMAND_SECONDS, REMOVAL_SECONDS, Answer, Host, Run
from runs.execution.steps.fence import Fence, raise_if_behind
from runs.execution.steps.steps import FREE, Condition, disk_full
from runs.wording import gettext_noop as _

# A Unix socket's path has at most 107 bytes; this is what BenchLab itself adds to base_dir.
LONGEST_BASE_DIR = 70
_HERE = Path(__file__).parent


def _script(*names: str) -> str:
    """Of shell files here, the first of which has what they share."""
    return FREE + "".join(
        (_HERE / f"{name}.sh").read_text() for name in ("base_dir", *names)
    )


_CLAIM, _RELEASE = _script("claim"), _script("release")
_MARKED_FOLDER = _script("within", "marked_folder")
_REMOVE, _CHECK = _script("within", "remove_folder"), _script("within", "check")
# Once: $5 tells that it was done, and what has been made there since is kept.
_REPLACE = f"""
[ ! -e "$5" ] || exit 0
(
{_REMOVE}
) || exit
(
{_MARKED_FOLDER}
) || exit
true >"$5"
"""

# Another command, in the same round trip; it must not end with a status of the scripts above. If it
# is a script, this shell executes it.
_THEN = """(
{script}
) || exit $?
shift {words}
{then}
"""
_STATUSES = range(89, 99)
_OTHER_MOUNT = 89
_FREE = re.compile(rb"benchlab-free (\d+)")
# What a shell interprets even between double quotes, or would if a quote were forgotten; and the
# comma, with which PostgreSQL separates the folders of its sockets.
_NOT_ALLOWED = re.compile(r"""[\x00-\x1f\x7f"'`$\\,;&|<>(){}\[\]*?!#]""")


def is_plain_path(path: str) -> bool:
    """Whether a path is absolute, in its shortest form, and free of shell characters.

    PostgreSQL's own pg_ctl passes paths, between double quotes, to a shell.
    """
    is_shortest = (
        posixpath.isabs(path) and posixpath.normpath(path) == path and path != "/"
    )
    return (
        is_shortest and not path.startswith("//") and _NOT_ALLOWED.search(path) is None
    )


# By exit status of a script: code, message and remedy. They may name `path` and what was `found`.
_REFUSALS = {
    91: (
        "base_dir_foreign",
        _("%(path)s belongs to another BenchLab (%(found)s)."),
        _("Give each BenchLab its own base directory on a server."),
    ),
    92: (
        "base_dir_foreign",
        _("%(path)s holds files that BenchLab did not make: %(found)s"),
        _("Give an empty or new folder as base directory."),
    ),
    93: (
        "missing_program",
        _("The program setsid is missing on the server."),
        _("Install util-linux on the server."),
    ),
    94: (
        "login_is_root",
        _("BenchLab logs in as root, and PostgreSQL does not run as root."),
        _("Make an ordinary user for BenchLab on the server and log in as that."),
    ),
    96: (
        "leads_out",
        _("A symbolic link leads out of %(path)s: %(found)s"),
        _(
            "Nothing was written or stopped there. Remove the link; give the other disk's "
            "folder itself as base directory."
        ),
    ),
}
_NOT_WRITABLE = (
    "base_dir_not_writable",
    _("Cannot write to %(path)s: %(found)s"),
    _("Make the base directory writable for the user that BenchLab logs in as."),
)


@dataclass(frozen=True)
class BaseDir:
    """A base directory on a target, claimed by one BenchLab instance.

    `instance` is the random name of this BenchLab; two of them never share a folder.
    """

    path: str
    instance: str

    def join(self, *segments: str) -> str:
        """A path below the base directory. Raises ValueError if it would lead out."""
        path = posixpath.normpath(posixpath.join(self.path, *segments))
        if not path.startswith(self.path.rstrip("/") + "/"):
            raise ValueError(f"{path} is not below {self.path}")
        return path

    def mark(self, path: str) -> str:
        """The text that marks a folder as made by this BenchLab at exactly that place."""
        return f"benchlab {self.instance} {posixpath.relpath(path, self.path)}"

    async def claim(
        self, host: Host, mount: str = "", fence: Fence | None = None
    ) -> int:
        """Claim the folder for this BenchLab, or check that it has it; return its free bytes.

        `mount` is where its file system must be mounted (empty: anywhere). Then the fence is
        raised. Raises TargetProblem `base_dir_foreign` if others keep files in it,
        `other_file_system`, and LeaseLost.
        """
        words = (self.path, self.mark(self.path), mount)
        reply = await host.run(_command(_CLAIM, words, fence.raising if fence else ()))
        if fence and _FREE.search(reply.stdout):
            raise_if_behind(reply)
        if reply.exit_status != 0:
            output = (reply.stdout + reply.stderr).decode(errors="replace").strip()
            if reply.exit_status == _OTHER_MOUNT:
                raise self._other_file_system(mount, output)
            raise self._refusal(reply.exit_status, output)
        free = _FREE.search(reply.stdout)
        if free is None:
            raise self._refusal(90, reply.stdout.decode(errors="replace"))
        return int(free.group(1)) * 1024

    async def release(self, host: Host) -> None:
        """Give the folder back: remove our mark and our folders from it.

        Raises TargetProblem `base_dir_in_use` while something of ours is in use there.
        """
        reply = await host.run(
            ["sh", "-c", _RELEASE, "release", self.path, self.mark(self.path)]
        )
        output = (reply.stdout + reply.stderr).decode(errors="replace").strip()
        if reply.exit_status == 98:
            raise TargetProblem(
                _("%(path)s still has files of BenchLab: %(found)s"),
                code="base_dir_in_use",
                remedy=_(
                    "Wait for its campaigns to end or clean up the server, then try again."
                ),
                path=self.path,
                found=output,
            )
        if reply.exit_status != 0:
            raise self._refusal(reply.exit_status, output)

    async def make_folder(
        self, host: Host, path: str, *, then: Sequence[str] = ()
    ) -> None:
        """Make a marked folder, which `remove` will later accept; one of ours stays as it is.

        Then execute the command `then`, whatever its status. Raises TargetProblem `not_ours` for a
        folder where others keep files, and `leads_out`.
        """
        await self.run(host, _MARKED_FOLDER, path, then=then)

    async def remove(self, host: Host, path: str) -> None:
        """Remove a folder that carries this BenchLab's mark; do nothing if it does not exist.

        Raises TargetProblem `not_ours` for a folder without the mark, and `leads_out` for one that
        a link leads out of the base directory: both stay untouched. Links in the folder are
        removed, not their targets.
        """
        await self.run(host, _REMOVE, path, timeout_s=REMOVAL_SECONDS)

    async def replace(
        self, host: Host, path: str, *, noted: str, fence: Fence | None
    ) -> None:
        """Remove a folder and make it anew, unless the file `noted` is there, which tells of it.

        Raises what `remove` and `make_folder` raise, and LeaseLost.
        """
        await self.run(
            host, _REPLACE, path, more=(noted,), timeout_s=REMOVAL_SECONDS, fence=fence
        )

    async def check(self, host: Host, path: str) -> None:
        """Check before starting or ending something in a folder: it is ours, and no link leads out.

        A data directory that is a link belongs to somebody else: we must not stop its PostgreSQL. A
        folder that does not exist is fine. Raises TargetProblem `not_ours`, `leads_out`.
        """
        await self.run(host, _CHECK, path)

    def being_ours(self, path: str) -> Condition:
        """What `check` checks, for a step in the folder or about its server."""

        def refused(status: int, printed: bytes) -> TargetProblem:
            return self._refusal_at(
                path, status, printed.decode(errors="replace").strip()
            )

        return Condition(_CHECK, self._words(path), refused)

    def checked(self, host: Host, path: str) -> Run:
        """What runs commands there that first `check` the folder in the same round trip.

        They must not end with a status of the check's own (`_STATUSES`).
        """

        async def run(
            argv: Sequence[str], *, timeout_s: float | None = COMMAND_SECONDS
        ) -> Answer:
            return await self.run(host, _CHECK, path, timeout_s=timeout_s, then=argv)

        return run

    async def run(
        self,
        host: Host,
        script: str,
        path: str,
        *,
        timeout_s: float | None = COMMAND_SECONDS,
        more: Sequence[str] = (),
        then: Sequence[str] = (),
        fence: Fence | None = None,
    ) -> Answer:
        """Run one of the scripts above on a folder, and the command `then` if it allows that.

        `more` are further words of the script. Raises TargetProblem for a refusal, LeaseLost.
        """
        path = self.join(path)
        words: Sequence[str] = (*self._words(path), *more)
        if fence:
            script, words = fence.guard(script, words)
        reply = await host.run(_command(script, words, then), timeout_s=timeout_s)
        if fence:
            raise_if_behind(reply)
        if reply.exit_status in _STATUSES or (reply.exit_status != 0 and not then):
            output = (reply.stdout + reply.stderr).decode(errors="replace").strip()
            raise self._refusal_at(path, reply.exit_status, output)
        return reply

    def _words(self, path: str) -> tuple[str, str, str, str]:
        return path, self.mark(path), self.path, self.mark(self.path)

    def _other_file_system(self, expected: str, output: str) -> TargetProblem:
        fault = ServerFault(
            _(
                "%(path)s lies on the file system that is mounted at %(found)s; when the run "
                "was queued it was the one mounted at %(expected)s."
            ),
            code="other_file_system",
            remedy=_(
                "Mount the disk again and queue the run again; if the base directory has moved on "
                "purpose, inspect the server and queue the campaign again."
            ),
            path=self.path,
            found=output,
            expected=expected,
        )
        fault.mount = expected
        return fault

    def _refusal_at(self, path: str, exit_status: int, output: str) -> TargetProblem:
        if exit_status == 91:
            return TargetProblem(
                _(
                    "%(path)s does not carry this BenchLab's mark any more; %(folder)s was "
                    "left alone."
                ),
                code="not_ours",
                remedy=_(
                    "Inspect the server again; it then says who has the base directory now."
                ),
                path=self.path,
                folder=path,
            )
        if exit_status == 97:
            return TargetProblem(
                _("%(path)s does not carry this BenchLab's mark and was left alone."),
                code="not_ours",
                remedy=_(
                    "Look at the folder on the server and remove it by hand if it is yours."
                ),
                path=path,
            )
        return self._refusal(exit_status, output)

    def _refusal(self, exit_status: int, output: str) -> TargetProblem:
        if exit_status == 95:
            return disk_full(self.path, output)
        code, message, remedy = _REFUSALS.get(exit_status, _NOT_WRITABLE)
        return ServerFault(
            message, code=code, remedy=remedy, path=self.path, found=output
        )


def _command(script: str, words: Sequence[str], then: Sequence[str]) -> list[str]:
    if then:
        is_script = tuple(then[:2]) == ("sh", "-c")
        following, then = (then[2], then[4:]) if is_script else ('exec "$@"', then)
        script = _THEN.format(script=script, words=len(words), then=following)
    return ["sh", "-c", script, "base-dir", *words, *then]
