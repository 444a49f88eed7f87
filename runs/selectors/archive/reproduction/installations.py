"""Which installations a design measures: those of the printed versions, else their neighbours."""

from collections import defaultdict
from collections.abc import Sequence, Set

from django.utils.translation import gettext as _

from runs.models import Installation
from runs.selectors.archive import versions
from runs.selectors.archive.reproduction.choice import Choice
from runs.selectors.archive.reproduction.levels import refusal
from runs.selectors.archive.reproduction.printed import BLOCK_SIZE, VERSION


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
