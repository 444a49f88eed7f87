"""The levels and constants of a design: as printed where these machines can do it.

A quick form keeps levels that are printed: the first, the last, and as many between as fit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from runs.archive.selectors.reproduction import printed as prints
from runs.archive.selectors.reproduction.printed import VERSION
from runs.cells.selectors import versions
from runs.models import Campaign, Installation, Server
from runs.postgresql_settings.catalogue import MAJORS
from runs.postgresql_settings.effective import Effective
from runs.scenarios.definition import (
    AnyFactor,
    ChoiceFactor,
    Level,
    Parameter,
    Place,
    Quick,
    Scenario,
)

# pgbench's tables and indexes take about 16 MB per unit of scale.
BYTES_PER_SCALE = 16 * 10**6
# The share of memory for the data: the rest is for PostgreSQL, the system and the load.
SHARE_OF_MEMORY = 0.25
# The share of free space: for a cluster, its copy, and its WAL.
SHARE_OF_DISK = 0.25
# The share of memory for shared_buffers.
SHARE_OF_BUFFERS = 0.4
SCALE = "scale"
CLIENTS = "clients"
CORES = "cores"
BUFFERS = "shared_buffers"
SYNC_METHOD, NOT_ON_LINUX = "wal_sync_method", frozenset({"fsync_writethrough"})


@dataclass
class Choice:
    """A publication, the scenario that repeats it, and the servers; `reasons` by code.

    `has_further` says whether further clusters have a server of their own. More clients than
    `most_clients` get no connection.
    """

    campaign: Campaign
    scenario: Scenario
    place: Place
    quick: Quick | None
    servers: Sequence[Server]
    printed: Mapping[str, Sequence[Any]]
    has_further: bool = False
    most_clients: int = 10_000
    reasons: dict[str, str] = field(default_factory=dict)
    not_installed: list[str] = field(default_factory=list)

    @property
    def versions(self) -> list[str]:
        """Those that the publication prints."""
        return [
            text
            for version in self.printed.get(VERSION, ())
            if versions.major(text := str(version))
        ]


def parameter(choice: Choice, scenario_parameter: Parameter) -> int:
    """A constant of the design, in the scenario's unit."""
    printed = prints.parameter(
        choice.campaign, choice.scenario, scenario_parameter, choice.printed
    )
    chosen = choice.place.parameters.get(scenario_parameter.name)
    if chosen is None:
        chosen = scenario_parameter.default if printed is None else int(printed)
    value = min(max(chosen, scenario_parameter.minimum), scenario_parameter.maximum)
    reason = (
        _("the scenario's default")
        if printed is None
        else _("what the scenario offers")
    )
    if choice.quick and scenario_parameter.name in choice.quick.parameters:
        value, reason = (
            choice.quick.parameters[scenario_parameter.name],
            _("the quick form"),
        )
    elif (
        scenario_parameter.name == SCALE
        and (most := _largest_scale(choice.servers))
        and value > most
    ):
        value, reason = most, _explain_size()
    choice.reasons[scenario_parameter.name] = reason
    return value


def _explain_size() -> str:
    return _(
        "so that the data fit into a quarter of the server's memory and free space"
    )


def _largest_scale(servers: Sequence[Server]) -> int:
    """The scale whose data fit into memory and onto the disk; 0 if neither is known."""
    rooms = [
        room * share
        for server in servers
        for room, share in (
            (
                server.hardware.memory_bytes if server.hardware else None,
                SHARE_OF_MEMORY,
            ),
            (server.free_bytes, SHARE_OF_DISK),
        )
        if room
    ]
    return max(1, int(min(rooms) / BYTES_PER_SCALE)) if rooms else 0


def levels(
    choice: Choice, factor: AnyFactor, installations: Sequence[Installation]
) -> list[Level]:
    """The levels of a factor, in its order. Never empty."""
    printed_levels = prints.list_levels(
        choice.campaign, choice.place, factor.name, choice.printed
    )
    wanted_levels = list(choice.place.levels.get(factor.name, printed_levels))
    chosen = [level for level in wanted_levels if factor.accepts(level)]
    reason = _("what the scenario offers")
    if not chosen:
        quick = choice.quick.levels.get(factor.name) if choice.quick else None
        chosen, reason = list(factor.default), _("the scenario's default")
        if quick and set(quick) != set(chosen):
            chosen, reason = list(quick), _("the quick form")
    elif len(chosen) > 1:
        chosen, reason = _sized(choice, factor, chosen, reason)
    elif factor.name == SCALE:
        chosen, reason = _constant_scale(choice, chosen, reason)
    able, why = _runnable(choice.scenario, factor, chosen, installations)
    if able != chosen:
        chosen, reason = able, why
    if factor.name == CLIENTS:
        connected = [level for level in chosen if int(level) <= choice.most_clients]
        if connected and connected != chosen:
            chosen = connected
            reason = _("the configuration has fewer connections than printed clients")
    if wanted_levels and (fewer := _quick(choice, factor, chosen)) != chosen:
        chosen, reason = fewer, _("the quick form")
    choice.reasons[factor.name] = reason
    return factor.ordered(chosen)


def _quick(choice: Choice, factor: AnyFactor, levels: list[Level]) -> list[Level]:
    """As many as the quick form has, at least two: the first, the last, and some between."""
    offered = choice.quick.levels.get(factor.name) if choice.quick else None
    if not offered:
        return levels
    needs_further = factor.name in choice.scenario.elsewhere
    if needs_further and choice.has_further:
        # The factor that the place is about stays whole.
        return levels
    if choice.quick and factor.name in choice.quick.on_one_machine:
        return [level for level in levels if level in offered] or levels
    most, ordered = max(2, len(offered)), factor.ordered(levels)
    common = [level for level in ordered if level in offered]
    if len(levels) <= most:
        return levels
    if len(common) == most and {ordered[0], ordered[-1]} <= set(common):
        return common
    return [
        ordered[round(index * (len(ordered) - 1) / (most - 1))] for index in range(most)
    ]


def _sized(
    choice: Choice, factor: AnyFactor, levels: list[Level], reason: str
) -> tuple[list[Level], str]:
    """Levels for these machines, and why they differ."""
    known_cores = [cores_of(server.hardware) for server in choice.servers]
    ours = min((cores for cores in known_cores if cores), default=None)
    if factor.name == CORES and ours:
        possible = [level for level in levels if int(level) <= ours]
        if possible != levels:
            return [*possible, *([] if ours in possible else [ours])], _(
                "the server has no more cores"
            )
    if limit := _limit(choice, factor):
        fits, why = limit
        possible = [level for level in levels if fits(level)]
        if factor.name == BUFFERS and len(possible) == 1 < len(levels):
            # The largest of the scenario's sizes, so that the question keeps two levels.
            offered = factor.choices if isinstance(factor, ChoiceFactor) else ()
            possible += [
                candidate
                for candidate in offered
                if fits(candidate) and candidate not in possible
            ][-1:]
        if possible and possible != levels:
            return possible, why
    node = prints.database_node(choice.campaign)
    theirs = cores_of(node.hardware) if node else None
    if (
        factor.name == CLIENTS
        and not choice.quick
        and theirs
        and ours
        and theirs != ours
    ):
        scaled = sorted({max(1, round(int(level) * ours / theirs)) for level in levels})
        words = {"theirs": theirs, "ours": ours}
        sentence = _(
            "as many clients a core as on the %(theirs)d cores there; here are %(ours)d"
        )
        return [*scaled], sentence % words
    return levels, reason


def _constant_scale(
    choice: Choice, levels: list[Level], reason: str
) -> tuple[list[Level], str]:
    """The one printed scale, or a smaller one: it is a size of the data, and no question."""
    scale = int(levels[0])
    quick = choice.quick.levels.get(SCALE, ()) if choice.quick else ()
    if quick and (largest := max(map(int, quick))) < scale:
        return [largest], _("the quick form")
    if (most := _largest_scale(choice.servers)) and most < scale:
        return [most], _explain_size()
    return levels, reason


def _limit(
    choice: Choice, factor: AnyFactor
) -> tuple[Callable[[Level], bool], str] | None:
    """Which levels these machines can do at all, and why not others; None if nothing limits."""
    if factor.name == SCALE and (most := _largest_scale(choice.servers)):
        return lambda level: int(level) <= most, _explain_size()
    if factor.name == BUFFERS and (room := least_memory(choice.servers)):
        why = _("the memory of the server, of which shared_buffers get at most 40 %")
        return lambda level: _bytes(level) <= SHARE_OF_BUFFERS * room, why
    if factor.name == SYNC_METHOD and any(
        server.environment and server.environment.kernel.startswith("Linux")
        for server in choice.servers
    ):
        return lambda level: level not in NOT_ON_LINUX, _(
            "Linux does not have that method"
        )
    return None


def _runnable(
    scenario: Scenario,
    factor: AnyFactor,
    levels: list[Level],
    installations: Sequence[Installation],
) -> tuple[list[Level], str]:
    """The levels that can be measured; the others with the reason. Never empty.

    Where each version can run a level, one that only newer versions can run stays: a design leaves
    out the cells of the older ones.
    """

    def why_not(level: Level) -> list[str]:
        return [
            refusal(scenario, installation, {factor.name: level})
            for installation in installations
        ]

    refused = {level: why_not(level) for level in levels}
    able = [level for level in levels if not any(refused[level])]
    why = next(
        (
            refusal
            for level in reversed(levels)
            for refusal in refused[level]
            if refusal
        ),
        "",
    )
    if able:
        newer = (
            level
            for level in levels
            if _needs_newer_version(scenario, factor, level, installations)
        )
        measurable = {*able, *newer}
        return [level for level in levels if level in measurable], why
    if not levels:
        return able, why
    return [level for level in factor.default if not any(why_not(level))] or levels, why


def _needs_newer_version(
    scenario: Scenario,
    factor: AnyFactor,
    level: Level,
    installations: Sequence[Installation],
) -> bool:
    """Whether some versions can run a level, and the others are too old for it."""
    levels = {factor.name: level}
    able = [
        installation
        for installation in installations
        if scenario.refusal(installation.version_num, levels) is None
    ]
    return bool(able) and not any(
        refusal(scenario, installation, levels) for installation in able
    )


def refusal(
    scenario: Scenario, installation: Installation, levels: Mapping[str, Any]
) -> str:
    """Why an installation cannot run cells with these levels; empty if it can."""
    unmet = scenario.refusal(installation.version_num, levels)
    if unmet is not None:
        return _(unmet.reason)
    for needed in scenario.extensions:
        if needed.concerns(levels) and needed.name not in installation.extensions:
            words = {"extension": needed.name, "installation": installation}
            return (
                _("%(installation)s does not have the extension %(extension)s.") % words
            )
    return ""


def _bytes(buffers: Level) -> int:
    """Zero for a level that is no size."""
    try:
        return Effective({BUFFERS: str(buffers)}, MAJORS[-1]).bytes(BUFFERS) or 0
    except ValueError:
        return 0


def least_memory(servers: Sequence[Server]) -> int | None:
    """Bytes of the server with the least, of those that are known."""
    rooms = [server.hardware.memory_bytes for server in servers if server.hardware]
    return min((room for room in rooms if room), default=None)


def cores_of(hardware: Any) -> int | None:
    """The cores of a machine, else its threads; None if unknown."""
    return (hardware.cores or hardware.threads) if hardware else None
