"""When an uploaded text is that of a run which is stored already."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from runs.models import Project, Run
from runs.tools import monitors, units
from runs.tools.output import text_of
from runs.uploads.services.uploaded_run import GivenRun

PREFIX = "text:"
# Digits of times and rates, of at most six a figure: by chance one run in a million is alike.
ENOUGH_DIGITS = 6
_NOT_PRINTED = "exit_status"


def with_external_ids(runs: Sequence[GivenRun]) -> list[GivenRun]:
    """The runs, those of a telling text under its name; of several in one request each has one."""
    counted_names: Counter[tuple[str, str]] = Counter()
    named_runs = []
    for run in runs:
        if run.external_id or not _is_telling(run):
            named_runs.append(run)
            continue
        name = f"{PREFIX}{_digest(run)}"
        counted_names[run.campaign, name] += 1
        count = counted_names[run.campaign, name]
        named_runs.append(replace(run, external_id=name if count == 1 else f"{name}:{count}"))
    return named_runs


def stored_before(runs: Sequence[GivenRun], project: Project) -> dict[tuple[str, str], Run]:
    """The runs that are stored already, by campaign and name."""
    names = {run.external_id for run in runs if run.external_id.startswith(PREFIX)}
    if not names:
        return {}
    stored_runs = Run.objects.select_related("campaign").filter(
        campaign__project=project,
        campaign__slug__in={run.campaign for run in runs},
        external_id__in=names,
    )
    return {(run.campaign.slug, run.external_id): run for run in stored_runs}


def _is_telling(run: GivenRun) -> bool:
    if run.status != "finished" or not run.files:
        return False
    digits = (
        len(f"{abs(measurement.value):.6g}".partition("e")[0].replace(".", "").strip("0"))
        for measurement in run.measurements
        if measurement.unit and units.is_measured(measurement.unit)
    )
    return sum(digits) >= ENOUGH_DIGITS


def _digest(run: GivenRun) -> str:
    """Of the text as it was printed, whatever its file is called, and of where the run belongs."""
    texts = sorted(
        hashlib.sha256(text_of(file.content).encode()).hexdigest()
        for file in run.files
        if file.name != _NOT_PRINTED and not monitors.tool_of(file.name)
    )
    identity = "\n".join([*texts, run.cell_key, str(run.round)])
    return hashlib.sha256(identity.encode()).hexdigest()[:40]
