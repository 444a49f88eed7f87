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
from runs.archive.selectors.reproduction.question import Asked, LostFactor, lost_factors
from runs.cells.selectors import versions
from runs.models import Campaign, Configuration, Installation, Server
from runs.postgresql_settings.catalogue import MAJORS
from runs.postgresql_settings.effective import Effective
from runs.scenarios import registry
from runs.scenarios.definition import Level, Place, Scenario
from runs.shared.formats import translate_field


def installations(choice: Choice) -> list[Installation]:
    """Those of the printed versions, else their neighbours; one for each block size."""
    servers, printed = choice.servers, choice.versions
    present = list(
        Installation.objects.filter(server__in=servers, removed_at=None).order_by(
            "version_num"
        )
    )
    holders: dict[str, set[int]] = defaultdict(set)
    for installation in present:
        holders[installation.version].add(installation.server_id)
    able = [
        installation
        for installation in present
        if len(holders[installation.version]) == len(servers)
        and not refusal(choice.scenario, installation, {})
    ]
    installed_majors = {
        installation.major
        for installation in present
        if len(holders[installation.version]) == len(servers)
    }
    choice.not_installed += [
        version
        for version in printed
        if versions.major(version) not in installed_majors
    ]
    if BLOCK_SIZE in choice.printed:
        return _choose_block_sizes(choice, able)
    majors = {versions.major(version) for version in printed}
    lacking = {installation.pk: _lacking(choice, installation) for installation in able}
    # Of a major the most complete one, then the printed release.
    able.sort(
        key=lambda installation: (
            -lacking[installation.pk],
            installation.version in printed,
        )
    )
    chosen = versions.one_a_major(
        installation for installation in able if installation.major in majors
    )
    if not majors or majors - {installation.major for installation in chosen}:
        least = min(lacking.values(), default=0)
        every = versions.one_a_major(
            installation for installation in able if lacking[installation.pk] == least
        )
        chosen = chosen or _neighbours(every, majors)
        installed_text = _("what is installed on the server")
        reason = (
            installed_text
            if len(servers) == 1
            else _("what is installed on every server")
        )
        choice.reasons[VERSION] = reason
    return chosen


def _choose_block_sizes(
    choice: Choice, able: Sequence[Installation]
) -> list[Installation]:
    """For the version with the most of the printed block sizes, one installation for each."""
    block_sizes = [int(size) for size in choice.printed[BLOCK_SIZE]]
    by_version: dict[str, dict[int, Installation]] = defaultdict(dict)
    for installation in able:
        size = (installation.block_size or 0) // 1024
        if size in block_sizes:
            by_version[installation.version].setdefault(size, installation)
    best = max(by_version.values(), key=len, default={})
    chosen = [best[size] for size in sorted(best)] or list(able)[-1:]
    choice.reasons |= dict.fromkeys(
        (BLOCK_SIZE, VERSION), _("what is installed on the server")
    )
    return chosen


def _lacking(choice: Choice, installation: Installation) -> int:
    """How many extensions it lacks that levels of the place, or of the scenario's own, need."""
    levels = {
        factor.name: [
            *choice.printed.get(factor.name, ()),
            *choice.place.levels.get(factor.name, ()),
        ]
        or list(factor.default)
        for factor in choice.scenario.factors
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
    printed = [
        year for major in majors if (year := versions.first_year(major)) is not None
    ]

    def distance(installation: Installation) -> tuple[int, int]:
        year = versions.first_year(installation.major) or 0
        return min(
            (abs(year - other_year) for other_year in printed), default=0
        ), -installation.version_num

    nearest = sorted(every, key=distance)[: max(1, len(majors))]
    return sorted(nearest, key=lambda installation: installation.version_num)


# Some of max_connections stay reserved.
SPARE_CONNECTIONS = 4
# In the title of a published campaign.
NAMED_VERSION = re.compile(r"PostgreSQL\s?\d")
# The settings of a campaign that names no configuration.
BUILT_IN = "fixed-point-small"


@dataclass(frozen=True)
class Reproduction:
    """A published design for servers.

    `changes` lists what differs from the publication, and `lost_factors` what of its question the
    servers cannot ask.
    """

    choice: Choice
    is_quick: bool
    installations: Sequence[Installation]
    levels: Mapping[str, Sequence[Level]]
    parameters: Mapping[str, int]
    repeats: int
    configuration: Configuration | None
    changes: Sequence[Change] = ()
    lost_factors: Sequence[LostFactor] = ()
    generators: Sequence[Server] = ()
    cluster_servers: Sequence[Server] = ()

    @property
    def keeps_question(self) -> bool:
        """Whether what would run asks what was printed."""
        return not self.lost_factors

    @property
    def title(self) -> str:
        """The title that the campaign would get; it never names a version that is not measured."""
        servers = ", ".join(server.name for server in self.choice.servers)
        names = {
            "title": translate_field(self.choice.campaign, "title"),
            "server": servers,
        }
        if not (
            self._measures_others and NAMED_VERSION.search(self.choice.campaign.title)
        ):
            return (_("%(title)s, reproduced on %(server)s") % names)[:200]
        names |= {
            "slug": self.choice.campaign.slug,
            "scenario": _(self.choice.scenario.title),
        }
        names["versions"] = ", ".join(
            dict.fromkeys(installation.version for installation in self.installations)
        )
        text = _(
            "%(scenario)s: PostgreSQL %(versions)s, designed as %(slug)s, on %(server)s"
        )
        return (text % names)[:200]

    @property
    def warning(self) -> str:
        """That printed versions are not installed, so the question is another; else empty."""
        if not self.choice.not_installed:
            return ""
        *first_versions, last_version = self.choice.not_installed
        words = {
            "versions": ", ".join(self.choice.not_installed),
            "first": ", ".join(first_versions),
            "last": last_version,
            "place": _("this server")
            if len(self.choice.servers) == 1
            else _("each of these servers"),
        }
        if len(self.choice.not_installed) < len(self.choice.versions):
            text = _(
                "%(versions)s is not installed on %(place)s: the comparison is incomplete."
            )
        elif not first_versions:
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
        printed = {versions.major(version) for version in self.choice.versions}
        chosen = {installation.major for installation in self.installations}
        return bool(printed and chosen) and printed != chosen

    @property
    def body(self) -> dict[str, Any]:
        """The body of `POST /campaigns/` that queues it."""
        slugs = [server.slug for server in self.choice.servers]
        body: dict[str, Any] = {
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
            slugs = [row.slug for row in getattr(self, name)]
            body |= {name: slugs} if slugs else {}
        treatment = dict.fromkeys(self.choice.place.treatment, True)
        body |= {"treatment": treatment} if treatment else {}
        return body | (
            {"configuration": self.configuration.slug} if self.configuration else {}
        )

    @property
    def initial(self) -> dict[str, Any]:
        """The fields of the form of a new campaign."""
        several = len(self.choice.servers) > 1
        return {
            "title": self.title,
            "repeats": self.repeats,
            "configuration": self.configuration.pk if self.configuration else None,
            "installations": [
                installation.version if several else installation.pk
                for installation in self.installations
            ],
            **self.parameters,
            **dict.fromkeys(self.choice.place.treatment, True),
            **{
                name: ", ".join(map(str, levels))
                for name, levels in self.levels.items()
            },
        }

    def _which(self) -> dict[str, list[str]]:
        """The installations by version, or by folder if a version has several builds."""
        version_names = list(
            dict.fromkeys(installation.version for installation in self.installations)
        )
        is_told = len(self.choice.servers) > 1 or len(version_names) == len(
            self.installations
        )
        is_told &= not any(
            installation.block_size not in (None, 8192)
            for installation in self.installations
        )
        return (
            {"versions": version_names}
            if is_told
            else {
                "bindirs": [installation.bindir for installation in self.installations]
            }
        )


def scenario_of(campaign: Campaign) -> Scenario | None:
    """The scenario that repeats a published campaign; None if none can yet."""
    for scenario in registry.every():
        if campaign.slug in scenario.places:
            return scenario
    slug = campaign.published.reproduce.get("scenario", "")
    return registry.get(slug) if registry.knows(slug) else None


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
    place_of_scenario = scenario.places.get(campaign.slug, Place())
    quick = (place_of_scenario.quick or scenario.quick) if is_quick else None
    choice = Choice(
        campaign,
        scenario,
        place_of_scenario,
        quick,
        servers,
        printed.levels(campaign),
        has_further=bool(cluster_servers),
    )
    choice.most_clients = _most_clients(choice)
    chosen = installations(choice)
    constants = {
        scenario_parameter.name: parameter(choice, scenario_parameter)
        for scenario_parameter in scenario.parameters
    }
    varied = {
        factor.name: levels(choice, factor, chosen) for factor in scenario.factors
    }
    most = max([*map(int, varied.get(CLIENTS, ())), constants.get(CLIENTS, 1)])
    configuration = _configuration(choice, most)
    repeats = quick.repeats if quick else max(1, campaign.repeats)
    choice.reasons |= _explain_design(is_quick=quick is not None)
    reproduced = Reproduction(
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
    asked = Asked(scenario, varied, chosen, servers, has_further=bool(cluster_servers))
    return replace(
        reproduced,
        changes=changes(campaign, _conditions(reproduced)),
        lost_factors=lost_factors(campaign, asked, choice.printed),
    )


def _conditions(reproduced: Reproduction) -> Conditions:
    return Conditions(
        scenario=reproduced.choice.scenario,
        levels=reproduced.levels,
        parameters=reproduced.parameters,
        repeats=reproduced.repeats,
        versions=[installation.version for installation in reproduced.installations],
        block_sizes={
            (installation.block_size or 8192) // 1024
            for installation in reproduced.installations
        },
        configurations=[reproduced.configuration or _built_in()],
        hardware=[server.hardware for server in reproduced.choice.servers],
        machines=1 + len(reproduced.cluster_servers),
        has_generator=bool(reproduced.generators),
        reasons=reproduced.choice.reasons,
    )


def _explain_design(*, is_quick: bool) -> dict[str, str]:
    """Why a design has what its form decides alone."""
    return {
        REPEATS: _("the quick form") if is_quick else _("the scenario's default"),
        HARDWARE: _("what is measured on"),
        MACHINES: _("clusters of one machine, unless the form or the body names more"),
        GENERATOR: _("unless the form or the body names a generator"),
    }


def _built_in() -> Configuration:
    configuration = Configuration.objects.filter(slug=BUILT_IN, project=None).first()
    return configuration or Configuration(name="Fixed-point observation, small machine")


def _most_clients(choice: Choice) -> int:
    """By the built-in configuration, or by the published one where the servers have room for it."""
    node = printed.database_node(choice.campaign)
    published = node.configuration if node else None
    room = least_memory(choice.servers)
    connections = []
    for configuration in filter(None, (_built_in(), published)):
        version = configuration.written_for or MAJORS[-1]
        effective = Effective(configuration.settings, version)
        buffers = effective.bytes("shared_buffers") or 0
        if configuration != published or not room or buffers <= SHARE_OF_BUFFERS * room:
            connections.append(int(effective.number("max_connections") or 0))
    return max(connections) - SPARE_CONNECTIONS


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
        choice.reasons[CONFIGURATION] = _(
            "it has fewer connections than there are clients"
        )
        return None
    return published
