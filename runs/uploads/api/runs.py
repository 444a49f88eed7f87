"""A complete uploaded run: its fields, and checks across them."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar, cast

from django.utils.translation import gettext as _

from runs.cells.selectors import versions
from runs.servers.selectors import servers
from runs.shared import reading
from runs.shared.api import upload_limits as limits
from runs.uploads.api import circumstances, measured_values, raw
from runs.uploads.api.fields import Faults, Object, Reader, reader
from runs.uploads.api.raw import Files
from runs.uploads.services import GivenRun, version_level
from runs.uploads.services.uploaded_run import Status
from runs.uploads.services.workload_levels import NAMES, with_workload

T = TypeVar("T")
FIELDS = frozenset(
    {
        "campaign",
        "campaign_title",
        "scenario",
        "levels",
        "started_at",
        "finished_at",
        "status",
        "reason",
        "server",
        "hardware",
        "environment",
        "postgresql",
        "configuration",
        "tool",
        "measurements",
        "series",
        "revision",
        "labels",
        "external_id",
        "job",
        "round",
        "raw",
        "workload",
    }
)
STATUSES = ("finished", "failed", "partial")


def batch(body: Object, faults: Faults, outputs: reading.Reader) -> list[GivenRun]:
    """The runs of {"runs": [...]}; the faults of all of them at once."""
    whole = Reader(body, "", faults)
    whole.refuse_unknown({"runs"})
    if body.get("runs") in (None, []):
        whole.missing("runs")
    found, alike = [], _Alike()
    for index, each in enumerate(whole.items("runs", most=limits.MOST_RUNS)):
        given = reader(each, f"/runs/{index}", faults)
        if given is not None and (made := run(given, outputs, alike=alike)):
            found.append(made)
    _refuse_repeated_ids(found, faults)
    return found


class _Alike:
    """What several runs of a batch say in the same words, as of their machine, is read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Any] = {}

    def read(self, part: Callable[[Reader], T], run: Reader) -> T:
        """What it makes of the field of its name; only what has no fault is kept."""
        name = part.__name__
        mark = (name, repr(run.body.get(name)))  # 1, 1.0 and true are equal, and yet not the same
        if mark in self._known:
            return cast(T, self._known[mark])
        before = len(run.faults)
        found = part(run)
        if len(run.faults) == before:
            self._known[mark] = found
        return found


def run(
    given: Reader,
    outputs: reading.Reader,
    files: Files | None = None,
    *,
    alike: _Alike | None = None,
) -> GivenRun | None:
    """A run, or None where it has a fault. `files` are the raw output of a multipart body."""
    before = len(given.faults)
    given.refuse_unknown(FIELDS)
    started, finished = _times(given)
    fields = _described(given, alike or _Alike())
    files = raw.files(given) if files is None else raw.named(given, files)
    fields |= raw.read(given, fields, files, outputs) if files else _measured(given)
    fields |= _placed(given, fields)
    if started:
        _check_age(given, fields["server_version"], started)
    _check_key(given, fields)
    if len(given.faults) > before or started is None:
        return None
    fields["files"] = (*fields.get("files", ()), *measured_values.samples(given.body))
    return GivenRun(at=given.at, started_at=started, finished_at=finished, **fields)


def _described(given: Reader, alike: _Alike) -> dict[str, Any]:
    version, settings = alike.read(circumstances.postgresql, given)
    tool_name, tool_version = alike.read(circumstances.tool, given)
    if given.body.get("server") is not None and given.body.get("hardware") is not None:
        given.fault("hardware", "either_or", _("Give a server or the hardware, not both."))
    workload = given.levels("workload")
    Reader(workload, f"{given.at}/workload", given.faults).refuse_unknown(NAMES)
    job = given.text("job", most=200)
    return {
        "campaign": given.slug("campaign", most=120, required=True),
        "campaign_title": given.text("campaign_title", most=200),
        "scenario": given.slug("scenario", most=80),
        "levels": given.levels("levels"),
        "workload": workload,
        "server": given.slug("server", most=80),
        "hardware": alike.read(circumstances.hardware, given),
        "environment": alike.read(circumstances.environment, given),
        "server_version": version,
        "settings": settings,
        "configuration": given.slug("configuration", most=100),
        "tool_name": tool_name,
        "tool_version": tool_version,
        "revision": alike.read(circumstances.revision, given),
        "labels": given.strings("labels", most=50, most_characters=500)
        | ({"job": job} if job else {}),
        "external_id": given.text("external_id", most=200),
        "round": given.whole("round", least=0, most=limits.MOST_ROUND),
    }


def _times(given: Reader) -> tuple[datetime | None, datetime | None]:
    started, finished = given.time("started_at"), given.time("finished_at")
    if given.body.get("started_at") is None:
        given.missing("started_at")
    if started and finished and finished < started:
        given.fault("finished_at", "negative_time", _("The run ended before it began."))
    return started, finished


def _measured(given: Reader) -> dict[str, Any]:
    status = cast("Status | None", given.choice("status", STATUSES))
    if given.body.get("status") is None:
        given.missing("status")
    found, series = measured_values.measurements(given), measured_values.series(given)
    reason = given.text("reason", most=2000)
    has_figures = given.body.get("measurements")
    if status == "failed" and has_figures:
        message = _(
            "A failed run has no figures to rely on: leave them out, or send it as partial."
        )
        given.fault("measurements", "failed_with_figures", message)
    if status == "finished" and not (has_figures or given.body.get("series")):
        message = _("A finished run has at least one measurement or series.")
        given.fault("measurements", "required", message)
    if status == "finished" and reason:
        given.fault("reason", "either_or", _("A reason is for a run that did not finish."))
    return {
        "status": status or "failed",
        "code": "" if status == "finished" else status or "",
        "message": reason,
        "measurements": found,
        "series": series,
    }


def _placed(given: Reader, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The levels that make the cell: with the version, and with what is unusual of the workload."""
    version, tool = fields["server_version"], fields["tool_name"]
    if not version and not fields["levels"].get("version") and fields["server"]:
        version = servers.only_version(fields["server"])
    placed, wrong = version_level.with_version(
        fields["levels"], version, tool=tool, has_figures=fields["status"] != "failed"
    )
    for each in wrong:
        given.fault(each.pointer, each.code, each.message)
    return {"server_version": version, "levels": with_workload(placed, fields["workload"])}


def _check_age(given: Reader, version: str, started_at: datetime) -> None:
    year = versions.first_year(version)
    if year is not None and started_at.year < year:
        message = _("PostgreSQL %(version)s was not there yet in %(year)d.")
        names = {"version": version, "year": started_at.year}
        given.fault("started_at", "too_old", message % names)


def _check_key(given: Reader, fields: Mapping[str, Any]) -> None:
    revision = fields["revision"]
    length = len(json.dumps(dict(fields["levels"]))) + (len(revision.sha) + 1 if revision else 0)
    if length > limits.LONGEST_LEVELS:
        message = _(
            "The levels are too long: %(length)d characters with the revision, of %(most)d."
        )
        given.fault(
            "levels", "too_long", message % {"length": length, "most": limits.LONGEST_LEVELS}
        )


def _refuse_repeated_ids(found: list[GivenRun], faults: Faults) -> None:
    seen = set()
    for each in found:
        if not each.external_id:
            continue
        name = (each.campaign, each.external_id)
        if name in seen:
            faults.add(f"{each.at}/external_id", "repeated", _("Given more than once."))
        seen.add(name)
