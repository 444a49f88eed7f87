"""Changed defaults on which the meaning of a given setting depends: they are carried along.

A default that nobody relies on is only noted, and so is one that makes the server faster or slower
(hash_mem_multiplier): versions are compared with their own. Where a setting that is given was
written against the old default, a newer version would not start, or would do something else.
Source: the release notes of 9.3 to 18, and the check functions of each version.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from runs.postgresql_settings.catalogue import is_older, setting
from runs.postgresql_settings.effective import Effective
from runs.wording import gettext_noop as _


@dataclass(frozen=True)
class Carried:
    """From version `since` on, `name` gets a value where `because` is given.

    `value` has the settings in the words of the version before and of the target. It gives None
    where the new default does.
    """

    since: str
    because: str
    name: str
    value: Callable[[Effective, Effective], str | None]
    reason: str


def _no_senders(_older: Effective, newer: Effective) -> str | None:
    return "0" if newer.word("wal_level") == "minimal" else None


def _carry_minimum(of: str, limit: str) -> Callable[[Effective, Effective], str | None]:
    """The number of the given setting, where the target's default of the limit is lower."""

    def value(older: Effective, newer: Effective) -> str | None:
        default_and_limit, most = older.number(of), newer.number(limit)
        if default_and_limit is None or most is None or default_and_limit <= most:
            return None
        return str(int(default_and_limit))

    return value


def _no_newest_timeline(older: Effective, _newer: Effective) -> str | None:
    targets = ("", "_name", "_time", "_xid", "_lsn")
    is_asked = any(older.given.get(f"recovery_target{target}") for target in targets)
    return "current" if is_asked else None


def _same_pause(_older: Effective, _newer: Effective) -> str | None:
    return "20ms"


CARRIED = (
    Carried(
        "10",
        "wal_level",
        "max_wal_senders",
        _no_senders,
        _(
            "With wal_level = minimal a server starts without WAL senders only; the default was 0."
        ),
    ),
    Carried(
        "10",
        "max_worker_processes",
        "max_parallel_workers",
        _carry_minimum("max_worker_processes", "max_parallel_workers"),
        _("All of max_worker_processes could work in parallel; the new limit is 8."),
    ),
    Carried(
        "12",
        "recovery_target_time",
        "recovery_target_timeline",
        _no_newest_timeline,
        _(
            "Recovery followed the timeline of the backup; the default is now the newest."
        ),
    ),
    Carried(
        "12",
        "autovacuum_vacuum_cost_limit",
        "autovacuum_vacuum_cost_delay",
        _same_pause,
        _("The limit was given for pauses of 20 ms; the default is now 2 ms."),
    ),
    Carried(
        "18",
        "max_replication_slots",
        "max_active_replication_origins",
        _carry_minimum("max_replication_slots", "max_active_replication_origins"),
        _("max_replication_slots was the limit of replication origins, too."),
    ),
    Carried(
        "18",
        "autovacuum_max_workers",
        "autovacuum_worker_slots",
        _carry_minimum("autovacuum_max_workers", "autovacuum_worker_slots"),
        _("Workers need slots, which are now counted apart."),
    ),
)


def carried(
    written: Mapping[str, str], source: str, settings: Mapping[str, str], target: str
) -> Iterator[tuple[Carried, str]]:
    """What has to be set in the target besides `settings`, and its value."""
    if not is_older(source, target):
        return
    older, newer = Effective(written, source), Effective(settings, target)
    for rule in CARRIED:
        is_between = is_older(source, rule.since) and not is_older(target, rule.since)
        if not is_between or rule.name in newer or rule.because not in older:
            continue
        value = rule.value(older, newer)
        if value is not None and setting(rule.name, target) is not None:
            yield rule, value
