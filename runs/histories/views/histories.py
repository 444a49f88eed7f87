"""Histories of uploads: their page, and deciding about changes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop, ngettext

from runs.access import addresses
from runs.access.selectors import projects
from runs.access.selectors.permission_table import Right
from runs.cells.selectors import metrics as campaign_metrics
from runs.cells.selectors.factor_names import constant
from runs.cells.selectors.history_points import HistoryPoint
from runs.cells.selectors.level_texts import level
from runs.cells.selectors.metrics import metric_title
from runs.charts.history import Event, Mark, Point, Words, history
from runs.charts.sparkline import sparkline
from runs.histories.selectors import histories
from runs.histories.selectors.histories import Histories, History, HostChange
from runs.histories.services import changes, webhooks
from runs.histories.services import missing_uploads as watchdog
from runs.models import Campaign, Change
from runs.models.campaigns import Origin
from runs.servers.selectors.hardware import shown
from runs.shared import skipping
from runs.shared.pages import Page, beside, run_addresses

ARROW = "\N{RIGHTWARDS ARROW}"
LONGEST_LABEL = 40
LONGEST_LINE = 300
# Those of people.
DECISIONS = [
    (change_decision.value, change_decision.label)
    for change_decision in Change.Decision
    if change_decision != "refuted"
]
# What a reader of a chart looks for first, in this order.
_TITLES = {
    "cpu_model": gettext_noop("CPU"),
    "memory_bytes": gettext_noop("memory"),
    "kernel": gettext_noop("kernel"),
    "os_name": gettext_noop("operating system"),
    "governor": gettext_noop("governor"),
    "smt": "SMT",
    "turbo": "turbo",
    "disks": gettext_noop("disks"),
}


def difference_lines(change: HostChange) -> list[str]:
    """Each difference as a line, the most telling first."""
    names = list(_TITLES)
    ordered = sorted(
        change.differences,
        key=lambda difference: (
            names.index(difference.name) if difference.name in _TITLES else len(names)
        ),
    )
    return [
        f"{_title(difference.name)} {_value(difference.name, difference.before)} {ARROW} "
        f"{_value(difference.name, difference.after)}"[:LONGEST_LINE]
        for difference in ordered
    ]


def short_label(lines: Sequence[str]) -> str:
    """The first line, shortened, and the number of further lines."""
    text = lines[0]
    if len(text) > LONGEST_LABEL:
        text = f"{text[: LONGEST_LABEL - 1]}\N{HORIZONTAL ELLIPSIS}"
    return f"{text} +{len(lines) - 1}" if len(lines) > 1 else text


def _title(name: str) -> str:
    return _(_TITLES[name]) if name in _TITLES else name


def _value(name: str, value: Any) -> str:
    if name == "memory_bytes" and isinstance(value, int):
        return str(filesizeformat(value)).replace("\xa0", " ")
    return shown(value)


# What a page of 150 kB has room for.
MOST_DRAWN = 270


@dataclass(frozen=True)
class SeriesPart:
    """One history; `host_changes` have a `label` at their line in the chart, and `lines`."""

    history: History
    levels: str
    figure: dict[str, Any]
    changes: list[Change]
    host_changes: list[dict[str, Any]]

    @property
    def standing(self) -> Change | None:
        """Its newest change that nobody and nothing took back."""
        return next((change for change in self.changes if change.decision not in Change.GONE), None)

    @property
    def sparkline(self) -> str:
        """Its shape."""
        return sparkline([point.median for point in self.history.points])

    @property
    def is_thinned(self) -> bool:
        """Whether there are more points than the chart has."""
        return len(self.history.points) < self.history.total


def shown_histories(
    campaign: Campaign, metric_name: str, levels: list[tuple[str, str]], skip: int = 0
) -> dict[str, Any]:
    """Everything of the page but the forms. An unknown metric is the campaign's first."""
    metrics = campaign_metrics.of_campaign(campaign)
    metric = next((metric for metric in metrics if metric.name == metric_name), None)
    metric = metric or campaign_metrics.primary(campaign, among=metrics)
    histories_found = histories.histories(
        campaign, metric=metric, levels=levels, skip=skip, most=MOST_DRAWN
    )
    hosts = histories.host_changes(histories_found.series)
    same = (
        constant([history.levels for history in histories_found.series])
        if len(histories_found.series) > 1
        else ()
    )
    series_parts = [
        _part(history, histories_found, hosts.get(history.key, ()), same)
        for history in histories_found.series
    ]
    wall = _wall(series_parts)
    return {
        "campaign": campaign,
        "metrics": metrics,
        "metric": histories_found.metric,
        "found": histories_found,
        "parts": series_parts,
        "wall": wall,
        "headline": _headline(series_parts) if wall else "",
        "decisions": DECISIONS,
    }


def _headline(series_parts: Sequence[SeriesPart]) -> str:
    changed = sum(series_part.standing is not None for series_part in series_parts)
    if not changed:
        return _("No change of level in %(total)d series") % {"total": len(series_parts)}
    text = ngettext(
        "%(number)d of %(total)d series has a change of level",
        "%(number)d of %(total)d series have a change of level",
        changed,
    )
    return text % {"number": changed, "total": len(series_parts)}


def _wall(series_parts: Sequence[SeriesPart]) -> list[tuple[int, SeriesPart]]:
    """All series with the numbers of their charts, those that changed last first."""
    if len(series_parts) < 2:
        return []

    def when(numbered: tuple[int, SeriesPart]) -> int:
        change = numbered[1].standing
        return (change.cell.revision_id or change.pk) if change else 0

    return sorted(enumerate(series_parts, start=1), key=when, reverse=True)


def _part(
    history: History, histories_found: Histories, hosts: Sequence[HostChange], same: Collection[str]
) -> SeriesPart:
    """A series with its chart; its name leaves out the levels that all series have."""
    varied = {name: value for name, value in history.levels.items() if name not in same}
    text = ", ".join(level(value, name) for name, value in varied.items())
    differences = [difference_lines(host) for host in hosts]
    host_parts = [
        {"at": host.at, "run": host.run, "label": short_label(lines), "lines": lines}
        for host, lines in zip(hosts, differences, strict=True)
    ]
    figure = _figure(history, histories_found, host_parts)
    return SeriesPart(
        history, text or _("all runs"), figure, list(history.changes[::-1]), host_parts
    )


def _figure(
    series_history: History, histories_found: Histories, hosts: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    words = Words(
        median=_("median"),
        range=_("min–max"),
        runs=_("runs"),
        level=_("level"),
        alarm=_("alarm"),
    )
    return history(
        _points(series_history.points),
        _marks(series_history),
        y_title=metric_title(histories_found.metric) if histories_found.metric else "",
        words=words,
        hosts=[Event(host["at"], host["label"], "\n".join(host["lines"])) for host in hosts],
        decisions=_decided(series_history),
    )


def _points(points: Sequence[HistoryPoint]) -> list[Point]:
    address = run_addresses()
    return [
        Point(
            at=point.at,
            median=point.median,
            minimum=point.minimum,
            maximum=point.maximum,
            n=point.n,
            label=f"{point.sha[:12]} {point.ref}".strip() if point.sha else f"{point.at:%Y-%m-%d}",
            url=address(point.run) if point.run else "",
        )
        for point in points
    ]


def _decided(history: History) -> list[Event]:
    """What people have said of changes, dismissed ones included."""
    events = []
    for change in history.changes:
        position = histories.place(change, history.points)
        if position is None or (change.decided_at is None and not change.note):
            continue
        by = change.decided_by.get_username() if change.decided_by else ""
        label = ": ".join(filter(None, [str(change.get_decision_display()), change.note]))
        short = label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"
        events.append(
            Event(history.points[position].at, short, "\n".join(filter(None, (label, by))))
        )
    return events


def _marks(history: History) -> list[Mark]:
    """The valid changes: without those that a person or later runs have refuted."""
    marks = []
    for change in history.changes:
        position = histories.place(change, history.points)
        if change.decision not in Change.GONE and position is not None:
            is_step = change.kind in Change.STEPS
            marks.append(Mark(history.points[position].at, change.before, change.after, is_step))
    return marks


LONGEST_HOURS = 8760


class DecisionForm(forms.Form):
    """What somebody says of a change."""

    decision = forms.ChoiceField(choices=DECISIONS)
    note = forms.CharField(required=False, max_length=2000)


class WatchForm(forms.Form):
    """How often uploads come, and the branch that makes the history."""

    hours = forms.FloatField(
        label=gettext_lazy("Uploads are expected every"),
        required=False,
        min_value=0.1,
        max_value=LONGEST_HOURS,
        help_text=gettext_lazy("Left empty, nobody is notified when they stop arriving."),
    )
    ref = forms.CharField(
        label=gettext_lazy("Branch of the history"),
        required=False,
        max_length=200,
        help_text=gettext_lazy("Left empty, the history has the revisions of all branches."),
    )


@addresses.page("campaign-history")
def campaign_history(request: HttpRequest, slug: str) -> HttpResponse:
    """The histories of a campaign that was uploaded, under levels given as clients=8."""
    campaign = get_object_or_404(_uploaded(request), slug=slug)
    texts = [text.partition("=") for text in request.GET.getlist("level")]
    levels = [(name, value) for name, equals, value in texts if equals]
    skip = skipping.skipped(request.GET.get("skip", "0")) or 0
    context = shown_histories(campaign, request.GET.get("metric", ""), levels, skip)
    hours = campaign.expected_every.total_seconds() / 3600 if campaign.expected_every else None
    places = (context["found"].newer, context["found"].older)
    queries = (
        "" if number_to_skip is None else beside(request.GET, skip=number_to_skip)
        for number_to_skip in places
    )
    context["page"] = Page([], *queries)
    form = WatchForm(initial={"hours": hours, "ref": campaign.tracked_ref})
    return render(request, "histories/history.html", {"form": form, **context})


@addresses.action("change-decide", Right.DECIDE)
def change_decide(request: HttpRequest, change_id: int) -> HttpResponse:
    """Confirm or dismiss a change, with a note."""
    visible_changes = projects.visible(histories.all_changes(), to=request.user)
    change: Change = get_object_or_404(visible_changes, pk=change_id)
    form = DecisionForm(request.POST)
    if form.is_valid():
        is_cause = request.POST.get("of") == "cause"
        decide = changes.decide_cause if is_cause else changes.decide
        decide(change=change, by=cast(User, request.user), **form.cleaned_data)
        messages.success(request, _("The decision is kept."))
    else:
        messages.error(request, _("Not a decision: confirm the change or dismiss it."))
    if request.POST.get("from") == "inbox":
        return redirect("change-list")
    return redirect(webhooks.history_path(change.cell.campaign, change))


@addresses.action("campaign-watch", Right.EXPECT)
def campaign_watch(request: HttpRequest, slug: str) -> HttpResponse:
    """Set how often uploads are expected, and the branch of the history."""
    campaign = get_object_or_404(_uploaded(request), slug=slug)
    form = WatchForm(request.POST)
    if form.is_valid():
        hours = form.cleaned_data["hours"]
        every = timedelta(hours=hours) if hours else None
        watchdog.expect(campaign=campaign, every=every)
        watchdog.track(campaign=campaign, ref=form.cleaned_data["ref"])
        messages.success(request, _("The expected uploads of this campaign were saved."))
    else:
        messages.error(request, _("Give a number of hours from 0.1 to 8760, or nothing."))
    return redirect("campaign-history", slug=slug)


def _uploaded(request: HttpRequest) -> QuerySet[Campaign]:
    campaigns = Campaign.objects.filter(origin=Origin.UPLOADED).select_related(
        "scenario", "project"
    )
    return projects.visible(campaigns, to=request.user)
