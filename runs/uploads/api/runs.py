"""A complete uploaded run: its fields, and checks across them."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar, cast

from django.utils.translation import gettext as _

from runs.cells.selectors import versions
from runs.servers.selectors import servers
from runs.shared import reading
from runs.shared.api import upload_limits
from runs.uploads.api import circumstances, measured_values, raw
from runs.uploads.api.fields import Faults, FieldReader, Object, reader
from runs.uploads.api.raw import Files
from runs.uploads.services import GivenRun, version_level
from runs.uploads.services.uploaded_run import Status
from runs.uploads.services.workload_levels import NAMES, add_workload

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


def batch(
    body: Object, faults: Faults, outputs: reading.ForeignReader
) -> list[GivenRun]:
    """The runs of {"runs": [...]}; the faults of all of them at once."""
    batch_reader = FieldReader(body, "", faults)
    batch_reader.refuse_unknown({"runs"})
    if body.get("runs") in (None, []):
        batch_reader.missing("runs")
    given_runs, same_parts = [], _Alike()
    for index, entry in enumerate(
        batch_reader.items("runs", most=upload_limits.MOST_RUNS)
    ):
        run_reader = reader(entry, f"/runs/{index}", faults)
        if run_reader is not None and (
            given_run := run(run_reader, outputs, alike=same_parts)
        ):
            given_runs.append(given_run)
    _refuse_repeated_ids(given_runs, faults)
    return given_runs


class _Alike:
    """What several runs of a batch say in the same words, as of their machine, is read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Any] = {}

    def read(self, read_part: Callable[[FieldReader], T], run: FieldReader) -> T:
        """What it makes of the field of its name; only what has no fault is kept."""
        name = read_part.__name__
        mark = (
            name,
            repr(run.body.get(name)),
        )  # 1, 1.0 and true are equal, and yet not the same
        if mark in self._known:
            return cast(T, self._known[mark])
        before = len(run.faults)
        value = read_part(run)
        if len(run.faults) == before:
            self._known[mark] = value
        return value


def run(
    run_reader: FieldReader,
    outputs: reading.ForeignReader,
    files: Files | None = None,
    *,
    alike: _Alike | None = None,
) -> GivenRun | None:
    """A run, or None where it has a fault. `files` are the raw output of a multipart body."""
    before = len(run_reader.faults)
    run_reader.refuse_unknown(FIELDS)
    started, finished = _times(run_reader)
    fields = _described(run_reader, alike or _Alike())
    files = raw.files(run_reader) if files is None else raw.named(run_reader, files)
    fields |= (
        raw.read(run_reader, fields, files, outputs) if files else _measured(run_reader)
    )
    fields |= _placed(run_reader, fields)
    if started:
        _check_age(run_reader, fields["server_version"], started)
    _check_key(run_reader, fields)
    if len(run_reader.faults) > before or started is None:
        return None
    fields["files"] = (
        *fields.get("files", ()),
        *measured_values.samples(run_reader.body),
    )
    return GivenRun(
        at=run_reader.at, started_at=started, finished_at=finished, **fields
    )


def _described(run_reader: FieldReader, same_parts: _Alike) -> dict[str, Any]:
    version, settings = same_parts.read(circumstances.postgresql, run_reader)
    tool_name, tool_version = same_parts.read(circumstances.tool, run_reader)
    if (
        run_reader.body.get("server") is not None
        and run_reader.body.get("hardware") is not None
    ):
        run_reader.fault(
            "hardware", "either_or", _("Give a server or the hardware, not both.")
        )
    workload = run_reader.levels("workload")
    FieldReader(
        workload, f"{run_reader.at}/workload", run_reader.faults
    ).refuse_unknown(NAMES)
    job = run_reader.text("job", most=200)
    return {
        "campaign": run_reader.slug("campaign", most=120, required=True),
        "campaign_title": run_reader.text("campaign_title", most=200),
        "scenario": run_reader.slug("scenario", most=80),
        "levels": run_reader.levels("levels"),
        "workload": workload,
        "server": run_reader.slug("server", most=80),
        "hardware": same_parts.read(circumstances.hardware, run_reader),
        "environment": same_parts.read(circumstances.environment, run_reader),
        "server_version": version,
        "settings": settings,
        "configuration": run_reader.slug("configuration", most=100),
        "tool_name": tool_name,
        "tool_version": tool_version,
        "revision": same_parts.read(circumstances.revision, run_reader),
        "labels": run_reader.strings("labels", most=50, most_characters=500)
        | ({"job": job} if job else {}),
        "external_id": run_reader.text("external_id", most=200),
        "round": run_reader.whole("round", least=0, most=upload_limits.MOST_ROUND),
    }


def _times(run_reader: FieldReader) -> tuple[datetime | None, datetime | None]:
    started, finished = run_reader.time("started_at"), run_reader.time("finished_at")
    if run_reader.body.get("started_at") is None:
        run_reader.missing("started_at")
    if started and finished and finished < started:
        run_reader.fault(
            "finished_at", "negative_time", _("The run ended before it began.")
        )
    return started, finished


def _measured(run_reader: FieldReader) -> dict[str, Any]:
    status = cast("Status | None", run_reader.choice("status", STATUSES))
    if run_reader.body.get("status") is None:
        run_reader.missing("status")
    measurements, series = (
        measured_values.measurements(run_reader),
        measured_values.series(run_reader),
    )
    reason = run_reader.text("reason", most=2000)
    has_figures = run_reader.body.get("measurements")
    if status == "failed" and has_figures:
        message = _(
            "A failed run has no figures to rely on: leave them out, or send it as partial."
        )
        run_reader.fault("measurements", "failed_with_figures", message)
    if status == "finished" and not (has_figures or run_reader.body.get("series")):
        message = _("A finished run has at least one measurement or series.")
        run_reader.fault("measurements", "required", message)
    if status == "finished" and reason:
        run_reader.fault(
            "reason", "either_or", _("A reason is for a run that did not finish.")
        )
    return {
        "status": status or "failed",
        "code": "" if status == "finished" else status or "",
        "message": reason,
        "measurements": measurements,
        "series": series,
    }


def _placed(run_reader: FieldReader, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The levels that make the cell: with the version, and with what is unusual of the workload."""
    version, tool = fields["server_version"], fields["tool_name"]
    if not version and not fields["levels"].get("version") and fields["server"]:
        version = servers.only_version(fields["server"])
    placed, wrong = version_level.add_version(
        fields["levels"], version, tool=tool, has_figures=fields["status"] != "failed"
    )
    for fault in wrong:
        run_reader.fault(fault.pointer, fault.code, fault.message)
    return {
        "server_version": version,
        "levels": add_workload(placed, fields["workload"]),
    }


def _check_age(run_reader: FieldReader, version: str, started_at: datetime) -> None:
    year = versions.first_year(version)
    if year is not None and started_at.year < year:
        message = _("PostgreSQL %(version)s was not there yet in %(year)d.")
        names = {"version": version, "year": started_at.year}
        run_reader.fault("started_at", "too_old", message % names)


def _check_key(run_reader: FieldReader, fields: Mapping[str, Any]) -> None:
    revision = fields["revision"]
    length = len(json.dumps(dict(fields["levels"]))) + (
        len(revision.sha) + 1 if revision else 0
    )
    if length > upload_limits.LONGEST_LEVELS:
        message = _(
            "The levels are too long: %(length)d characters with the revision, of %(most)d."
        )
        run_reader.fault(
            "levels",
            "too_long",
            message % {"length": length, "most": upload_limits.LONGEST_LEVELS},
        )


def _refuse_repeated_ids(given_runs: list[GivenRun], faults: Faults) -> None:
    seen_ids = set()
    for given_run in given_runs:
        if not given_run.external_id:
            continue
        name = (given_run.campaign, given_run.external_id)
        if name in seen_ids:
            faults.add(
                f"{given_run.at}/external_id", "repeated", _("Given more than once.")
            )
        seen_ids.add(name)
