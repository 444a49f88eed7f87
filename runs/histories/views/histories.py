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
from runs.cells.selectors.level_texts import level
from runs.cells.selectors.metrics import metric_title
from runs.charts.history import Event, Mark, Point, Words, history
from runs.charts.sparkline import sparkline
from runs.histories.selectors import histories
from runs.histories.selectors.histories import Histories, History, HostChange
from runs.histories.selectors.points import HistoryPoint
from runs.histories.services import changes, webhooks
from runs.histories.services import missing_uploads as watchdog
from runs.models import Campaign, Change
from runs.models.campaigns import Origin
from runs.servers.selectors.hardware import shown
from runs.shared.pages import Page, beside, run_addresses

ARROW = "\N{RIGHTWARDS ARROW}"
LONGEST_LABEL = 40
LONGEST_LINE = 300
# Those of people.
DECISIONS = [(each.value, each.label) for each in Change.Decision if each != "refuted"]
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
        key=lambda each: names.index(each.name) if each.name in _TITLES else len(names),
    )
    return [
        f"{_title(each.name)} {_value(each.name, each.before)} {ARROW} "
        f"{_value(each.name, each.after)}"[:LONGEST_LINE]
        for each in ordered
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
        return next((each for each in self.changes if each.decision not in Change.GONE), None)

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
    metric = next((each for each in metrics if each.name == metric_name), None)
    metric = metric or campaign_metrics.primary(campaign, among=metrics)
    found = histories.histories(campaign, metric=metric, levels=levels, skip=skip, most=MOST_DRAWN)
    hosts = histories.host_changes(found.series)
    same = constant([each.levels for each in found.series]) if len(found.series) > 1 else ()
    parts = [_part(each, found, hosts.get(each.key, ()), same) for each in found.series]
    wall = _wall(parts)
    return {
        "campaign": campaign,
        "metrics": metrics,
        "metric": found.metric,
        "found": found,
        "parts": parts,
        "wall": wall,
        "headline": _headline(parts) if wall else "",
        "decisions": DECISIONS,
    }


def _headline(parts: Sequence[SeriesPart]) -> str:
    changed = sum(each.standing is not None for each in parts)
    if not changed:
        return _("No change of level in %(total)d series") % {"total": len(parts)}
    text = ngettext(
        "%(number)d of %(total)d series has a change of level",
        "%(number)d of %(total)d series have a change of level",
        changed,
    )
    return text % {"number": changed, "total": len(parts)}


def _wall(parts: Sequence[SeriesPart]) -> list[tuple[int, SeriesPart]]:
    """All series with the numbers of their charts, those that changed last first."""
    if len(parts) < 2:
        return []

    def when(numbered: tuple[int, SeriesPart]) -> int:
        change = numbered[1].standing
        return (change.cell.revision_id or change.pk) if change else 0

    return sorted(enumerate(parts, start=1), key=when, reverse=True)


def _part(
    each: History, found: Histories, hosts: Sequence[HostChange], same: Collection[str]
) -> SeriesPart:
    """A series with its chart; its name leaves out the levels that all series have."""
    varied = {name: value for name, value in each.levels.items() if name not in same}
    text = ", ".join(level(value, name) for name, value in varied.items())
    differences = [difference_lines(host) for host in hosts]
    parts = [
        {"at": host.at, "run": host.run, "label": short_label(lines), "lines": lines}
        for host, lines in zip(hosts, differences, strict=True)
    ]
    figure = _figure(each, found, parts)
    return SeriesPart(each, text or _("all runs"), figure, list(each.changes[::-1]), parts)


def _figure(each: History, found: Histories, hosts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    words = Words(
        median=_("median"),
        range=_("min–max"),
        runs=_("runs"),
        level=_("level"),
        alarm=_("alarm"),
    )
    return history(
        _points(each.points),
        _marks(each),
        y_title=metric_title(found.metric) if found.metric else "",
        words=words,
        hosts=[Event(host["at"], host["label"], "\n".join(host["lines"])) for host in hosts],
        decisions=_decided(each),
    )


def _points(points: Sequence[HistoryPoint]) -> list[Point]:
    address = run_addresses()
    return [
        Point(
            at=each.at,
            median=each.median,
            minimum=each.minimum,
            maximum=each.maximum,
            n=each.n,
            label=f"{each.sha[:12]} {each.ref}".strip() if each.sha else f"{each.at:%Y-%m-%d}",
            url=address(each.run) if each.run else "",
        )
        for each in points
    ]


def _decided(each: History) -> list[Event]:
    """What people have said of changes, dismissed ones included."""
    found = []
    for change in each.changes:
        place = histories.place(change, each.points)
        if place is None or (change.decided_at is None and not change.note):
            continue
        by = change.decided_by.get_username() if change.decided_by else ""
        label = ": ".join(filter(None, [str(change.get_decision_display()), change.note]))
        short = label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"
        found.append(Event(each.points[place].at, short, "\n".join(filter(None, (label, by)))))
    return found


def _marks(each: History) -> list[Mark]:
    """The valid changes: without those that a person or later runs have refuted."""
    marks = []
    for change in each.changes:
        place = histories.place(change, each.points)
        if change.decision not in Change.GONE and place is not None:
            is_step = change.kind in Change.STEPS
            marks.append(Mark(each.points[place].at, change.before, change.after, is_step))
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
    skip = histories.skipped(request.GET.get("skip", "0")) or 0
    context = shown_histories(campaign, request.GET.get("metric", ""), levels, skip)
    hours = campaign.expected_every.total_seconds() / 3600 if campaign.expected_every else None
    places = (context["found"].newer, context["found"].older)
    ways = ("" if each is None else beside(request.GET, skip=each) for each in places)
    context["page"] = Page([], *ways)
    form = WatchForm(initial={"hours": hours, "ref": campaign.tracked_ref})
    return render(request, "histories/history.html", {"form": form, **context})


@addresses.action("change-decide", Right.DECIDE)
def change_decide(request: HttpRequest, change_id: int) -> HttpResponse:
    """Confirm or dismiss a change, with a note."""
    shown = projects.visible(histories.all_changes(), to=request.user)
    change: Change = get_object_or_404(shown, pk=change_id)
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
    found = Campaign.objects.filter(origin=Origin.UPLOADED).select_related("scenario", "project")
    return projects.visible(found, to=request.user)
