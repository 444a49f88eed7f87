"""The client's commands that settle a comparison: both sides in one job, or a job once more."""

import shlex

from runs.models import Campaign

CLIENT = "benchlab-upload --campaign %(campaign)s --scenario %(scenario)s --compare %(branch)s "
IN_TURN = f"{CLIENT}--pair base=COMMAND head=COMMAND"
ONCE_MORE = f"{CLIENT}--again 3 -- COMMAND"


def suggest_command(campaign: Campaign, ref: str) -> str:
    """The command that measures a commit and where it left the branch in one job."""
    return IN_TURN % _words(campaign, ref)


def once_more(campaign: Campaign, ref: str) -> str:
    """The command that measures a commit by a further job."""
    return ONCE_MORE % _words(campaign, ref)


def _words(campaign: Campaign, ref: str) -> dict[str, str]:
    words = {
        "campaign": campaign.uploaded_as or campaign.slug,
        "scenario": campaign.scenario.slug,
        "branch": ref or campaign.tracked_ref or "main",
    }
    return {name: shlex.quote(word) for name, word in words.items()}
