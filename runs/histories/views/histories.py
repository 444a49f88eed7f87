"""Histories of uploads: their page, and deciding about changes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from statistics import median
from typing import Any, cast
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.defaultfilters import filesizeformat
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from runs.access import addresses
from runs.access.selectors import projects
from runs.access.selectors.permission_table import Right
from runs.cells.selectors import metrics as campaign_metrics
from runs.cells.selectors.history_points import HistoryPoint
from runs.cells.selectors.metrics import metric_title
from runs.cells.selectors.series_cells import level_text
from runs.charts import history as drawing
from runs.charts.framed import Tile
from runs.charts.history import Event, Mark, Point
from runs.histories.selectors import answers, causes, histories
from runs.histories.selectors.answers import HistoryAnswer, HistoryRow
from runs.histories.selectors.histories import Histories, History, HostChange
from runs.histories.services import changes, missing_uploads, webhooks
from runs.models import Campaign, Change, Metric
from runs.models.campaigns import Origin
from runs.servers.selectors.hardware import shown
from runs.shared import caching, skipping
from runs.shared.pages import Page, query_beside, run_addresses
from runs.templatetags.access import may_here

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


@dataclass(frozen=True)
class SeriesPart:
    """One history as the page shows it; `host_changes` have a `label` and `lines`.

    `number` is its column in the table of figures, `query` the address that enlarges it.
    """

    row: HistoryRow
    number: int
    picture: SafeString
    query: str
    changes: list[Change]
    host_changes: list[dict[str, Any]]

    @property
    def ends(self) -> tuple[float, float]:
        """The level before its change and after it; of one without, that of all its points."""
        change = self.row.change
        if change is not None:
            return change.before, change.after
        level = median(point.median for point in self.row.history.points)
        return level, level


@dataclass(frozen=True)
class KeptSeries:
    """What is kept of a series: its column, levels, changes of its machine, and keys of changes."""

    number: int
    levels: str
    hosts: str
    change_keys: Sequence[int]


@dataclass(frozen=True)
class KeptPage:
    """What all readers of a page of histories see alike: HTML, and what is asked for with it."""

    sentence: str
    head: str
    wall: str
    more: str
    unit: str
    older: int | None
    newer: int | None
    series: Sequence[KeptSeries]
    # The changes for readers who decide nothing.
    series_to_read: str = ""

    def to_json(self) -> dict[str, Any]:
        """As it is kept."""
        return asdict(self)

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> "KeptPage":
        """From what `to_json` gave; the HTML is safe."""
        names = ("head", "wall", "more", "series_to_read")
        html = {name: SafeString(kept[name]) for name in names}
        series = [
            KeptSeries(**{**row, "hosts": SafeString(row["hosts"])})
            for row in kept["series"]
        ]
        return cls(**{**kept, **html, "series": series})


def shown_histories(campaign: Campaign, chosen: "Chosen") -> KeptPage:
    """The page without its forms, kept until something of the campaign changes."""
    version = caching.find_upload_version(campaign.pk)
    kept_page = caching.answer(
        ("histories", campaign.pk, chosen),
        version,
        lambda: _page(_again(campaign, version), chosen).to_json(),
    )
    return KeptPage.from_json(kept_page)


def _again(campaign: Campaign, version: str | None) -> Campaign:
    """The campaign as it is after its version was read."""
    if version is None:
        return campaign
    return Campaign.objects.select_related("scenario", "project").get(pk=campaign.pk)


def _page(campaign: Campaign, chosen: "Chosen") -> KeptPage:
    metrics = campaign_metrics.list_campaign_metrics(campaign)
    metric = chosen_metric(campaign, chosen.metric, metrics)
    history_series = histories.histories(
        campaign, metric=metric, levels=chosen.levels, skip=chosen.skip
    )
    answer = answers.answer_histories(history_series)
    parts = _parts(answer, history_series)
    wall = {
        "metrics": metrics,
        "metric": history_series.metric,
        "parts": parts,
        "figures": _figures(answer),
        "number_of_figures": sum(len(row.history.points) for row in answer.rows),
        "chart_address": chosen.chart_of(campaign),
    }
    page = KeptPage(
        sentence=answer.sentence,
        head=render_to_string(
            "histories/_kept.html#head", {"answer": answer, "found": history_series}
        ),
        wall=render_to_string("histories/_kept.html#wall", wall),
        more=render_to_string("histories/_kept.html#more", {"found": history_series}),
        unit=history_series.metric.unit if history_series.metric else "",
        older=history_series.older,
        newer=history_series.newer,
        series=[
            KeptSeries(
                number=part.number,
                levels=part.row.levels,
                hosts=render_to_string("histories/_kept.html#hosts", {"part": part})
                if part.host_changes
                else "",
                change_keys=[change.pk for change in part.changes],
            )
            for part in parts
        ],
    )
    below = {
        "parts": _series_with_changes(page),
        "unit": page.unit,
        "user": projects.NOBODY,
        "decisions": DECISIONS,
    }
    return replace(
        page, series_to_read=render_to_string("histories/_kept.html#series", below)
    )


@dataclass(frozen=True)
class Chosen:
    """What an address says of the histories: a metric, levels, and how many commits to skip."""

    metric: str
    levels: Sequence[tuple[str, str]]
    skip: int

    def chart_of(self, campaign: Campaign) -> str:
        """The address of the picture of the same."""
        query = [("metric", self.metric)] if self.metric else []
        query += [("level", f"{name}={value}") for name, value in self.levels]
        query += [("skip", str(self.skip))] if self.skip else []
        path = reverse("campaign-history-chart", args=[campaign.slug, "svg"])
        return f"{path}?{urlencode(query)}"


def _series_with_changes(page: KeptPage) -> list[dict[str, Any]]:
    """The series of the page that have something below the charts. One query for all changes."""
    keys = [key for series in page.series for key in series.change_keys]
    changes_of = histories.all_changes().in_bulk(keys) if keys else {}
    return [
        {
            "number": series.number,
            "levels": series.levels,
            "hosts": SafeString(series.hosts),
            "changes": [
                changes_of[key] for key in series.change_keys if key in changes_of
            ],
        }
        for series in page.series
    ]


def chosen_metric(
    campaign: Campaign, name: str, metrics: Sequence[Metric]
) -> Metric | None:
    """The metric of this name; an unknown one is the campaign's first."""
    named_metric = next((metric for metric in metrics if metric.name == name), None)
    return named_metric or campaign_metrics.primary(campaign, among=metrics)


def _parts(answer: HistoryAnswer, found: Histories) -> list[SeriesPart]:
    """The charts of all series on one scale, in the order of the answer."""
    host_parts = _host_parts(answer, found)
    pictures = _pictures(answer, found, host_parts)
    return [
        SeriesPart(
            row=row,
            number=number,
            # The renderer escapes every text.
            picture=mark_safe(picture.svg),  # noqa: S308
            query=_query_of(row, found),
            changes=causes.reports(row.history.changes[::-1]),
            host_changes=host_parts[row.history.key],
        )
        for number, (row, picture) in enumerate(zip(answer.rows, pictures, strict=True))
    ]


def tiles(answer: HistoryAnswer, found: Histories) -> list[Tile]:
    """The charts of all series as they stand in a picture, in the order of the answer."""
    return _pictures(answer, found, _host_parts(answer, found))


def _host_parts(
    answer: HistoryAnswer, found: Histories
) -> dict[Any, list[dict[str, Any]]]:
    """By the key of a series what changed of its machine."""
    hosts = histories.host_changes(found.series)
    return {
        row.history.key: [_host_part(host) for host in hosts.get(row.history.key, ())]
        for row in answer.rows
    }


def _pictures(
    answer: HistoryAnswer,
    found: Histories,
    host_parts: Mapping[Any, Sequence[dict[str, Any]]],
) -> list[Tile]:
    """One for each series: on one scale, and large where there is but one."""
    drawn = [_drawn(row.history, host_parts[row.history.key]) for row in answer.rows]
    if not drawn:
        return []
    axes, size = drawing.axes(drawn), drawing.SMALL if len(drawn) > 1 else drawing.LARGE
    title = metric_title(found.metric) if found.metric else ""
    return [
        Tile(
            drawing.picture(history, axes, size, label=f"{title}, {row.levels}"),
            size.width,
            size.height,
            " ".join(filter(None, (row.levels, row.size))),
        )
        for row, history in zip(answer.rows, drawn, strict=True)
    ]


def _query_of(row: HistoryRow, found: Histories) -> str:
    """The address of the page with this series alone."""
    levels = [
        ("level", f"{name}={level_text(value)}")
        for name, value in row.history.levels.items()
    ]
    metric = [("metric", found.metric.name)] if found.metric else []
    return urlencode([*metric, *levels])


def _host_part(host: HostChange) -> dict[str, Any]:
    lines = difference_lines(host)
    return {"at": host.at, "run": host.run, "label": short_label(lines), "lines": lines}


def _drawn(series_history: History, hosts: Sequence[dict[str, Any]]) -> drawing.History:
    machines = [
        Event(host["at"], host["label"], "\n".join(host["lines"]), is_machine=True)
        for host in hosts
    ]
    return drawing.History(
        _points(series_history.points),
        _marks(series_history),
        [*machines, *_decided(series_history)],
    )


@dataclass
class FigureRow:
    """A commit, or day, in the table of all figures: its first point, and that of each series."""

    first: HistoryPoint
    point_of: dict[int, HistoryPoint] = field(default_factory=dict)

    def html(self, columns: int) -> str:
        """As HTML; a single series has its range, and how many runs it is of, as well."""
        address = run_addresses()
        cells = []
        for number in range(columns):
            point = self.point_of.get(number)
            text = f"{point.median:.6g}" if point else ""
            if point and point.run:
                text = f'<a href="{address(point.run)}">{text}</a>'
            cells.append(f"<td>{text}</td>")
        if columns == 1:
            of_single = self.point_of[0]
            ends = f"<td>{of_single.minimum:.6g}</td><td>{of_single.maximum:.6g}</td>"
            cells.append(f"{ends}<td>{of_single.n}</td>")
        moment = self.first.at
        return (
            f'<tr data-t="{moment.timestamp():.0f}"><th scope="row">{escape(_label(self.first))}'
            f"</th><td>{moment:%Y-%m-%d}</td>{''.join(cells)}</tr>"
        )


def _figures(answer: HistoryAnswer) -> SafeString:
    """The rows of the table of all figures: a commit, or day, a row; a series a column.

    The script reads them, so that the page has each figure once.
    """
    row_of: dict[str, FigureRow] = {}
    for number, row in enumerate(answer.rows):
        for point in row.history.points:
            key = point.sha or f"{point.at:%Y-%m-%d}"
            row_of.setdefault(key, FigureRow(point)).point_of[number] = point
    in_order = sorted(row_of.values(), key=lambda figure_row: figure_row.first.at)
    lines = [figure_row.html(len(answer.rows)) for figure_row in in_order]
    # Numbers, dates, and names that are escaped.
    return mark_safe("\n".join(lines))  # noqa: S308


def _label(point: HistoryPoint) -> str:
    """Its commit and branch, else its day."""
    return (
        f"{point.sha[:12]} {point.ref}".strip() if point.sha else f"{point.at:%Y-%m-%d}"
    )


def _points(points: Sequence[HistoryPoint]) -> list[Point]:
    return [
        Point(
            at=point.at,
            median=point.median,
            minimum=point.minimum,
            maximum=point.maximum,
            n=point.n,
            label=_label(point),
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
        label = ": ".join(
            filter(None, [str(change.get_decision_display()), change.note])
        )
        short = (
            label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"
        )
        events.append(
            Event(
                history.points[position].at, short, "\n".join(filter(None, (label, by)))
            )
        )
    return events


def _marks(history: History) -> list[Mark]:
    """The valid changes: without those that a person or later runs have refuted."""
    marks = []
    for change in history.changes:
        position = histories.place(change, history.points)
        if change.decision not in Change.GONE and position is not None:
            is_step = change.kind in Change.STEPS
            marks.append(
                Mark(history.points[position].at, change.before, change.after, is_step)
            )
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
        help_text=gettext_lazy(
            "Left empty, nobody is notified when they stop arriving."
        ),
    )
    ref = forms.CharField(
        label=gettext_lazy("Branch of the history"),
        required=False,
        max_length=200,
        help_text=gettext_lazy(
            "Left empty, the history has the revisions of all branches."
        ),
    )


@addresses.page("campaign-history")
def campaign_history(request: HttpRequest, slug: str) -> HttpResponse:
    """The histories of a campaign that was uploaded, under levels given as clients=8."""
    campaign = get_object_or_404(uploaded(request), slug=slug)
    skip = skipping.skipped(request.GET.get("skip", "0")) or 0
    chosen = Chosen(request.GET.get("metric", ""), levels_of(request), skip)
    kept_page = shown_histories(campaign, chosen)
    hours = (
        campaign.expected_every.total_seconds() / 3600
        if campaign.expected_every
        else None
    )
    queries = (
        "" if number_to_skip is None else query_beside(request.GET, skip=number_to_skip)
        for number_to_skip in (kept_page.newer, kept_page.older)
    )
    context = {
        "campaign": campaign,
        "kept": kept_page,
        "unit": kept_page.unit,
        "decisions": DECISIONS,
        "page": Page([], *queries),
    }
    if may_here({"user": request.user}, "change-decide", campaign):
        context["parts"] = _series_with_changes(kept_page)
    form = WatchForm(initial={"hours": hours, "ref": campaign.tracked_ref})
    return render(request, "histories/history.html", {"form": form, **context})


def levels_of(request: HttpRequest) -> list[tuple[str, str]]:
    """Those that the address names: `level=clients=8`."""
    texts = [text.partition("=") for text in request.GET.getlist("level")]
    return [(name, value) for name, equals, value in texts if equals]


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
    campaign = get_object_or_404(uploaded(request), slug=slug)
    form = WatchForm(request.POST)
    if form.is_valid():
        hours = form.cleaned_data["hours"]
        every = timedelta(hours=hours) if hours else None
        missing_uploads.expect(campaign=campaign, every=every)
        missing_uploads.track(campaign=campaign, ref=form.cleaned_data["ref"])
        messages.success(
            request, _("The expected uploads of this campaign were saved.")
        )
    else:
        messages.error(
            request, _("Give a number of hours from 0.1 to 8760, or nothing.")
        )
    return redirect("campaign-history", slug=slug)


def uploaded(request: HttpRequest) -> QuerySet[Campaign]:
    """Campaigns of uploads that the reader may see."""
    campaigns = Campaign.objects.filter(origin=Origin.UPLOADED).select_related(
        "scenario", "project"
    )
    return projects.visible(campaigns, to=request.user)
