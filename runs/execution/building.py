"""Builds a commit of PostgreSQL on a target, as a durable step that outlives connection and worker.

Each commit has a marked folder below the base directory: builds/COMMIT/, with the installation in
its `pg`. To build is to execute the code of the commit: see docs/security.md.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runs.control_characters import neutralised
from runs.execution.errors import TargetProblem, TargetRestarted
from runs.execution.ssh.hosts import Host
from runs.execution.steps.base_dir import BaseDir
from runs.execution.steps.steps import perform, stop_all
from runs.wording import gettext_noop as _

FOLDER, STEP = "builds", "build"
MOST_SECONDS = 3600
# A build of PostgreSQL with its contrib modules takes 1 GB at most.
NEEDED_BYTES, LEAST_LEFT_BYTES = 3 * 2**30, 2**30
# It is looked at again and again, never for long.
PATIENCE_SECONDS = 10.0
DIGITS = 12
_SCRIPT = (Path(__file__).parent / "build.sh").read_text()
_ENDED = re.compile(r"^benchlab-build ([a-z_]+)\s*\Z", re.MULTILINE)


@dataclass(frozen=True)
class Ended:
    """How a build has ended: `done`, or a code and the end of what it printed."""

    code: str
    log: str = ""

    @property
    def is_done(self) -> bool:
        """Whether there is an installation now."""
        return self.code == "done"


def folder_of(base: BaseDir, commit: str) -> str:
    """The marked folder of a commit's build."""
    return base.join(FOLDER, commit[:DIGITS])


def bindir_of(base: BaseDir, commit: str) -> str:
    """Where the programs of a commit will be."""
    return f"{folder_of(base, commit)}/pg/bin"


async def carry_on(
    host: Host, base: BaseDir, clone: str, commit: str, options: Sequence[str]
) -> Ended | None:
    """Begin a build or look at it for some seconds; None while it goes on.

    Raises TargetProblem `disk_too_small` where the disk has too little room; a build that goes on
    has been ended and removed then.
    """
    folder = folder_of(base, commit)
    free = await base.claim(host)
    has_begun = await _has_begun(host, folder)
    if free < (LEAST_LEFT_BYTES if has_begun else NEEDED_BYTES):
        await remove(host, base, commit)
        raise TargetProblem(
            _(
                "%(free)s GB are free below %(path)s: a build needs %(needed)s GB, and leaves "
                "%(left)s GB."
            ),
            code="disk_too_small",
            remedy=_("Free space on the server, or use another base directory."),
            free=f"{free / 2**30:.1f}",
            path=base.path,
            needed=f"{NEEDED_BYTES / 2**30:.0f}",
            left=f"{LEAST_LEFT_BYTES / 2**30:.0f}",
        )
    if not has_begun:
        await base.make_folder(host, base.join(FOLDER))
        await base.make_folder(host, folder)
    words = (clone, commit, folder, str(MOST_SECONDS), str(NEEDED_BYTES), *options)
    argv = ("sh", "-c", _SCRIPT, "build", *words)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            result = await perform(host, folder, STEP, argv)
    except TimeoutError:
        return None
    except TargetRestarted:
        return Ended("build_interrupted")
    output = neutralised(result.stdout)
    end_match = _ENDED.search(output)
    if end_match is None:
        return Ended("build_failed", (output + neutralised(result.stderr))[-8000:])
    return Ended(end_match[1], output[: end_match.start()].strip())


async def stop(host: Host, base: BaseDir, commit: str) -> None:
    """End a build if it goes on. One that is not there is fine. Raises TargetProblem."""
    folder = folder_of(base, commit)
    if await _has_begun(host, folder):
        await base.check(host, folder)
        await stop_all(host, folder)


async def remove(host: Host, base: BaseDir, commit: str) -> None:
    """End a build if it goes on, and remove all of it. One that is not there is fine."""
    await stop(host, base, commit)
    await base.remove(host, folder_of(base, commit))


async def _has_begun(host: Host, folder: str) -> bool:
    test_answer = await host.run(["test", "-d", f"{folder}/{STEP}"])
    return test_answer.exit_status == 0
