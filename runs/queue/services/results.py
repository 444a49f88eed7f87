"""Stores the results of a run: measurements, series, artifacts, settings, quality notes."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from django.db import transaction

from runs.execution.reporter import Findings
from runs.fingerprints import fingerprint
from runs.models import Measurement, Metric, Run, Series, SettingsSnapshot
from runs.models.measurements import Statistic
from runs.postgresql_settings import secrets
from runs.queue.services import artifacts, certificates, leases, transitions
from runs.seals.selectors.seals import figures_digest
from runs.tools import known_metrics
from runs.tools.adapter import SeriesData

logger = logging.getLogger(__name__)


@transaction.atomic
def store(
    *, run_id: int, token: int, findings: Findings, has_failed: bool = False
) -> bool:
    """Store all results of a run in one transaction; return whether the run was still ours.

    Whatever an earlier, interrupted attempt left is replaced: a run has each measurement exactly
    once, and no series or artifact that its last attempt does not have. One that has failed keeps
    no measurements, but everything that explains the failure; series that were shown up to then
    belong to this attempt, and stay.
    """
    if not transitions.holds(run_id, token):
        return False
    run = Run.objects.select_related("cell").get(pk=run_id)
    run.measurements.all().delete()
    series = _fill_shares(run_id, findings.series)
    if not has_failed:
        run.series.all().delete()
    _store(run, findings, series)
    if not has_failed:
        certificates.issue(run=run, usage=findings.usage)
        shared = Metric.objects.filter(name__in=findings.measurements, project=None)
        metrics = {metric.name: metric for metric in shared}
        Measurement.objects.bulk_create(
            Measurement(run=run, metric=metrics[name], value=value)
            for name, value in findings.measurements.items()
        )
    leases.show_life(run_id=run_id, token=token)
    return True


def digest(findings: Findings) -> str:
    """The digest of the figures by which their seal is asked for."""
    figures = {
        f"{name}:{Statistic.SINGLE}": (value, 1)
        for name, value in findings.measurements.items()
    }
    return figures_digest(figures)


def store_series(*, run_id: int, series: Iterable[SeriesData]) -> None:
    """Store series of a run, replacing earlier ones of the same names."""
    rows = {
        data.name: Series(
            run_id=run_id,
            name=data.name,
            unit=data.unit,
            start=data.start,
            interval=data.interval,
            values=list(data.values),
        )
        for data in _fill_shares(run_id, list(series))
    }
    Series.objects.bulk_create(
        rows.values(),
        update_conflicts=True,
        unique_fields=("run", "name"),
        update_fields=("unit", "start", "interval", "values"),
    )


_OF_SLICES = (
    known_metrics.SLICE_TPS.name,
    known_metrics.SLICE_LATENCY.name,
    known_metrics.SLICE_AT.name,
    known_metrics.SLICE_FOREIGN.name,
)


def _fill_shares(run_id: int, series: Sequence[SeriesData]) -> Sequence[SeriesData]:
    """The series, with what another worker saw of the machine's others in the same slices.

    A worker that takes a run over reads the figures of earlier slices again, but not those. Until
    it has read all of them, those that are stored stay.
    """
    of_name = {data.name: data for data in series}
    begun = of_name.get(known_metrics.SLICE_AT.name)
    shares = of_name.get(known_metrics.SLICE_FOREIGN.name)
    if begun is None or shares is None or None not in shares.values:
        return series
    names = [begun.name, shares.name]
    stored = {
        row.name: row for row in Series.objects.filter(run=run_id, name__in=names)
    }
    # Of another attempt they are of other slices.
    if len(stored) < len(names) or stored[begun.name].start != begun.start:
        return series
    if len(stored[begun.name].values) > len(begun.values):
        return [data for data in series if data.name not in _OF_SLICES]
    filled = tuple(
        known_share if share is None else share
        for share, known_share in zip_longest(shares.values, stored[shares.name].values)
    )
    return [replace(data, values=filled) if data is shares else data for data in series]


def _store(run: Run, findings: Findings, series: Sequence[SeriesData]) -> None:
    # The files of the old rows are removed by pruning.
    run.artifacts.all().delete()
    notes = [note.stored for note in findings.notes]
    pictures = artifacts.drawn_flame_graph(run, findings.artifacts)
    run_artifacts = [(run.pk, data) for data in (*findings.artifacts, *pictures)]
    for data, error in artifacts.store_all(run_artifacts):
        # The figures matter more than the file: report the problem, and keep them.
        logger.error(
            "artifact %s of run %s was not kept", data.name, run.pk, exc_info=error
        )
        message = f"{data.name}: {error}"
        notes.append(
            {"code": "artifact_not_kept", "message": message, "level": "warning"}
        )
    store_series(run_id=run.pk, series=series)
    if findings.settings:
        run.settings = snapshot(settings=findings.settings)
    run.server_version = findings.server_version
    run.tool_name, run.tool_version = findings.tool_name, findings.tool_version
    run.quality = notes
    run.speed = findings.speed or None
    run.save(
        update_fields=[
            "speed",
            "settings",
            "server_version",
            "tool_name",
            "tool_version",
            "quality",
        ]
    )


def redact_secrets(
    settings: Mapping[str, Mapping[str, str]],
) -> dict[str, dict[str, str]]:
    """Settings as a server reports them, without any password in a value."""
    return {
        name: {
            **setting,
            "setting": secrets.masked(name, str(setting.get("setting") or "")),
        }
        if setting.get("setting")
        else dict(setting)
        for name, setting in settings.items()
    }


def snapshot(*, settings: Mapping[str, Mapping[str, str]]) -> SettingsSnapshot:
    """The stored settings with this content; created if there are none yet."""
    settings = redact_secrets(settings)
    settings_snapshot, _created = SettingsSnapshot.objects.get_or_create(
        content_hash=fingerprint(settings), defaults={"settings": settings}
    )
    return settings_snapshot
