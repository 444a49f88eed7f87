"""Which release this process is: its version and its newest migration.

It is written so that the order of texts is that of releases: `0000.0003.0000+0094`.
"""

import re
from functools import cache
from pathlib import Path

from django.conf import settings

MIGRATIONS = Path(__file__).parents[1] / "runs" / "migrations"
_NUMBERED = re.compile(r"(\d{4})_\w+")
_WRITTEN = re.compile(r"(\d{4})\.(\d{4})\.(\d{4})\+(\d{4})")


@cache
def own_release() -> str:
    """This process' release."""
    numbers = [int(number) for number in re.findall(r"\d{1,4}", settings.VERSION)[:3]]
    numbers += [0] * (3 - len(numbers))
    newest = max(
        int(match[1])
        for path in MIGRATIONS.glob("*.py")
        if (match := _NUMBERED.fullmatch(path.stem))
    )
    return ".".join(f"{number:04}" for number in numbers) + f"+{newest:04}"


def release_in_words(release: str) -> str:
    """`0.3.0 (0094)`; what is no release as it is."""
    match = _WRITTEN.fullmatch(release)
    if match is None:
        return release
    version = ".".join(str(int(number)) for number in match.groups()[:3])
    return f"{version} ({match[4]})"
