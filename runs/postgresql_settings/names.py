"""Whether a version has a setting with that name that users can set."""

import difflib
import functools
import re

from runs.postgresql_settings import unlisted, version_notes
from runs.postgresql_settings.catalogue import (
    Setting,
    all_names,
    canonical,
    existence,
    is_older,
    names,
    setting,
)
from runs.postgresql_settings.findings import About, Finding
from runs.postgresql_settings.translation_rules import KIN
from runs.wording import gettext_noop as _

_WORD = r"[A-Za-z_\u0080-\uffff][\w$]*"
_EXTENSION = re.compile(rf"\A{_WORD}\.{_WORD}")
_NAME = re.compile(_WORD)
_SEED = re.compile(r"[+-]?(?:0?\.\d{1,20}|[01](?:\.0{0,20})?)")

_PRESET_REMEDY = _("Leave it out: it is read-only.")
# How to change a value that a server only shows.
_PRESET_REMEDIES = {
    "block_size": _("Choose an installation that was built with that block size."),
    "wal_block_size": _(
        "Choose an installation that was built with that WAL block size."
    ),
    "segment_size": _("Choose an installation that was built with that segment size."),
    "debug_assertions": _("Choose an installation that was built with assertions."),
    "data_checksums": _(
        "Give --data-checksums (or --no-data-checksums) as an initdb option."
    ),
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
    catalogued, say = known(name, major), About(name, major)
    if unlisted.may_be_backported(name, major):
        return About(canonical(name), major).warning(
            "minor_release",
            _(
                "%(name)s came to PostgreSQL %(major)s with a minor release; older ones refuse it."
            ),
        )
    if catalogued is not None:
        return (
            _preset(catalogued) if catalogued.is_preset else _old_name(name, catalogued)
        )
    if unlisted.is_hollow(name, value, major):
        return say.warning(
            "without_effect",
            _("%(name)s was removed and has no effect in PostgreSQL %(major)s."),
            _("Leave it out."),
        )
    if (name.lower() == "seed" and _SEED.fullmatch(value)) or is_extension(name):
        return None
    if _NAME.fullmatch(name) is None:
        return say.error(
            "invalid_name",
            _("“%(name)s” cannot be the name of a setting."),
            _(
                "Names are letters, digits and underscores; an extension's have one dot within."
            ),
        )
    return _missing(canonical(name), major)


def nearest(name: str, major: str) -> list[str]:
    """Up to three names of that version that look like the given one, the nearest first."""
    of_version = set(names(major))
    return [
        similar_name
        for similar_name in _alike(name.lower())
        if similar_name in of_version
    ][:3]


@functools.lru_cache(maxsize=1024)
def _alike(name: str) -> tuple[str, ...]:
    """Names of any version. Kept, for a comparison with all of them takes milliseconds."""
    return tuple(difflib.get_close_matches(name, all_names(), n=12, cutoff=0.75))


def _missing(name: str, major: str) -> Finding:
    say, has = About(name, major), existence(name)
    if name.lower() in unlisted.SESSION_ONLY:
        message = _("%(name)s belongs to a session, not to a configuration.")
        return say.error("session_only", message)
    if name in version_notes.RECOVERY_CONF and is_older(major, "12"):
        return say.error(
            "recovery_conf",
            _(
                "Up to PostgreSQL 11, %(name)s belongs in recovery.conf, not in postgresql.conf."
            ),
            _(
                "Leave it out here; the standby's recovery.conf is written from the topology."
            ),
        )
    successor = ", ".join(
        related_name
        for pair in KIN
        for related_name in pair
        if name.lower() in pair
        and related_name != name.lower()
        and setting(related_name, major) is not None
    )
    if has and is_older(major, has[0]):
        message = _("%(name)s exists from PostgreSQL %(since)s on, not in %(major)s.")
        remedy = _("In %(major)s use %(successor)s.") if successor else ""
        return say.error("not_yet", message, remedy, successor=successor, since=has[0])
    if has or name in version_notes.RECOVERY_CONF:
        message = _("%(name)s was removed after PostgreSQL %(last)s.")
        remedy = (
            _("Use %(successor)s.")
            if successor
            else version_notes.REASONS.get(name, "")
        )
        last_major = has[-1] if has else "11"
        return say.error(
            "removed", message, remedy, successor=successor, last=last_major
        )
    suggestions = ", ".join(nearest(name, major))
    return say.error(
        "unknown_setting",
        _("There is no setting %(name)s in PostgreSQL %(major)s."),
        _("Did you mean %(suggestions)s?")
        if suggestions
        else _("Look for a spelling mistake."),
        suggestions=suggestions,
    )


def _preset(catalogued: Setting) -> Finding:
    return About(catalogued.name, catalogued.major).error(
        "preset",
        _(
            "%(name)s cannot be set: it shows how the server was built or how its cluster was "
            "created."
        ),
        _PRESET_REMEDIES.get(catalogued.name, _PRESET_REMEDY),
    )


def _old_name(name: str, catalogued: Setting) -> Finding | None:
    if name.lower() == catalogued.name.lower():
        return None
    return About(name, catalogued.major).warning(
        "old_name",
        _("%(name)s is an old name of %(today)s."),
        _("Write %(today)s."),
        today=catalogued.name,
    )
