"""A complete uploaded run: its fields, and checks across them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar, cast

from django.utils.translation import gettext as _

from runs.api.uploads import circumstances, measured_values, raw
from runs.api.uploads.fields import (
    Faults,
    Object,
    choice,
    items,
    levels,
    missing,
    refuse_unknown,
    slug,
    strings,
    text,
    time,
    whole,
)
from runs.api.uploads.raw import Files
from runs.selectors.archive import versions
from runs.selectors.servers import servers
from runs.services.uploads import GivenRun, version_level
from runs.services.uploads.uploaded_run import Status
from runs.services.uploads.workload_levels import NAMES, with_workload

T = TypeVar("T")
FIELDS = frozenset(
    {
        *("campaign", "campaign_title", "scenario", "levels", "started_at", "finished_at"),
        *("status", "reason", "server", "hardware", "environment", "postgresql"),
        *("configuration", "tool", "measurements", "series", "revision", "labels"),
        *("external_id", "job", "round", "raw", "workload"),
    }
)
STATUSES = ("finished", "failed", "partial")
MOST_RUNS = 1000
LONGEST_KEY = 300
# As far as the database counts; a job may use the time in seconds.
MOST_ROUND = 2**31 - 1


@dataclass(frozen=True)
class Times:
    """When a run was."""

    started_at: datetime
    finished_at: datetime | None


def batch(body: Object, faults: Faults) -> list[GivenRun]:
    """The runs of {"runs": [...]}; the faults of all of them at once."""
    refuse_unknown(body, {"runs"}, "", faults)
    listed = items(body, "runs", "", faults, most=MOST_RUNS)
    if body.get("runs") in (None, []):
        missing("runs", "", faults)
    found, alike = [], _Alike()
    for index, each in enumerate(listed):
        at = f"/runs/{index}"
        if type(each) is not dict:
            faults.add(at, "not_an_object", _("Not an object."))
        elif made := run(each, at, faults, alike=alike):
            found.append(made)
    _refuse_repeated_ids(found, faults)
    return found


class _Alike:
    """What several runs of a batch say in the same words, as of their machine, is read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Any] = {}

    def read(
        self, reader: Callable[[Object, str, Faults], T], body: Object, at: str, faults: Faults
    ) -> T:
        """What the reader makes of the field of its name; only what has no fault is kept."""
        name = reader.__name__
        mark = (name, repr(body.get(name)))  # 1, 1.0 and true are equal, and yet not the same
        if mark in self._known:
            return cast(T, self._known[mark])
        before = len(faults)
        found = reader(body, at, faults)
        if len(faults) == before:
            self._known[mark] = found
        return found


def _read_alone(
    reader: Callable[[Object, str, Faults], T], body: Object, at: str, faults: Faults
) -> T:
    return reader(body, at, faults)


def run(
    given: Object,
    at: str,
    faults: Faults,
    files: Files | None = None,
    *,
    alike: _Alike | None = None,
) -> GivenRun | None:
    """A run, or None where it has a fault. `files` are the raw output of a multipart body."""
    before = len(faults)
    read = alike.read if alike else _read_alone
    refuse_unknown(given, FIELDS, at, faults)
    times = _times(given, at, faults)
    fields = _described(given, at, faults, read)
    files = raw.files(given, at, faults) if files is None else raw.named(files, at, faults)
    if files:
        fields |= raw.read(given, fields, files, at, faults)
    else:
        fields |= _measured(given, at, faults)
    fields |= _placed(fields, at, faults)
    if times:
        _check_age(fields["server_version"], times.started_at, at, faults)
    _check_key(fields, at, faults)
    if len(faults) > before or times is None:
        return None
    fields["files"] = (*fields.get("files", ()), *measured_values.samples(given))
    return GivenRun(at=at, started_at=times.started_at, finished_at=times.finished_at, **fields)


def _described(
    given: Object, at: str, faults: Faults, read: Callable[..., Any] = _read_alone
) -> dict[str, Any]:
    """Everything but the times and the figures."""
    version, settings = read(circumstances.postgresql, given, at, faults)
    tool_name, tool_version = read(circumstances.tool, given, at, faults)
    if given.get("server") is not None and given.get("hardware") is not None:
        message = _("Give a server or the hardware, not both.")
        faults.add(f"{at}/hardware", "either_or", message)
    return {
        "campaign": slug(given, "campaign", at, faults, most=120, required=True),
        "campaign_title": text(given, "campaign_title", at, faults, most=200),
        "scenario": slug(given, "scenario", at, faults, most=80),
        "levels": levels(given, "levels", at, faults),
        "workload": _workload(given, at, faults),
        "server": slug(given, "server", at, faults, most=80),
        "hardware": read(circumstances.hardware, given, at, faults),
        "environment": read(circumstances.environment, given, at, faults),
        "server_version": version,
        "settings": settings,
        "configuration": slug(given, "configuration", at, faults, most=100),
        "tool_name": tool_name,
        "tool_version": tool_version,
        "revision": read(circumstances.revision, given, at, faults),
        "labels": {
            **strings(given, "labels", at, faults, most=50, most_characters=500),
            **({"job": job} if (job := text(given, "job", at, faults, most=200)) else {}),
        },
        "external_id": text(given, "external_id", at, faults, most=200),
        "round": whole(given, "round", at, faults, least=0, most=MOST_ROUND),
    }


def _times(given: Object, at: str, faults: Faults) -> Times | None:
    started = time(given, "started_at", at, faults)
    finished = time(given, "finished_at", at, faults)
    if given.get("started_at") is None:
        missing("started_at", at, faults)
    if started and finished and finished < started:
        message = _("The run ended before it began.")
        faults.add(f"{at}/finished_at", "negative_time", message)
    return Times(started, finished) if started else None


def _measured(given: Object, at: str, faults: Faults) -> dict[str, Any]:
    """The figures, and whether they may be relied on."""
    status = cast("Status | None", choice(given, "status", STATUSES, at, faults))
    if given.get("status") is None:
        missing("status", at, faults)
    found = measured_values.measurements(given, at, faults)
    series = measured_values.series(given, at, faults)
    reason = text(given, "reason", at, faults, most=2000)
    if status == "failed" and given.get("measurements"):
        message = _(
            "A failed run has no figures to rely on: leave them out, or send it as partial."
        )
        faults.add(f"{at}/measurements", "failed_with_figures", message)
    if status == "finished" and not (given.get("measurements") or given.get("series")):
        message = _("A finished run has at least one measurement or series.")
        faults.add(f"{at}/measurements", "required", message)
    if status == "finished" and reason:
        message = _("A reason is for a run that did not finish.")
        faults.add(f"{at}/reason", "either_or", message)
    return {
        "status": status or "failed",
        "code": "" if status == "finished" else status or "",
        "message": reason,
        "measurements": found,
        "series": series,
    }


def _workload(given: Object, at: str, faults: Faults) -> Object:
    """How the load was put on, as far as the uploader says it."""
    found = levels(given, "workload", at, faults)
    refuse_unknown(found, NAMES, f"{at}/workload", faults)
    return found


def _placed(fields: Mapping[str, Any], at: str, faults: Faults) -> dict[str, Any]:
    """The levels that make the cell: with the version, and with what is unusual of the workload."""
    version, tool = fields["server_version"], fields["tool_name"]
    if not version and not fields["levels"].get("version") and fields["server"]:
        version = servers.only_version(fields["server"])
    placed, wrong = version_level.with_version(
        fields["levels"], version, tool=tool, has_figures=fields["status"] != "failed"
    )
    for each in wrong:
        faults.add(f"{at}/{each.field}", each.code, each.message)
    return {"server_version": version, "levels": with_workload(placed, fields["workload"])}


def _check_age(version: str, started_at: datetime, at: str, faults: Faults) -> None:
    """A run cannot be older than what it measured."""
    year = versions.first_year(version)
    if year is not None and started_at.year < year:
        message = _("PostgreSQL %(version)s was not there yet in %(year)d.")
        names = {"version": version, "year": started_at.year}
        faults.add(f"{at}/started_at", "too_old", message % names)


def _check_key(fields: Mapping[str, Any], at: str, faults: Faults) -> None:
    revision = fields["revision"]
    length = len(json.dumps(dict(fields["levels"]))) + (len(revision.sha) + 1 if revision else 0)
    if length > LONGEST_KEY:
        message = _(
            "The levels are too long: %(length)d characters with the revision, of %(most)d."
        )
        names = {"length": length, "most": LONGEST_KEY}
        faults.add(f"{at}/levels", "too_long", message % names)


def _refuse_repeated_ids(found: list[GivenRun], faults: Faults) -> None:
    seen = set()
    for each in found:
        if not each.external_id:
            continue
        name = (each.campaign, each.external_id)
        if name in seen:
            faults.add(f"{each.at}/external_id", "repeated", _("Given more than once."))
        seen.add(name)
