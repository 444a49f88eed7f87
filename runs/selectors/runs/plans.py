"""Query plans that runs have stored."""

from runs.models import Artifact
from runs.models.runs import PLAN_PREFIX
from runs.selectors.access import projects
from runs.selectors.access.projects import Reader

MOST_OFFERED = 100


def others(artifact: Artifact, *, to: Reader) -> list[Artifact]:
    """Plans of the same campaign that one can be compared with, by cell and repeat. One query."""
    same = Artifact.objects.filter(
        run__campaign_id=artifact.run.campaign_id, name__startswith=PLAN_PREFIX
    )
    seen = projects.visible(same.exclude(pk=artifact.pk), to=to)
    ordered = seen.select_related("run__cell").order_by("run__cell__ordinal", "run__repeat", "name")
    return list(ordered[:MOST_OFFERED])
