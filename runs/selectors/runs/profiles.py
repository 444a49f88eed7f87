"""Profiles that runs have stored."""

from runs.execution.profiling import FOLDED
from runs.models import Artifact
from runs.selectors.access import projects
from runs.selectors.access.projects import Reader

MOST_OFFERED = 100


def of_run(run_id: int, *, to: Reader) -> Artifact | None:
    """The folded stacks of a run; None if it has none, or the reader may not see it."""
    seen = projects.visible(Artifact.objects.filter(run_id=run_id, name=FOLDED), to=to)
    return seen.select_related("run__cell", "run__campaign").first()


def others(artifact: Artifact, *, to: Reader) -> list[Artifact]:
    """Profiles of the same campaign, by cell and repeat. One query."""
    same = Artifact.objects.filter(run__campaign_id=artifact.run.campaign_id, name=FOLDED)
    seen = projects.visible(same.exclude(pk=artifact.pk), to=to).select_related("run__cell")
    return list(seen.order_by("run__cell__ordinal", "run__repeat")[:MOST_OFFERED])
