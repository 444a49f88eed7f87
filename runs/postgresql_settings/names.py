"""Whether a version has a setting with that name that users can set."""

import difflib
import functools
import re

from runs.postgresql_settings import history, unlisted
from runs.postgresql_settings.catalogue import (
    Setting,
    all_names,
    before,
    canonical,
    existence,
    names,
    setting,
)
from runs.postgresql_settings.findings import Finding, Severity
from runs.wording import gettext_noop as _

_WORD = r"[A-Za-z_\u0080-\uffff][\w$]*"
_EXTENSION = re.compile(rf"\A{_WORD}\.{_WORD}")
_NAME = re.compile(_WORD)
_SEED = re.compile(r"[+-]?(?:0?\.\d{1,20}|[01](?:\.0{0,20})?)")

_PRESET_REMEDY = _("Leave it out: it is read-only.")
# How to change a value that a server only shows.
_PRESET_REMEDIES = {
    "block_size": _("Choose an installation that was built with that block size."),
    "wal_block_size": _("Choose an installation that was built with that WAL block size."),
    "segment_size": _("Choose an installation that was built with that segment size."),
    "debug_assertions": _("Choose an installation that was built with assertions."),
    "data_checksums": _("Give --data-checksums (or --no-data-checksums) as an initdb option."),
    "wal_segment_size": _("Give --wal-segsize as an initdb option."),
    "lc_collate": _("Give --lc-collate as an initdb option."),
    "lc_ctype": _("Give --lc-ctype as an initdb option."),
    "server_encoding": _("Give --encoding as an initdb option."),
}


def is_name(name: str) -> bool:
    """Whether postgresql.conf can hold a setting of that name, in any version."""
    return _NAME.fullmatch(name) is not None or is_extension(name)


def is_extension(name: str) -> bool:
    """Whether the name is one that an extension defines: two words with a dot between."""
    return _EXTENSION.fullmatch(name) is not None


def known(name: str, major: str) -> Setting | None:
    """The setting that the version takes under that name, an old name included."""
    return setting(name, major) or setting(unlisted.alias(name, major) or "", major)


def problem(name: str, value: str, major: str) -> Finding | None:
    """What is wrong with the name in that version, or None. Raises UnknownVersion."""
    found = known(name, major)
    if unlisted.may_be_backported(name, major):
        return _minor_release(canonical(name), major)
    if found is not None:
        return _preset(found) if found.is_preset else _old_name(name, found)
    if unlisted.is_hollow(name, value, major):
        return _without_effect(name, major)
    if name.lower() == "seed" and _SEED.fullmatch(value):
        return None
    if _NAME.fullmatch(name) is None:
        return None if is_extension(name) else _no_name(name, major)
    return _missing(canonical(name), major)


def nearest(name: str, major: str) -> list[str]:
    """Up to three names of that version that look like the given one, the nearest first."""
    of_version = set(names(major))
    return [each for each in _alike(name.lower()) if each in of_version][:3]


@functools.lru_cache(maxsize=1024)
def _alike(name: str) -> tuple[str, ...]:
    """Names of any version. Kept, for a comparison with all of them takes milliseconds."""
    return tuple(difflib.get_close_matches(name, all_names(), n=12, cutoff=0.75))


def _missing(name: str, major: str) -> Finding:
    if name.lower() in unlisted.SESSION_ONLY:
        return _finding(
            "session_only", name, major, _("%(name)s belongs to a session, not to a configuration.")
        )
    has = existence(name)
    if name in history.RECOVERY_CONF and before(major, "12"):
        return _recovery_conf(name, major)
    if has and before(major, has[0]):
        return _later(name, major, has[0])
    if has or name in history.RECOVERY_CONF:
        return _removed(name, major)
    return _unknown(name, major)


def _minor_release(name: str, major: str) -> Finding:
    return _finding(
        "minor_release",
        name,
        major,
        _("%(name)s came to PostgreSQL %(major)s with a minor release; older ones refuse it."),
        severity="warning",
    )


def _later(name: str, major: str, since: str) -> Finding:
    return _finding(
        "not_yet",
        name,
        major,
        _("%(name)s exists from PostgreSQL %(since)s on, not in %(major)s."),
        _("In %(major)s use %(successor)s."),
        since=since,
    )


def _removed(name: str, major: str) -> Finding:
    has = existence(name)
    last = has[-1] if has else "11"
    remedy = _("Use %(successor)s.")
    return _finding(
        "removed",
        name,
        major,
        _("%(name)s was removed after PostgreSQL %(last)s."),
        remedy,
        history.REASONS.get(name, ""),
        last=last,
    )


def _recovery_conf(name: str, major: str) -> Finding:
    return _finding(
        "recovery_conf",
        name,
        major,
        _("Up to PostgreSQL 11, %(name)s belongs in recovery.conf, not in postgresql.conf."),
        _("Leave it out here; the standby's recovery.conf is written from the topology."),
    )


def _unknown(name: str, major: str) -> Finding:
    suggestions = nearest(name, major)
    return _finding(
        "unknown_setting",
        name,
        major,
        _("There is no setting %(name)s in PostgreSQL %(major)s."),
        _("Did you mean %(suggestions)s?") if suggestions else _("Look for a spelling mistake."),
        suggestions=", ".join(suggestions),
    )


def _no_name(name: str, major: str) -> Finding:
    return _finding(
        "invalid_name",
        name,
        major,
        _("“%(name)s” cannot be the name of a setting."),
        _("Names are letters, digits and underscores; an extension's have one dot within."),
    )


def _preset(found: Setting) -> Finding:
    return _finding(
        "preset",
        found.name,
        found.major,
        _(
            "%(name)s cannot be set: it shows how the server was built or how its cluster was "
            "created."
        ),
        _PRESET_REMEDIES.get(found.name, _PRESET_REMEDY),
    )


def _old_name(name: str, found: Setting) -> Finding | None:
    if name.lower() == found.name.lower():
        return None
    return _finding(
        "old_name",
        name,
        found.major,
        _("%(name)s is an old name of %(today)s."),
        _("Write %(today)s."),
        severity="warning",
        today=found.name,
    )


def _without_effect(name: str, major: str) -> Finding:
    return _finding(
        "without_effect",
        name,
        major,
        _("%(name)s was removed and has no effect in PostgreSQL %(major)s."),
        _("Leave it out."),
        severity="warning",
    )


def _finding(
    code: str,
    name: str,
    major: str,
    message: str,
    remedy: str = "",
    reason: str = "",
    *,
    severity: Severity = "error",
    **parameters: str,
) -> Finding:
    successors = [other for other in history.kin(name) if setting(other, major) is not None]
    if "%(successor)s" in remedy and not successors:
        remedy = reason
    given = {"name": name, "major": major, "successor": ", ".join(successors), **parameters}
    return Finding(severity, code, name, (major,), message, given, remedy)
