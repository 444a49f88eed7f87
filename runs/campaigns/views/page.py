"""What the page of a campaign shows: numbers, figures, and long tables a page at a time."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from django.http import QueryDict
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from runs.access.selectors.projects import Reader
from runs.archive.selectors.chart import draw_like_print
from runs.archive.views import page
from runs.campaigns.selectors import campaigns as campaign_selectors
from runs.campaigns.selectors import waiting
from runs.campaigns.selectors.waiting import Hindrance
from runs.campaigns.services import kept_verdicts, repeats
from runs.campaigns.services.kept_verdicts import Verdicts
from runs.campaigns.views import annotations, parts, verdicts
from runs.campaigns.views.index_chart import Index
from runs.campaigns.views.verdicts import Found, again, written
from runs.cells.selectors.factor_names import constants, factor_title
from runs.cells.selectors.metrics import metric_title
from runs.cells.selectors.series_cells import SERVER
from runs.charts.bars import bars, draw_single_points
from runs.charts.figure import Figure, line_at
from runs.charts.scaling import Axes, scaling
from runs.configurations.selectors import configurations
from runs.models import Campaign, Run
from runs.models.campaigns import Origin
from runs.operations.selectors.health_checks import Outcome
from runs.operations.selectors.readiness import silences
from runs.servers.selectors import builds
from runs.shared import caching
from runs.shared.caching import NEVER, Versions
from runs.shared.chart_words import cell_words, hover_words
from runs.shared.pages import run_addresses
from runs.templatetags.access import may_here
from runs.workloads.selectors import workloads

LIVE = Campaign.LIVE
TROUBLED = (Run.State.FAILED, Run.State.ERRORED, Run.State.LOST)
# More lines than this cannot be distinguished: then the chart has the rows of the page.
MOST_LINES = 24
# For so long a page shows the time that is left as it was.
ESTIMATE_SECONDS = 30
# The first runs of a cause are named.
MOST_OF_A_CAUSE = 5
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
    return Standing(counts, waiting.find_campaign_hindrances(campaign), silences())


def stamp(
    campaign: Campaign,
    standing: Standing,
    query: QueryDict,
    versions: Versions,
    *,
    reader: Reader,
) -> str:
    """Of what the live part shows a reader; if equal, nothing is new. Empty for what has ended.

    Taken before what the page shows is read, so that a change meanwhile is new to the next poll.
    """
    if campaign.state not in LIVE or versions.whole is None:
        return ""
    is_under_way = any(standing.counts.get(state) for state in Run.ACTIVE)
    shown_values = [
        (
            campaign.pk,
            campaign.state,
            campaign.paused_at,
            campaign.priority,
            get_language(),
        ),
        (reader.pk, may_here({"user": reader}, "campaign-rounds", campaign)),
        sorted(standing.counts.items()),
        [_key_of(hindrance) for hindrance in standing.hindrances],
        list(standing.silences),
        parts.query(query),
        versions.whole,
        # The time that is left becomes less while no row changes.
        time.time() // ESTIMATE_SECONDS if is_under_way else None,
    ]
    return hashlib.sha256(repr(shown_values).encode()).hexdigest()[:16]


def _key_of(hindrance: Hindrance) -> tuple[Any, ...]:
    """What the page says of a machine that runs wait for."""
    server = hindrance.server
    problem = (
        server.problem_code,
        server.problem,
        server.problem_remedy,
        server.maintenance_reason,
    )
    server_values = (server.pk, server.slug, server.name, server.state)
    return hindrance.kind, hindrance.sites, hindrance.remedy, *server_values, *problem


def versions_of(campaign: Campaign) -> Versions:
    """The versions of all that the page shows. One query; one more for what it reproduces.

    Verdicts on uploads are judged by other campaigns, too: they have none.
    """
    if campaign.origin == Origin.UPLOADED:
        return Versions(None, caching.find_upload_version(campaign.pk))
    other_keys: Sequence[int] = ()
    if campaign.reproduces:
        campaigns = Campaign.objects.filter(
            slug=campaign.reproduces, published__isnull=False
        )
        other_keys = list(campaigns.values_list("pk", flat=True))
    return caching.versions((campaign.pk, *other_keys))


def live(
    campaign: Campaign,
    standing: Standing,
    query: QueryDict,
    versions: Versions = NEVER,
) -> dict[str, Any]:
    """The part that changes while it runs; `query` says which pages of its tables are shown."""
    is_live = campaign.state in LIVE
    return {
        "campaign": campaign,
        "is_live": is_live,
        "silences": standing.silences,
        "hindrances": standing.hindrances,
        "query": parts.query(query),
        "progress": campaign_selectors.progress(campaign)
        if is_live
        else campaign_selectors.finished(standing.counts),
        "counts": standing.counts,
        "shown": _shown(
            campaign, query, versions, is_wide=kept_verdicts.is_wide(standing.counts)
        ),
    }


def _shown(
    campaign: Campaign, query: QueryDict, versions: Versions, *, is_wide: bool
) -> dict[str, Any]:
    """What is the same for all readers, as HTML where it says nothing else.

    `lead` is the sentence of the whole. Of a wide campaign verdicts are those of `judged_at`, or
    there are none so far, while it `awaits_verdicts`.
    """
    page_results = Found(campaign, query, versions, is_wide=is_wide)
    key: tuple[Any, ...] = (campaign.pk, parts.query(query))
    table = _table_of(page_results) if is_wide else parts.select_ratio_query(query)
    latest = kept_verdicts.latest(campaign.pk, parts.query(table)) if is_wide else None
    if latest is not None:
        # The values of its cells are made with the verdicts.
        key = (*key, latest.made_at)
    if latest is None:
        wide_key = kept_verdicts.key(campaign.pk, parts.query(table))
        verdict_values: Any = caching.answer(
            wide_key, versions.results, lambda: verdicts.judged(page_results, table)[0]
        )
    else:
        verdict_values = latest.value or ()
    shown_verdicts = Verdicts(*verdict_values)

    def progress() -> tuple[str, bool, int]:
        return (
            written("campaigns/_kept.html#cells", _cells_of(page_results)),
            campaign_selectors.can_retry(page_results.campaign),
            campaign_selectors.measured_again(page_results.campaign),
        )

    figure = caching.html(
        ("figure", key),
        versions.results,
        lambda: written("campaigns/_kept.html#figure", _figure_of(page_results)),
    )
    cells, can_retry, measured_again = caching.answer(
        ("cells", key), versions.whole, progress
    )
    return {
        "findings": SafeString(shown_verdicts.findings),
        "lead": shown_verdicts.sentences[0] if shown_verdicts.sentences else "",
        "more_rounds": shown_verdicts.more_rounds,
        "to_await": caching.answer(
            ("to_await", campaign.pk),
            versions.whole,
            lambda: repeats.number_to_await(campaign),
        ),
        "has_history": shown_verdicts.has_history,
        "figure": figure,
        "results": SafeString(shown_verdicts.table),
        "has_heat": shown_verdicts.has_heat,
        "cells": SafeString(cells),
        "can_retry": can_retry,
        "measured_again": measured_again,
        "awaits_verdicts": latest is not None and not latest.is_current,
        "judged_at": datetime.fromtimestamp(latest.made_at, UTC)
        if latest and latest.value
        else None,
    }


def _table_of(results: Found) -> QueryDict:
    """What the address says of the ratios, as far as there is such a table: control makes it."""
    table = parts.select_ratio_query(results.given)
    if parts.METRIC in table and table[parts.METRIC] not in {
        metric.name for metric in results.metrics
    }:
        del table[parts.METRIC]
    if parts.BY in table and table[parts.BY] not in (
        SERVER,
        *verdicts.TITLES,
        *results.campaign.factors,
    ):
        del table[parts.BY]
    return table


def _figure_of(results: Found) -> dict[str, Any]:
    if results.metric is None:
        return {}
    return {
        "metric": results.metric,
        "metrics": results.metrics,
        "by": results.subject,
        "figure": figure_of(results),
        "address": reverse("campaign-chart", args=[results.campaign.slug, "svg"])
        + parts.query(results.given),
        "is_index": results.has_index,
        "is_of_model": bool(results.values),
    }


def _cells_of(results: Found) -> dict[str, Any]:
    campaign, grid = results.campaign, results.grid
    return {
        "metric": results.metric,
        "grid": grid,
        "most_open_rows": MOST_OPEN_ROWS,
        "factor_title": factor_title(campaign, grid.factor),
        "rows": parts.part(grid.page, parts.CELLS, results.given)
        if grid.page
        else None,
        # Uploads were executed elsewhere, in an order that nobody stated.
        "order": None
        if campaign.origin == Origin.UPLOADED
        else _marks(
            parts.listed(
                campaign.runs.order_by("position").values_list(
                    "pk", "position", "state"
                ),
                parts.ORDER,
                results.given,
            )
        ),
        "troubled": _troubled_part(
            parts.listed(
                campaign_selectors.causes(campaign, TROUBLED),
                parts.TROUBLED_RUNS,
                results.given,
            )
        ),
    }


def _marks(order: parts.Part) -> parts.Part:
    """State, words and address of each run; what hundreds have in common is looked up once."""
    address, label = run_addresses(), _("%(position)s: %(state)s")
    words = {state.value: str(state.label) for state in Run.State}
    rows = [
        (state, label % {"position": position, "state": words[state]}, address(pk))
        for pk, position, state in order.rows
    ]
    return replace(order, rows=rows)


def _troubled_part(causes: parts.Part) -> parts.Part:
    run_keys = {pk for cause in causes.rows for pk in cause["runs"][:MOST_OF_A_CAUSE]}
    runs = Run.objects.select_related("cell", "server").defer("plan").in_bulk(run_keys)
    rows = [
        {
            **cause,
            "runs": [runs[pk] for pk in cause["runs"][:MOST_OF_A_CAUSE] if pk in runs],
        }
        for cause in causes.rows
    ]
    return replace(causes, rows=rows)


def conditions(campaign: Campaign, versions: Versions = NEVER) -> dict[str, SafeString]:
    """What was kept the same, and on what: HTML for all readers alike, kept until it changes."""
    key = ("conditions", campaign.pk)
    html_of = caching.answer(
        key, versions.whole, lambda: _conditions_of(again(campaign, versions))
    )
    return {name: SafeString(html) for name, html in html_of.items()}


def _conditions_of(campaign: Campaign) -> dict[str, str]:
    machines = campaign_selectors.machines(campaign)
    counts = campaign_selectors.run_counts([campaign.pk])[campaign.pk]
    machines_context = {
        "campaign": campaign,
        "machines": machines,
        "has_script": "finished" in counts,
    }
    built = list(filter(builds.words, builds.list_installations(campaign)))
    constants_context = {
        "constants": constants(campaign),
        "treatment": workloads.treatment_rows(campaign),
    }
    configurations_context = {
        "campaign": campaign,
        "configurations": configurations.contained(campaign),
        "settings_run": campaign.runs.filter(settings__isnull=False)
        .order_by("campaign_id", "-pk")
        .values_list("pk", flat=True)
        .first()
        if campaign.origin != Origin.EXECUTED
        else None,
    }
    return {
        "servers": written("campaigns/_kept.html#servers", machines_context),
        "machines": written(
            "campaigns/_kept.html#machines", machines_context | {"builds": built}
        ),
        "parameters": written("campaigns/_kept.html#parameters", constants_context),
        # With their lines as they are, and as they were then: they may say something else by now.
        "configurations": render_to_string(
            "campaigns/_kept.html#configurations", configurations_context
        ),
        "take": render_to_string("campaigns/_parts.html#take", machines_context),
    }


def side_by_side(campaign: Campaign, versions: Versions = NEVER) -> SafeString:
    """The table that a campaign reproduces, as printed and as measured here; kept likewise."""
    if not campaign.reproduces:
        return SafeString()
    return caching.html(
        ("beside", campaign.pk),
        versions.results,
        lambda: written(
            "campaigns/_kept.html#beside",
            page.side_by_side(again(campaign, versions)),
        ),
    )


def _drawn(results: Found) -> dict[int, float]:
    """By cell the value that the chart has."""
    medians = {
        cell: summary.median for cell, summary in results.measured.summaries.items()
    }
    return medians | {cell: value.value for cell, value in results.values.items()}


def _index_figure(found: Index, x_title: str) -> Figure:
    words = hover_words(_("ratio"), _("interval (95 %)"))
    title = _("Ratio to %(base)s") % {"base": found.base}
    axes = Axes(x_title, title, relative=True, from_zero=False, words=words)
    figure = scaling(found.lines, axes)
    figure["layout"]["shapes"] = [line_at("y", 1)]
    return figure


def figure_of(results: Found) -> dict[str, Any] | None:
    """The chart of the page; None where nothing can be drawn."""
    campaign, metric, grid = results.campaign, results.metric, results.grid
    if metric is None:
        return None
    factor = grid.factor
    rows = grid.page.paginator.object_list if grid.page else []
    if grid.page and len(rows) > MOST_LINES:
        rows = list(grid.page)
    summaries = results.measured.summaries
    lines = campaign_selectors.lines_of(list(rows), factor, summaries, results.values)
    if factor is None or not any(line.points for line in lines):
        return draw_like_print(campaign, metric, factor or "version", results.values)
    x_title = factor_title(campaign, factor)
    index = results.index(list(rows), factor)
    if index is not None:
        figure = _index_figure(index, x_title)
        return annotations.mark_lines(figure, campaign, index.values, factor)
    axes = Axes(
        x_title,
        metric_title(metric),
        from_zero=not metric.is_ratio,
        words=cell_words(results.values),
    )
    groups, title = draw_single_points(lines, by_name=_("Version"), by_level=x_title)
    if groups:
        figure = bars(groups, replace(axes, x_title=title))
        return annotations.mark_bars(figure, campaign, groups[0].points)
    figure = scaling(lines, axes)
    return annotations.mark_lines(figure, campaign, _drawn(results), factor)
