"""Flame graphs of the profiles that runs bring along."""

from collections.abc import Iterable, Iterator

from runs.charts import flame_graph
from runs.execution.profiling import FOLDED
from runs.execution.reporter import ArtifactData
from runs.models import Run

NAME = "flame-graph.svg"


def drawn(run: Run, artifacts: Iterable[ArtifactData]) -> Iterator[ArtifactData]:
    """The picture of the run's folded stacks, if it has any."""
    for data in artifacts:
        if data.name == FOLDED:
            levels = ", ".join(f"{name} {level}" for name, level in run.cell.levels.items())
            title = f"Run {run.pk}: {levels}"
            folded = data.content.decode(errors="replace")
            try:
                picture = flame_graph.render(folded, title=title)
            except ValueError:
                continue
            yield ArtifactData(NAME, picture.encode(), "image/svg+xml")
