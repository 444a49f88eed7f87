"""The version of PostgreSQL that an uploaded run has among its levels: one rule at every door."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from runs.selectors.archive import versions

# Without its server's version a run of it has no place (to 13 it does not print it).
PGBENCH = "pgbench"


class VersionFault(NamedTuple):
    """Why a run cannot be placed; `field` is where an upload says it."""

    field: str
    code: str
    message: str


def with_version(
    levels: Mapping[str, Any], version: str, *, tool: str, has_figures: bool
) -> tuple[Mapping[str, Any], list[VersionFault]]:
    """The levels with the version: runs of two versions are not repeats of each other.

    `version` is the one that was measured, empty if nobody knows; a level may say it instead.
    """
    level = levels.get("version")
    if not version and not level and tool == PGBENCH and has_figures:
        message = _(
            "The output does not say which PostgreSQL was measured (pgbench before 14 never "
            'does): add "postgresql": {"version": "13.12"}, or a level "version".'
        )
        return levels, [VersionFault("postgresql/version", "version_unknown", message)]
    faults = []
    word = level if isinstance(level, str) and versions.TEXT.fullmatch(level) else ""
    if word and not versions.is_released(word):
        message = _("There is no PostgreSQL %(version)s.") % {"version": level}
        faults.append(VersionFault("levels/version", "not_a_version", message))
    if not version:
        return levels, faults
    if level is None:
        return {"version": version, **levels}, faults
    if str(level) != version and not version.startswith(f"{level}."):
        message = _("The version among the levels is %(level)s; PostgreSQL's is %(version)s.")
        names = {"level": level, "version": version}
        faults.append(VersionFault("levels/version", "version_differs", message % names))
    return levels, faults
