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
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for run in runs:
        if run.external_id or not _is_telling(run):
            found.append(run)
            continue
        name = f"{PREFIX}{_digest(run)}"
        seen[run.campaign, name] += 1
        count = seen[run.campaign, name]
        found.append(replace(run, external_id=name if count == 1 else f"{name}:{count}"))
    return found


def stored_before(runs: Sequence[GivenRun], project: Project) -> dict[tuple[str, str], Run]:
    """The runs that are stored already, by campaign and name."""
    names = {run.external_id for run in runs if run.external_id.startswith(PREFIX)}
    if not names:
        return {}
    there = Run.objects.select_related("campaign").filter(
        campaign__project=project,
        campaign__slug__in={run.campaign for run in runs},
        external_id__in=names,
    )
    return {(run.campaign.slug, run.external_id): run for run in there}


def _is_telling(run: GivenRun) -> bool:
    if run.status != "finished" or not run.files:
        return False
    digits = (
        len(f"{abs(each.value):.6g}".partition("e")[0].replace(".", "").strip("0"))
        for each in run.measurements
        if each.unit and units.is_measured(each.unit)
    )
    return sum(digits) >= ENOUGH_DIGITS


def _digest(run: GivenRun) -> str:
    """Of the text as it was printed, whatever its file is called, and of where the run belongs."""
    texts = sorted(
        hashlib.sha256(text_of(file.content).encode()).hexdigest()
        for file in run.files
        if file.name != _NOT_PRINTED and not monitors.tool_of(file.name)
    )
    whole = "\n".join([*texts, run.cell_key, str(run.round)])
    return hashlib.sha256(whole.encode()).hexdigest()[:40]
