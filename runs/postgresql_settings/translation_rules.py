"""What a new version did to settings, as rules that carry them over in both directions.

A rule belongs to the first version with the new form. A setting without a rule keeps its name, or
is lost if the other version does not know it; `tests/unit/postgresql_settings` walks all versions.

Formulas that carry a value from one version's setting to another's. WAL segments are 16 MB
unless the cluster was made with others.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from runs.postgresql_settings import units, unlisted, values
from runs.postgresql_settings.catalogue import Setting, setting
from runs.wording import gettext_noop as _

_PRIORITY = re.compile(
    r"\A\s*(?:(?P<method>first|any)\s+)?(?P<count>\d+)\s*\((?P<names>[^()]*)\)\s*",
    re.IGNORECASE,
)


def prefetch_distance(concurrency: int) -> int:
    """effective_io_concurrency of 13 for that of 12: the sum of n/i for i to n, rounded.

    Source: release notes of 13. To 12 the number was of disks, from which the server made this
    distance itself.
    """
    return round(sum(concurrency / divisor for divisor in range(1, concurrency + 1)))


def disks(distance: int) -> int:
    """The smallest effective_io_concurrency of 12 that prefetches at least so far; at most 1000."""
    return next((n for n in range(1001) if prefetch_distance(n) >= distance), 1000)


def format_size(size_bytes: int, major: str) -> str:
    """An amount of memory in the largest unit that the version reads: `4800MB`, `160GB`."""
    return units.spelled(size_bytes // units.BYTES["MB"], "MB", major)


def standby_names_before_10(value: str) -> str | None:
    """`FIRST n (...)` as 9.6 writes it; None for ANY, which counts any standbys."""
    match = _PRIORITY.fullmatch(value)
    if match is None or match["method"] is None:
        return value
    return (
        f"{match['count']} ({match['names']})"
        if match["method"].lower() == "first"
        else None
    )


def standby_names_before_9_6(value: str) -> str | None:
    """A plain list: the first connected one is synchronous; None for more than one."""
    match = _PRIORITY.fullmatch(value)
    if match is None:
        return value
    return match["names"].strip() if match["count"] == "1" else None


def log_destination_before_15(value: str) -> str | None:
    """Without jsonlog, which csvlog comes nearest to."""
    words = [word.strip() for word in value.split(",")]
    return ",".join(
        dict.fromkeys("csvlog" if w.lower() == "jsonlog" else w for w in words)
    )


def log_connections_before_18(value: str) -> str | None:
    """On where any stage of a connection was logged."""
    return "off" if value.strip().lower() in {"", *unlisted.OFF} else "on"


def log_min_messages_before_19(value: str) -> str | None:
    """The level for all processes; levels of single processes (`autovacuum:debug1`) go."""
    plain = [word.strip() for word in value.split(",") if ":" not in word]
    return plain[0] if plain else None


def first_of_list(value: str, separator: str) -> str:
    """The first item of a list."""
    return value.partition(separator)[0].strip().strip('"')


@dataclass(frozen=True)
class Context:
    """A step from one version to the next or the one before."""

    source: str
    target: str
    segment_bytes: int

    def bytes(self, name: str, value: str) -> int:
        """An amount of memory in the source version. Raises BadValue."""
        return values.convert_to_bytes(value, self._setting(name)) or 0

    def number(self, name: str, value: str) -> int:
        """A whole number in the source version. Raises BadValue."""
        return int(values.parse(value, self._setting(name)))

    def switch(self, name: str, value: str) -> str:
        """`on` or `off` of a switch's other words, where the other version has no switch."""
        source_setting, target_setting = self._setting(name), setting(name, self.target)
        if source_setting.kind != "bool" or (
            target_setting is not None and target_setting.kind == "bool"
        ):
            return value
        try:
            return values.spelled(values.parse(value, source_setting), source_setting)
        except values.BadValue:
            return value

    def _setting(self, name: str) -> Setting:
        source_setting = setting(name, self.source)
        if source_setting is None:
            raise KeyError(name)
        return source_setting


# What a value becomes, or None where nothing does its work.
Carry = Callable[[str, Context], str | None]


def _keep_value(value: str, _context: Context) -> str:
    return value


@dataclass(frozen=True)
class Rule:
    """How a setting changes when version `at` is reached from below, and back from above.

    `reason` is reported with a changed value, `lost` if nothing can be carried over. `also` are
    further settings of the newer version, made of the older one as well.
    """

    at: str
    older: str
    newer: str
    reason: str
    forward: Carry = _keep_value
    backward: Carry = _keep_value
    lost: str = ""
    also: Mapping[str, Carry] = field(default_factory=dict)


def _renamed(major: str, older: str, newer: str) -> Rule:
    return Rule(major, older, newer, _("Another name of the same setting."))


def _narrowed(
    major: str,
    name: str,
    backward: Callable[[str], str | None],
    reason: str,
    lost: str = "",
) -> Rule:
    """The new version takes more than the old one; only a switch has beginnings of words."""
    return Rule(
        major,
        name,
        name,
        reason,
        lambda value, context: context.switch(name, value),
        lambda value, _context: backward(value),
        lost,
    )


def _one_word(words: Mapping[str, str]) -> Callable[..., str]:
    return lambda value, _context=None: words.get(value.lower(), value)


def _most_wal(value: str, context: Context) -> str:
    # The formula in the release notes of 9.5.
    size = 3 * context.number("checkpoint_segments", value) * context.segment_bytes
    return format_size(size, context.target)


def _least_wal(value: str, context: Context) -> str:
    # (2 x checkpoint_segments + 1) x segment: the files that 9.4 keeps for reuse.
    size = (
        2 * context.number("checkpoint_segments", value) + 1
    ) * context.segment_bytes
    return format_size(size, context.target)


def _size_to_segments(value: str, context: Context) -> str:
    count = round(context.bytes("max_wal_size", value) / (3 * context.segment_bytes))
    return str(max(1, count))


def _kept_size(value: str, context: Context) -> str:
    size = context.number("wal_keep_segments", value) * context.segment_bytes
    return format_size(size, context.target)


def _kept_segments(value: str, context: Context) -> str:
    return str(math.ceil(context.bytes("wal_keep_size", value) / context.segment_bytes))


def _distance(value: str, context: Context) -> str:
    return str(
        min(prefetch_distance(context.number("effective_io_concurrency", value)), 1000)
    )


def _disks(value: str, context: Context) -> str:
    return str(disks(context.number("effective_io_concurrency", value)))


def _unless_off(value: str, context: Context) -> str | None:
    return (
        None if context.switch("password_encryption", value).lower() == "off" else "md5"
    )


RULES: tuple[Rule, ...] = (
    _renamed("9.3", "replication_timeout", "wal_sender_timeout"),
    Rule(
        "9.3",
        "unix_socket_directory",
        "unix_socket_directories",
        _("9.2 has one directory of sockets, later versions have a list."),
        backward=lambda value, _context: first_of_list(value, ","),
    ),
    _narrowed(
        "9.4",
        "wal_level",
        _one_word({"logical": "hot_standby"}),
        _("Logical decoding came with 9.4; hot_standby is the highest level before."),
    ),
    Rule(
        "9.5",
        "checkpoint_segments",
        "max_wal_size",
        _(
            "max_wal_size = 3 x checkpoint_segments x 16MB, and min_wal_size ="
            " (2 x checkpoint_segments + 1) x 16MB, which 9.4 keeps for reuse."
        ),
        _most_wal,
        _size_to_segments,
        also={"min_wal_size": _least_wal},
    ),
    _narrowed(
        "9.5",
        "archive_mode",
        _one_word({"always": "on"}),
        _("Archiving on standbys (always) came with 9.5."),
    ),
    Rule(
        "9.5",
        "pause_at_recovery_target",
        "recovery_target_action",
        _("recovery_target_action took the place of pause_at_recovery_target in 9.5."),
        lambda value, _context: "pause" if value.lower() in unlisted.ON else "promote",
        lambda value, _context: {"pause": "on", "promote": "off"}.get(value.lower()),
        _("Shutting down at the recovery target came with 9.5."),
    ),
    Rule(
        "9.6",
        "wal_level",
        "wal_level",
        _("archive and hot_standby became one level, replica, in 9.6."),
        _one_word({"archive": "replica", "hot_standby": "replica"}),
        _one_word({"replica": "hot_standby"}),
    ),
    _narrowed(
        "9.6",
        "synchronous_commit",
        _one_word({"remote_apply": "on"}),
        _(
            "Waiting for replay (remote_apply) came with 9.6; on waits for the standby's disk."
        ),
    ),
    _narrowed(
        "9.6",
        "synchronous_standby_names",
        standby_names_before_9_6,
        _("Before 9.6, the first connected standby of a plain list is synchronous."),
        _("More than one synchronous standby came with 9.6."),
    ),
    _renamed("10", "min_parallel_relation_size", "min_parallel_table_scan_size"),
    _narrowed(
        "10",
        "synchronous_standby_names",
        standby_names_before_10,
        _("9.6 writes the number of synchronous standbys without FIRST."),
        _("Counting any standbys (ANY) came with 10."),
    ),
    Rule(
        "10",
        "password_encryption",
        "password_encryption",
        _("To 9.6 passwords are hashed by MD5 or not at all; 10 chooses the method."),
        _unless_off,
        lambda _value, _context: "on",
        _("Since 10, passwords are never stored in clear text."),
    ),
    _renamed("12", "trigger_file", "promote_trigger_file"),
    Rule(
        "13",
        "wal_keep_segments",
        "wal_keep_size",
        _("wal_keep_size = wal_keep_segments x 16MB."),
        _kept_size,
        _kept_segments,
    ),
    Rule(
        "13",
        "effective_io_concurrency",
        "effective_io_concurrency",
        _(
            "To 12 it counts disks; from 13 on it is the distance: the sum of n/i for i = 1 to n."
        ),
        _distance,
        _disks,
    ),
    Rule(
        "14",
        "password_encryption",
        "password_encryption",
        _("Since 14, on no longer means md5."),
        _one_word(dict.fromkeys(unlisted.ON, "md5")),
    ),
    _narrowed(
        "15",
        "wal_compression",
        _one_word({"pglz": "on", "lz4": "on", "zstd": "on"}),
        _("Before 15, WAL is compressed by pglz or not at all."),
    ),
    _narrowed(
        "15",
        "log_destination",
        log_destination_before_15,
        _("Logs in JSON came with 15; csvlog is the nearest."),
    ),
    _renamed("16", "force_parallel_mode", "debug_parallel_query"),
    _narrowed(
        "18",
        "log_connections",
        log_connections_before_18,
        _("Before 18, log_connections is only on or off."),
    ),
    Rule(
        "18",
        "ssl_ecdh_curve",
        "ssl_groups",
        _("Before 18, there is one curve; from 18 on a list of groups."),
        backward=lambda value, _context: first_of_list(value, ":"),
    ),
    Rule(
        "19",
        "io_workers",
        "io_max_workers",
        _("19 starts I/O workers as needed between two bounds; 18 has a fixed number."),
        also={"io_min_workers": _keep_value},
    ),
    _narrowed(
        "19",
        "log_min_messages",
        log_min_messages_before_19,
        _("Before 19, there is one level for all processes."),
        _("Before 19, there is one level for all processes."),
    ),
)
# The names under which versions know what is one setting to a user, the older one first.
KIN = tuple((rule.older, rule.newer) for rule in RULES if rule.older != rule.newer)
