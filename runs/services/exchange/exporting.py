"""A project as lines of JSON, generated while it is read."""

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from runs.models import (
    Annotation,
    Campaign,
    Change,
    Configuration,
    Metric,
    Project,
    Run,
    Seal,
    Topology,
)
from runs.models.campaigns import Origin
from runs.models.measurements import Statistic
from runs.selectors.exchange import exports
from runs.selectors.exchange.exports import Row
from runs.services.runs import artifacts

FORMAT = "benchlab-export"
FORMAT_VERSION = 1
FILE = "file"
END = "end"
# A compressed file's part in one line.
PART_BYTES = 512 * 2**10
# Imported topologies have no nodes, and must not be mistaken for a server's own.
IMPORTED = "imported-"


def _with(fields: tuple[str, ...], kind: str = "", *more: str) -> frozenset[str]:
    return frozenset({*fields, *exports.LINKS.get(kind, {}), *more})


FIELDS: Mapping[str, frozenset[str]] = {
    FORMAT: frozenset({"version", "project"}),
    "scenario": _with(exports.SCENARIO),
    "metric": _with(exports.METRIC),
    "hardware": _with(exports.HARDWARE),
    "environment": _with(exports.ENVIRONMENT),
    "settings": _with(exports.SETTINGS),
    "configuration": _with(exports.CONFIGURATION, "", "revisions"),
    "topology": _with(exports.TOPOLOGY),
    "revision": _with(exports.REVISION),
    FILE: frozenset({"sha256", "gzip", "last"}),
    "campaign": _with(exports.CAMPAIGN, "campaign", "configurations"),
    "campaign_configuration": frozenset({"configuration_slug", "revision_number"}),
    "cell": _with(exports.CELL, "cell"),
    "run": _with(exports.RUN, "run", "seal", "measurements", "artifacts", "events", "changes"),
    "measurement": _with(exports.MEASUREMENT, "measurement"),
    "artifact": _with(exports.ARTIFACT),
    "event": _with(exports.EVENT),
    "configuration_revision": _with(exports.CONFIGURATION_REVISION),
    "series": _with(exports.SERIES),
    "command": _with(exports.COMMAND),
    "annotation": _with(exports.ANNOTATION),
    "change": _with(exports.CHANGE, "change"),
    "seal": frozenset(exports.SEAL),
    END: frozenset({"lines"}),
}
# Fields that older files of this form lack, with what their absence means.
LATER: Mapping[str, Mapping[str, object]] = {
    "campaign": {"treatment": {}, "reproduces": "", "configurations": [], "looks": []},
    "run": {"round": None, "seal": None},
}
TIMES = frozenset(
    {
        *("at", "created_at", "queued_at", "started_at", "finished_at", "committed_at"),
        *("found_at", "decided_at"),
    }
)
# Kinds that are nested in the line of another kind.
NESTED: Mapping[str, Mapping[str, str]] = {
    "run": {
        "measurements": "measurement",
        "artifacts": "artifact",
        "events": "event",
        "changes": "change",
    },
    "configuration": {"revisions": "configuration_revision"},
    "campaign": {"configurations": "campaign_configuration"},
}
ORIGINS = frozenset({Origin.EXECUTED.value, Origin.UPLOADED.value})
CAMPAIGN_ENDED = frozenset(
    state.value
    for state in (Campaign.State.FINISHED, Campaign.State.INCOMPLETE, Campaign.State.CANCELLED)
)
ENDED = frozenset(state.value for state in Run.ENDED)
CHOICES: Mapping[tuple[str, str], frozenset[str]] = {
    ("metric", "direction"): frozenset(Metric.Direction.values),
    ("configuration", "origin"): frozenset(Configuration.Origin.values),
    ("topology", "kind"): frozenset(Topology.Kind.values),
    ("campaign", "origin"): ORIGINS,
    ("campaign", "state"): CAMPAIGN_ENDED,
    ("run", "origin"): ORIGINS,
    ("run", "state"): ENDED,
    ("measurement", "statistic"): frozenset(Statistic.values),
    ("annotation", "kind"): frozenset(Annotation.Kind.values),
    ("change", "kind"): frozenset(Change.Kind.values),
    ("change", "decision"): frozenset(Change.Decision.values),
    ("seal", "kind"): frozenset(Seal.Kind.values),
}


def lines(project: Project) -> Iterator[bytes]:
    """The project as lines, each with its newline; a consistent snapshot.

    The same content gives the same bytes in any database.
    """
    with transaction.atomic():
        if len(connection.savepoint_ids) == 0:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        number = 1
        yield _line(FORMAT, {"version": FORMAT_VERSION, **_described(project)})
        for kind, row in _rows(project):
            number += 1
            yield _line(kind, row)
        yield _line(END, {"lines": number + 1})


def _described(project: Project) -> Row:
    return {"project": {"slug": project.slug, "name": project.name, "public": project.is_public}}


def _rows(project: Project) -> Iterator[tuple[str, Row]]:
    for kind, row in exports.shared(project):
        if kind == "topology":
            row["slug"] = row["slug"].removeprefix(IMPORTED)
        yield kind, row
    for digest in exports.files(project):
        yield from _file(digest)
    for campaign in exports.campaigns(project).iterator(exports.CHUNK):
        for kind, row in exports.results(campaign):
            yield kind, TOLD.get(kind, _told)(row)
    for row in exports.seals(project):
        yield "seal", row


def _file(digest: str) -> Iterator[tuple[str, Row]]:
    """A file in parts, compressed as stored. Nothing for a file that is no longer stored."""
    try:
        packed = artifacts.open_packed(digest)
    except FileNotFoundError:
        return
    with packed as content:
        part = content.read(PART_BYTES)
        while part:
            following = content.read(PART_BYTES)
            yield (
                FILE,
                {
                    "sha256": digest,
                    "gzip": base64.b64encode(part).decode(),
                    "last": not following,
                },
            )
            part = following


def _told(row: Row) -> Row:
    """The row with its references resolved, and without its key."""
    row.pop("pk", None)
    made = {name: value for name, value in row.items() if not name.startswith("link_")}
    made |= {name[5:]: value for name, value in row.items() if name.startswith("link_")}
    return made


def _told_campaign(row: Row) -> Row:
    made = _told(row)
    made["topology"] = (made["topology"] or "").removeprefix(IMPORTED) or None
    if made["state"] not in CAMPAIGN_ENDED:
        # Runs that have not ended are not exported.
        made["state"] = Campaign.State.INCOMPLETE.value
    return made


def _told_run(row: Row) -> Row:
    made = _told(row)
    labels = dict(made["labels"])
    elsewhere = labels.pop(exports.ELSEWHERE, None)
    made["labels"] = labels
    made["server"] = made["server"] or elsewhere
    if made["plan"] is not None:
        made["plan"] = {
            name: value
            for name, value in made["plan"].items()
            if name not in exports.SECRET_IN_PLAN
        }
    for name in ("measurements", "changes"):
        made[name] = [_told(each) for each in made[name]]
    return made


TOLD = {"campaign": _told_campaign, "run": _told_run}


def _line(kind: str, row: Row) -> bytes:
    text = json.dumps({"type": kind, **row}, ensure_ascii=False, default=_plain, sort_keys=True)
    return text.encode() + b"\n"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    raise TypeError(f"{type(value).__name__} has no form in an export")
