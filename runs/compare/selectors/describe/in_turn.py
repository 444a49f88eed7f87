"""The command that measures both sides of a comparison in one job."""

import shlex

from runs.models import Campaign

AGAIN = (
    "benchlab-upload --campaign %(campaign)s --scenario %(scenario)s --compare %(branch)s "
    "--pair base=COMMAND head=COMMAND"
)


def in_turn(campaign: Campaign, ref: str) -> str:
    """The client's command that measures a commit and where it left the branch in one job."""
    words = {
        "campaign": campaign.uploaded_as or campaign.slug,
        "scenario": campaign.scenario.slug,
        "branch": campaign.tracked_ref or ref or "main",
    }
    return AGAIN % {name: shlex.quote(word) for name, word in words.items()}
