"""Which runs share a loaded cluster, or copy one from a stopped template."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from runs.execution.plan import RunPlan
from runs.fingerprints import fingerprint
from runs.models import Campaign, Installation, Server


def without_needless_templates(plans: Sequence[RunPlan], repeats: int) -> list[RunPlan]:
    """A template that only one run would use costs more than it saves: such a run loads itself.

    Each plan is that of a cell with this many repeats.
    """
    uses = Counter(plan.template_key for plan in plans)
    is_needless = [uses[plan.template_key] * repeats < 2 for plan in plans]
    return [
        replace(plan, template_key="") if needless else plan
        for plan, needless in zip(plans, is_needless, strict=True)
    ]


def cluster_key(
    campaign: Campaign,
    server: Server,
    installation: Installation,
    settings: object,
    options: object,
    data: object,
) -> str:
    """The same for runs that can share a loaded cluster: same machine, binaries, settings, data."""
    binaries = [server.slug, installation.bindir, installation.version]
    made_of = [*binaries, settings, options, campaign.parameters, data]
    return f"{campaign.pk}-{fingerprint(made_of)[:12]}"
