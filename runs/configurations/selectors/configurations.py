"""Configurations: a list with uses, and the two sides of a settings difference.

A side is named as in an address: `run:12`, `cell:7`, `campaign:slug`, `configuration:slug`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils.translation import get_language

from runs.access.selectors import projects
from runs.access.selectors.projects import M, Reader
from runs.campaigns.selectors import campaigns
from runs.campaigns.selectors.campaigns import CampaignRow
from runs.cells.selectors.series_cells import CONFIGURATION
from runs.models import (
    Campaign,
    CampaignConfiguration,
    Cell,
    Configuration,
    ConfigurationRevision,
    Installation,
    PublishedNode,
    Run,
    SettingsSnapshot,
    Source,
)
from runs.models.postgres import major_version
from runs.postgresql_settings.catalogue import known_major
from runs.postgresql_settings.comparing import Shown, read_server
from runs.shared.formats import named, translated
from runs.shared.whole_numbers import whole_number


def listed(*, to: Reader) -> QuerySet[Configuration]:
    """Those that the reader may see by name."""
    return projects.visible(Configuration.objects.order_by("name", "pk"), to=to)


def descriptions(configurations: Iterable[Configuration]) -> dict[int, str]:
    """What each is, in the reader's language: a published one ends with its publication's title.

    In Japanese one query.
    """
    is_japanese = (get_language() or "").startswith("ja")
    titles = (
        dict(Source.objects.values_list("title", "title_ja")) if is_japanese else {}
    )
    texts = {}
    for configuration in configurations:
        title = next(
            (title for title in titles if configuration.description.endswith(title)), ""
        )
        start = configuration.description.removesuffix(title)
        texts[configuration.pk] = (
            start + (titles[title] or title) if title else translated(start)
        )
    return texts


def uses(configuration_ids: list[int], *, to: Reader) -> dict[int, int]:
    """How many campaigns that the reader may see use each configuration. Three queries."""
    visible = projects.visible(Campaign.objects.all(), to=to)
    varied = CampaignConfiguration.objects.filter(campaign__in=visible)
    printed = PublishedNode.objects.filter(table__campaign__in=visible)
    counted = (
        (visible, Count("pk")),
        (varied, Count("pk")),
        (printed, Count("table__campaign", distinct=True)),
    )
    uses_of = dict.fromkeys(configuration_ids, 0)
    for users, number in counted:
        users_of_configurations = users.filter(
            configuration__in=configuration_ids
        ).order_by()
        for key, used in users_of_configurations.values_list("configuration").annotate(
            number
        ):
            uses_of[key] += used
    return uses_of


def used_by(
    configuration: Configuration, *, to: Reader, limit: int
) -> list[CampaignRow]:
    """The newest campaigns that the reader may see and that use it, published ones included."""
    printed = PublishedNode.objects.filter(
        configuration=configuration, table__campaign=OuterRef("pk")
    )
    varied = CampaignConfiguration.objects.filter(
        configuration=configuration, campaign=OuterRef("pk")
    )
    using = campaigns.listed().filter(
        Q(configuration=configuration) | Exists(varied) | Exists(printed)
    )
    return campaigns.rows(projects.visible(using, to=to)[:limit])


@dataclass(frozen=True)
class Contained:
    """A configuration of a campaign, with its content at the time that it was queued."""

    slug: str
    name: str
    settings: Mapping[str, Any]
    initdb_options: Sequence[str]


def contained(campaign: Campaign) -> list[Contained]:
    """The configurations that a campaign was queued with, the baseline first. One query at most."""
    if campaign.configuration is not None:
        then = campaign.configuration_revision or campaign.configuration
        return [_contained(campaign.configuration, then)]
    if CONFIGURATION not in campaign.factors:
        return []
    varied = campaign.configurations.select_related("configuration", "revision")
    return [
        _contained(
            campaign_configuration.configuration, campaign_configuration.revision
        )
        for campaign_configuration in varied
    ]


def _contained(
    configuration: Configuration, then: Configuration | ConfigurationRevision
) -> Contained:
    return Contained(
        configuration.slug, named(configuration), then.settings, then.initdb_options
    )


def installed_majors() -> list[str]:
    """The major versions installed on any server, oldest first; only recorded ones."""
    nums = Installation.objects.filter(removed_at=None).order_by("version_num")
    majors = (
        known_major(major_version(num))
        for num in nums.values_list("version_num", flat=True)
    )
    return list(dict.fromkeys(major for major in majors if major))


def history(configuration: Configuration) -> QuerySet[ConfigurationRevision]:
    """All revisions of the configuration's content, the newest first."""
    return configuration.revisions.select_related("created_by").order_by("-number")


@dataclass(frozen=True)
class Applied:
    """The settings of one side.

    For a run, a cell or a campaign, what its servers printed: for each name the values that occur.
    For a configuration, only its content; then `configuration` is set and `values` is empty.
    `majors` are all versions of the servers, `major` is the newest.
    """

    reference: str
    kind: str
    label: str
    slug: str
    major: str | None
    values: Mapping[str, tuple[Shown, ...]]
    configuration: Configuration | None = None
    majors: tuple[str, ...] = ()


class UnknownReference(LookupError):
    """There is no such run, cell, campaign or configuration, or this reader may not see it."""


def load_reference(reference: str, *, to: Reader) -> Applied:
    """The settings that a reference names. Up to four queries. Raises UnknownReference."""
    kind, _colon, key = reference.strip().partition(":")
    if kind == "configuration":
        configuration = _seen(Configuration.objects.filter(slug=key), reference, to)
        major = known_major(configuration.written_for)
        return Applied(
            reference, kind, configuration.name, key, major, {}, configuration
        )
    if kind == "campaign":
        campaign = _seen(Campaign.objects.filter(slug=key), reference, to)
        return _recorded(
            reference, kind, campaign.title, campaign.slug, campaign.runs.all()
        )
    if whole_number(key) is None:
        raise UnknownReference(reference)
    if kind == "cell":
        cell = _seen(
            Cell.objects.filter(pk=key).select_related("campaign"), reference, to
        )
        return _apply_cell(reference, kind, cell, cell.runs.all())
    if kind == "run":
        runs = Run.objects.filter(pk=key)
        run = _seen(runs.select_related("cell__campaign"), reference, to)
        return _apply_cell(reference, kind, run.cell, runs)
    raise UnknownReference(reference)


def _seen(rows: QuerySet[M], reference: str, to: Reader) -> M:
    visible_row = projects.visible(rows, to=to).first()
    if visible_row is None:
        raise UnknownReference(reference)
    return visible_row


def _apply_cell(reference: str, kind: str, cell: Cell, runs: QuerySet[Run]) -> Applied:
    levels = ", ".join(str(level) for level in cell.levels.values())
    label = f"{cell.campaign.title}: {levels}"
    return _recorded(reference, kind, label, cell.campaign.slug, runs)


def _recorded(
    reference: str, kind: str, label: str, slug: str, runs: QuerySet[Run]
) -> Applied:
    """What the servers of the runs printed; each distinct output is read once."""
    pairs = list(
        runs.filter(settings__isnull=False)
        .order_by()
        .values_list("settings_id", "cell__version_num")
        .distinct()
    )
    prints = SettingsSnapshot.objects.in_bulk([key for key, _version in pairs])
    values: dict[str, dict[Shown, list[str]]] = {}
    majors = set()
    for key, version_num in pairs:
        major = known_major(major_version(version_num)) if version_num else None
        majors.add(major or "")
        for name, value_shown in read_server(
            _printed(prints[key].settings), major
        ).items():
            values.setdefault(name, {}).setdefault(value_shown, []).append(major or "")
    ordered = sorted(majors - {""}, key=_order)
    each_once = {
        name: _shown_values(versions_of, len(ordered))
        for name, versions_of in values.items()
    }
    newest = ordered[-1] if ordered else None
    return Applied(
        reference, kind, label, slug, newest, each_once, majors=tuple(ordered)
    )


def _shown_values(
    versions_of: Mapping[Shown, Sequence[str]], number: int
) -> tuple[Shown, ...]:
    """The values that occur, each with its versions where these differ in it."""
    if number < 2 or len(versions_of) < 2:
        return tuple(versions_of)
    return tuple(
        replace(value_shown, majors=tuple(sorted(set(majors) - {""}, key=_order)))
        for value_shown, majors in versions_of.items()
    )


def _printed(stored: Any) -> Mapping[str, Mapping[str, str]]:
    return {
        name: printed_row
        for name, printed_row in stored.items()
        if isinstance(printed_row, dict)
    }


def _order(major: str) -> list[int]:
    return [int(number) for number in major.split(".")]
