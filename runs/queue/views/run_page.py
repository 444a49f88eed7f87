"""What the page of a run shows: phases, figures and settings, ready for the template."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from runs.cells.selectors import commit_pairs, versions
from runs.cells.selectors.factor_names import factor_titles, known_title
from runs.cells.selectors.series_cells import SERVER
from runs.charts.timeline import Track, timeline
from runs.configurations.views.page import recorded_changes
from runs.execution.machine.monitors import column_of, has_ended_with_load, is_monitored
from runs.models import Command, Measurement, Run, RunEvent, Series
from runs.models.campaigns import Origin
from runs.queue.selectors import certificate_words, runs
from runs.queue.services.artifacts import NAME as FLAME_GRAPH
from runs.queue.views import evidence
from runs.scenarios import registry
from runs.shared.formats import format_level
from runs.tools import known_metrics
from runs.tools.known_metrics import HOST
from runs.workloads.selectors import workloads

# What a reader looks at first, in this order; of devices the busiest.
SHOWN = (
    "cpu_idle",
    "cpu_iowait",
    "cpu_steal",
    "disk_util",
    "disk_write",
    "network_send",
)
MOST_PANELS = 8


def title_of(name: str) -> str:
    """The title of a monitor's series: machine, quantity, device."""
    machine, column = column_of(name)
    kind = next(
        (
            host_column
            for host_column in HOST
            if column == host_column or column.startswith(f"{host_column}_")
        ),
        column,
    )
    device = column[len(kind) + 1 :]
    quantity = _(HOST[kind].title) if kind in HOST else kind
    return " ".join(
        description for description in (machine, quantity, device) if description
    )


def machines_figure(series: Sequence[Series], *, major: str) -> dict[str, Any] | None:
    """The panels; None if no monitor recorded anything."""
    chosen = [
        one_series
        for kind in SHOWN
        for one_series in series
        if _tells(one_series, kind)
    ]
    return _figure(chosen[:MOST_PANELS], major)


def _tells(series: Series, kind: str) -> bool:
    """Whether it is of that kind and informative: series that are always zero are left out."""
    _machine, column = column_of(series.name)
    is_kind = column == kind or column.startswith(f"{kind}_")
    return is_kind and (kind == "cpu_idle" or any(series.values))


S = Run.State
WAY = (S.QUEUED, S.CLAIMED, S.PREPARING, S.MEASURING, S.COLLECTING, S.FINISHED)
UNHAPPY = (S.FAILED, S.ERRORED, S.CANCELLED, S.LOST)
# Sources of a setting that say nothing was chosen.
UNCHOSEN = ("default", "override", "client", "session", "environment variable")
MOST_ROWS = 300


def _ended_with_load(run: Run, commands: Sequence[Command]) -> set[int]:
    """The keys of monitors that BenchLab ended; not those whose record is missing."""
    missing = [
        note["message"] for note in run.quality if note["code"] == "monitor_missing"
    ]
    return {
        command.pk
        for command in commands
        if has_ended_with_load(command.step, command.exit_status, command.stderr)
        and not any(command.host in message for message in missing)
    }


def live(run: Run) -> dict[str, Any]:
    """All that the page shows; most of it grows while the run goes on."""
    events = list(run.events.all())
    every = list(run.series.all())
    series = [series for series in every if not is_monitored(series.name)]
    machines = [series for series in every if is_monitored(series.name)]
    major = versions.major(run.server_version or run.cell.version)
    artifacts = list(run.artifacts.all())
    return {
        "run": run,
        "campaign": run.campaign,
        "levels": levels(run),
        "commit_pairs": commit_pairs.list_commit_pairs(run.campaign, run.cell.revision)
        if run.cell.revision is not None
        else [],
        "job_url": runs.job_address(run.labels),
        "labels": [
            (known_title(name), value)
            for name, value in run.labels.items()
            if name != runs.JOB_URL
        ],
        "treatment": workloads.treatment_rows(run.campaign),
        "is_live": not run.has_ended,
        "can_retry": run.can_retry,
        "can_withdraw": run.state == S.FINISHED and run.origin != Origin.PUBLISHED,
        "can_restore": run.state == S.WITHDRAWN,
        "phases": phases(run, events, now=timezone.now()),
        "events": events,
        "measurements": _measurements(run),
        "closed_loop": runs.closed_loop(
            (measurement.metric.name for measurement in run.measurements.all()),
            run.cell.levels,
            run.cell.workload,
            run.campaign.parameters,
        ),
        "certificate": _certificate(run),
        "figure": _figure(series, major),
        "series": [facts for facts in map(_facts, series) if facts],
        "values": _values(series),
        "machines_figure": machines_figure(machines, major=major),
        "machines": [facts for facts in map(_facts, machines) if facts],
        "commands": (commands := list(run.commands.all())),
        "ended_with_load": _ended_with_load(run, commands),
        "settings": settings_of(run.settings.settings) if run.settings else [],
        "translated": recorded_changes((run.plan or {}).get("translated", [])),
        "artifacts": artifacts,
        "evidence": evidence.tables(artifacts),
        "flame_graph": next(
            (artifact for artifact in artifacts if artifact.name == FLAME_GRAPH), None
        ),
    }


def _certificate(run: Run) -> dict[str, Any] | None:
    if not run.judgement or run.origin == Origin.PUBLISHED:
        return None
    return {
        "label": certificate_words.LABELS[run.judgement],
        "tone": certificate_words.TONES[run.judgement],
        "findings": certificate_words.certificate_sentences(run),
    }


def phases(
    run: Run, events: Iterable[RunEvent], *, now: datetime
) -> list[dict[str, Any]]:
    """The way of the latest attempt: states passed, the one it is in, those ahead of it."""
    entered: dict[str, datetime] = {S.QUEUED: run.queued_at}
    for event in events:
        if event.to_state and event.attempt == run.attempt:
            entered[event.to_state] = event.at
    states: list[str] = list(WAY)
    if run.state == S.WITHDRAWN:
        states.append(S.WITHDRAWN)
    elif run.state in UNHAPPY:
        states = [
            state for state in WAY if state in entered and state != S.FINISHED
        ] + [run.state]
    position = states.index(run.state)
    phase_rows = []
    for index, state in enumerate(states):
        has_ended = state in Run.ENDED
        phase = {
            "state": state,
            "label": str(S(state).label),
            "when": _when(index, position),
            "entered": entered.get(state) if index <= position else None,
            "took": None if has_ended else _took(states, index, position, entered, now),
        }
        phase_rows.append(phase)
    return phase_rows


def _when(index: int, position: int) -> str:
    if index < position:
        return "past"
    return "now" if index == position else "ahead"


def settings_of(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Settings by name, those that someone chose first."""
    setting_rows = [
        {
            "name": name,
            "value": str(setting.get("setting", "")),
            "unit": str(setting.get("unit") or ""),
            "source": str(setting.get("source") or ""),
            "is_chosen": (setting.get("source") or "default") not in UNCHOSEN,
        }
        for name, setting in settings.items()
    ]
    return sorted(
        setting_rows, key=lambda setting: (not setting["is_chosen"], setting["name"])
    )


def _took(
    states: Sequence[str],
    index: int,
    position: int,
    entered: Mapping[str, datetime],
    now: datetime,
) -> timedelta | None:
    began = entered.get(states[index])
    if began is None or index > position:
        return None
    if index == position:
        return now - began
    later = [
        entered[state] for state in states[index + 1 : position + 1] if state in entered
    ]
    return later[0] - began if later else None


def levels(run: Run) -> list[tuple[str, Any]]:
    """The levels of its cell by their titles, the version first."""
    titles = {
        "version": "PostgreSQL",
        "bindir": _("folder"),
        **factor_titles(run.campaign),
    }
    named_levels = sorted(
        run.cell.levels.items(), key=lambda item: item[0] != "version"
    )
    if run.server is not None:
        named_levels = [
            (name, run.server.name if name == SERVER else level)
            for name, level in named_levels
        ]
    return [
        (titles.get(name) or known_title(name), format_level(level))
        for name, level in named_levels
    ]


def _measurements(run: Run) -> list[Measurement]:
    """In the order in which the scenarios name their metrics, unknown ones last."""
    metric_names = list(registry.metrics())
    position_of = {name: position for position, name in enumerate(metric_names)}
    return sorted(
        run.measurements.all(),
        key=lambda measurement: position_of.get(
            measurement.metric.name, len(metric_names)
        ),
    )


def series_title(name: str) -> str:
    """What a series is called for readers."""
    if is_monitored(name):
        return title_of(name)
    known_metrics = registry.metrics()
    if name in known_metrics:
        return _(known_metrics[name].title)
    if name == "latency":
        return _("Latency")
    return name.replace("_", " ").replace("-", " ").capitalize()


def is_drawn(series: Series) -> bool:
    """Whether its values stand over the seconds of the load: moments do not."""
    return series.name != known_metrics.SLICE_AT.name


def _figure(series: Sequence[Series], major: str) -> dict[str, Any] | None:
    """Values over the seconds, a panel each; None without any value."""
    tracks = [
        Track(
            label=(title := series_title(series.name)),
            y_title=series.unit or title,
            start=series.start,
            interval=series.interval,
            values=series.values,
        )
        for series in series
        if is_drawn(series) and any(value is not None for value in series.values)
    ]
    return (
        timeline(tracks, x_title=_("seconds of measuring"), major=major)
        if tracks
        else None
    )


def _facts(series: Series) -> dict[str, Any] | None:
    """A series in numbers: the text next to its chart. Values in `unit`."""
    values = [value for value in series.values if value is not None]
    if not values:
        return None
    return {
        "title": series_title(series.name),
        "unit": series.unit,
        "count": len(values),
        "minimum": min(values),
        "median": statistics.median(values),
        "maximum": max(values),
    }


def _values(series: Sequence[Series]) -> dict[str, Any] | None:
    """The series side by side as a table; of long ones only every n-th row."""
    drawn = [series for series in series if series.values]
    if not drawn or len({(series.start, series.interval) for series in drawn}) > 1:
        return None
    longest = max(len(series.values) for series in drawn)
    step = -(-longest // MOST_ROWS)
    rows = [
        (
            drawn[0].start + index * drawn[0].interval,
            [
                series.values[index] if index < len(series.values) else None
                for series in drawn
            ],
        )
        for index in range(0, longest, step)
    ]
    titles = [(series_title(series.name), series.unit) for series in drawn]
    return {"titles": titles, "rows": rows, "step": step}
