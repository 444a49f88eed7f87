"""BenchBase: folders of results, with *.summary.json and what it writes beside each.

Source: BenchBase's ResultWriter: NAME.summary.json, NAME.results.csv (or samples.csv),
NAME.params.json (settings of the server) and NAME.config.xml.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from runs.importers.row import (
    Imported,
    NotTheirs,
    build_fields,
    campaign_of,
    moment,
    object_in,
)
from runs.tools.adapter import Level, UnreadableOutput
from runs.tools.benchbase.adapter import ADAPTER
from runs.tools.output import documents_in, number, part, words
from runs.wording import gettext_noop as _

_SERIES = ("results.csv", "samples.csv")
_OPTION = re.compile(
    r"<(?P<name>time|rate|warmup)>\s{0,20}(?P<value>[0-9.]{1,15}|unlimited)\s{0,20}</"
)
_LEVELS = {"time": "duration", "rate": "rate", "warmup": "warmup"}


def read(path: Path) -> Imported:
    """Read every summary below the folder, or one summary. Raises NotTheirs."""
    files = sorted(path.rglob("*.summary.json")) if path.is_dir() else [path]
    if not files:
        raise NotTheirs(_("There is no *.summary.json in the folder or below it."))
    imported = Imported()
    for file in files:
        _take(file, imported)
    return imported


def _take(file: Path, imported: Imported) -> None:
    stem = file.name.removesuffix(".summary.json")
    series_files = [file.with_name(f"{stem}.{ending}") for ending in _SERIES]
    text = file.read_text("utf-8", "replace")
    files = {"summary": text} | {
        series_file.name: series_file.read_bytes()
        for series_file in series_files
        if series_file.is_file()
    }
    try:
        reading = ADAPTER.read(files)
    except UnreadableOutput as refused:
        imported.leave_out(_("%(file)s: %(said)s"), file=file.name, said=refused)
        return
    summary = part({"first": next(iter(documents_in(text).found), {})}, "first")
    ended = moment(summary.get("Current Timestamp (milliseconds)"), per_second=1000)
    begun = moment(summary.get("Start timestamp (milliseconds)"), per_second=1000)
    moment_of_run = begun or ended
    if moment_of_run is None or not reading.measurements:
        why = reading.failure or _("no time")
        imported.leave_out(_("%(file)s: %(said)s"), file=file.name, said=why)
        return
    fields = build_fields(reading)
    fields["levels"] = {
        **reading.levels,
        **dict(_asked_for(file.with_name(f"{stem}.config.xml"))),
    }
    kind = words(summary.get("Benchmark Type")) or "benchbase"
    imported.take(
        campaign=campaign_of("benchbase", kind),
        scenario=campaign_of(kind),
        external_id=stem[:200],
        started_at=moment_of_run,
        finished_at=ended if begun else None,
        settings={
            name: value
            for name, value in object_in(file.with_name(f"{stem}.params.json")).items()
            if isinstance(value, str) and len(value) < 1000
        },
        **fields,
    )


def _asked_for(file: Path) -> Iterator[tuple[str, Level]]:
    """Duration, rate and warm-up of the only phase; of several nobody asked for one."""
    text = file.read_text("utf-8", "replace") if file.is_file() else ""
    if text.count("<work>") > 1:
        return
    for option in _OPTION.finditer(text):
        value = number(option["value"])
        level = int(value) if value is not None and value.is_integer() else value
        yield _LEVELS[option["name"]], option["value"] if level is None else level
