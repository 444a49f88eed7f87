"""A campaign's cells and measurements for other programs: CSV and JSON."""

import json
from collections import defaultdict
from typing import Any

from runs.models import Campaign, Cell, CellSummary, Measurement
from runs.reports import tables

# After these come one column a factor, then the figures.
FIRST = ("campaign", "run", "repeat", "position", "state", "version")
LAST = ("metric", "value", "unit", "n", "statistic", "started_at", "finished_at")


def as_csv(campaign: Campaign) -> str:
    """A measurement a line, each factor in a column of its own. Two queries."""
    factors = _factors(campaign)
    rows = tuple(_line(campaign, found, factors) for found in _measurements(campaign))
    return tables.as_csv(tables.Table((*FIRST, *factors, *LAST), rows))


def as_json(campaign: Campaign) -> str:
    """The campaign, and each cell with its summaries and measurements. Three queries."""
    measured: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for each in _measurements(campaign):
        measured[each.run.cell_id].append(
            {
                "run": each.run_id,
                "repeat": each.run.repeat,
                "metric": each.metric.name,
                "value": each.value,
                "unit": each.metric.unit,
                "n": each.n,
                "statistic": each.statistic,
            }
        )
    summaries: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in CellSummary.objects.filter(cell__campaign=campaign).select_related("metric"):
        summaries[row.cell_id].append(_summary(row))
    document = {
        "campaign": campaign.slug,
        "title": campaign.title,
        "origin": campaign.origin,
        "scenario": campaign.scenario.slug,
        "factors": campaign.factors,
        "parameters": campaign.parameters,
        "repeats": campaign.repeats,
        "seed": campaign.seed,
        "cells": [
            {
                "levels": cell.levels,
                "version": cell.version,
                "summaries": summaries[cell.pk],
                "measurements": measured[cell.pk],
            }
            for cell in _cells(campaign)
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _cells(campaign: Campaign) -> list[Cell]:
    return list(campaign.cells.order_by("ordinal"))


def _factors(campaign: Campaign) -> tuple[str, ...]:
    """Every factor of a cell but the version, which has its column."""
    names = (name for cell in _cells(campaign) for name in cell.levels)
    return tuple(name for name in dict.fromkeys(names) if name not in (*FIRST, *LAST))


def _measurements(campaign: Campaign) -> list[Measurement]:
    found = Measurement.objects.filter(run__campaign=campaign)
    related = found.select_related("metric", "run__cell").defer("run__plan")
    return list(related.order_by("run__cell__ordinal", "run__repeat", "metric__name", "pk"))


def _line(
    campaign: Campaign, found: Measurement, factors: tuple[str, ...]
) -> tuple[tables.Value, ...]:
    run, cell = found.run, found.run.cell
    times = (each.isoformat() if each else None for each in (run.started_at, run.finished_at))
    return (
        campaign.slug,
        run.pk,
        run.repeat,
        run.position,
        run.state,
        cell.version,
        *(_level(cell.levels.get(name)) for name in factors),
        found.metric.name,
        found.value,
        found.metric.unit,
        found.n,
        found.statistic,
        *times,
    )


def _level(level: Any) -> tables.Value:
    return level if level is None or isinstance(level, int | float) else str(level)


def _summary(row: CellSummary) -> dict[str, Any]:
    return {
        "metric": row.metric.name,
        "unit": row.metric.unit,
        "n": row.n,
        "median": row.median,
        "minimum": row.minimum,
        "maximum": row.maximum,
        "mean": row.mean,
    }
