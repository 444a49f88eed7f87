"""Builds: how an installation was made, and which installations were made alike."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from runs.analysis import fact_readers
from runs.grouping import by_key
from runs.models import Campaign, Installation
from runs.models.observations import Releases

USUAL_BLOCK_SIZE = 8192


def facts(installation: Installation) -> dict[str, Any]:
    """The build for programs; None or empty if the installation does not report it."""
    return {
        "optimisation": fact_readers.optimisation(installation.cflags),
        "assertions": fact_readers.assertions(installation.configure_options),
        "profiling": fact_readers.profiling(installation.configure_options),
        "block_size": installation.block_size,
        "cflags": installation.cflags,
        "compiler": installation.compiler,
        "configure_options": installation.configure_options,
        "vendor": installation.vendor,
    }


def words(installation: Installation) -> str:
    """In a few words: -O2, gcc 14.2; -O0, assertions; empty if nothing is known."""
    found = facts(installation)
    parts = [found["optimisation"], fact_readers.compiler(installation.compiler)]
    parts += [_("assertions")] if found["assertions"] else []
    parts += [_("profiling")] if found["profiling"] else []
    if installation.block_size not in (None, USUAL_BLOCK_SIZE):
        parts.append(_("%(size)d kB blocks") % {"size": (installation.block_size or 0) // 1024})
    return ", ".join(filter(None, parts))


def is_slow(installation: Installation) -> bool:
    """Whether its figures say little about that PostgreSQL: assertions, or no optimisation."""
    found = facts(installation)
    return bool(found["assertions"]) or found["optimisation"] in fact_readers.UNOPTIMISED


def of_campaign(campaign: Campaign) -> QuerySet[Installation]:
    """The installations that a campaign measures, the oldest version first. One query."""
    return Installation.objects.filter(cell__campaign=campaign).order_by("version_num").distinct()


def chosen(present: Iterable[Installation], releases: str = Releases.ALIKE) -> list[Installation]:
    """One installation of each major version (of each release, if all are asked for), in order.

    Of several, one that is no slow build; then, unless the newest are asked for, one of the kind
    of which most major versions are there, so that steps are the versions' and not the builds'.
    """
    listed = list(present)
    majors: dict[str, set[str]] = defaultdict(set)
    for each in listed:
        majors[words(each)].add(each.major)
    best: dict[str, tuple[tuple[Any, ...], Installation]] = {}
    for each in listed:
        kind = words(each)
        alike = len(majors[kind]) if kind and releases != Releases.NEWEST else 0
        rank = (not is_slow(each), alike, each.version_num, each.bindir)
        group = each.version if releases == Releases.ALL else each.major
        if group not in best or rank > best[group][0]:
            best[group] = (rank, each)
    return sorted((each for _rank, each in best.values()), key=lambda each: each.version_num)


def unlike(found: Iterable[Installation]) -> str:
    """How these were built, if not all alike: a step between two kinds may be the builds'."""
    kinds = by_key((words(each) or _("not known how"), each.version) for each in found)
    if len(kinds) < 2:
        return ""
    listed = "; ".join(f"{', '.join(versions)}: {kind}" for kind, versions in kinds.items())
    text = _("Built in %(number)d ways, so steps between them may be the builds' doing. %(kinds)s.")
    return text % {"number": len(kinds), "kinds": listed}
