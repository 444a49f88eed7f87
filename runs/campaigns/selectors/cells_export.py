"""A campaign's cells and measurements for other programs: CSV and JSON, streamed.

Cells, summaries and measurements are read in parallel, in the same order, by server-side cursors,
so the memory used does not grow with the campaign.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from runs.grouping import Following
from runs.models import Campaign, CellSummary, Measurement
from runs.models.runs import judgement
from runs.reports import tables
from runs.reports.csv_lines import csv_lines

CHUNK = 2000
# After these comes one column per factor, then the figures.
FIRST = ("campaign", "run", "repeat", "position", "state", "validity", "version")
LAST = ("metric", "value", "unit", "n", "statistic", "started_at", "finished_at")

OF_RUN = {
    "run": "run_id",
    "repeat": "run__repeat",
    "position": "run__position",
    "state": "run__state",
    "validity": "run__validity",
    "started_at": "run__started_at",
    "finished_at": "run__finished_at",
}
OF_MEASUREMENT = {
    "metric": "metric__name",
    "value": "value",
    "unit": "metric__unit",
    "n": "n",
    "statistic": "statistic",
}
OF_SUMMARY = {
    "metric": "metric__name",
    "unit": "metric__unit",
    **{name: name for name in ("n", "median", "minimum", "maximum", "mean")},
}
IN_JSON = ("run", "repeat", "validity", *OF_MEASUREMENT)

Row = dict[str, Any]


def as_csv(campaign: Campaign) -> Iterator[str]:
    """One measurement per line, each factor in a column of its own. Three queries."""
    # Every factor of a cell except the version, which has its own column.
    levels = campaign.cells.order_by("ordinal", "pk").values_list("levels", flat=True)
    names = dict.fromkeys(
        name for level_names in levels.iterator(CHUNK) for name in level_names
    )
    factors = tuple(name for name in names if name not in (*FIRST, *LAST))
    return csv_lines((*FIRST, *factors, *LAST), _lines(campaign, factors), end="\r\n")


def as_json(campaign: Campaign) -> Iterator[str]:
    """The campaign, and each cell with its summaries and measurements. Three queries."""
    head = {
        "campaign": campaign.slug,
        "title": campaign.title,
        "origin": campaign.origin,
        "scenario": campaign.scenario.slug,
        "factors": campaign.factors,
        "parameters": campaign.parameters,
        "repeats": campaign.repeats,
        "seed": campaign.seed,
    }
    return tables.document(head, cells=_cells_as_json(campaign))


def _rows_of_cells(
    rows: QuerySet[Any], names: dict[str, str], *, cell: str, by: str
) -> Following:
    """Rows that belong to cells, with these names of their fields."""
    ordered = rows.order_by(f"{cell}__ordinal", f"{cell}_id", *by.split())
    value_rows = ordered.values_list(f"{cell}_id", *names.values()).iterator(CHUNK)
    return Following(
        (dict(zip(("cell", *names), row, strict=True)) for row in value_rows), "cell"
    )


def _lines(
    campaign: Campaign, factors: tuple[str, ...]
) -> Iterator[tuple[tables.Value, ...]]:
    cells = _cells(campaign)
    measurements = _measurements(campaign)
    for cell in cells:
        levels = tuple(_level(cell["levels"].get(name)) for name in factors)
        for measurement in measurements.take_rows(cell["pk"]):
            measurement |= {
                "campaign": campaign.slug,
                "version": cell["version"],
                **_judged(measurement),
            }
            first_values = (measurement[name] for name in FIRST)
            yield (*first_values, *levels, *(_time(measurement[name]) for name in LAST))


def _cells_as_json(campaign: Campaign) -> Iterator[Iterator[str]]:
    cells = _cells(campaign)
    measurements = _measurements(campaign)
    summaries = _rows_of_cells(
        CellSummary.objects.filter(cell__campaign=campaign),
        OF_SUMMARY,
        cell="cell",
        by="metric__name",
    )
    for cell in cells:
        yield tables.element(
            {"levels": cell["levels"], "version": cell["version"]},
            summaries=summaries.take_rows(cell["pk"]),
            measurements=(
                {name: (measurement | _judged(measurement))[name] for name in IN_JSON}
                for measurement in measurements.take_rows(cell["pk"])
            ),
        )


def _judged(measurement: Row) -> Row:
    return {"validity": judgement(measurement["state"], measurement["validity"])}


def _cells(campaign: Campaign) -> Iterator[Any]:
    cells = campaign.cells.order_by("ordinal", "pk").values("pk", "levels", "version")
    return cells.iterator(CHUNK)


def _measurements(campaign: Campaign) -> Following:
    measurements_found = Measurement.objects.filter(run__campaign=campaign)
    names = OF_RUN | OF_MEASUREMENT
    return _rows_of_cells(
        measurements_found, names, cell="run__cell", by="run__repeat metric__name pk"
    )


def _level(level: Any) -> tables.Value:
    return level if level is None or isinstance(level, int | float) else str(level)


def _time(value: Any) -> tables.Value:
    return value.isoformat() if isinstance(value, datetime) else value
