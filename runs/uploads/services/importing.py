"""Stores the runs of another tool, as its importer has read them: each once, however often."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from runs.access.services import audit
from runs.execution.reporter import ArtifactData
from runs.importers.row import ImportedRun
from runs.models import Campaign, Project, Run
from runs.models.campaigns import Origin
from runs.postgresql_settings import secrets
from runs.shared.errors import Refused
from runs.uploads.services import question
from runs.uploads.services.store import store
from runs.uploads.services.uploaded_run import (
    GivenMeasurement,
    GivenProfile,
    GivenRevision,
    GivenRun,
)

_AT_ONCE = 200
_SHOWN = 300


@dataclass
class Loaded:
    """What an import has stored; `there` are runs that were stored before."""

    campaigns: set[str] = field(default_factory=set)
    runs: int = 0
    there: int = 0
    ids: list[int] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def load(*, runs: Iterable[ImportedRun], project: Project, origin: str) -> Loaded:
    """Store these runs with their origin. One that contradicts what is stored is left out.

    A run is known by its campaign and external id, or without one by its text, so a second import
    adds what is new alone.
    """
    loaded = Loaded()
    ordered = sorted(runs, key=lambda run: (run.campaign, run.started_at))
    for begin in range(0, len(ordered), _AT_ONCE):
        some = ordered[begin : begin + _AT_ONCE]
        new_runs = _new(some, project)
        loaded.there += len(some) - len(new_runs)
        _store(
            [
                _given(run, f"/{position}", origin)
                for position, run in enumerate(new_runs)
            ],
            project,
            loaded,
        )
    details = {"runs": loaded.runs, "there": loaded.there, "from": origin}
    audit.record("imported", project, project=project, after=details)
    return loaded


def qualify_campaigns(
    runs: Sequence[ImportedRun], project: Project
) -> list[ImportedRun]:
    """The runs, with the project's name in that of a campaign that another project has.

    Peers call all results "Benchmark", and nobody chose that. Names that people choose get theirs
    from `slugs.qualify_slug`, with two hyphens.
    """
    campaigns_there = Campaign.objects.filter(
        slug__in={run.campaign for run in runs}, project__is_public=True
    )
    slugs_of_others = campaigns_there.exclude(
        project=project, origin=Origin.UPLOADED
    ).values_list("slug", flat=True)
    own_slug = {slug: f"{slug}-{project.slug}"[:120] for slug in slugs_of_others}
    return [
        replace(run, campaign=own_slug.get(run.campaign, run.campaign)) for run in runs
    ]


def _new(runs: Sequence[ImportedRun], project: Project) -> list[ImportedRun]:
    names = {run.campaign for run in runs}
    slugs = question.find_own_slugs(names, project)
    stored_keys = set(
        Run.objects.filter(
            campaign__project=project,
            campaign__slug__in={slugs.get(name, name) for name in names},
            external_id__in={run.external_id for run in runs if run.external_id},
        ).values_list("campaign__slug", "external_id")
    )
    run_of_key = {
        (slugs.get(run.campaign, run.campaign), run.external_id or f"#{position}"): run
        for position, run in enumerate(runs)
    }
    return [run for key, run in run_of_key.items() if key not in stored_keys]


def _store(runs: Sequence[GivenRun], project: Project, loaded: Loaded) -> None:
    while runs:
        try:
            stored = store(runs=runs, project=project)
        except Refused as refused:
            faulty = {
                f"/{fault.pointer.split('/')[1]}": fault.message
                for fault in refused.faults
            }
            loaded.left_out += [
                f"{run.campaign} {run.external_id}: {faulty[run.at]}"[:_SHOWN]
                for run in runs
                if run.at in faulty
            ]
            faultless_runs = [run for run in runs if run.at not in faulty]
            if len(faultless_runs) == len(runs):
                raise
            runs = faultless_runs
            continue
        loaded.runs += sum(not run.is_again for run in stored)
        loaded.there += sum(run.is_again for run in stored)
        loaded.ids += [run.id for run in stored]
        loaded.campaigns |= {run.campaign for run in stored}
        return


def _given(run: ImportedRun, pointer: str, origin: str) -> GivenRun:
    is_whole = bool(run.measurements) and not run.failure
    return GivenRun(
        at=pointer,
        campaign=run.campaign,
        scenario=run.scenario,
        external_id=run.external_id,
        started_at=run.started_at,
        finished_at=run.finished_at,
        status="finished" if is_whole else "failed",
        code="" if is_whole else run.failure_code,
        message=run.failure,
        wording={} if is_whole else run.wording,
        levels={
            **({"version": run.server_version} if run.server_version else {}),
            **run.levels,
        },
        measurements=tuple(
            GivenMeasurement(**vars(metric_value))
            for metric_value in (run.measurements if is_whole else ())
        ),
        series=run.series,
        revision=_revision(run),
        notes=run.notes,
        files=(ArtifactData("stdout", run.text.encode()),) if run.text else (),
        labels={**run.labels, "imported_from": origin[:500]},
        settings=secrets.masked_all(dict(run.settings)),
        hardware=GivenProfile(fields=dict(run.hardware)) if run.hardware else None,
        server_version=run.server_version,
        tool_name=run.tool_name,
        tool_version=run.tool_version,
    )


def _revision(run: ImportedRun) -> GivenRevision | None:
    if not run.sha:
        return None
    return GivenRevision(
        run.sha,
        ref=run.branch,
        url=run.url,
        committed_at=run.committed_at,
        parents=run.parents,
        subject=run.subject,
        author=run.author,
    )
