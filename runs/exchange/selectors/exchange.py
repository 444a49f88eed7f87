"""Everything in a project, row by row and in an order that does not depend on keys.

Everything is read by server-side cursors, so the memory taken does not grow with the project.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from runs.grouping import Following
from runs.models import (
    Annotation,
    Artifact,
    Campaign,
    CampaignConfiguration,
    Cell,
    Change,
    Command,
    Configuration,
    ConfigurationRevision,
    Environment,
    HardwareProfile,
    Measurement,
    Metric,
    Project,
    Revision,
    Run,
    RunEvent,
    Scenario,
    Seal,
    Series,
    SettingsSnapshot,
    Topology,
)
from runs.models.campaigns import Origin
from runs.seals.selectors.export_fields import (
    ANNOTATION,
    ARTIFACT,
    CAMPAIGN,
    CELL,
    CHANGE,
    COMMAND,
    CONFIGURATION,
    CONFIGURATION_REVISION,
    ENVIRONMENT,
    EVENT,
    HARDWARE,
    IMPORTED,
    MEASUREMENT,
    METRIC,
    REVISION,
    RUN,
    SCENARIO,
    SEAL,
    SERIES,
    SETTINGS,
    TOPOLOGY,
    Row,
    named,
)

CHUNK = 500
# So many campaigns are read by the same statements: those of a small one alone would take longer
# than its rows.
TOGETHER = 20


def campaigns(project: Project) -> QuerySet[Campaign]:
    """The project's campaigns. Published ones come with BenchLab and are not included; those
    without a project belong to the default one."""
    of_project = Q(project=project)
    if project.slug == "default":
        of_project |= Q(project=None)
    return (
        Campaign.objects.filter(of_project)
        .exclude(origin=Origin.PUBLISHED)
        .order_by("slug")
    )


def _used(runs: QuerySet[Run], name: str) -> Any:
    return runs.exclude(**{name: None}).values(name)


def shared(project: Project) -> Iterator[tuple[str, Row]]:
    """What the project's results refer to: each thing once, by its kind."""
    campaign = campaigns(project).order_by()
    runs = Run.objects.filter(campaign__in=campaign, state__in=Run.ENDED).order_by()
    varied = CampaignConfiguration.objects.filter(campaign__in=campaign).order_by()
    used = Q(pk__in=campaign.values("configuration")) | Q(
        pk__in=varied.values("configuration")
    )
    configurations = Configuration.objects.filter(used).order_by("slug")
    yield from _rows(
        "scenario",
        Scenario.objects.filter(pk__in=campaign.values("scenario")),
        SCENARIO,
        "slug",
    )
    for metric in _metrics(campaign).order_by("name").values(*METRIC, "project_id"):
        is_shared = metric.pop("project_id") is None
        yield "metric", {**metric, "shared": is_shared}
    hardware = HardwareProfile.objects.filter(pk__in=_used(runs, "hardware"))
    yield from _rows("hardware", hardware, HARDWARE, "fingerprint")
    environments = Environment.objects.filter(pk__in=_used(runs, "environment"))
    yield from _rows("environment", environments, ENVIRONMENT, "fingerprint")
    snapshots = SettingsSnapshot.objects.filter(pk__in=_used(runs, "settings"))
    yield from _rows("settings", snapshots, SETTINGS, "content_hash")
    for configuration in configurations.iterator(CHUNK):
        row = {name: getattr(configuration, name) for name in CONFIGURATION}
        revisions = ConfigurationRevision.objects.filter(configuration=configuration)
        row["revisions"] = list(
            revisions.order_by("number").values(*CONFIGURATION_REVISION)
        )
        yield "configuration", row
    topologies = Topology.objects.filter(pk__in=campaign.values("topology"))
    yield from _rows("topology", topologies, TOPOLOGY, "slug")
    yield from _rows(
        "revision", Revision.objects.filter(project=project), REVISION, "sha"
    )


def files(project: Project) -> Iterator[str]:
    """The SHA-256 of each file of the project's runs, once."""
    stored_artifacts = Artifact.objects.filter(
        run__campaign__in=campaigns(project).order_by(), run__state__in=Run.ENDED
    )
    hashes = (
        stored_artifacts.order_by("sha256").values_list("sha256", flat=True).distinct()
    )
    yield from hashes.iterator(CHUNK)


def results(project: Project) -> Iterator[tuple[str, Row]]:
    """Each campaign, then each of its cells followed by its runs, and each run by its outputs."""
    selected = campaigns(project).iterator(CHUNK)
    while together := list(islice(selected, TOGETHER)):
        yield from _results(together)


def _results(together: Sequence[Campaign]) -> Iterator[tuple[str, Row]]:
    these = Q(campaign__in=together)
    order = ("campaign__slug", "cell__ordinal", "cell_id")
    ended, of_cell = these & Q(state__in=Run.ENDED), these & Q(cell__isnull=False)
    notes = _following(
        Annotation, "campaign", ANNOTATION, these & Q(cell=None), order[:1]
    )
    by_ordinal = ("campaign__slug", "ordinal")
    cells = _following(Cell, "campaign", ("pk", *CELL), these, by_ordinal, "cell")
    # The number of the last chain entry that has the content of a run.
    entries = (
        Seal.objects.filter(run=OuterRef("pk")).exclude(content="").order_by("-number")
    )
    sealed_as = Subquery(entries.values("number")[:1])
    in_order = (*order, "repeat")
    origin = tuple(f"imported__{name}" for name in IMPORTED)
    fields = ("pk", *RUN, "imported_id", *origin)
    runs = _following(Run, "cell", fields, ended, in_order, "run", link_seal=sealed_as)
    notes_of_cells = _following(Annotation, "cell", ANNOTATION, of_cell, order)
    outputs = _Outputs(together)
    for campaign in together:
        yield "campaign", _campaign(campaign)
        for note in notes.take_rows(campaign.pk):
            yield "annotation", note
        for cell in cells.take_rows(campaign.pk):
            key = cell.pop("pk")
            yield "cell", cell
            for run in runs.take_rows(key):
                run["imported"] = _provenance(run)
                yield from outputs.add_outputs(run)
            for note in notes_of_cells.take_rows(key):
                yield "annotation", note


def _provenance(run: Row) -> Row | None:
    """Takes where a run came from out of its row; None for one of our own."""
    imported_fields = {name: run.pop(f"imported__{name}") for name in IMPORTED}
    return imported_fields if run.pop("imported_id") else None


def seals(project: Project) -> Iterator[Row]:
    """The project's chain, from its first entry to its last."""
    yield from (
        Seal.objects.filter(project=project)
        .order_by("number")
        .values(*SEAL)
        .iterator(CHUNK)
    )


def _following(
    model: Any,
    owner: str,
    fields: tuple[str, ...],
    which: Q,
    order: tuple[str, ...],
    kind: str = "",
    **further_values: Subquery,
) -> Following:
    rows = model._default_manager.filter(which).order_by(*order, "pk")
    value_rows = rows.values(f"{owner}_id", *fields, **named(kind), **further_values)
    # A few at a time: a series or an output may be megabytes.
    return Following(value_rows.iterator(50), f"{owner}_id")


class _Outputs:
    """The outputs of the runs of some campaigns."""

    def __init__(self, campaigns: Sequence[Campaign]) -> None:
        which = Q(run__campaign__in=campaigns, run__state__in=Run.ENDED)
        order = (
            "run__campaign__slug",
            "run__cell__ordinal",
            "run__cell_id",
            "run__repeat",
            "run_id",
        )

        def following(
            model: Any, fields: tuple[str, ...], *final_order: str, kind: str = ""
        ) -> Following:
            return _following(model, "run", fields, which, (*order, *final_order), kind)

        self.within = {
            "measurements": following(
                Measurement,
                MEASUREMENT,
                "metric__name",
                "statistic",
                kind="measurement",
            ),
            "artifacts": following(Artifact, ARTIFACT, "name"),
            "events": following(RunEvent, EVENT, "at"),
            "changes": following(Change, CHANGE, "metric__name", "kind", kind="change"),
        }
        self.after = {
            "series": following(Series, SERIES, "name"),
            "command": following(Command, COMMAND, "attempt", "ordinal"),
        }

    def add_outputs(self, run: Row) -> Iterator[tuple[str, Row]]:
        """The run with its short rows inside, and its long ones after it."""
        key = run.pop("pk")
        for name, rows in self.within.items():
            run[name] = list(rows.take_rows(key))
        yield "run", run
        for kind, following in self.after.items():
            for row in following.take_rows(key):
                yield kind, row


def _rows(
    kind: str, rows: QuerySet[Any], fields: tuple[str, ...], key: str
) -> Iterator[tuple[str, Row]]:
    for row in rows.order_by(key).values(*fields).iterator(CHUNK):
        yield kind, row


def _metrics(campaign: QuerySet[Campaign]) -> QuerySet[Metric]:
    used = Measurement.objects.filter(
        run__campaign__in=campaign, run__state__in=Run.ENDED
    )
    changed = Change.objects.filter(campaign__in=campaign)
    return Metric.objects.filter(
        Q(pk__in=used.order_by().values("metric"))
        | Q(pk__in=changed.order_by().values("metric"))
    )


def _campaign(campaign: Campaign) -> Row:
    names = named("campaign")
    row = dict(Campaign.objects.filter(pk=campaign.pk).values(*CAMPAIGN, **names).get())
    varied = campaign.configurations.order_by("ordinal")
    row["configurations"] = list(
        varied.values(
            configuration_slug=F("configuration__slug"),
            revision_number=F("revision__number"),
        )
    )
    return row
