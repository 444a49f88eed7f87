"""A campaign's plan for a machine without SSH, which `benchlab-upload` executes there."""

from typing import Any

from runs.execution.plan import RunPlan, UnreadablePlan
from runs.execution.postgres import options_for
from runs.models import Campaign, Run
from runs.scenarios import registry
from runs.scenarios.definition import Scenario


def plan_by_hand(campaign: Campaign) -> dict[str, Any] | None:
    """Cells, their clusters, the order and the load; None if no other machine can repeat it.

    Only scenarios of one cluster that pgbench loads with one script can be repeated. The order is
    that in which the campaign was queued. Two queries.
    """
    scenario = next(
        (each for each in registry.every() if each.slug == campaign.scenario.slug), None
    )
    if scenario is None or scenario.by_hand is None:
        return None
    planned = Run.objects.filter(campaign=campaign, plan__isnull=False).order_by("position")
    runs = list(planned.select_related("cell").only("cell", "repeat", "position", "plan"))
    try:
        plans = {run.cell_id: (run.cell.version, RunPlan.from_json(run.plan or {})) for run in runs}
    except UnreadablePlan:  # imported from a later version
        return None
    if not plans or any(plan.clusters or plan.cores for _version, plan in plans.values()):
        return None
    return {
        "campaign": campaign.slug,
        "title": campaign.title,
        "scenario": scenario.slug,
        "parameters": campaign.parameters,
        "load": list(scenario.by_hand.load),
        "script": scenario.by_hand.script,
        "cells": [
            _cell(number, version, plan, scenario) for number, (version, plan) in plans.items()
        ],
        "order": [{"cell": run.cell_id, "round": run.repeat} for run in runs],
    }


def _cell(number: int, version: str, plan: RunPlan, scenario: Scenario) -> dict[str, Any]:
    """`is_fresh`: each run gets a cluster of its own."""
    return {
        "cell": number,
        "version": version,
        "levels": plan.levels,
        "settings": plan.settings,
        "initdb_options": list(options_for(plan.version_num, plan.initdb_options)),
        "is_fresh": scenario.changes_data(plan.levels),
    }
