"""Builds: what distinguishes installations of one version, as levels of a campaign's cells."""

import shlex
from collections.abc import Iterable, Sequence

from runs.grouping import by_key
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
    found: dict[int, dict[str, Level]] = {each.pk: {} for each in installations}
    groups = by_key(((each.server_id, each.version), each) for each in installations).values()
    if any(len({each.block_size for each in group}) > 1 for group in groups):
        for each in installations:
            if each.block_size:
                found[each.pk][BLOCK_SIZE] = each.block_size // 1024
    for group in groups:
        for size in dict.fromkeys(each.block_size for each in group):
            alike = [each for each in group if each.block_size == size]
            for pk, level in _told_apart(alike).items():
                found[pk] |= level
    return found


def _told_apart(alike: Sequence[Installation]) -> dict[int, dict[str, Level]]:
    if len(alike) < 2:
        return {}
    flags = {each.pk: _flags(each) for each in alike}
    common = set.intersection(*(set(own) for own in flags.values()))
    own = {
        pk: " ".join(each for each in every if each not in common) for pk, every in flags.items()
    }
    is_told = len(set(own.values())) == len(alike) and max(map(len, own.values())) <= LONGEST
    if is_told:
        return {pk: {BUILD: text or STANDARD} for pk, text in own.items()}
    return {each.pk: {BINDIR: each.bindir} for each in alike}


def _flags(installation: Installation) -> list[str]:
    text = f"{installation.configure_options} {installation.cflags}"
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return list(dict.fromkeys(word for word in words if not word.startswith(_PLACES)))
