"""What is sealed of a run: its lines of an export, and digests of its series and commands."""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from runs.export_reader import (
    ARTIFACT,
    CAMPAIGN,
    CELL,
    REVISION,
    SEALED_CELL,
    SEALED_FORM,
)
from runs.export_reader import RUN as SEALED_RUN
from runs.models import (
    Artifact,
    Campaign,
    Cell,
    Command,
    Environment,
    HardwareProfile,
    Measurement,
    Run,
    Series,
    SettingsSnapshot,
)
from runs.seals.selectors import export_fields
from runs.seals.selectors.seals import canonical, digest_of

Row = dict[str, Any]
Content = dict[str, Any]

# Fields of the export's lines; those left out may change, or differ elsewhere.
RUN = SEALED_RUN
HARDWARE = tuple(
    name for name in export_fields.HARDWARE if name not in {"slug", "name"}
)
ENVIRONMENT = tuple(name for name in export_fields.ENVIRONMENT if name != "slug")
OF_CELL = (
    *CELL,
    *(name for name in SEALED_CELL if name not in CELL),
    "campaign__slug",
    *(f"revision__{name}" for name in REVISION),
)
OF_METRIC = (
    "metric__name",
    "metric__unit",
    "metric__direction",
    "metric__title",
    "metric__project_id",
)


class Shared:
    """Digests of rows that many runs share, read once each."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, int | None], str] = {}

    def digest(self, model: Any, key: int | None, fields: tuple[str, ...]) -> str:
        """The digest of the row with this key; empty for none."""
        mark = (model.__name__, key)
        if mark not in self.known:
            row = model.objects.filter(pk=key).values(*fields).first() if key else None
            self.known[mark] = digest_of(row) if row else ""
        return self.known[mark]


def contents_of(
    run_ids: Collection[int], shared: Shared | None = None, *, form: int = SEALED_FORM
) -> dict[int, Content]:
    """The content to seal of these runs. A fixed number of queries, plus one for each profile.

    Seals of an older release have the form 1: what is sealed in parts now was one digest then.

    Expensive for runs with long series: they are read completely, one after the other.
    """
    shared = shared or Shared()
    rows = Run.objects.filter(pk__in=run_ids).order_by()
    keys = (
        "pk",
        "plan",
        "campaign_id",
        "cell_id",
        "hardware_id",
        "environment_id",
        "settings_id",
    )
    server = export_fields.named("run")["link_server"]
    more = (
        "validity",
        "imported_id",
        *(f"imported__{name}" for name in export_fields.IMPORTED),
    )
    runs = {
        row["pk"]: row for row in rows.values(*keys, *RUN, *more, server_slug=server)
    }
    campaigns = _linked(
        Campaign, CAMPAIGN, {row["campaign_id"] for row in runs.values()}
    )
    cells = _linked(Cell, OF_CELL, {row["cell_id"] for row in runs.values()})
    figures, metrics = _figures(run_ids)
    digests_of = {
        "commands": _digests(
            Command, export_fields.COMMAND, ("attempt", "ordinal"), run_ids
        ),
        "series": _digests(Series, export_fields.SERIES, ("name",), run_ids),
        "artifacts": _digests(Artifact, ARTIFACT, ("name",), run_ids),
    }
    contents: dict[int, Content] = {}
    for key, row in runs.items():
        described = {
            "campaign": campaigns[row["campaign_id"]],
            "cell": cells[row["cell_id"]],
            "metrics": metrics.get(key, {}),
            "run": _own_fields(row),
        }
        content = {
            **(
                _content_by_parts(row, described)
                if form == SEALED_FORM
                else _flat_content(described)
            ),
            "figures": figures.get(key, {}),
            "plan": digest_of(_plan(row)) if row["plan"] is not None else "",
            "hardware": shared.digest(HardwareProfile, row["hardware_id"], HARDWARE),
            "environment": shared.digest(
                Environment, row["environment_id"], ENVIRONMENT
            ),
            "settings": shared.digest(
                SettingsSnapshot, row["settings_id"], export_fields.SETTINGS
            ),
            **{name: digests.get(key, "") for name, digests in digests_of.items()},
        }
        contents[key] = {name: value for name, value in content.items() if value}
    return contents


def _flat_content(described: Row) -> Content:
    """As form 1 has it."""
    cell = {name: described["cell"][name] for name in CELL}
    metrics = {name: metric[:2] for name, metric in described["metrics"].items()}
    return {"run": digest_of({**described, "cell": cell, "metrics": metrics})}


def _content_by_parts(row: Row, described: Row) -> Content:
    """As form 2 has it: the cell with the campaign that it is of, its commit, and more."""
    cell = described["cell"]
    revision = {name: _plain(cell[f"revision__{name}"]) for name in REVISION}
    imported = {
        name: _plain(row[f"imported__{name}"]) for name in export_fields.IMPORTED
    }
    return {
        "form": SEALED_FORM,
        "campaign": digest_of(described["campaign"]),
        "cell": digest_of(
            {
                **{name: cell[name] for name in SEALED_CELL},
                "campaign": cell["campaign__slug"],
            }
        ),
        "revision": {name: value for name, value in revision.items() if value},
        "metrics": digest_of(described["metrics"]),
        "validity": row["validity"],
        "imported": imported if row["imported_id"] else None,
        "run": digest_of(described["run"]),
    }


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _linked(model: Any, names: Sequence[str], keys: Collection[int]) -> dict[int, Row]:
    """These fields of the rows with these keys, as an export has them: links by their names."""
    links = export_fields.named(model._meta.model_name)
    wanted_links = {
        link: path
        for link, path in links.items()
        if link.removeprefix("link_") in names
    }
    fields = [name for name in names if f"link_{name}" not in links]
    rows = (
        model.objects.filter(pk__in=keys)
        .order_by()
        .values("pk", *fields, **wanted_links)
    )
    return {
        row.pop("pk"): {
            name.removeprefix("link_"): value for name, value in row.items()
        }
        for row in rows
    }


def _own_fields(row: Row) -> Row:
    """The run's own fields, as an export has them."""
    labels = dict(row["labels"])
    elsewhere = labels.pop(export_fields.ELSEWHERE, None)
    values = {name: row[name] for name in RUN}
    return {**values, "labels": labels, "server": row["server_slug"] or elsewhere}


def _plan(row: Row) -> Row:
    plan: Row = row["plan"]
    return {
        name: value
        for name, value in plan.items()
        if name not in export_fields.SECRET_IN_PLAN
    }


def _figures(run_ids: Collection[int]) -> tuple[dict[int, Row], dict[int, Row]]:
    """For each run: value, n and statistic by metric, and unit, direction, title of the metrics.

    The titles of BenchLab's own metrics change with its releases: they are not sealed.
    """
    figures: dict[int, Row] = defaultdict(dict)
    metrics: dict[int, Row] = defaultdict(dict)
    rows = Measurement.objects.filter(run__in=run_ids).order_by()
    for row in rows.values("run_id", "value", "n", "statistic", *OF_METRIC):
        name, run = row["metric__name"], row["run_id"]
        title = row["metric__title"] if row["metric__project_id"] else ""
        figures[run][f"{name}:{row['statistic']}"] = [row["value"], row["n"]]
        metrics[run][name] = [row["metric__unit"], row["metric__direction"], title]
    return figures, metrics


def _digests(
    model: Any,
    fields: tuple[str, ...],
    order: tuple[str, ...],
    run_ids: Collection[int],
) -> Mapping[int, str]:
    """SHA-256 of the rows of each run, one line each. Only a few are in memory at a time."""
    hashes: dict[int, Any] = defaultdict(hashlib.sha256)
    rows = model.objects.filter(run__in=run_ids).order_by("run_id", *order)
    for row in rows.values("run_id", *fields).iterator(50):
        run = row.pop("run_id")
        hashes[run].update(canonical(row).encode() + b"\n")
    return {run: run_hash.hexdigest() for run, run_hash in hashes.items()}
