"""The releases that the lab can have, as `versions.toml` lists them."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchlab.lab.errors import LabError

LIST = Path(__file__).with_name("versions.toml")


@dataclass(frozen=True)
class Release:
    """One release: `version` as `postgres --version` prints it, and the folder of its binaries.

    `cflags` are for programs that do not say themselves what they were built with.
    """

    version: str
    path: str
    archive: str
    bytes: int
    sha256: str
    remark: str = ""
    cflags: str = ""

    @property
    def major(self) -> str:
        """9.6 of 9.6.24, 18 of 18.0."""
        numbers = self.version.split(".")
        return ".".join(numbers[:2]) if int(numbers[0]) < 10 else numbers[0]

    @property
    def file_name(self) -> str:
        """The name of the artifact's file."""
        return self.path.rpartition("/")[2]


def every(source: Path = LIST) -> tuple[Release, ...]:
    """All releases, from the oldest version to the newest."""
    rows: list[dict[str, Any]] = tomllib.loads(source.read_text())["release"]
    return tuple(Release(**row) for row in rows)


def choose(
    names: Sequence[str], releases: Sequence[Release] | None = None
) -> tuple[Release, ...]:
    """The releases of these versions ("9.6", "18", "14.19"); all of them for no name.

    Raises LabError for a version that the lab cannot have.
    """
    releases = every() if releases is None else releases
    for name in names:
        if not any(name in {release.major, release.version} for release in releases):
            majors = ", ".join(release.major for release in releases)
            raise LabError(
                f"there are no binaries of PostgreSQL {name} to be had; there are {majors}"
            )
    wanted_versions = set(names)
    return tuple(
        release
        for release in releases
        if not names or wanted_versions & {release.major, release.version}
    )
