"""The version of PostgreSQL that an uploaded run has among its levels: one rule at every door."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from runs.cells.selectors import versions
from runs.shared.errors import Fault

# Without its server's version a run of it has no place (to 13 it does not print it).
PGBENCH = "pgbench"


def add_version(
    levels: Mapping[str, Any], version: str, *, tool: str, has_figures: bool
) -> tuple[Mapping[str, Any], list[Fault]]:
    """The levels with the version: runs of two versions are not repeats of each other.

    `version` is the one that was measured, empty if nobody knows; a level may say it instead. Of a
    fault the pointer is the field in which an upload says it.
    """
    level = levels.get("version")
    if not version and not level and tool == PGBENCH and has_figures:
        message = _(
            "The output does not say which PostgreSQL was measured (pgbench before 14 never "
            'does): add "postgresql": {"version": "13.12"}, or a level "version".'
        )
        return levels, [Fault("postgresql/version", "version_unknown", message)]
    faults = []
    word = level if isinstance(level, str) and versions.TEXT.fullmatch(level) else ""
    if word and not versions.is_released(word):
        message = _("There is no PostgreSQL %(version)s.") % {"version": level}
        faults.append(Fault("levels/version", "not_a_version", message))
    if not version:
        return levels, faults
    if level is None:
        return {"version": version, **levels}, faults
    if str(level) != version and not version.startswith(f"{level}."):
        message = _(
            "The version among the levels is %(level)s; PostgreSQL's is %(version)s."
        )
        names = {"level": level, "version": version}
        faults.append(Fault("levels/version", "version_differs", message % names))
    return levels, faults
