"""What the page of a campaign shows: numbers, figures, and long tables a page at a time."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import QueryDict
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from runs.charts.bars import bars, of_single_points
from runs.charts.scaling import Words, scaling
from runs.models import Campaign, Metric, Run
from runs.models.campaigns import Origin
from runs.selectors import caching, configurations
from runs.selectors.access.projects import Reader
from runs.selectors.access.rights import Right
from runs.selectors.archive.chart import as_printed
from runs.selectors.caching import NEVER, Versions
from runs.selectors.campaigns import campaigns as campaign_selectors
from runs.selectors.campaigns import factor_names as designs
from runs.selectors.campaigns import metrics, treatments, waiting
from runs.selectors.campaigns.campaigns import Grid, Measured, RatioRow
from runs.selectors.campaigns.factor_names import Words as Named
from runs.selectors.campaigns.factor_names import constants, factor_title
from runs.selectors.campaigns.waiting import Hindrance
from runs.selectors.compare.ratio_pairs import STEPS
from runs.selectors.compare.ratios import Tables
from runs.selectors.compare.series_cells import SERVER, VERSION
from runs.selectors.operations.checks import Outcome
from runs.selectors.operations.readiness import silences
from runs.selectors.servers import builds
from runs.templatetags.access import may_here
from runs.templatetags.components import without_indents
from runs.web.archive import page as published_page
from runs.web.campaigns import annotations, ratios
from runs.web.campaigns.heat import MOST_CONDITIONS, HeatTable, heat_table

# The factor that the ratios are about, and the metric that chart and tables show.
BY, METRIC = "by", "metric"
TITLES = {VERSION: gettext_lazy("Version"), STEPS: gettext_lazy("Version to version")}
# Each table's name in the address.
CELLS, RATIOS, ORDER, TROUBLED_RUNS = "cells", "ratios", "order", "troubled"
SIZES = {RATIOS: 60, ORDER: 200, TROUBLED_RUNS: 20}


@dataclass(frozen=True)
class Part:
    """A page of a table, with the addresses of the one before and the one after it."""

    name: str
    rows: list[Any]
    number: int
    total: int
    before: str = ""
    after: str = ""

    @property
    def anchor(self) -> str:
        """The part of the page that the table is in."""
        return self.name


def listed(rows: Any, name: str, given: QueryDict) -> Part:
    """The page of these rows that the address names, else the first."""
    return part(Paginator(rows, SIZES[name]).get_page(given.get(name)), name, given)


def part(page: "Page[Any]", name: str, given: QueryDict) -> Part:
    """A page that was cut already, with its neighbours; those of the other tables stay."""
    return Part(
        name=name,
        rows=list(page),
        number=page.number,
        total=page.paginator.num_pages,
        before=query(given, **{name: page.previous_page_number()}) if page.has_previous() else "",
        after=query(given, **{name: page.next_page_number()}) if page.has_next() else "",
    )


def of_ratios(given: QueryDict) -> QueryDict:
    """What the address says of the ratios: their page is the same whatever cells are shown."""
    found = QueryDict(mutable=True)
    found.update({name: str(given[name]) for name in (BY, METRIC, RATIOS) if given.get(name)})
    return found


def query(given: QueryDict, **changed: int | str) -> str:
    """The query string of the page of each table; empty where each is at its first."""
    pages = QueryDict(mutable=True)
    for name in (BY, METRIC, CELLS, *SIZES):
        if value := changed.get(name) or given.get(name):
            pages[name] = str(value)
    return f"?{pages.urlencode()}" if pages else ""


LIVE = Campaign.LIVE
TROUBLED = (Run.State.FAILED, Run.State.ERRORED, Run.State.LOST)
# More lines than this cannot be distinguished: then the chart has the rows of the page.
MOST_LINES = 24
# For so long a page shows the time that is left as it was.
ESTIMATE_SECONDS = 30
# The first runs of a cause are named.
MOST_OF_A_CAUSE = 5
# More rounds than these are offered by nobody at once.
MOST_OFFERED = 20
# A table of more rows of cells is unfolded by the reader.
MOST_OPEN_ROWS = 6


@dataclass(frozen=True)
class Standing:
    """How a campaign stands: runs by state and, while it is at work, what its runs wait for."""

    counts: Mapping[str, int]
    hindrances: Sequence[Hindrance] = ()
    silences: Sequence[Outcome] = ()


def standing(campaign: Campaign) -> Standing:
    """As it is now. One query; two or three more for what is at work."""
    counts = campaign_selectors.run_counts([campaign.pk])[campaign.pk]
    if campaign.state not in LIVE:
        return Standing(counts)
    return Standing(counts, waiting.of_campaign(campaign), silences())


def stamp(
    campaign: Campaign,
    standing: Standing,
    given: QueryDict,
    versions: Versions,
    *,
    reader: Reader,
) -> str:
    """Of what the live part shows a reader of a campaign in progress; if equal, nothing is new.

    Empty for what has ended, and without `versions`. The page has it from before what it shows was
    read, so that a change meanwhile is new to the next poll.
    """
    if campaign.state not in LIVE or versions.whole is None:
        return ""
    is_under_way = any(standing.counts.get(state) for state in Run.ACTIVE)
    told = [
        (campaign.pk, campaign.state, campaign.paused_at, campaign.priority, get_language()),
        (reader.pk, may_here({"user": reader}, Right.QUEUE, campaign)),
        sorted(standing.counts.items()),
        [_told_of(each) for each in standing.hindrances],
        list(standing.silences),
        query(given),
        versions.whole,
        # The time that is left becomes less while no row changes.
        time.time() // ESTIMATE_SECONDS if is_under_way else None,
    ]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def _told_of(hindrance: Hindrance) -> tuple[Any, ...]:
    """What the page says of a machine that runs wait for."""
    server = hindrance.server
    told = (server.problem_code, server.problem, server.problem_remedy, server.maintenance_reason)
    known = (server.pk, server.slug, server.name, server.state)
    return hindrance.kind, hindrance.sites, hindrance.remedy, *known, *told


def versions_of(campaign: Campaign) -> Versions:
    """The versions of all that the page shows. One query; one more for what it reproduces."""
    others: Sequence[int] = ()
    if campaign.reproduces:
        found = Campaign.objects.filter(slug=campaign.reproduces, published__isnull=False)
        others = list(found.values_list("pk", flat=True))
    return caching.versions((campaign.pk, *others))


@dataclass(frozen=True)
class Shown:
    """What the live part shows to all readers alike, as HTML where it says nothing else.

    `more_rounds` are offered by a button; None: none.
    """

    findings: SafeString
    # The sentence of the whole, for whoever shares the page.
    lead: str
    more_rounds: int | None
    has_history: bool
    figure: SafeString
    results: SafeString
    cells: SafeString
    can_retry: bool
    measured_again: int


@dataclass(frozen=True)
class Conditions:
    """What was kept the same, and on what: machines, configuration. HTML for all readers alike."""

    servers: SafeString
    machines: SafeString
    parameters: SafeString
    configurations: SafeString
    take: SafeString


def live(
    campaign: Campaign,
    standing: Standing,
    given: QueryDict,
    versions: Versions = NEVER,
) -> dict[str, Any]:
    """The part that changes while the campaign runs; `given` says which pages of its tables.

    What is the same for all readers is kept until one of the `versions` changes.
    """
    is_live = campaign.state in LIVE
    return {
        "campaign": campaign,
        "is_live": is_live,
        "silences": standing.silences,
        "hindrances": standing.hindrances,
        "query": query(given),
        "progress": campaign_selectors.progress(campaign)
        if is_live
        else campaign_selectors.finished(standing.counts),
        "counts": standing.counts,
        "shown": _shown(campaign, given, versions),
    }


def _shown(campaign: Campaign, given: QueryDict, versions: Versions) -> Shown:
    found = _Found(campaign, given, versions)
    key = (campaign.pk, query(given))

    ratios_given = of_ratios(given)

    def judged() -> tuple[str, str, int | None, bool, str]:
        written = _written("campaigns/_kept.html#results", _results_of(found, ratios_given))
        return *_conclusion(found), written

    def progress() -> tuple[str, bool, int]:
        return (
            _written("campaigns/_kept.html#cells", _cells_of(found)),
            campaign_selectors.can_retry(found.campaign),
            campaign_selectors.measured_again(found.campaign),
        )

    findings, lead, more, has_history, table = caching.answer(
        ("results", campaign.pk, query(ratios_given)), versions.results, judged
    )
    figure = caching.html(
        ("figure", key),
        versions.results,
        lambda: _written("campaigns/_kept.html#figure", _figure_of(found)),
    )
    cells, can_retry, measured_again = caching.answer(("cells", key), versions.whole, progress)
    return Shown(
        findings=SafeString(findings),
        lead=lead,
        more_rounds=more,
        has_history=has_history,
        figure=figure,
        results=SafeString(table),
        cells=SafeString(cells),
        can_retry=can_retry,
        measured_again=measured_again,
    )


class _Found:
    """What several parts of a page are made of, read when the first of them is made."""

    def __init__(self, campaign: Campaign, given: QueryDict, versions: Versions = NEVER) -> None:
        self._campaign, self.given, self._versions = campaign, given, versions

    @cached_property
    def campaign(self) -> Campaign:
        """Read after the versions: what is kept under them must not be older."""
        return again(self._campaign, self._versions)

    @cached_property
    def metrics(self) -> list[Metric]:
        """All that the campaign has, those that are used most first. One query."""
        return list(metrics.of_campaign(self.campaign))

    @cached_property
    def metric(self) -> Metric | None:
        """The one that the reader has chosen, else the campaign's first."""
        chosen = self.given.get(METRIC)
        found = (
            next((each for each in self.metrics if each.name == chosen), None) if chosen else None
        )
        return found or metrics.primary(self.campaign)

    @cached_property
    def measured(self) -> Measured:
        return campaign_selectors.measured(self.campaign, self.metric)

    @cached_property
    def grid(self) -> Grid:
        return campaign_selectors.grid(
            self.campaign, self.metric, page=self.given.get(CELLS, 1), among=self.measured
        )

    @cached_property
    def words(self) -> Named:
        return designs.words(self.campaign)

    @cached_property
    def tables(self) -> Tables:
        """A table for each thing that the campaign asks about; none without a metric."""
        name = self.metric.name if self.metric else ""
        return Tables(self.campaign, name, among=self.measured)

    @property
    def subject(self) -> str:
        """The one that the reader has chosen; empty for the first."""
        chosen = self.given.get(BY, "")
        return chosen if chosen in self.tables.subjects else ""

    @property
    def ratios(self) -> list[RatioRow]:
        """The table that is shown."""
        return self.tables.by(self.subject)


def again(campaign: Campaign, versions: Versions) -> Campaign:
    """The campaign as it is after the versions were read. One query; none without versions."""
    if versions.whole is None:
        return campaign
    listed = campaign_selectors.listed().select_related("topology", "published__source")
    return get_object_or_404(listed, pk=campaign.pk)


def _written(part: str, context: dict[str, Any]) -> SafeString:
    return without_indents(render_to_string(part, context))


def _conclusion(found: _Found) -> tuple[SafeString, str, int | None, bool]:
    """What was found and its first sentence, how many rounds may decide more, whether a history."""
    told = ratios.findings(found.tables.conclusions(), found.words)
    written = SafeString()
    if told:
        written = render_to_string("campaigns/_parts.html#findings", ratios.folded(told))
    lead = told[0].summary if told else ""
    return written, lead, more_rounds(found.campaign, found.ratios), _has_history(found.campaign)


def _figure_of(found: _Found) -> dict[str, Any]:
    if found.metric is None:
        return {}
    return {
        "metric": found.metric,
        "metrics": found.metrics,
        "by": found.subject,
        "factor_title": factor_title(found.campaign, found.grid.factor),
        "figure": _figure(found.campaign, found.metric, found.grid, found.measured),
    }


def _results_of(found: _Found, given: QueryDict) -> dict[str, Any]:
    if found.metric is None:
        return {}
    shown, words = listed(found.ratios, RATIOS, given), found.words
    bases = dict.fromkeys((row.subject, row.base_label) for row in found.ratios)
    return {
        "by": found.subject,
        "ratios": replace(shown, rows=ratios.ratio_lines(shown.rows, words, among=found.ratios)),
        "baselines": ", ".join(dict.fromkeys(words.named(*base) for base in bases)),
        "heat": _heat(found),
        "compares_servers": any(row.subject == SERVER for row in found.ratios),
        "switch": _switch(found, given) if found.measured.summaries else [],
    }


def _heat(found: _Found) -> HeatTable | None:
    """The steps of many versions at a glance; None for few."""
    if STEPS not in found.tables.subjects or found.metric is None:
        return None
    steps, totals = found.tables.by(STEPS), found.tables.by(VERSION)
    # Before their words are made, which takes seconds for tens of thousands.
    if not steps or len({repr(row.levels) for row in steps}) > MOST_CONDITIONS:
        return None
    return heat_table(steps, totals, found.words, found.metric.direction)


def _switch(found: _Found, given: QueryDict) -> list[tuple[str, str, bool]]:
    """(query, title, is shown) of the table about each factor; empty if there is one."""
    if len(found.tables.subjects) < 2:
        return []
    shown = {row.subject for row in found.ratios}
    return [
        (
            query(given, **{BY: name}),
            str(TITLES[name]) if name in TITLES else found.words.title(name),
            name == found.subject or (not found.subject and name in shown),
        )
        for name in found.tables.subjects
    ]


def _cells_of(found: _Found) -> dict[str, Any]:
    campaign, grid = found.campaign, found.grid
    return {
        "metric": found.metric,
        "grid": grid,
        "most_open_rows": MOST_OPEN_ROWS,
        "factor_title": factor_title(campaign, grid.factor),
        "rows": part(grid.page, CELLS, found.given) if grid.page else None,
        "order": listed(
            campaign.runs.order_by("position").values_list("pk", "position", "state", named=True),
            ORDER,
            found.given,
        ),
        "troubled": _with_runs(
            listed(campaign_selectors.causes(campaign, TROUBLED), TROUBLED_RUNS, found.given)
        ),
    }


def _with_runs(causes: Part) -> Part:
    """Each cause with the first of its runs."""
    first = {pk for cause in causes.rows for pk in cause["runs"][:MOST_OF_A_CAUSE]}
    related = Run.objects.select_related("cell", "server").defer("plan")
    runs = related.in_bulk(first)
    rows = [
        {**cause, "runs": [runs[pk] for pk in cause["runs"][:MOST_OF_A_CAUSE] if pk in runs]}
        for cause in causes.rows
    ]
    return replace(causes, rows=rows)


def conditions(campaign: Campaign, versions: Versions = NEVER) -> Conditions:
    """What was kept the same, and on what; kept until a run or anything else of it changes."""
    found = caching.answer(
        ("conditions", campaign.pk),
        versions.whole,
        lambda: asdict(_conditions_of(again(campaign, versions))),
    )
    return Conditions(**{name: SafeString(html) for name, html in found.items()})


def _conditions_of(campaign: Campaign) -> Conditions:
    machines = campaign_selectors.machines(campaign_selectors.machine_keys(campaign))
    shown = {"campaign": campaign, "machines": machines}
    built = list(filter(builds.words, builds.of_campaign(campaign)))
    return Conditions(
        servers=_written("campaigns/_kept.html#servers", shown),
        machines=_written("campaigns/_kept.html#machines", shown | {"builds": built}),
        parameters=_written(
            "campaigns/_kept.html#parameters",
            {"constants": constants(campaign), "treatment": treatments.told(campaign)},
        ),
        # With their lines as they are, and as they were then: they may say something else by now.
        configurations=render_to_string(
            "campaigns/_kept.html#configurations",
            {"campaign": campaign, "configurations": configurations.contained(campaign)},
        ),
        take=render_to_string("campaigns/_parts.html#take", shown),
    )


def side_by_side(campaign: Campaign, versions: Versions = NEVER) -> SafeString:
    """The table that a campaign reproduces, as printed and as measured here; kept likewise."""
    if not campaign.reproduces:
        return SafeString()
    return caching.html(
        ("beside", campaign.pk),
        versions.results,
        lambda: _written(
            "campaigns/_kept.html#beside", published_page.side_by_side(again(campaign, versions))
        ),
    )


def more_rounds(campaign: Campaign, rows: Sequence[RatioRow]) -> int | None:
    """How many rounds the button offers: enough for each row that is within reach."""
    missing = [row.comparison.more_rounds for row in rows if row.comparison.more_rounds]
    if not missing or campaign.state in LIVE or campaign.origin != Origin.EXECUTED:
        return None
    return max((each for each in missing if each <= MOST_OFFERED), default=MOST_OFFERED)


def _has_history(campaign: Campaign) -> bool:
    """Whether there are revisions; the page then shows the newest."""
    is_uploaded = campaign.origin == Origin.UPLOADED
    return is_uploaded and campaign.cells.filter(revision__isnull=False).exists()


def _figure(
    campaign: Campaign, metric: Metric, grid: Grid, among: Measured
) -> dict[str, Any] | None:
    factor = grid.factor
    rows = grid.page.paginator.object_list if grid.page else []
    if grid.page and len(rows) > MOST_LINES:
        rows = list(grid.page)
    lines = campaign_selectors.lines_of(list(rows), factor, among.summaries)
    if factor is None or not any(line.points for line in lines):
        return as_printed(campaign, metric, factor or "version")
    words = Words(median=_("median"), range=_("min–max"), runs=_("runs"), unknown=_("unknown"))
    y_title = f"{_(metric.title)} ({metric.unit})" if metric.unit else _(metric.title)
    if groups := of_single_points(lines):
        return bars(groups, x_title=_("Version"), y_title=y_title, words=words)
    figure = scaling(
        lines,
        x_title=factor_title(campaign, factor),
        y_title=y_title,
        from_zero=not metric.is_ratio,
        words=words,
    )
    return annotations.on_lines(figure, campaign, metric.name, factor)
