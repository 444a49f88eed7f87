"""The conditions of a publication: hardware, environments, configurations, topologies."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Model, ProtectedError
from django.utils.text import slugify

from runs.configurations.services import configurations
from runs.configurations.services.contents import Content
from runs.fingerprints import fingerprint
from runs.models import (
    Campaign,
    Configuration,
    Environment,
    HardwareProfile,
    PublishedNode,
    Source,
    Topology,
)
from runs.postgresql_settings.catalogue import known_major
from runs.published.document import CampaignEntry, Document, NodeEntry
from runs.queue.services import results


@dataclass(frozen=True)
class NodeConditions:
    """The stored rows of a node; None for what is not printed."""

    hardware: HardwareProfile | None
    environment: Environment | None
    configuration: Configuration | None
    settings_id: int | None


@dataclass(frozen=True)
class Conditions:
    """The stored rows by their keys in the file; topologies by kind and name."""

    hardware: Mapping[str, HardwareProfile]
    environments: Mapping[str, Environment]
    configurations: Mapping[str, Configuration]
    settings: Mapping[str, int]
    topologies: Mapping[tuple[str, str], Topology]

    def find_node(self, node: NodeEntry | None) -> NodeConditions:
        """The stored rows of a node."""
        if node is None:
            return NodeConditions(None, None, None, None)
        return NodeConditions(
            self.hardware.get(node.hardware),
            self.environments.get(node.environment),
            self.configurations.get(node.configuration),
            self.settings.get(node.configuration),
        )

    def topology(self, campaign: CampaignEntry) -> Topology | None:
        """The arrangement of a campaign's machines, if the publication states it."""
        return self.topologies.get((campaign.topology_kind, campaign.topology_name.en))


Rows = dict[type[Model], set[int]]


def stored_for(source: Source) -> Rows:
    """The keys of all conditions that belong to a source as stored now."""
    nodes = PublishedNode.objects.filter(table__source=source)
    campaigns = Campaign.objects.filter(published__source=source)

    def keys(row: Any, name: str) -> set[int]:
        return set(row.exclude(**{name: None}).order_by().values_list(name, flat=True))

    return {
        HardwareProfile: keys(nodes, "hardware"),
        Environment: keys(nodes, "environment"),
        Configuration: keys(nodes, "configuration"),
        Topology: keys(campaigns, "topology"),
    }


def store(document: Document) -> Conditions:
    """Make or update the conditions that a node of the document names."""
    nodes = [node for campaign in document.campaigns for node in campaign.nodes]
    slug = document.source.slug
    configurations_made = {
        key: _configuration(document, key)
        for key in _named(node.configuration for node in nodes)
    }
    return Conditions(
        hardware={
            key: _profile(HardwareProfile, slug, document.hardware[key])
            for key in _named(node.hardware for node in nodes)
        },
        environments={
            key: _profile(Environment, slug, document.environments[key])
            for key in _named(node.environment for node in nodes)
        },
        configurations=configurations_made,
        settings={
            key: results.snapshot(settings=_format_settings(configuration.settings)).pk
            for key, configuration in configurations_made.items()
        },
        topologies={
            (campaign.topology_kind, campaign.topology_name.en): _topology(
                slug, campaign
            )
            for campaign in document.campaigns
            if campaign.topology_kind
        },
    )


def remove(stale: Rows, *, kept: Conditions | None = None) -> None:
    """Delete the `stale` rows that are not kept and that nothing refers to."""
    still: Rows = {}
    if kept:
        still = {
            HardwareProfile: {row.pk for row in kept.hardware.values()},
            Environment: {row.pk for row in kept.environments.values()},
            Configuration: {row.pk for row in kept.configurations.values()},
            Topology: {row.pk for row in kept.topologies.values()},
        }
    for model, keys in stale.items():
        for row in model._default_manager.filter(pk__in=keys - still.get(model, set())):
            try:
                row.delete()
            except ProtectedError:
                # A user's own run uses it by now.
                continue


def _named(keys: Iterable[str]) -> list[str]:
    return [key for key in dict.fromkeys(keys) if key]


def _profile(model: Any, source: str, entry: Any) -> Any:
    fields = dataclasses.asdict(entry)
    digest = fingerprint([source, fields])
    profile, _created = model.objects.update_or_create(
        slug=f"{source}-{fields.pop('key')}"[:120],
        defaults={**fields, "fingerprint": digest},
    )
    return profile


def _configuration(document: Document, key: str) -> Configuration:
    entry = document.configurations[key]
    version = f"PostgreSQL {entry.version}, " if entry.version else ""
    return configurations.store(
        slug=f"{document.source.slug}-{key}"[:100],
        name=entry.name.en,
        name_ja=entry.name.ja,
        description=f"{version}{document.source.title.en}",
        content=Content(
            entry.settings,
            entry.initdb_options,
            written_for=known_major(entry.version) or "",
        ),
        origin=Configuration.Origin.PUBLISHED,
    )


def _format_settings(printed: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """In the form of a server's own settings, with value and unit together as printed."""
    return {
        name: {"setting": value, "unit": "", "source": "configuration file"}
        for name, value in printed.items()
    }


def _topology(source: str, campaign: CampaignEntry) -> Topology:
    name = campaign.topology_name.en or campaign.topology_kind
    topology, _created = Topology.objects.update_or_create(
        slug=f"{source}-{campaign.topology_kind}-{slugify(name)}"[:100],
        defaults={
            "name": name,
            "name_ja": campaign.topology_name.ja,
            "kind": campaign.topology_kind,
        },
    )
    return topology
