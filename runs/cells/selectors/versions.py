"""Versions of PostgreSQL as text ("9.6.24", "16.14", "19beta1"): their major, order and filter."""

import re
from collections.abc import Iterable
from functools import lru_cache

from django.db.models import Q
from django.utils import timezone

from runs.models import Installation

TEXT = re.compile(
    r"(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:(devel|alpha|beta|rc)(\d{0,9}))?"
)
# Of series with two parts: the last of them, and when the first was developed.
OLD_SERIES = {6: (5, 1996), 7: (4, 1999), 8: (5, 2003), 9: (6, 2009)}
STAGES = {"devel": 0, "alpha": 1, "beta": 2, "rc": 3, None: 4}


PACKAGED = re.compile(
    r"\A(?:PostgreSQL )?(?P<version>[0-9][0-9a-z.]*)(?: [(,].*| on .*)", re.DOTALL
)


def extract_version(text: str) -> str:
    """Only the version, from the output of `SHOW server_version` or `SELECT version()`.

    18.3 from "18.3 (Ubuntu 18.3-1.pgdg22.04+1)"; any other text is returned unchanged.
    """
    package_match = PACKAGED.fullmatch(text.strip())
    return package_match["version"] if package_match else text.strip()


@lru_cache(maxsize=1024)
def major(version: str) -> str:
    """ "9.6" from 9.6.24, "16" from 16.14, "19" from 19beta1; empty if it is not a version."""
    match = TEXT.match(version)
    if match is None:
        return ""
    first_number, second = match.group(1), match.group(2)
    return (
        f"{first_number}.{second}"
        if int(first_number) < 10 and second
        else first_number
    )


@lru_cache(maxsize=1024)
def order(version: str) -> tuple[int, ...]:
    """A sort key: 9.6.24 before 10, 19beta1 before 19.0; other text comes first."""
    match = TEXT.match(version)
    if match is None:
        return ()
    first_number, second, third, stage, number = match.groups()
    return (
        int(first_number),
        STAGES[stage],
        int(second or 0),
        int(third or 0),
        int(number or 0),
    )


def matching(version: str) -> Q:
    """The condition that a cell's version is this one, or one of this major version."""
    condition = Q(version=version)
    for continued in (".", "devel", "alpha", "beta", "rc"):
        condition |= Q(version__startswith=version + continued)
    # All of them begin alike, which an index looks up; it does not look up alternatives.
    return Q(version__startswith=version) & condition


def first_year(version: str) -> int | None:
    """The year from which it could be measured, as a development version at first; None for none.

    A major version is developed from the summer of the year before the one that it is released in.
    """
    match = TEXT.match(version)
    if match is None:
        return None
    first_number, second = int(match.group(1)), int(match.group(2) or 0)
    if first_number >= 10:
        return 2006 + first_number
    last_minor, year = OLD_SERIES.get(first_number, (-1, 0))
    if second > last_minor:
        return None
    return 2009 + second if first_number == 9 else year


def is_released(version: str) -> bool:
    """Whether there is such a version, at least in development."""
    year = first_year(version)
    return year is not None and year <= timezone.now().year


def match_runs(version: str, *, path: str = "") -> Q:
    """The condition that a run (at `path`) measured this version, or one of this major version."""
    if version == major(version) and (
        int(version.partition(".")[0]) >= 10 or "." in version
    ):
        return Q(**{f"{path}cell_major": version})
    if version.isdigit():  # 9 is no major version, but the first part of seven
        return Q(
            **{f"{path}cell_major__in": [f"{version}.{minor}" for minor in range(7)]}
        )
    # With its major version, by which an index has the runs of a campaign.
    return Q(**{f"{path}cell_version": version, f"{path}cell_major": major(version)})


def number(version: str) -> int | None:
    """As in `server_version_num`: 90624 from "9.6.24", 160014 from "16.14"; None if no version."""
    match = TEXT.fullmatch(version)
    if match is None:
        return None
    first_number, second, third = (
        int(number_text or 0) for number_text in match.groups()[:3]
    )
    return first_number * 10000 + (
        second * 100 + third if first_number < 10 else second
    )


def one_a_major(installations: Iterable[Installation]) -> list[Installation]:
    """The last of each major version, in the order of versions."""
    last_of_major = {installation.major: installation for installation in installations}
    return sorted(
        last_of_major.values(), key=lambda installation: installation.version_num
    )
