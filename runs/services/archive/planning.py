"""Which runs a published table becomes: its figures by cell and repeat, and its artifacts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runs.models.runs import SUMMARY_REPEAT
from runs.published.checks import Checked, CheckedTable
from runs.published.document import ArtifactEntry, CampaignEntry, NodeEntry
from runs.published.errors import PublishedFileError
from runs.published.figures import key_of

Identity = tuple[Any, ...]


@dataclass
class PlannedRun:
    """A run to store: its figures, and the machine that they belong to."""

    levels: Mapping[str, Any]
    repeat: int
    node: NodeEntry | None
    figures: list[Checked] = field(default_factory=list)
    artifacts: list[ArtifactEntry] = field(default_factory=list)


def planned_runs(table: CheckedTable) -> dict[Identity, PlannedRun]:
    """The runs of a table by (cell's key, repeat), in printed order."""
    repeated = {each.figure.key for each in table.figures if each.figure.repeat is not None}
    planned: dict[Identity, PlannedRun] = {}
    for checked in table.figures:
        figure = checked.figure
        repeat = figure.repeat or (SUMMARY_REPEAT if figure.key in repeated else 1)
        run = planned.setdefault(
            (figure.key, repeat), PlannedRun(figure.levels, repeat, figure.node)
        )
        if run.node != figure.node:
            message = f"“{figure.text}”: figures with the levels {figure.key} name two machines."
            raise PublishedFileError(message, campaign=table.campaign.slug, row=figure.row)
        run.figures.append(checked)
    for artifact in table.campaign.artifacts:
        _place_of(artifact, table.campaign, planned).artifacts.append(artifact)
    return planned


def _place_of(
    artifact: ArtifactEntry, campaign: CampaignEntry, planned: dict[Identity, PlannedRun]
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
