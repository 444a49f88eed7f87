"""The two sides of a settings difference: runs, cells, campaigns or configurations.

A side is named as in an address: `run:12`, `cell:7`, `campaign:slug`, `configuration:slug`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from runs.models import Campaign, Cell, Configuration, Run, SettingsSnapshot
from runs.models.postgres import major_version
from runs.postgresql_settings.catalogue import known_major
from runs.postgresql_settings.comparing import Shown, of_server
from runs.selectors.access import projects
from runs.selectors.access.projects import Reader

KINDS = ("run", "cell", "campaign", "configuration")
LARGEST_ID = 2**63 - 1


@dataclass(frozen=True)
class Applied:
    """The settings of one side.

    For a run, a cell or a campaign, what its servers printed: for each name the values that occur.
    For a configuration, only its content; then `configuration` is set and `values` is empty.
    """

    reference: str
    kind: str
    label: str
    slug: str
    major: str | None
    values: Mapping[str, tuple[Shown, ...]]
    configuration: Configuration | None = None


class UnknownReference(LookupError):
    """There is no such run, cell, campaign or configuration, or this reader may not see it."""


def load(reference: str, *, to: Reader) -> Applied:
    """The settings that a reference names. Up to four queries. Raises UnknownReference."""
    kind, _colon, key = reference.strip().partition(":")
    if kind == "configuration":
        return _configuration(reference, key)
    if kind == "campaign":
        return _campaign(reference, key, to)
    if kind in {"run", "cell"} and key.isascii() and key.isdigit() and int(key) <= LARGEST_ID:
        return _run(reference, int(key), to) if kind == "run" else _cell(reference, int(key), to)
    raise UnknownReference(reference)


def _configuration(reference: str, slug: str) -> Applied:
    found = Configuration.objects.filter(slug=slug).first()
    if found is None:
        raise UnknownReference(reference)
    major = known_major(found.written_for)
    return Applied(reference, "configuration", found.name, slug, major, {}, found)


def _campaign(reference: str, slug: str, to: Reader) -> Applied:
    found = projects.visible(Campaign.objects.filter(slug=slug), to=to).first()
    if found is None:
        raise UnknownReference(reference)
    return _recorded(reference, "campaign", found.title, slug, found.runs.all())


def _cell(reference: str, key: int, to: Reader) -> Applied:
    cells = projects.visible(Cell.objects.filter(pk=key), to=to)
    found = cells.select_related("campaign").first()
    if found is None:
        raise UnknownReference(reference)
    levels = ", ".join(str(level) for level in found.levels.values())
    label = f"{found.campaign.title}: {levels}"
    return _recorded(reference, "cell", label, found.campaign.slug, found.runs.all())


def _run(reference: str, key: int, to: Reader) -> Applied:
    runs = projects.visible(Run.objects.filter(pk=key), to=to)
    found = runs.select_related("cell", "campaign").first()
    if found is None:
        raise UnknownReference(reference)
    levels = ", ".join(str(level) for level in found.cell.levels.values())
    label = f"{found.campaign.title}: {levels}"
    return _recorded(reference, "run", label, found.campaign.slug, runs)


def _recorded(reference: str, kind: str, label: str, slug: str, runs: QuerySet[Run]) -> Applied:
    """What the servers of the runs printed; each distinct output is read once."""
    pairs = list(
        runs.filter(settings__isnull=False)
        .order_by()
        .values_list("settings_id", "cell__version_num")
        .distinct()
    )
    prints = SettingsSnapshot.objects.in_bulk([key for key, _version in pairs])
    values: dict[str, dict[Shown, None]] = {}
    majors = []
    for key, version_num in pairs:
        major = known_major(major_version(version_num)) if version_num else None
        majors.append(major)
        for name, shown in of_server(_printed(prints[key].settings), major).items():
            values.setdefault(name, {})[shown] = None
    newest = max((each for each in majors if each), key=_order, default=None)
    each_once = {name: tuple(shown) for name, shown in values.items()}
    return Applied(reference, kind, label, slug, newest, each_once)


def _printed(stored: Any) -> Mapping[str, Mapping[str, str]]:
    return {name: each for name, each in stored.items() if isinstance(each, dict)}


def _order(major: str) -> list[int]:
    return [int(part) for part in major.split(".")]
