"""The picture of a run's states in docs/execution.md is that of the table of transitions."""

from pathlib import Path

from runs.models import Run
from runs.services.runs.runs import TRANSITIONS

PAGE = Path(__file__).parents[4] / "docs/execution.md"
BEGIN, END = "```mermaid\n", "```\n"


def picture() -> str:
    """The states in Mermaid's language, in the order of the model."""
    order = {state: place for place, state in enumerate(Run.State.values)}
    lines = ["stateDiagram-v2", "    [*] --> queued"]
    for state in sorted(TRANSITIONS, key=lambda each: order[each]):
        following = sorted(TRANSITIONS[state], key=lambda each: order[each])
        lines += [f"    {state} --> {Run.State(to).value}" for to in following]
        if not following:
            lines.append(f"    {state} --> [*]")
    return "\n".join(lines) + "\n"


def test_the_picture_shows_every_transition_and_no_other():
    drawn = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    assert drawn == picture(), f"put this into {PAGE.name}:\n{picture()}"
