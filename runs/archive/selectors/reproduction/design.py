"""A published design for the reader's own servers, full or quick."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _

from runs.archive.selectors.reproduction import printed
from runs.archive.selectors.reproduction.changes import (
    CONFIGURATION,
    GENERATOR,
    HARDWARE,
    MACHINES,
    REPEATS,
    Change,
    Conditions,
    changes,
)
from runs.archive.selectors.reproduction.levels import (
    CLIENTS,
    SHARE_OF_BUFFERS,
    Choice,
    least_memory,
    levels,
    parameter,
    refusal,
)
from runs.archive.selectors.reproduction.printed import BLOCK_SIZE, VERSION
from runs.cells.selectors import versions
from runs.models import Campaign, Configuration, Installation, Server
from runs.postgresql_settings.catalogue import MAJORS
from runs.postgresql_settings.effective import Effective
from runs.scenarios import registry
from runs.scenarios.definition import Level, Place, Scenario
from runs.shared.formats import in_language


def installations(choice: Choice) -> list[Installation]:
    """Those of the printed versions, else their neighbours; one for each block size."""
    servers, printed = choice.servers, choice.versions
    present = list(
        Installation.objects.filter(server__in=servers, removed_at=None).order_by("version_num")
    )
    holders: dict[str, set[int]] = defaultdict(set)
    for each in present:
        holders[each.version].add(each.server_id)
    able = [
        each
        for each in present
        if len(holders[each.version]) == len(servers) and not refusal(choice.scenario, each, {})
    ]
    there = {each.major for each in present if len(holders[each.version]) == len(servers)}
    choice.not_installed += [each for each in printed if versions.major(each) not in there]
    if BLOCK_SIZE in choice.printed:
        return _of_block_sizes(choice, able)
    majors = {versions.major(version) for version in printed}
    lacking = {each.pk: _lacking(choice, each) for each in able}
    # Of a major the most complete one, then the printed release.
    able.sort(key=lambda each: (-lacking[each.pk], each.version in printed))
    chosen = versions.one_a_major(each for each in able if each.major in majors)
    if not majors or majors - {each.major for each in chosen}:
        least = min(lacking.values(), default=0)
        every = versions.one_a_major(each for each in able if lacking[each.pk] == least)
        chosen = chosen or _neighbours(every, majors)
        one = _("what is installed on the server")
        reason = one if len(servers) == 1 else _("what is installed on every server")
        choice.reasons[VERSION] = reason
    return chosen


def _of_block_sizes(choice: Choice, able: Sequence[Installation]) -> list[Installation]:
    """For the version with the most of the printed block sizes, one installation for each."""
    wanted = [int(size) for size in choice.printed[BLOCK_SIZE]]
    found: dict[str, dict[int, Installation]] = defaultdict(dict)
    for each in able:
        size = (each.block_size or 0) // 1024
        if size in wanted:
            found[each.version].setdefault(size, each)
    best = max(found.values(), key=len, default={})
    chosen = [best[size] for size in sorted(best)] or list(able)[-1:]
    choice.reasons |= dict.fromkeys((BLOCK_SIZE, VERSION), _("what is installed on the server"))
    return chosen


def _lacking(choice: Choice, installation: Installation) -> int:
    """How many extensions it lacks that levels of the place, or of the scenario's own, need."""
    levels = {
        each.name: [*choice.printed.get(each.name, ()), *choice.place.levels.get(each.name, ())]
        or list(each.default)
        for each in choice.scenario.factors
    }
    return sum(
        needed.name not in installation.extensions
        and (not needed.factor or needed.level in levels.get(needed.factor, ()))
        for needed in choice.scenario.extensions
    )


def _neighbours(every: Sequence[Installation], majors: Set[str]) -> list[Installation]:
    """As many as the publication compared, released nearest to its versions; else the newest one.

    Of two that are equally near, the newer one.
    """
    printed = [year for each in majors if (year := versions.first_year(each)) is not None]

    def distance(each: Installation) -> tuple[int, int]:
        year = versions.first_year(each.major) or 0
        return min((abs(year - other) for other in printed), default=0), -each.version_num

    nearest = sorted(every, key=distance)[: max(1, len(majors))]
    return sorted(nearest, key=lambda each: each.version_num)


# Some of max_connections stay reserved.
SPARE_CONNECTIONS = 4
# In the title of a published campaign.
NAMED_VERSION = re.compile(r"PostgreSQL\s?\d")
# The settings of a campaign that names no configuration.
BUILT_IN = "fixed-point-small"


@dataclass(frozen=True)
class Reproduction:
    """A published design for servers. `changes` lists what differs from the publication."""

    choice: Choice
    is_quick: bool
    installations: Sequence[Installation]
    levels: Mapping[str, Sequence[Level]]
    parameters: Mapping[str, int]
    repeats: int
    configuration: Configuration | None
    changes: Sequence[Change] = ()
    generators: Sequence[Server] = ()
    cluster_servers: Sequence[Server] = ()

    @property
    def title(self) -> str:
        """The title that the campaign would get; it never names a version that is not measured."""
        servers = ", ".join(each.name for each in self.choice.servers)
        names = {"title": in_language(self.choice.campaign, "title"), "server": servers}
        if not (self._measures_others and NAMED_VERSION.search(self.choice.campaign.title)):
            return (_("%(title)s, reproduced on %(server)s") % names)[:200]
        names |= {"slug": self.choice.campaign.slug, "scenario": _(self.choice.scenario.title)}
        names["versions"] = ", ".join(dict.fromkeys(each.version for each in self.installations))
        text = _("%(scenario)s: PostgreSQL %(versions)s, designed as %(slug)s, on %(server)s")
        return (text % names)[:200]

    @property
    def warning(self) -> str:
        """That printed versions are not installed, so the question is another; else empty."""
        if not self.choice.not_installed:
            return ""
        *first, last = self.choice.not_installed
        words = {
            "versions": ", ".join(self.choice.not_installed),
            "first": ", ".join(first),
            "last": last,
            "place": _("this server")
            if len(self.choice.servers) == 1
            else _("each of these servers"),
        }
        if len(self.choice.not_installed) < len(self.choice.versions):
            text = _("%(versions)s is not installed on %(place)s: the comparison is incomplete.")
        elif not first:
            text = _(
                "%(versions)s is not installed on %(place)s: another version answers another"
                " question."
            )
        else:
            text = _(
                "None of %(first)s and %(last)s is installed on %(place)s: other versions answer"
                " another question."
            )
        return text % words

    @property
    def _measures_others(self) -> bool:
        """Whether the major versions are not those of the publication."""
        printed = {versions.major(each) for each in self.choice.versions}
        chosen = {each.major for each in self.installations}
        return bool(printed and chosen) and printed != chosen

    @property
    def body(self) -> dict[str, Any]:
        """The body of `POST /campaigns/` that queues it."""
        slugs = [each.slug for each in self.choice.servers]
        made: dict[str, Any] = {
            "title": self.title,
            "scenario": self.choice.scenario.slug,
            **({"servers": slugs} if len(slugs) > 1 else {"server": slugs[0]}),
            **self._which(),
            "levels": {name: list(levels) for name, levels in self.levels.items()},
            "parameters": dict(self.parameters),
            "repeats": self.repeats,
            "reproduces": self.choice.campaign.slug,
        }
        for name in ("generators", "cluster_servers"):
            slugs = [each.slug for each in getattr(self, name)]
            made |= {name: slugs} if slugs else {}
        treatment = dict.fromkeys(self.choice.place.treatment, True)
        made |= {"treatment": treatment} if treatment else {}
        return made | ({"configuration": self.configuration.slug} if self.configuration else {})

    @property
    def initial(self) -> dict[str, Any]:
        """The fields of the form of a new campaign."""
        several = len(self.choice.servers) > 1
        return {
            "title": self.title,
            "repeats": self.repeats,
            "configuration": self.configuration.pk if self.configuration else None,
            "installations": [each.version if several else each.pk for each in self.installations],
            **self.parameters,
            **dict.fromkeys(self.choice.place.treatment, True),
            **{name: ", ".join(map(str, levels)) for name, levels in self.levels.items()},
        }

    def _which(self) -> dict[str, list[str]]:
        """The installations by version, or by folder if a version has several builds."""
        found = list(dict.fromkeys(each.version for each in self.installations))
        is_told = len(self.choice.servers) > 1 or len(found) == len(self.installations)
        is_told &= not any(each.block_size not in (None, 8192) for each in self.installations)
        return (
            {"versions": found}
            if is_told
            else {"bindirs": [each.bindir for each in self.installations]}
        )


def scenario_of(campaign: Campaign) -> Scenario | None:
    """The scenario that repeats a published campaign; None if none can yet."""
    for each in registry.every():
        if campaign.slug in each.places:
            return each
    wanted = campaign.published.reproduce.get("scenario", "")
    return registry.get(wanted) if registry.knows(wanted) else None


def reproduction(
    campaign: Campaign,
    servers: Sequence[Server],
    *,
    is_quick: bool = False,
    generators: Sequence[Server] = (),
    cluster_servers: Sequence[Server] = (),
) -> Reproduction | None:
    """The published design for the servers; None if its scenario cannot run yet.

    Several servers get what fits the smallest. The quick form takes a minute or two. The load
    comes from `generators`, and further clusters are on `cluster_servers`, where there are any.
    """
    scenario = scenario_of(campaign)
    if scenario is None:
        return None
    place = scenario.places.get(campaign.slug, Place())
    quick = (place.quick or scenario.quick) if is_quick else None
    choice = Choice(campaign, scenario, place, quick, servers, printed.levels(campaign))
    chosen = installations(choice)
    constants = {each.name: parameter(choice, each) for each in scenario.parameters}
    varied = {each.name: levels(choice, each, chosen) for each in scenario.factors}
    most = max([*map(int, varied.get(CLIENTS, ())), constants.get(CLIENTS, 1)])
    configuration = _configuration(choice, most)
    repeats = quick.repeats if quick else max(1, campaign.repeats)
    choice.reasons |= _of_design(is_quick=quick is not None)
    made = Reproduction(
        choice=choice,
        is_quick=is_quick,
        installations=chosen,
        levels=varied,
        parameters=constants,
        repeats=repeats,
        configuration=configuration,
        generators=generators,
        cluster_servers=cluster_servers,
    )
    return replace(made, changes=changes(campaign, _conditions(made)))


def _conditions(made: Reproduction) -> Conditions:
    return Conditions(
        scenario=made.choice.scenario,
        levels=made.levels,
        parameters=made.parameters,
        repeats=made.repeats,
        versions=[each.version for each in made.installations],
        block_sizes={(each.block_size or 8192) // 1024 for each in made.installations},
        configurations=[made.configuration or _built_in()],
        hardware=[each.hardware for each in made.choice.servers],
        machines=1 + len(made.cluster_servers),
        has_generator=bool(made.generators),
        reasons=made.choice.reasons,
    )


def _of_design(*, is_quick: bool) -> dict[str, str]:
    """Why a design has what its form decides alone."""
    return {
        REPEATS: _("the quick form") if is_quick else _("the scenario's default"),
        HARDWARE: _("what is measured on"),
        MACHINES: _("clusters of one machine, unless the form or the body names more"),
        GENERATOR: _("unless the form or the body names a generator"),
    }


def _built_in() -> Configuration:
    found = Configuration.objects.filter(slug=BUILT_IN, project=None).first()
    return found or Configuration(name="Fixed-point observation, small machine")


def _configuration(choice: Choice, clients: int) -> Configuration | None:
    """The published configuration if the servers have room for it; None is the built-in one."""
    node = printed.database_node(choice.campaign)
    published = node.configuration if node else None
    if published is None:
        choice.reasons[CONFIGURATION] = _("what a campaign without one gets")
        return None
    effective = Effective(published.settings, published.written_for or MAJORS[-1])
    buffers = effective.bytes("shared_buffers") or 0
    room = least_memory(choice.servers)
    if room and buffers > SHARE_OF_BUFFERS * room:
        words = {"needed": buffers / 2**30, "there": room / 2**30}
        reason = _(
            "its shared_buffers of %(needed).3g GiB are more than 40 %% of %(there).3g GiB memory"
        )
        choice.reasons[CONFIGURATION] = reason % words
        return None
    if (effective.number("max_connections") or 0) < clients + SPARE_CONNECTIONS:
        choice.reasons[CONFIGURATION] = _("it has fewer connections than there are clients")
        return None
    return published
