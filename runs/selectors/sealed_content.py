"""What is sealed of a run: its lines of an export, and digests of its series and commands."""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

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
from runs.selectors import exchange
from runs.selectors.seals import canonical, digest_of

Row = dict[str, Any]
Content = dict[str, Any]

# Fields of the export's lines; those left out may change, or differ elsewhere.
CAMPAIGN = ("slug", "origin", "parameters", "treatment", "scenario", "configuration")
CELL = ("levels", "version", "version_num", "revision")
RUN = (
    *("repeat", "position", "origin", "attempt", "server_version", "tool_name", "tool_version"),
    *("quality", "external_id", "round", "labels", "queued_at", "started_at", "finished_at"),
)
HARDWARE = tuple(name for name in exchange.HARDWARE if name not in {"slug", "name"})
ENVIRONMENT = tuple(name for name in exchange.ENVIRONMENT if name != "slug")
ARTIFACT = ("name", "media_type", "size", "sha256")


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


def contents_of(run_ids: Collection[int], shared: Shared | None = None) -> dict[int, Content]:
    """The content to seal of these runs. A fixed number of queries, plus one for each profile.

    Expensive for runs with long series: they are read completely, one after the other.
    """
    shared = shared or Shared()
    rows = Run.objects.filter(pk__in=run_ids).order_by()
    keys = ("pk", "plan", "campaign_id", "cell_id", "hardware_id", "environment_id", "settings_id")
    server = exchange.named("run")["link_server"]
    runs = {row["pk"]: row for row in rows.values(*keys, *RUN, server_slug=server)}
    campaigns = _linked(Campaign, CAMPAIGN, {row["campaign_id"] for row in runs.values()})
    cells = _linked(Cell, CELL, {row["cell_id"] for row in runs.values()})
    figures, metrics = _figures(run_ids)
    parts = {
        "commands": _digests(Command, exchange.COMMAND, ("attempt", "ordinal"), run_ids),
        "series": _digests(Series, exchange.SERIES, ("name",), run_ids),
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
            "run": digest_of(described),
            "figures": figures.get(key, {}),
            "plan": digest_of(_plan(row)) if row["plan"] is not None else "",
            "hardware": shared.digest(HardwareProfile, row["hardware_id"], HARDWARE),
            "environment": shared.digest(Environment, row["environment_id"], ENVIRONMENT),
            "settings": shared.digest(SettingsSnapshot, row["settings_id"], exchange.SETTINGS),
            **{name: digests.get(key, "") for name, digests in parts.items()},
        }
        contents[key] = {name: value for name, value in content.items() if value}
    return contents


def _linked(model: Any, names: Sequence[str], keys: Collection[int]) -> dict[int, Row]:
    """These fields of the rows with these keys, as an export has them: links by their names."""
    links = exchange.named(model._meta.model_name)
    wanted = {link: path for link, path in links.items() if link.removeprefix("link_") in names}
    fields = [name for name in names if f"link_{name}" not in links]
    rows = model.objects.filter(pk__in=keys).order_by().values("pk", *fields, **wanted)
    return {
        row.pop("pk"): {name.removeprefix("link_"): value for name, value in row.items()}
        for row in rows
    }


def _own_fields(row: Row) -> Row:
    """The run's own fields, as an export has them."""
    labels = dict(row["labels"])
    elsewhere = labels.pop(exchange.ELSEWHERE, None)
    values = {name: row[name] for name in RUN}
    return {**values, "labels": labels, "server": row["server_slug"] or elsewhere}


def _plan(row: Row) -> Row:
    plan: Row = row["plan"]
    return {name: value for name, value in plan.items() if name not in exchange.SECRET_IN_PLAN}


def _figures(run_ids: Collection[int]) -> tuple[dict[int, Row], dict[int, Row]]:
    """For each run: value, n and statistic by metric, and unit and direction of the metrics."""
    figures: dict[int, Row] = defaultdict(dict)
    metrics: dict[int, Row] = defaultdict(dict)
    rows = Measurement.objects.filter(run__in=run_ids).order_by()
    for run, metric, unit, direction, value, n, statistic in rows.values_list(
        *("run_id", "metric__name", "metric__unit", "metric__direction", "value", "n", "statistic")
    ):
        figures[run][f"{metric}:{statistic}"] = [value, n]
        metrics[run][metric] = [unit, direction]
    return figures, metrics


def _digests(
    model: Any, fields: tuple[str, ...], order: tuple[str, ...], run_ids: Collection[int]
) -> Mapping[int, str]:
    """SHA-256 of the rows of each run, one line each. Only a few are in memory at a time."""
    hashes: dict[int, Any] = defaultdict(hashlib.sha256)
    rows = model.objects.filter(run__in=run_ids).order_by("run_id", *order)
    for row in rows.values("run_id", *fields).iterator(50):
        run = row.pop("run_id")
        hashes[run].update(canonical(row).encode() + b"\n")
    return {run: found.hexdigest() for run, found in hashes.items()}
