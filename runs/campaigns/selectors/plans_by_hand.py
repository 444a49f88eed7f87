"""A campaign's plan for a machine without SSH, which `benchlab-versions` executes there."""

from collections.abc import Mapping
from typing import Any

from runs.execution.clusters.initdb_options import options_for
from runs.execution.plan import RunPlan, UnreadablePlan
from runs.models import Campaign, Run
from runs.scenarios import registry
from runs.scenarios.definition import Scenario


def plan_by_hand(campaign: Campaign) -> dict[str, Any] | None:
    """Cells, their clusters, the order and the load; None if no other machine can repeat it.

    Only scenarios of one cluster that pgbench loads with one script can be repeated. The order is
    that in which the campaign was queued, without what was measured again or added later. Two
    queries.
    """
    slug = campaign.scenario.slug
    scenario = registry.get(slug) if registry.knows(slug) else None
    if scenario is None or scenario.by_hand is None:
        return None
    queued = Run.objects.filter(campaign=campaign, plan__isnull=False, again_of=None)
    planned = queued.filter(repeat__lte=campaign.repeats).order_by("position", "pk")
    order = list(planned.values_list("pk", "cell_id", "repeat"))
    cells = _cells({cell: run for run, cell, _repeat in order}, scenario)
    if not cells:
        return None
    return {
        "campaign": campaign.slug,
        "title": campaign.title,
        "scenario": scenario.slug,
        "parameters": campaign.parameters,
        "load": list(scenario.by_hand.load),
        "script": scenario.by_hand.script,
        "cells": cells,
        "order": [{"cell": cell, "round": repeat} for _run, cell, repeat in order],
    }


def _cells(last_run_of: Mapping[int, int], scenario: Scenario) -> list[dict[str, Any]]:
    """The cells in this order, each by the plan of its last run; empty where one has no such plan.

    A plan is a kilobyte, so those of the other runs are not read. Of a run, since the cells of a
    long campaign would be looked up one by one.
    """
    runs = Run.objects.filter(pk__in=last_run_of.values()).order_by()
    plans = {
        cell: (version, plan or {})
        for cell, version, plan in runs.values_list("cell_id", "cell_version", "plan")
    }
    cell_entries = []
    for cell in last_run_of:
        version, plan = plans[cell]
        try:
            read = RunPlan.from_json(plan)
        except UnreadablePlan:  # imported from a later version
            return []
        if read.clusters or read.cores:
            return []
        cell_entries.append(
            {
                "cell": cell,
                "version": version,
                "levels": read.levels,
                "settings": read.settings,
                "initdb_options": list(
                    options_for(read.version_num, read.initdb_options)
                ),
                # Each run gets a cluster of its own.
                "is_fresh": scenario.changes_data(read.levels),
            }
        )
    return cell_entries
