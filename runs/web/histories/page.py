"""What the page of a campaign's histories shows: a chart a series, and the changes in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from runs.charts.history import Decided, HostMark, Mark, Point, Words, history
from runs.models import Campaign, Change
from runs.selectors.campaigns import metrics as campaign_metrics
from runs.selectors.histories import histories, host_changes
from runs.selectors.histories.histories import Histories, History
from runs.selectors.histories.host_changes import HostChange
from runs.selectors.histories.points import HistoryPoint
from runs.templatetags.formats import as_read
from runs.web.histories import machine_changes as host_words

LONGEST_LABEL = 40


@dataclass(frozen=True)
class HostPart:
    """A change of the machine: `label` at its line in the chart, `lines` below it."""

    at: datetime
    run: int
    label: str
    lines: list[str]


@dataclass(frozen=True)
class SeriesPart:
    """One history on the page."""

    history: History
    levels: str
    figure: dict[str, Any]
    changes: list[Change]
    host_changes: list[HostPart]

    @property
    def is_thinned(self) -> bool:
        """Whether there are more points than the chart has."""
        return len(self.history.points) < self.history.total


def context(campaign: Campaign, metric_name: str, levels: list[tuple[str, str]]) -> dict[str, Any]:
    """Everything of the page but the forms. An unknown metric is the campaign's first."""
    metrics = histories.metrics_of(campaign)
    metric = next((each for each in metrics if each.name == metric_name), None)
    metric = metric or campaign_metrics.primary(campaign, among=metrics)
    found = histories.histories(campaign, metric=metric, levels=levels)
    hosts = host_changes.of(found.series)
    return {
        "campaign": campaign,
        "metrics": metrics,
        "metric": found.metric,
        "found": found,
        "parts": [_part(each, found, hosts.get(each.key, ())) for each in found.series],
        "decisions": [
            (each.value, each.label) for each in Change.Decision if each != Change.Decision.REFUTED
        ],
    }


def _part(each: History, found: Histories, hosts: Sequence[HostChange]) -> SeriesPart:
    text = ", ".join(f"{name} {as_read(level)}" for name, level in each.levels.items())
    told = [host_words.told(host) for host in hosts]
    parts = [
        HostPart(host.at, host.run, host_words.label(lines), lines)
        for host, lines in zip(hosts, told, strict=True)
    ]
    figure = _figure(each, found, parts)
    return SeriesPart(each, text or _("all runs"), figure, list(each.changes[::-1]), parts)


def _figure(each: History, found: Histories, hosts: Sequence[HostPart]) -> dict[str, Any]:
    metric = found.metric
    title = f"{_(metric.title)} ({metric.unit})" if metric and metric.unit else ""
    words = Words(
        median=_("median"),
        range=_("min–max"),
        runs=_("runs"),
        level=_("level"),
        step=_("step"),
        alarm=_("alarm"),
    )
    return history(
        [_point(point) for point in each.points],
        _marks(each),
        y_title=title or (_(metric.title) if metric else ""),
        words=words,
        hosts=[HostMark(host.at, host.label, "\n".join(host.lines)) for host in hosts],
        decisions=_decided(each),
    )


def _point(point: HistoryPoint) -> Point:
    label = f"{point.sha[:12]} {point.ref}".strip() if point.sha else f"{point.at:%Y-%m-%d}"
    return Point(
        at=point.at,
        median=point.median,
        minimum=point.minimum,
        maximum=point.maximum,
        n=point.n,
        label=label,
        url=reverse("run-detail", args=[point.run]) if point.run else "",
    )


def _decided(each: History) -> list[Decided]:
    """What people have said of changes, dismissed ones included."""
    found = []
    for change in each.changes:
        place = histories.place(change, each.points)
        if place is None or (change.decided_at is None and not change.note):
            continue
        by = change.decided_by.get_username() if change.decided_by else ""
        words = [str(change.get_decision_display()), change.note]
        label = ": ".join(filter(None, words))
        short = label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"
        text = "\n".join(filter(None, (label, by)))
        found.append(Decided(each.points[place].at, short, text))
    return found


def _marks(each: History) -> list[Mark]:
    """The valid changes: without those that a person or later runs have refuted."""
    gone = (Change.Decision.DISMISSED, Change.Decision.REFUTED)
    marks = []
    for change in each.changes:
        place = histories.place(change, each.points)
        if change.decision not in gone and place is not None:
            is_step = change.kind == Change.Kind.STEP
            at = each.points[place].at
            marks.append(Mark(at, change.before, change.after, is_step))
    return marks
