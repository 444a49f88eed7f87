"""A published design on the reader's own servers: full or quick, with every difference listed."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from runs.models import Campaign, Configuration, Installation, PublishedNode, Server
from runs.postgresql_settings.catalogue import MAJORS
from runs.postgresql_settings.effective import Effective
from runs.scenarios import registry
from runs.scenarios.definition import AnyFactor, Level, Parameter, Place, Quick, Scenario
from runs.selectors.archive import versions
from runs.selectors.archive.words import USUAL

# pgbench's tables and indexes take about 16 MB per unit of scale.
BYTES_PER_SCALE = 16 * 10**6
# The share of memory for the data: the rest is for PostgreSQL, the system and the load.
SHARE_OF_MEMORY = 0.25
# The share of free space: for a cluster, its copy, and its WAL.
SHARE_OF_DISK = 0.25
# The share of memory for shared_buffers.
SHARE_OF_BUFFERS = 0.4
# Some of max_connections stay reserved.
SPARE_CONNECTIONS = 4
SCALE, CLIENTS, CORES, VERSION, BLOCK_SIZE = "scale", "clients", "cores", "version", "block_size"
# In the title of a published campaign.
NAMED_VERSION = re.compile(r"PostgreSQL\s?\d")
# The settings of a campaign that names no configuration.
BUILT_IN = "fixed-point-small"


@dataclass(frozen=True)
class Change:
    """Something that differs from the publication, and why."""

    name: str
    printed: str
    chosen: str
    reason: str


@dataclass(frozen=True)
class Reproduction:
    """A published design for these servers. `changes` lists what differs from the publication."""

    campaign: Campaign
    scenario: Scenario
    servers: Sequence[Server]
    is_quick: bool
    installations: Sequence[Installation]
    levels: Mapping[str, Sequence[Level]]
    parameters: Mapping[str, int]
    repeats: int
    configuration: Configuration | None
    changes: Sequence[Change]
    treatment: Sequence[str] = ()
    # As printed, and those of them whose major version is not installed on every server.
    printed_versions: Sequence[str] = ()
    not_installed: Sequence[str] = ()

    @property
    def title(self) -> str:
        """The title that the campaign would get; it never names a version that is not measured."""
        names = {"title": self.campaign.title, "server": ", ".join(s.name for s in self.servers)}
        if not (self._measures_others and NAMED_VERSION.search(self.campaign.title)):
            return (_("%(title)s, reproduced on %(server)s") % names)[:200]
        names |= {"slug": self.campaign.slug, "scenario": _(self.scenario.title)}
        names["versions"] = ", ".join(dict.fromkeys(each.version for each in self.installations))
        text = _("%(scenario)s: PostgreSQL %(versions)s, designed as %(slug)s, on %(server)s")
        return (text % names)[:200]

    @property
    def warning(self) -> str:
        """That printed versions are not installed, so the question is another; else empty."""
        if not self.not_installed:
            return ""
        *first, last = self.not_installed
        words = {
            "versions": ", ".join(self.not_installed),
            "first": ", ".join(first),
            "last": last,
            "place": _("this server") if len(self.servers) == 1 else _("each of these servers"),
        }
        if len(self.not_installed) < len(self.printed_versions):
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
        printed = {versions.major(each) for each in self.printed_versions}
        chosen = {each.major for each in self.installations}
        return bool(printed and chosen) and printed != chosen

    @property
    def body(self) -> dict[str, Any]:
        """The body of `POST /campaigns/` that queues it."""
        slugs = [each.slug for each in self.servers]
        made: dict[str, Any] = {
            "title": self.title,
            "scenario": self.scenario.slug,
            **({"servers": slugs} if len(slugs) > 1 else {"server": slugs[0]}),
            **self._which(),
            "levels": {name: list(levels) for name, levels in self.levels.items()},
            "parameters": dict(self.parameters),
            "repeats": self.repeats,
            "reproduces": self.campaign.slug,
        }
        treatment = dict.fromkeys(self.treatment, True)
        made |= {"treatment": treatment} if treatment else {}
        return made | ({"configuration": self.configuration.slug} if self.configuration else {})

    @property
    def initial(self) -> dict[str, Any]:
        """The fields of the form of a new campaign."""
        several = len(self.servers) > 1
        return {
            "title": self.title,
            "repeats": self.repeats,
            "configuration": self.configuration.pk if self.configuration else None,
            "installations": [each.version if several else each.pk for each in self.installations],
            **self.parameters,
            **dict.fromkeys(self.treatment, True),
            **{name: ", ".join(map(str, levels)) for name, levels in self.levels.items()},
        }

    def _which(self) -> dict[str, list[str]]:
        """The installations by version, or by folder if a version has several builds."""
        found = list(dict.fromkeys(each.version for each in self.installations))
        is_told = len(self.servers) > 1 or len(found) == len(self.installations)
        is_told &= not any(each.block_size not in (None, 8192) for each in self.installations)
        return (
            {"versions": found}
            if is_told
            else {"bindirs": [each.bindir for each in self.installations]}
        )


@dataclass
class _Choice:
    """The choices so far, and the changes that they caused."""

    campaign: Campaign
    scenario: Scenario
    place: Place
    quick: Quick | None
    servers: Sequence[Server]
    printed: Mapping[str, Sequence[Any]]
    changes: list[Change] = field(default_factory=list)
    not_installed: list[str] = field(default_factory=list)

    @property
    def versions(self) -> list[str]:
        """Those that the publication prints."""
        return [text for each in self.printed.get(VERSION, ()) if versions.major(text := str(each))]

    def note(self, name: str, printed: object, chosen: object, reason: str) -> None:
        """Record a change."""
        self.changes.append(Change(name, _told(printed), _told(chosen), reason))


def scenario_of(campaign: Campaign) -> Scenario | None:
    """The scenario that repeats a published campaign; None if none can yet."""
    for each in registry.every():
        if campaign.slug in each.places:
            return each
    wanted = campaign.published.reproduce.get("scenario", "")
    known = {scenario.slug: scenario for scenario in registry.every()}
    return known.get(wanted)


def reproduction(
    campaign: Campaign, servers: Sequence[Server], *, is_quick: bool = False
) -> Reproduction | None:
    """The published design for the servers; None if its scenario cannot run yet.

    Several servers get what fits the smallest. The quick form takes a minute or two.
    """
    scenario = scenario_of(campaign)
    if scenario is None:
        return None
    place = scenario.places.get(campaign.slug, Place())
    quick = (place.quick or scenario.quick) if is_quick else None
    choice = _Choice(campaign, scenario, place, quick, servers, _printed(campaign))
    installations = _installations(choice)
    parameters = {each.name: _parameter(choice, each) for each in scenario.parameters}
    levels = {each.name: _levels(choice, each, installations) for each in scenario.factors}
    _note_the_rest(choice)
    most = max([*map(int, levels.get(CLIENTS, ())), parameters.get(CLIENTS, 1)])
    configuration = _configuration(choice, most)
    repeats = quick.repeats if quick else max(1, campaign.repeats)
    if repeats != campaign.repeats:
        choice.note(_("Repeats"), campaign.repeats, repeats, _("the quick form"))
    return Reproduction(
        campaign=campaign,
        scenario=scenario,
        servers=servers,
        is_quick=is_quick,
        installations=installations,
        levels=levels,
        parameters=parameters,
        repeats=repeats,
        configuration=configuration,
        changes=tuple(choice.changes),
        treatment=place.treatment,
        printed_versions=choice.versions,
        not_installed=choice.not_installed,
    )


def _printed(campaign: Campaign) -> dict[str, list[Any]]:
    """The levels of each factor, including those that the publication keeps constant. One query."""
    found = {name: list(levels) for name, levels in campaign.factors.items()}
    for levels in campaign.cells.order_by("ordinal").values_list("levels", flat=True):
        for name, level in levels.items():
            known = found.setdefault(name, [])
            if level not in known:
                known.append(level)
    wanted = campaign.published.reproduce
    found |= {name: list(levels) for name, levels in wanted.get("levels", {}).items()}
    if wanted.get("versions"):
        found[VERSION] = list(wanted["versions"])
    return found


def _parameter(choice: _Choice, parameter: Parameter) -> int:
    given = {
        **choice.campaign.parameters,
        **choice.campaign.published.reproduce.get("parameters", {}),
    }
    given = {**given, **choice.scenario.printed(given)}
    constant = choice.printed.get(parameter.name, ())
    printed = given.get(parameter.name, constant[0] if len(constant) == 1 else None)
    is_printed = isinstance(printed, int | float) and not isinstance(printed, bool)
    title, wanted = _(parameter.title), choice.place.parameters.get(parameter.name)
    if wanted is None:
        wanted = int(printed) if is_printed and printed is not None else parameter.default
    value = min(max(wanted, parameter.minimum), parameter.maximum)
    reason = _("what the scenario offers") if is_printed else _("the scenario's default")
    if choice.quick and parameter.name in choice.quick.parameters:
        value, reason = choice.quick.parameters[parameter.name], _("the quick form")
    elif parameter.name == SCALE and (most := _largest_scale(choice.servers)) and value > most:
        value = most
        reason = _("so that the data fit into a quarter of the server's memory and free space")
    if not is_printed:
        choice.note(title, _("not printed"), _amount(value, parameter.unit), reason)
    elif value != printed:
        shown = _amount(printed, parameter.unit)
        choice.note(title, shown, _amount(value, parameter.unit), reason)
    return value


def _largest_scale(servers: Sequence[Server]) -> int:
    """The scale whose data fit into memory and onto the disk; 0 if neither is known."""
    rooms = [
        room * share
        for server in servers
        for room, share in (
            (server.hardware.memory_bytes if server.hardware else None, SHARE_OF_MEMORY),
            (server.free_bytes, SHARE_OF_DISK),
        )
        if room
    ]
    return max(1, int(min(rooms) / BYTES_PER_SCALE)) if rooms else 0


def _levels(
    choice: _Choice, factor: AnyFactor, installations: Sequence[Installation]
) -> list[Level]:
    title = _(factor.title)
    printed = list(choice.printed.get(factor.name, ()))
    if not printed and factor.name in choice.campaign.parameters:
        printed = [choice.campaign.parameters[factor.name]]
    wanted = list(choice.place.levels.get(factor.name, printed))
    accepted = [level for level in wanted if factor.accepts(level)]
    chosen, reason = accepted, _("what the scenario offers")
    if not accepted:
        chosen = list(factor.default)
        reason = _("the scenario's default")
    chosen, reason = _sized(choice, factor, chosen, reason)
    able, why = _runnable(choice.scenario, factor, chosen, installations)
    if able != chosen:
        chosen, reason = able, why
    ordered = factor.ordered(chosen)
    if not printed:
        choice.note(title, _("not printed"), ordered, reason)
    elif _told(ordered) != _told(factor.ordered(printed) if accepted == printed else printed):
        choice.note(title, printed, ordered, reason)
    return ordered


def _sized(
    choice: _Choice, factor: AnyFactor, levels: list[Level], reason: str
) -> tuple[list[Level], str]:
    """Levels for these machines and this form, and why they differ."""
    quick = choice.quick.levels.get(factor.name) if choice.quick else None
    if quick:
        common = [level for level in quick if level in levels]
        is_constant = len(choice.printed.get(factor.name, ())) == 1 and len(levels) == 1
        return (levels, reason) if is_constant else (common or list(quick), _("the quick form"))
    ours = min((cores for each in choice.servers if (cores := _cores(each))), default=None)
    if factor.name == CORES and ours:
        there = [level for level in levels if int(level) <= ours]
        if there != levels:
            return [*there, *([] if ours in there else [ours])], _("the server has no more cores")
    theirs = _printed_cores(choice.campaign)
    if factor.name == CLIENTS and theirs and ours and theirs != ours:
        scaled = sorted({max(1, round(int(level) * ours / theirs)) for level in levels})
        words = {"theirs": theirs, "ours": ours}
        told = _("as many clients a core as on the %(theirs)d cores there; here are %(ours)d")
        return [*scaled], told % words
    return levels, reason


def _runnable(
    scenario: Scenario,
    factor: AnyFactor,
    levels: list[Level],
    installations: Sequence[Installation],
) -> tuple[list[Level], str]:
    """The levels that every installation can run; the others with the reason. Never empty."""
    able, why = [], ""
    for level in levels:
        told = [_refusal(scenario, each, {factor.name: level}) for each in installations]
        reason = next((each for each in told if each), "")
        if reason:
            why = reason
        else:
            able.append(level)
    if able or not levels:
        return able, why
    fallback = [
        level
        for level in factor.default
        if not any(_refusal(scenario, each, {factor.name: level}) for each in installations)
    ]
    return (fallback or levels), why


def _refusal(scenario: Scenario, installation: Installation, levels: Mapping[str, Any]) -> str:
    unmet = scenario.refusal(installation.version_num, levels)
    if unmet is not None:
        return _(unmet.reason)
    for needed in scenario.extensions:
        if needed.concerns(levels) and needed.name not in installation.extensions:
            words = {"extension": needed.name, "installation": installation}
            return _("%(installation)s does not have the extension %(extension)s.") % words
    return ""


def _note_the_rest(choice: _Choice) -> None:
    """Factors of the publication that the scenario does not vary."""
    known = {each.name for each in (*choice.scenario.factors, *choice.scenario.parameters)}
    for name, levels in choice.printed.items():
        if name not in {*known, VERSION, BLOCK_SIZE} and len(levels) > 1:
            title = str(USUAL.get(name, name.replace("_", " ").capitalize()))
            choice.note(title, levels, "–", _("the scenario does not vary it"))


def _installations(choice: _Choice) -> list[Installation]:
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
        if len(holders[each.version]) == len(servers) and not _refusal(choice.scenario, each, {})
    ]
    there = {each.major for each in present if len(holders[each.version]) == len(servers)}
    choice.not_installed += [each for each in printed if versions.major(each) not in there]
    if BLOCK_SIZE in choice.printed:
        return _of_block_sizes(choice, able)
    majors = {versions.major(version) for version in printed}
    lacking = {each.pk: _lacking(choice, each) for each in able}
    able.sort(key=lambda each: -lacking[each.pk])  # of a major the most complete one
    chosen = _one_a_major(each for each in able if each.major in majors)
    if not majors or majors - {each.major for each in chosen}:
        least = min(lacking.values(), default=0)
        every = _one_a_major(each for each in able if lacking[each.pk] == least)
        chosen = chosen or _neighbours(every, majors)
        one = _("what is installed on the server")
        reason = one if len(servers) == 1 else _("what is installed on every server")
        told = [each.version for each in chosen]
        choice.note(_("Versions"), printed or _("not printed"), told, reason)
    return chosen


def _of_block_sizes(choice: _Choice, able: Sequence[Installation]) -> list[Installation]:
    """For the version with the most of the printed block sizes, one installation for each."""
    wanted = [int(size) for size in choice.printed[BLOCK_SIZE]]
    found: dict[str, dict[int, Installation]] = defaultdict(dict)
    for each in able:
        size = (each.block_size or 0) // 1024
        if size in wanted:
            found[each.version].setdefault(size, each)
    best = max(found.values(), key=len, default={})
    chosen = [best[size] for size in sorted(best)] or list(able)[-1:]
    sizes = [(each.block_size or 8192) // 1024 for each in chosen]
    if sizes != sorted(wanted):
        reason = _("what is installed on the server")
        choice.note(str(USUAL[BLOCK_SIZE]), wanted, sizes, reason)
    if VERSION in choice.printed or chosen:
        printed = choice.printed.get(VERSION) or _("not printed")
        told = list(dict.fromkeys(each.version for each in chosen))
        choice.note(_("Versions"), printed, told, _("what is installed on the server"))
    return chosen


def _lacking(choice: _Choice, installation: Installation) -> int:
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


def _one_a_major(found: Iterable[Installation]) -> list[Installation]:
    """The last of each major version, in the order of versions."""
    last = {each.major: each for each in found}
    return sorted(last.values(), key=lambda each: each.version_num)


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


def _configuration(choice: _Choice, clients: int) -> Configuration | None:
    """The published configuration if the servers have room for it; None is the built-in one."""
    nodes = PublishedNode.objects.filter(
        table__campaign=choice.campaign, role="database", configuration__isnull=False
    )
    node = nodes.select_related("configuration").order_by("ordinal").first()
    published = node.configuration if node else None
    title = _("Configuration")
    built_in = _("Fixed-point observation, small machine")
    if published is None:
        choice.note(title, _("not printed"), built_in, _("what a campaign without one gets"))
        return None
    effective = Effective(published.settings, published.written_for or MAJORS[-1])
    buffers = effective.bytes("shared_buffers") or 0
    rooms = [each.hardware.memory_bytes for each in choice.servers if each.hardware]
    known = [room for room in rooms if room]
    if known and buffers > SHARE_OF_BUFFERS * min(known):
        words = {"needed": buffers / 2**30, "there": min(known) / 2**30}
        reason = _(
            "its shared_buffers of %(needed).3g GiB are too large for %(there).3g GiB of memory"
        )
        choice.note(title, _(published.name), built_in, reason % words)
        return None
    if (effective.number("max_connections") or 0) < clients + SPARE_CONNECTIONS:
        reason = _("it has fewer connections than there are clients")
        choice.note(title, _(published.name), built_in, reason)
        return None
    return published


def _printed_cores(campaign: Campaign) -> int | None:
    nodes = PublishedNode.objects.filter(table__campaign=campaign, role="database")
    node = nodes.select_related("hardware").first()
    return _counted(node.hardware) if node else None


def _cores(server: Server) -> int | None:
    return _counted(server.hardware)


def _counted(hardware: Any) -> int | None:
    return (hardware.cores or hardware.threads) if hardware else None


def _amount(value: Any, unit: str) -> str:
    return f"{value:,} {unit}".strip()


def _told(value: object) -> str:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return str(value)
    return ", ".join(str(each) for each in value)
