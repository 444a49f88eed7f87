"""initdb options that a configuration may ask for.

Only those that change what a cluster is; its place, its owner and how to log in are
BenchLab's own. Which version knows which option: `runs.execution.postgres`.
"""

import re
from collections.abc import Iterable

from runs.postgresql_settings.together import WAL_SEGMENT_BYTES
from runs.wording import gettext_noop as _

_FLAGS = frozenset(
    {"--allow-group-access", "--data-checksums", "--no-data-checksums", "--no-locale", "-g", "-k"}
)
_WITH_VALUE = frozenset(
    {
        "--builtin-locale",
        "--encoding",
        "--icu-locale",
        "--icu-rules",
        "--lc-collate",
        "--lc-ctype",
        "--lc-messages",
        "--lc-monetary",
        "--lc-numeric",
        "--lc-time",
        "--locale",
        "--locale-provider",
        "--text-search-config",
        "--wal-segsize",
    }
)
OFFERED = (*sorted(_FLAGS), *(f"{name}=" for name in sorted(_WITH_VALUE)))
REFUSED = _("initdb option %(option)s cannot be given here; known are: %(known)s.")

_SEGMENT = re.compile(r"--wal-segsize=(\d{1,4})")


def refused(options: Iterable[str]) -> list[str]:
    """Those options that a configuration may not have."""
    return [option for option in options if not _is_allowed(option)]


def wal_segment_bytes(options: Iterable[str]) -> int:
    """The size of a WAL segment of clusters that are made with these options."""
    matches = (_SEGMENT.fullmatch(option) for option in options)
    sizes = [int(match[1]) * 1024 * 1024 for match in matches if match]
    return sizes[-1] if sizes else WAL_SEGMENT_BYTES


def _is_allowed(option: str) -> bool:
    name, equals, value = option.partition("=")
    if equals:
        return name in _WITH_VALUE and bool(value) and value.isprintable()
    return name in _FLAGS
