"""Builds: what distinguishes installations of one version, as levels of a campaign's cells."""

import shlex
from collections.abc import Iterable, Sequence

from runs.grouping import group_by_key
from runs.models import Installation
from runs.scenarios.definition import Level

BLOCK_SIZE, BUILD, BINDIR = "block_size", "build", "bindir"
# The build without any extra flag.
STANDARD = "standard"
LONGEST = 60
# The install paths, which always differ between builds, and flags that are handled separately.
_PLACES = (
    "--prefix=",
    "--exec-prefix=",
    "--bindir=",
    "--libdir=",
    "--libexecdir=",
    "--mandir=",
    "--docdir=",
    "--sysconfdir=",
    "--datarootdir=",
    "--datadir=",
    "--localedir=",
    "--includedir=",
    "--htmldir=",
    "CFLAGS=",
)


def levels(installations: Iterable[Installation]) -> dict[int, dict[str, Level]]:
    """The levels of each installation, by its key; none if its version is alone on its server.

    The block size comes first (in kB, as a level for all), then the flags that not all builds of
    the version have, and last the folder.
    """
    installations = list(installations)
    levels_of: dict[int, dict[str, Level]] = {
        installation.pk: {} for installation in installations
    }
    groups = group_by_key(
        ((installation.server_id, installation.version), installation)
        for installation in installations
    ).values()
    if any(
        len({installation.block_size for installation in group}) > 1 for group in groups
    ):
        for installation in installations:
            if installation.block_size:
                levels_of[installation.pk][BLOCK_SIZE] = installation.block_size // 1024
    for group in groups:
        for size in dict.fromkeys(installation.block_size for installation in group):
            of_same_size = [
                installation
                for installation in group
                if installation.block_size == size
            ]
            for pk, level in _told_apart(of_same_size).items():
                levels_of[pk] |= level
    return levels_of


def _told_apart(
    installations_alike: Sequence[Installation],
) -> dict[int, dict[str, Level]]:
    if len(installations_alike) < 2:
        return {}
    flags = {
        installation.pk: _flags(installation) for installation in installations_alike
    }
    common = set.intersection(*(set(flag) for flag in flags.values()))
    own_flags = {
        pk: " ".join(word for word in every if word not in common)
        for pk, every in flags.items()
    }
    is_told = (
        len(set(own_flags.values())) == len(installations_alike)
        and max(map(len, own_flags.values())) <= LONGEST
    )
    if is_told:
        return {pk: {BUILD: text or STANDARD} for pk, text in own_flags.items()}
    return {
        installation.pk: {BINDIR: installation.bindir}
        for installation in installations_alike
    }


def _flags(installation: Installation) -> list[str]:
    text = f"{installation.configure_options} {installation.cflags}"
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return list(dict.fromkeys(word for word in words if not word.startswith(_PLACES)))
