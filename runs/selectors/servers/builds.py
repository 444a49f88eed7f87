"""How an installation was built: what affects its speed, and what readers must be shown."""

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from runs.analysis import fact_readers
from runs.models import Campaign, Installation

USUAL_BLOCK_SIZE = 8192
_PROFILING = fact_readers.option("--enable-profiling", "--enable-coverage")


def facts(installation: Installation) -> dict[str, Any]:
    """The build for programs; None if the installation does not report it."""
    raw = vars(installation)
    return {
        "optimisation": fact_readers.optimisation(raw),
        "assertions": fact_readers.assertions(raw),
        "profiling": _PROFILING(raw),
        "block_size": installation.block_size,
        "cflags": installation.cflags,
        "configure_options": installation.configure_options,
        "vendor": installation.vendor,
    }


def told(installation: Installation) -> str:
    """In a few words: -O2; -O0, assertions; empty if nothing is known."""
    found = facts(installation)
    parts = [found["optimisation"]]
    parts += [_("assertions")] if found["assertions"] else []
    parts += [_("profiling")] if found["profiling"] else []
    if installation.block_size not in (None, USUAL_BLOCK_SIZE):
        parts.append(_("%(size)d kB blocks") % {"size": (installation.block_size or 0) // 1024})
    return ", ".join(filter(None, parts))


def is_slow(installation: Installation) -> bool:
    """Whether its figures say little about that PostgreSQL: assertions, or no optimisation."""
    found = facts(installation)
    return bool(found["assertions"]) or found["optimisation"] in {"-O0", "-Og"}


def of_campaign(campaign: Campaign) -> QuerySet[Installation]:
    """The installations that a campaign measures, the oldest version first. One query."""
    return Installation.objects.filter(cell__campaign=campaign).order_by("version_num").distinct()
