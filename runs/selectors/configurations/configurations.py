"""Configurations: a list with how often each is used, and one with its uses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from runs.models import (
    Campaign,
    CampaignConfiguration,
    Configuration,
    ConfigurationRevision,
    Installation,
    PublishedNode,
)
from runs.models.postgres import major_version
from runs.postgresql_settings.catalogue import known_major
from runs.selectors.access import projects
from runs.selectors.access.projects import Reader
from runs.selectors.campaigns import campaigns
from runs.selectors.campaigns.campaigns import CampaignRow
from runs.selectors.compare.series_cells import CONFIGURATION
from runs.templatetags.formats import named

MOST_WORDS = 8


def listed(*, words: str = "", origin: str = "") -> QuerySet[Configuration]:
    """Configurations by name; those of one origin, if given, that have all of the words."""
    found = Configuration.objects.order_by("name", "pk")
    if origin:
        found = found.filter(origin=origin)
    for word in words.split()[:MOST_WORDS]:
        found = found.filter(_mentions(word))
    return found


def uses(configuration_ids: list[int], *, to: Reader) -> dict[int, int]:
    """How many campaigns that the reader may see use each configuration. Three queries."""
    found = dict.fromkeys(configuration_ids, 0)
    visible = projects.visible(Campaign.objects.all(), to=to)
    own = visible.filter(configuration__in=configuration_ids).order_by()
    varied = CampaignConfiguration.objects.filter(
        configuration__in=configuration_ids, campaign__in=visible
    ).order_by()
    printed = PublishedNode.objects.filter(
        configuration__in=configuration_ids, table__campaign__in=visible
    ).order_by()
    for key, number in own.values_list("configuration").annotate(Count("pk")):
        found[key] += number
    for key, number in varied.values_list("configuration").annotate(Count("pk")):
        found[key] += number
    for key, number in printed.values_list("configuration").annotate(
        Count("table__campaign", distinct=True)
    ):
        found[key] += number
    return found


def used_by(configuration: Configuration, *, to: Reader, limit: int) -> list[CampaignRow]:
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
    """The configurations of a campaign, as they were when it was queued.

    The baseline first; empty if the campaign has none. One query if the configuration varies.
    """
    if campaign.configuration is not None:
        then = campaign.configuration_revision or campaign.configuration
        return [_contained(campaign.configuration, then)]
    if CONFIGURATION not in campaign.factors:
        return []
    varied = campaign.configurations.select_related("configuration", "revision")
    return [_contained(each.configuration, each.revision) for each in varied]


def _contained(
    configuration: Configuration, then: Configuration | ConfigurationRevision
) -> Contained:
    return Contained(configuration.slug, named(configuration), then.settings, then.initdb_options)


def installed_majors() -> list[str]:
    """The major versions installed on any server, oldest first; only recorded ones."""
    nums = Installation.objects.filter(removed_at=None).order_by("version_num")
    majors = (known_major(major_version(num)) for num in nums.values_list("version_num", flat=True))
    return list(dict.fromkeys(major for major in majors if major))


def history(configuration: Configuration) -> QuerySet[ConfigurationRevision]:
    """All revisions of the configuration's content, the newest first."""
    return configuration.revisions.select_related("created_by").order_by("-number")


def _mentions(word: str) -> Q:
    return (
        Q(name__icontains=word)
        | Q(slug__icontains=word)
        | Q(description__icontains=word)
        | Q(settings__has_key=word.lower())
    )
