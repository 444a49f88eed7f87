"""initdb's options across versions: the same wish, in the form that each version understands.

Source: the initdb page of each version's manual.
"""

from collections.abc import Sequence

CHECKSUMS_SINCE = 90300
# From 18 on initdb enables checksums by default.
CHECKSUMS_BY_DEFAULT_SINCE = 180000
NO_SYNC_SINCE = 90300

CHECKSUMS = frozenset(("--data-checksums", "-k"))
NO_CHECKSUMS = "--no-data-checksums"

SINCE = {
    **dict.fromkeys(CHECKSUMS, CHECKSUMS_SINCE),
    "--wal-segsize": 110000,
    "--allow-group-access": 110000,
    "--locale-provider": 150000,
    "--icu-locale": 150000,
    "--icu-rules": 160000,
    "--builtin-locale": 170000,
    "--sync-method": 170000,
}


def options_for(version_num: int, options: Sequence[str]) -> tuple[str, ...]:
    """The options for that version, so that the same wish gives equal clusters.

    Without a wish for checksums there are none, even if initdb would enable them by default.
    Raises ValueError, with the reason, for an option that a later version introduced.
    """
    for option in options:
        _require_known(version_num, option.partition("=")[0])
    other_options = tuple(
        option
        for option in options
        if option not in CHECKSUMS and option != NO_CHECKSUMS
    )
    nosync = ("-N",) if version_num >= NO_SYNC_SINCE else ()
    return (*nosync, *other_options, *_checksums(version_num, options))


def about_checksums(options: Sequence[str]) -> bool:
    """Whether options decide on page checksums, on or off."""
    return not {*CHECKSUMS, NO_CHECKSUMS}.isdisjoint(options)


def makes_checksums(version_num: int, options: Sequence[str]) -> bool:
    """Whether a cluster made with these wishes has page checksums."""
    return "--data-checksums" in options_for(version_num, options)


def _checksums(version_num: int, options: Sequence[str]) -> tuple[str, ...]:
    if CHECKSUMS & set(options):
        return ("--data-checksums",)
    return (NO_CHECKSUMS,) if version_num >= CHECKSUMS_BY_DEFAULT_SINCE else ()


def _require_known(version_num: int, option: str) -> None:
    since = SINCE.get(option, 0)
    if version_num < since:
        text = (
            f"{since // 10000}"
            if since >= 100000
            else f"{since // 10000}.{since // 100 % 100}"
        )
        raise ValueError(f"initdb knows {option} from PostgreSQL {text} on.")
