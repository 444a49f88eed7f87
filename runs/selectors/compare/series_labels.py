"""The labels of compared series: the levels in which they differ, as short as possible."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Protocol

from django.utils.translation import gettext as _

from runs.models import PublishedTable
from runs.scenarios import common_factors, registry
from runs.selectors.archive import archive, versions
from runs.selectors.archive.words import Factors, factors
from runs.selectors.campaigns import factor_names as designs
from runs.selectors.compare.series import Loaded, Series
from runs.selectors.compare.series_cells import CONFIGURATION, level_text
from runs.templatetags.formats import named


def wording(slugs: Collection[str]) -> Factors:
    """The names that publications and scenarios give to the factors. Three queries.

    Levels that are slugs get the names of their servers and configurations.
    """
    tables = PublishedTable.objects.filter(campaign__slug__in=slugs).order_by("pk")
    columns = [column for each in tables.values_list("columns", flat=True) for column in each]
    found = factors(columns)
    every = [factor for scenario in registry.every() for factor in scenario.factors]
    ours = {each.name: _(each.title) for each in (*common_factors.EVERY, *every)}
    titles = {**designs.own_titles(), **ours, **found.titles}
    return replace(
        found,
        titles=titles,
        levels={**designs.choice_titles(), **designs.names_of_levels(slugs), **found.levels},
    )


LONGEST_TITLE = 40
ARRANGEMENT = "arrangement"
UNKNOWN = "–"


class Wording(Protocol):
    """The names of factors and levels in the reader's language."""

    def title(self, name: str) -> str:
        """A factor."""

    def level(self, name: str, value: Any) -> str:
        """A level of it."""


class PlainWording:
    """The stored names, for files and programs."""

    def title(self, name: str) -> str:
        """The factor's own name."""
        return name

    def level(self, name: str, value: Any) -> str:
        """The level as text; a version with the name of its product."""
        return f"PostgreSQL {value}" if name == "version" else level_text(value)


def labels(loaded: Loaded, wording: Wording | None = None) -> tuple[str, ...]:
    """A label for each series, all different.

    Levels that distinguish them come first; if these are not enough, the operating system, the
    hardware, the topology, and last the campaign are added.
    """
    words = wording or PlainWording()
    found = [" · ".join(parts) for parts in _by_levels(loaded.series, words)]
    for more in (_operating_system, _hardware, _topology, _title):
        found = _told_apart(found, [more(loaded, each) for each in loaded.series])
    return tuple(
        label or each.campaign.title for label, each in zip(found, loaded.series, strict=True)
    )


def facet(loaded: Loaded, each: Series, by: str, words: Wording) -> str:
    """The value of a series for small multiples: its configuration, system, hardware and so on."""
    if by in {CONFIGURATION, ARRANGEMENT} and by in each.levels:
        return words.level(by, each.levels[by])
    values: dict[str, Callable[[Loaded, Series], str]] = {
        "configuration": _configuration,
        "os": _operating_system,
        "hardware": _hardware,
        ARRANGEMENT: _topology,
        "topology": _topology,
        "version": lambda _loaded, series: versions.major(series.version),
    }
    return values[by](loaded, each) or UNKNOWN


def _by_levels(series: Sequence[Series], words: Wording) -> list[list[str]]:
    names = list(dict.fromkeys(name for each in series for name in each.levels))
    parting = [
        name
        for name in names
        if len({level_text(each.levels.get(name, "")) for each in series}) > 1
    ]
    shown = parting or [name for name in names if name == "version"]
    return [
        [spoken_level(words, name, each.levels[name]) for name in shown if name in each.levels]
        for each in series
    ]


def spoken_level(words: Wording, name: str, value: Any) -> str:
    """A level that needs no context: "PostgreSQL 16", "All on SSD", "Clients 8"."""
    told = words.level(name, value)
    if name == "version" or (isinstance(value, str) and told != value):
        return told
    return f"{words.title(name)} {told}"


def _told_apart(found: Sequence[str], more: Sequence[str]) -> list[str]:
    """The labels; those that occur more than once are extended by what else differs."""
    counts = Counter(found)
    differs = {label: set() for label in counts}  # type: dict[str, set[str]]
    for label, text in zip(found, more, strict=True):
        differs[label].add(text)
    return [
        " · ".join(part for part in (label, text) if part)
        if counts[label] > 1 and len(differs[label]) > 1
        else label
        for label, text in zip(found, more, strict=True)
    ]


def _operating_system(loaded: Loaded, each: Series) -> str:
    found = [loaded.environments[key] for key in each.runs.environment]
    return ", ".join(dict.fromkeys(archive.operating_system(env.os_name) for env in found))


def _hardware(loaded: Loaded, each: Series) -> str:
    return ", ".join(dict.fromkeys(named(loaded.hardware[key]) for key in each.runs.hardware))


def _topology(_loaded: Loaded, each: Series) -> str:
    topology = each.campaign.topology
    return str(topology.get_kind_display()) if topology else ""


def _configuration(_loaded: Loaded, each: Series) -> str:
    configuration = each.campaign.configuration
    return named(configuration) if configuration else ""


def _title(_loaded: Loaded, each: Series) -> str:
    title = each.campaign.title
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1].rstrip()}…"
