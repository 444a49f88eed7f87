"""What results refer to: looked up by name, created if missing.

Existing rows stay as they are. If one contradicts the file, the file is refused: results must not
change their meaning by being moved.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.db.models import Model
from django.utils.translation import gettext as _

from runs.access.selectors import projects
from runs.cells.selectors import metrics
from runs.configurations.services import configurations
from runs.exchange.services.reading import IMPORTED, refused
from runs.fingerprints import fingerprint
from runs.models import (
    Configuration,
    ConfigurationRevision,
    Environment,
    HardwareProfile,
    Metric,
    Project,
    Revision,
    Scenario,
    SettingsSnapshot,
    Topology,
)
from runs.queue.services import results
from runs.seals.selectors import export_fields
from runs.seals.selectors.export_fields import Row
from runs.shared import slugs


class Known:
    """The keys of what a file has named so far, by kind and name."""

    def __init__(self, project: Project, *, exported_from: str) -> None:
        self.project = project
        self.exported_from = exported_from
        self.keys: dict[tuple[str, Any], int] = {}
        self.makers: Mapping[str, Callable[[Row], tuple[Any, Model]]] = {
            "scenario": _scenario,
            "metric": self._metric,
            "hardware": partial(_profile, HardwareProfile, export_fields.HARDWARE),
            "environment": partial(_profile, Environment, export_fields.ENVIRONMENT),
            "settings": _settings,
            "configuration": self._configuration,
            "topology": _topology,
            "revision": self._revision,
        }

    def add(self, number: int, kind: str, row: Row) -> None:
        """Find or create what a line describes. Raises Refused if the two contradict."""
        try:
            name, instance = self.makers[kind](row)
        except _Contradiction as contradiction:
            message = _(
                "%(kind)s %(name)s is here already, and differs in: %(fields)s."
            )
            names = {
                "kind": kind,
                "name": contradiction.name,
                "fields": contradiction.field,
            }
            raise refused(
                number, "differs", message % names, "contradicts"
            ) from contradiction
        self.keys[kind, name] = instance.pk

    def key(self, number: int, kind: str, name: Any) -> int | None:
        """The key of the row with this name; None for no name. Raises Refused if unknown."""
        if name is None:
            return None
        if (kind, name) not in self.keys:
            message = _("%(kind)s %(name)s is named here, but not described before.")
            raise refused(
                number, "not_described", message % {"kind": kind, "name": name}
            )
        return self.keys[kind, name]

    def _revision(self, row: Row) -> tuple[str, Revision]:
        revision, created = Revision.objects.get_or_create(
            project=self.project,
            sha=row["sha"],
            defaults=_fields(row, export_fields.REVISION, "sha"),
        )
        if created:
            Revision.objects.filter(pk=revision.pk).update(created_at=row["created_at"])
        return row["sha"], revision

    def _configuration(self, row: Row) -> tuple[str, Configuration]:
        configuration, created = self._stored_configuration(row)
        if configuration.content_hash != row["content_hash"]:
            raise _Contradiction(row["slug"], "content_hash")
        for revision_row in row["revisions"] if created else ():
            configuration_revision = ConfigurationRevision.objects.create(
                configuration=configuration,
                **_fields(revision_row, export_fields.CONFIGURATION_REVISION),
            )
            ConfigurationRevision.objects.filter(pk=configuration_revision.pk).update(
                created_at=revision_row["created_at"]
            )
        configuration_revisions = ConfigurationRevision.objects.filter(
            configuration=configuration
        )
        for number, key in configuration_revisions.values_list("number", "pk"):
            self.keys["configuration_revision", (row["slug"], number)] = key
        return row["slug"], configuration

    def _stored_configuration(self, row: Row) -> tuple[Configuration, bool]:
        """That of the slug, or a new one of the project; under another slug if others hide theirs.

        What an earlier import has made so is found again by its content.
        """
        usable = projects.usable(
            Configuration.objects.all(), in_project=self.project.pk
        )
        if configuration := usable.filter(slug=row["slug"]).first():
            return configuration, False
        name = row["slug"].removesuffix(f"{slugs.OF}{self.exported_from}")
        slug = slugs.free(
            Configuration,
            name,
            project=self.project,
            forbidden_slugs=configurations.NOT_SLUGS,
        )
        if slug != row["slug"]:
            own_configurations = Configuration.objects.filter(
                project=self.project, name=row["name"], content_hash=row["content_hash"]
            )
            if configuration := own_configurations.first():
                return configuration, False
        fields = _fields(row, export_fields.CONFIGURATION, "slug")
        return Configuration.objects.create(
            slug=slug, project=self.project, **fields
        ), True

    def _metric(self, row: Row) -> tuple[str, Metric]:
        known_metric = metrics.known([row["name"]], in_project=self.project.pk).last()
        fields = _fields(row, export_fields.METRIC)
        metric = known_metric or Metric.objects.create(project=self.project, **fields)
        for name in ("unit", "direction"):
            if getattr(metric, name) != row[name]:
                raise _Contradiction(row["name"], name)
        return row["name"], metric


class _Contradiction(Exception):
    def __init__(self, name: str, field: str) -> None:
        super().__init__(name)
        self.name = name
        self.field = field


def _scenario(row: Row) -> tuple[str, Scenario]:
    defaults = _fields(row, export_fields.SCENARIO, "slug")
    return row["slug"], Scenario.objects.get_or_create(
        slug=row["slug"], defaults=defaults
    )[0]


def _profile(model: Any, names: tuple[str, ...], row: Row) -> tuple[str, Any]:
    """The profile with this content. A slug that belongs to another profile here stays there."""
    mark, fields = row["fingerprint"], _fields(row, names, "fingerprint")
    if fields["slug"] and model.objects.filter(slug=fields["slug"]).exists():
        fields["slug"] = ""
    return mark, model.objects.get_or_create(fingerprint=mark, defaults=fields)[0]


def _settings(row: Row) -> tuple[str, SettingsSnapshot]:
    # Otherwise a later run with the same settings would be reported with these.
    if fingerprint(row["settings"]) != row["content_hash"]:
        raise ValueError("content_hash is not that of the settings")
    visible_settings = results.redact_secrets(row["settings"])
    settings_snapshot = results.snapshot(settings=visible_settings)
    if settings_snapshot.settings != visible_settings:
        raise _Contradiction(row["content_hash"], "settings")
    return row["content_hash"], settings_snapshot


def _topology(row: Row) -> tuple[str, Topology]:
    """One without nodes: servers do not belong to a project, and are not moved.

    Another one of that slug may be what others imported: its name is not shown here.
    """
    slug, fields = (
        f"{IMPORTED}{row['slug']}"[:100],
        {"name": row["name"], "kind": row["kind"]},
    )
    topology = Topology.objects.filter(slug__startswith=slug, **fields).first()
    if topology is None:
        topology = Topology.objects.create(slug=slugs.free(Topology, slug), **fields)
    return row["slug"], topology


def _fields(row: Row, names: tuple[str, ...], *without: str) -> Row:
    left_out = {"created_at", *without}
    return {name: row[name] for name in names if name not in left_out}
