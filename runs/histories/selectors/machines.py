"""What changed on the machine where a history changed its level."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from runs.analysis.comparability_judgement import Differing
from runs.cells.selectors import history_points, revisions
from runs.compare.selectors.load import comparability
from runs.histories.selectors.causes import Cause
from runs.models import Cell, Change, Environment, HardwareProfile, Revision, Server

OF_MACHINE = ("hardware", "environment")
# So many points on each side say which machine it was.
AROUND = 3


@dataclass(frozen=True)
class Changed:
    """What is known to have changed: facts for a JSON column, and whether one forbids to compare.

    What forbids a comparison of before and after is the machine's by itself.
    """

    facts: tuple[dict[str, Any], ...] = ()
    is_forbidden: bool = False


def changed(change: Change) -> Changed:
    """What differs between the machines of all points around a step of commits. Nine queries.

    What only some of the last points before it and of the first ones after it have is no change.
    """
    campaign, revision = change.cell.campaign, change.cell.revision
    if revision is None:
        return Changed()
    revisions_found = Revision.objects.filter(
        project=revision.project_id, sha__in={change.earliest, change.latest}
    )
    between = {revision.sha: revision for revision in revisions_found}
    first_revision, last_revision = (
        between.get(sha, revision) for sha in (change.earliest, change.latest)
    )
    before = _cells(
        change, revisions.last(campaign, first_revision, campaign.tracked_ref, AROUND)
    )
    after = _cells(
        change,
        [last_revision, *revisions.following(campaign, last_revision, AROUND - 1)],
    )
    comparability_known = comparability.read_comparability([*before, *after])
    pairs = [
        {
            differing.name: differing
            for differing in comparability_known.judgement(
                base_cell, head_cell
            ).differing
        }
        for base_cell, head_cell in itertools.product(before, after)
    ]
    differing_facts = [
        differing
        for differing in (pairs[0].values() if pairs else ())
        if differing.kind in OF_MACHINE
        and all(differing.name in differing_of_pair for differing_of_pair in pairs)
    ]
    facts = (
        _stated_facts(differing_facts, before[0], after[0]) if differing_facts else ()
    )
    return Changed(
        facts, any(differing.weight == "forbids" for differing in differing_facts)
    )


def _stated_facts(
    facts: Sequence[Differing], before: int, after: int
) -> tuple[dict[str, Any], ...]:
    """As the profiles of both sides spell them: what is judged is in small letters."""
    runs = history_points.first_runs({before, after})
    profiles: dict[str, dict[int, Any]] = {
        "hardware": HardwareProfile.objects.in_bulk(
            {runs[cell].hardware or 0 for cell in runs}
        ),
        "environment": Environment.objects.in_bulk(
            {runs[cell].environment or 0 for cell in runs}
        ),
    }
    stated_facts = []
    for differing in facts:
        sides = {}
        for side, cell, judged in (
            ("before", before, differing.base),
            ("after", after, differing.head),
        ):
            profile = profiles[differing.kind].get(
                getattr(runs[cell], differing.kind) or 0
            )
            stated = getattr(profile, differing.name, None)
            is_same = len(judged) == 1 and str(stated).lower() == str(judged[0]).lower()
            sides[side] = [stated] if is_same else list(judged)
        stated_facts.append({"kind": differing.kind, "name": differing.name, **sides})
    return tuple(stated_facts)


def _cells(change: Change, revisions_wanted: Sequence[Revision]) -> list[int]:
    """The cells of the change's series at these commits."""
    cells = Cell.objects.filter(
        campaign=change.campaign_id,
        series_key=change.cell.series_key,
        revision__in=revisions_wanted,
    )
    return list(cells.values_list("pk", flat=True))


def again(causes: Iterable[Cause]) -> dict[str, dict[str, str]]:
    """By commit what the form of a bisection is asked, for causes on the machine of a server here.

    Two queries and those of the parent of each; none without causes of a machine.
    """
    machine_causes = [
        cause for cause in causes if cause.is_machine and cause.first.run.hardware_id
    ]
    if not machine_causes:
        return {}
    servers = list(
        Server.objects.filter(hardware__isnull=False).select_related("hardware")
    )
    profiles = HardwareProfile.objects.in_bulk(
        {cause.first.run.hardware_id for cause in machine_causes}
    )
    server_of = {
        _named_by(server.hardware): server.slug for server in servers if server.hardware
    }
    chosen: dict[str, dict[str, str]] = {}
    for cause in machine_causes:
        campaign, revision = cause.first.cell.campaign, cause.first.cell.revision
        server = server_of.get(_named_by(profiles[cause.first.run.hardware_id or 0]))
        if revision is None or server is None:
            continue
        ref = campaign.tracked_ref or revision.ref
        if (parent := revisions.baseline(campaign, revision, ref)) is not None:
            chosen[revision.sha] = {
                "campaign": campaign.slug,
                "base": f"revision:{parent.sha}",
                "head": f"revision:{revision.sha}",
                "metric": cause.first.metric.name,
                "scenario": campaign.scenario.slug,
                "server": server,
            }
    return chosen


def _named_by(profile: HardwareProfile) -> tuple[str, int | None]:
    """By what a machine is known again: whoever uploads may state more or less of it."""
    return profile.cpu_model, profile.threads
