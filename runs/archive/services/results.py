"""The results of a publication: campaigns, cells, runs, measurements, summaries, artifacts."""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from runs.analysis.summary import summarise
from runs.archive.services.published_conditions import Conditions
from runs.cells.selectors import versions
from runs.execution.reporter import ArtifactData
from runs.grouping import group_by_key
from runs.models import (
    Artifact,
    Campaign,
    Cell,
    CellSummary,
    Measurement,
    Metric,
    Run,
    Scenario,
    Source,
)
from runs.models.campaigns import Origin
from runs.models.runs import SUMMARY_REPEAT
from runs.published.derived_figures import Checked, CheckedTable
from runs.published.document import ArtifactEntry, CampaignEntry, Document, NodeEntry
from runs.published.errors import PublishedFileError
from runs.published.figures import Figure, key_of
from runs.queue.services import artifacts

Identity = tuple[Any, ...]


@dataclass
class PlannedRun:
    """A run to store: its figures, and the machine that they belong to."""

    levels: Mapping[str, Any]
    repeat: int
    node: NodeEntry | None
    figures: list[Checked] = field(default_factory=list)
    artifacts: list[ArtifactEntry] = field(default_factory=list)


# The runs of each table, by the slug of its campaign.
Planned = Mapping[str, Mapping[Identity, PlannedRun]]


def planned_runs(table: CheckedTable) -> dict[Identity, PlannedRun]:
    """The runs of a table by (cell's key, repeat), in printed order."""
    repeated = {
        checked.figure.key
        for checked in table.figures
        if checked.figure.repeat is not None
    }
    planned: dict[Identity, PlannedRun] = {}
    for checked in table.figures:
        figure = checked.figure
        repeat = figure.repeat or (SUMMARY_REPEAT if figure.key in repeated else 1)
        run = planned.setdefault(
            (figure.key, repeat), PlannedRun(figure.levels, repeat, figure.node)
        )
        if run.node != figure.node:
            message = f"“{figure.text}”: figures with the levels {figure.key} name two machines."
            raise PublishedFileError(
                message, campaign=table.campaign.slug, row=figure.row
            )
        run.figures.append(checked)
    for artifact in table.campaign.artifacts:
        _place_of(artifact, table.campaign, planned).artifacts.append(artifact)
    return planned


def _place_of(
    artifact: ArtifactEntry,
    campaign: CampaignEntry,
    planned: dict[Identity, PlannedRun],
) -> PlannedRun:
    """The first run that has the artifact's levels; if there is none, a new run without figures."""
    for run in planned.values():
        if artifact.levels.items() <= run.levels.items():
            return run
    levels = {**campaign.levels, **artifact.levels}
    node = next(
        (
            node
            for node in campaign.nodes
            if node.role == "database" and node.levels.items() <= levels.items()
        ),
        None,
    )
    return planned.setdefault((key_of(levels), 1), PlannedRun(levels, 1, node))


K = TypeVar("K", bound=Hashable)
M = TypeVar("M", bound=Model)


def keep_in_step(
    rows: QuerySet[M],
    identity: Sequence[str],
    wanted_rows: Mapping[K, Mapping[str, Any]],
) -> dict[K, M]:
    """Delete, update and insert until the rows are those wanted; `identity` are columns of a row.

    A constant number of queries for any number of rows. Call it in a transaction.
    """
    model, manager, same = (
        rows.model,
        rows.model._default_manager,
        itemgetter(*identity),
    )
    fields = {same(row_fields): row_fields for row_fields in wanted_rows.values()}
    stored_rows = {same(vars(row)): row for row in rows}
    gone = [row.pk for key, row in stored_rows.items() if key not in fields]
    if gone:
        manager.filter(pk__in=gone).delete()
    new_rows = {
        key: model(**row_fields)
        for key, row_fields in fields.items()
        if key not in stored_rows
    }
    manager.bulk_create(new_rows.values(), batch_size=2000)
    changed = [
        row
        for key, row in stored_rows.items()
        if key in fields and _apply(row, fields[key])
    ]
    if changed:
        manager.bulk_update(changed, list(next(iter(fields.values()))), batch_size=500)
    stored = {**stored_rows, **new_rows}
    return {
        row_key: stored[same(row_fields)] for row_key, row_fields in wanted_rows.items()
    }


def _apply(row: Model, fields: Mapping[str, Any]) -> bool:
    """Set the fields; return whether any of them changed."""
    different = [name for name, value in fields.items() if getattr(row, name) != value]
    for name in different:
        setattr(row, name, fields[name])
    return bool(different)


@dataclass(frozen=True)
class Results:
    """What is stored: campaigns by slug, measurements by campaign, row and column."""

    campaigns: Mapping[str, Campaign]
    measurements: Mapping[tuple[str, int, int], Measurement]


def store(
    *,
    source: Source,
    document: Document,
    tables: Sequence[CheckedTable],
    conditions: Conditions,
    metrics: Mapping[str, Metric],
) -> Results:
    """Bring all results of a source in step with its file; unchanged rows keep their keys."""
    campaigns = _campaigns(source, document, tables, conditions)
    planned = {table.campaign.slug: planned_runs(table) for table in tables}
    cells = _cells(document, campaigns, planned)
    runs = _runs(document, campaigns, cells, planned, conditions)
    _summaries(cells, planned, metrics)
    measurements = _measurements(runs, planned, metrics)
    _artifacts(runs, planned)
    return Results(campaigns, measurements)


def remove(source: Source) -> None:
    """Delete campaigns of a source and everything that belongs to them."""
    Campaign.objects.filter(published__source=source).delete()


def _campaigns(
    source: Source,
    document: Document,
    tables: Sequence[CheckedTable],
    conditions: Conditions,
) -> dict[str, Campaign]:
    own_campaigns = Campaign.objects.filter(published__source=source)
    other_campaigns = Campaign.objects.exclude(pk__in=own_campaigns.values("pk"))
    campaign_of_another = other_campaigns.filter(
        slug__in=[table.campaign.slug for table in tables]
    ).first()
    if campaign_of_another is not None:
        raise PublishedFileError(
            "is the slug of another campaign.", campaign=campaign_of_another.slug
        )
    scenarios = dict(Scenario.objects.values_list("slug", "pk"))
    wanted_campaigns = {}
    for table in tables:
        entry = table.campaign
        if entry.scenario not in scenarios:
            message = f"names the scenario {entry.scenario}; known are {', '.join(scenarios)}."
            raise PublishedFileError(message, campaign=entry.slug)
        wanted_campaigns[entry.slug] = _campaign(
            table, scenarios[entry.scenario], conditions
        ) | {"year": document.source.year}
    return keep_in_step(own_campaigns, ["slug"], wanted_campaigns)


def _campaign(
    table: CheckedTable, scenario_id: int, conditions: Conditions
) -> dict[str, Any]:
    entry = table.campaign
    topology = conditions.topology(entry)
    node = next((node for node in entry.nodes if node.role == "database"), None)
    configuration = conditions.find_node(node).configuration
    return {
        **campaign_fields(table),
        "scenario_id": scenario_id,
        "topology_id": topology.pk if topology else None,
        "configuration_id": configuration.pk if configuration else None,
    }


def campaign_fields(table: CheckedTable) -> dict[str, Any]:
    """What is stored of a campaign itself."""
    entry = table.campaign
    return {
        "slug": entry.slug,
        "title": entry.title.en,
        "title_ja": entry.title.ja,
        "question": entry.question.en,
        "question_ja": entry.question.ja,
        "origin": Origin.PUBLISHED,
        "state": Campaign.State.FINISHED,
        "factors": _factors(table) or dict(entry.factors),
        "parameters": dict(entry.parameters),
        "repeats": entry.repeats or 1,
    }


def _factors(table: CheckedTable) -> dict[str, list[Any]]:
    levels_of: dict[str, list[Any]] = defaultdict(list)
    for checked in table.figures:
        for name, level in checked.figure.levels.items():
            if level not in levels_of[name]:
                levels_of[name].append(level)
    return dict(levels_of)


def _cells(
    document: Document, campaigns: Mapping[str, Campaign], planned: Planned
) -> dict[Identity, Cell]:
    wanted_cells: dict[Identity, dict[str, Any]] = {}
    for entry in document.campaigns:
        for position, ((key, _repeat), run) in enumerate(planned[entry.slug].items()):
            fields = {
                "campaign_id": campaigns[entry.slug].pk,
                "key": key,
                "ordinal": position + 1,
            }
            wanted_cells.setdefault(
                (entry.slug, key), cell_fields(entry, run.levels) | fields
            )
    rows = Cell.objects.filter(campaign__in=campaigns.values())
    return keep_in_step(rows, ["campaign_id", "key"], wanted_cells)


def cell_fields(entry: CampaignEntry, levels: Mapping[str, Any]) -> dict[str, Any]:
    """What is stored of a cell besides its key and place."""
    version = _version(entry, levels)
    return {
        "levels": dict(levels),
        "version": version,
        "version_num": versions.number(entry.versions.get(version, version)),
    }


def _version(entry: CampaignEntry, levels: Mapping[str, Any]) -> str:
    """The version that a cell measures, as printed; empty if it is not a PostgreSQL version."""
    version = str(levels.get("version", ""))
    if not version and len(entry.versions) == 1:
        (version,) = entry.versions
    return version if versions.number(version) else ""


def _runs(
    document: Document,
    campaigns: Mapping[str, Campaign],
    cells: Mapping[Identity, Cell],
    planned: Planned,
    conditions: Conditions,
) -> dict[Identity, Run]:
    wanted_runs = {}
    for entry in document.campaigns:
        for position, ((key, repeat), run) in enumerate(planned[entry.slug].items()):
            wanted_runs[entry.slug, key, repeat] = _run(entry, run, conditions) | {
                "campaign_id": campaigns[entry.slug].pk,
                "cell_id": cells[entry.slug, key].pk,
                "position": position + 1,
            }
    rows = Run.objects.filter(campaign__in=campaigns.values()).defer("plan")
    return keep_in_step(rows, ["cell_id", "repeat"], wanted_runs)


def _run(
    entry: CampaignEntry, run: PlannedRun, conditions: Conditions
) -> dict[str, Any]:
    on = conditions.find_node(run.node)
    version = _version(entry, run.levels)
    return {
        "repeat": run.repeat,
        "origin": Origin.PUBLISHED,
        "state": Run.State.FINISHED,
        "hardware_id": on.hardware.pk if on.hardware else None,
        "environment_id": on.environment.pk if on.environment else None,
        "settings_id": on.settings_id,
        "server_version": entry.versions.get(version, version),
        "tool_name": entry.tool_name,
        "tool_version": entry.tool_version,
    }


def _measurements(
    runs: Mapping[Identity, Run], planned: Planned, metrics: Mapping[str, Metric]
) -> dict[tuple[str, int, int], Measurement]:
    wanted_measurements = {
        (slug, checked.figure.row, checked.figure.column): _measurement(
            checked.figure, runs[slug, key, repeat], metrics
        )
        for slug, of_campaign in planned.items()
        for (key, repeat), run in of_campaign.items()
        for checked in run.figures
    }
    rows = Measurement.objects.filter(run__in=runs.values())
    return keep_in_step(rows, ["run_id", "metric_id", "statistic"], wanted_measurements)


def _measurement(
    figure: Figure, run: Run, metrics: Mapping[str, Metric]
) -> dict[str, Any]:
    return {
        "run_id": run.pk,
        "metric_id": metrics[figure.metric].pk,
        "value": figure.number.value,
        # The printed figure itself says whether n and the statistic are printed.
        "n": figure.n or 1,
        "statistic": figure.statistic or "single",
    }


def _summaries(
    cells: Mapping[Identity, Cell], planned: Planned, metrics: Mapping[str, Metric]
) -> None:
    wanted_summaries = {
        (slug, key, metric): summary
        | {"cell_id": cells[slug, key].pk, "metric_id": metrics[metric].pk}
        for slug, of_campaign in planned.items()
        for (key, metric), summary in planned_summaries(of_campaign).items()
    }
    rows = CellSummary.objects.filter(cell__in=cells.values())
    keep_in_step(rows, ["cell_id", "metric_id"], wanted_summaries)


def planned_summaries(
    planned: Mapping[Identity, PlannedRun],
) -> dict[Identity, dict[str, Any]]:
    """The summaries of a table by (cell's key, metric)."""
    figures = (checked for run in planned.values() for checked in run.figures)
    grouped = group_by_key(
        ((checked.figure.key, checked.figure.metric), checked.figure)
        for checked in figures
        if checked.kind == "measured"
    )
    return {summary_key: _summary(figures) for summary_key, figures in grouped.items()}


def _summary(figures: Iterable[Figure]) -> dict[str, Any]:
    """Computed from the printed repeats if there are any, else from the single printed figure."""
    figure_list = list(figures)
    repeats = [
        figure.number.value for figure in figure_list if figure.repeat is not None
    ]
    if repeats:
        return dict(vars(summarise(repeats)))
    figure = figure_list[0]
    value = figure.number.value
    return {
        "n": figure.n,
        "median": value,
        "minimum": value,
        "maximum": value,
        "mean": value,
        "log_mean": math.log(value) if value > 0 else None,
        "log_variance": None,
    }


def _artifacts(runs: Mapping[Identity, Run], planned: Planned) -> None:
    wanted_artifacts = {
        (runs[slug, key, repeat].pk, artifact.name): (runs[slug, key, repeat], artifact)
        for slug, of_campaign in planned.items()
        for (key, repeat), run in of_campaign.items()
        for artifact in run.artifacts
    }
    for row in Artifact.objects.filter(run__in=runs.values()):
        if (row.run_id, row.name) not in wanted_artifacts:
            row.delete()
    missing_files = [
        (run.pk, ArtifactData(artifact.name, artifact.text.encode()))
        for run, artifact in wanted_artifacts.values()
    ]
    for _file, error in artifacts.store_all(missing_files):
        raise error
