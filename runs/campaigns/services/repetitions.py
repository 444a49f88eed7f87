"""Campaigns that repeat runs of another one with something changed, on the same machine."""

import json
import secrets
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User

from runs.execution.plan import RunPlan
from runs.models import Campaign, Cell, Run
from runs.shared import slugs


def store_campaign(
    original: Campaign, *, title: str, slug: str, by: User | None, **fields: Any
) -> Campaign:
    """Store a campaign of the same scenario, topology, configuration, treatment and project.

    `slug` is what it is called where its title has no letters for one; `fields` are its own. No run
    of it is measured again.
    """
    campaign = Campaign(
        title=title[:200],
        scenario=original.scenario,
        topology=original.topology,
        configuration=original.configuration,
        configuration_revision=original.configuration_revision,
        treatment=original.treatment,
        remeasures=0,
        most_attempts=original.most_attempts,
        seed=secrets.randbelow(2**31),
        project=original.project,
        created_by=by,
        **fields,
    )
    return slugs.store(
        campaign,
        called=campaign.title,
        otherwise=slug,
        project=campaign.project,
        taken=("new",),
    )


def make_cell(
    original: Cell, *, campaign: Campaign, ordinal: int, levels: Mapping[str, Any]
) -> Cell:
    """A cell of the same installation and scripts; it is not stored."""
    return Cell(
        campaign=campaign,
        ordinal=ordinal,
        levels=levels,
        key=json.dumps(levels, sort_keys=True),
        installation=original.installation,
        version=original.version,
        version_num=original.version_num,
        workload_version=original.workload_version,
    )


def make_run(original: Run, *, cell: Cell, plan: RunPlan) -> Run:
    """A run of the same machine, as `plans.store` takes it; it is not stored."""
    return Run(
        campaign=cell.campaign,
        cell=cell,
        plan=plan.as_json(),
        server=original.server,
        hardware_id=original.hardware_id,
        environment_id=original.environment_id,
    )
