"""Builds: how an installation was made, and which installations were made alike."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from runs.analysis import fact_readers
from runs.grouping import group_by_key
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
    facts_of_build = facts(installation)
    descriptions = [
        facts_of_build["optimisation"],
        fact_readers.compiler(installation.compiler),
    ]
    descriptions += [_("assertions")] if facts_of_build["assertions"] else []
    descriptions += [_("profiling")] if facts_of_build["profiling"] else []
    if installation.block_size not in (None, USUAL_BLOCK_SIZE):
        descriptions.append(
            _("%(size)d kB blocks") % {"size": (installation.block_size or 0) // 1024}
        )
    return ", ".join(filter(None, descriptions))


def is_slow(installation: Installation) -> bool:
    """Whether its figures say little about that PostgreSQL: assertions, or no optimisation."""
    facts_of_build = facts(installation)
    return (
        bool(facts_of_build["assertions"])
        or facts_of_build["optimisation"] in fact_readers.UNOPTIMISED
    )


def list_installations(campaign: Campaign) -> QuerySet[Installation]:
    """The installations that a campaign measures, the oldest version first. One query."""
    return (
        Installation.objects.filter(cell__campaign=campaign)
        .order_by("version_num")
        .distinct()
    )


def chosen(
    present: Iterable[Installation], releases: str = Releases.ALIKE
) -> list[Installation]:
    """One installation of each major version (of each release, if all are asked for), in order.

    Of several, one that is no slow build; then, unless the newest are asked for, one of the kind
    of which most major versions are there, so that steps are the versions' and not the builds'.
    """
    installation_list = list(present)
    majors: dict[str, set[str]] = defaultdict(set)
    for installation in installation_list:
        majors[words(installation)].add(installation.major)
    best: dict[str, tuple[tuple[Any, ...], Installation]] = {}
    for installation in installation_list:
        kind = words(installation)
        number_alike = len(majors[kind]) if kind and releases != Releases.NEWEST else 0
        rank = (
            not is_slow(installation),
            number_alike,
            installation.version_num,
            installation.bindir,
        )
        group = installation.version if releases == Releases.ALL else installation.major
        if group not in best or rank > best[group][0]:
            best[group] = (rank, installation)
    return sorted(
        (installation for _rank, installation in best.values()),
        key=lambda installation: installation.version_num,
    )


def unlike(installations: Iterable[Installation]) -> str:
    """How these were built, if not all alike: a step between two kinds may be the builds'."""
    kinds = group_by_key(
        (words(installation) or _("not known how"), installation.version)
        for installation in installations
    )
    if len(kinds) < 2:
        return ""
    listed_kinds = "; ".join(
        f"{', '.join(versions)}: {kind}" for kind, versions in kinds.items()
    )
    text = _(
        "Built in %(number)d ways, so steps between them may be the builds' doing. %(kinds)s."
    )
    return text % {"number": len(kinds), "kinds": listed_kinds}
