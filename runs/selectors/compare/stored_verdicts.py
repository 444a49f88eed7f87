"""Verdicts as they are stored: every row with what it said, so that later runs do not change it."""

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from runs.analysis.comparability_judgement import Differing
from runs.analysis.inference import Inference
from runs.analysis.summary import Summary
from runs.models import Metric
from runs.selectors.compare.cell_runs import CellRuns
from runs.selectors.compare.head_and_base import Side
from runs.selectors.compare.verdicts import SideVerdict, VerdictRow

Json = dict[str, Any]


def as_json(found: SideVerdict) -> Json:
    """The table of a verdict, for a JSON column; the sides are not part of it."""
    return {
        "effect": found.effect,
        "rows": [_row_as_json(row) for row in found.rows],
        "together": [
            {"metric": metric.pk, "comparison": _finite(asdict(average))}
            for metric, average in found.together.items()
        ],
    }


def from_json(stored: Mapping[str, Any], base: Side, head: Side) -> SideVerdict:
    """The verdict of a stored table between these sides. One query."""
    metrics = Metric.objects.in_bulk({row["metric"] for row in stored["rows"]})
    rows = [_row(row, metrics[row["metric"]]) for row in stored["rows"] if row["metric"] in metrics]
    # Tables of 0.2 and before have no averages.
    together = {
        metrics[each["metric"]]: _inference(each["comparison"])
        for each in stored.get("together", ())
        if each["metric"] in metrics
    }
    return SideVerdict(base, head, tuple(rows), stored["effect"], together)


def _row_as_json(row: VerdictRow) -> Json:
    parts = ("base", "head", "base_runs", "head_runs", "comparison")
    found: Json = {
        name: None if (part := getattr(row, name)) is None else _finite(asdict(part))
        for name in parts
    }
    return found | {
        "levels": dict(row.levels),
        "metric": row.metric.pk,
        "is_asked": row.is_asked,
        "head_cell": row.head_cell,
    }


def _finite(value: Any) -> Any:
    """A copy with None for what JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value


def _row(stored: Json, metric: Metric) -> VerdictRow:
    return VerdictRow(
        stored["levels"],
        metric,
        _summary(stored["base"]),
        _summary(stored["head"]),
        CellRuns(**_known(CellRuns, stored["base_runs"])),
        CellRuns(**_known(CellRuns, stored["head_runs"])),
        _inference(stored["comparison"]),
        is_asked=stored["is_asked"],
        head_cell=stored["head_cell"],
    )


def _inference(stored: Json) -> Inference:
    known = _known(Inference, stored)
    differing = tuple(Differing(**_known(Differing, each)) for each in known["differing"])
    return Inference(**{**known, "differing": differing})


def _summary(stored: Json | None) -> Summary | None:
    return None if stored is None else Summary(**_known(Summary, stored))


def _known(of: type[Any], stored: Json) -> Json:
    """The members that this version knows, with tuples for JSON's lists."""
    names = {each.name for each in fields(of)}
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in stored.items()
        if name in names
    }
