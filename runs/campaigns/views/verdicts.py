"""What the page of a campaign says of verdicts: the conclusion, and the table of ratios."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from django.conf import settings
from django.core.paginator import Paginator
from django.http import QueryDict
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.utils.functional import SimpleLazyObject
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import override

from runs.analysis.inference.cells import CellValue
from runs.analysis.inference.verdicts import MORE
from runs.campaigns.selectors import campaigns as campaign_selectors
from runs.campaigns.selectors import grids
from runs.campaigns.selectors.grids import Grid, Measured
from runs.campaigns.services import kept_verdicts
from runs.campaigns.services.kept_verdicts import Verdicts
from runs.campaigns.views import parts, ratios
from runs.campaigns.views.heat import MOST_CONDITIONS, heat_table
from runs.campaigns.views.index_chart import MOST_IN_COLOUR, Index, index
from runs.cells.selectors import factor_names, metrics
from runs.cells.selectors.factor_names import Words
from runs.cells.selectors.series_cells import SERVER, VERSION
from runs.compare.selectors.judge.ratio_pairs import STEPS
from runs.compare.selectors.judge.ratios import RatioRow, Tables
from runs.models import Campaign, Metric
from runs.models.campaigns import Origin
from runs.shared import caching
from runs.shared.caching import NEVER, Versions
from runs.templatetags.components import strip_indents

TITLES = {VERSION: _("Version"), STEPS: _("Version to version")}
# The pages of the table that control makes at once: the verdicts of all are made for one.
PAGES_AT_ONCE = 20


class Found:
    """What several parts of a page are made of, read when the first of them is made."""

    def __init__(
        self,
        campaign: Campaign,
        query: QueryDict,
        versions: Versions = NEVER,
        *,
        is_wide: bool = False,
    ) -> None:
        self._campaign, self.given, self._versions = campaign, query, versions
        self._is_wide = is_wide
        # Whether the chart has ratios to the oldest version: known when it is made.
        self.has_index = False

    @cached_property
    def campaign(self) -> Campaign:
        """Read after the versions: what is kept under them must not be older."""
        return again(self._campaign, self._versions)

    @cached_property
    def metrics(self) -> list[Metric]:
        """All that the campaign has, those that are used most first. One query."""
        return list(metrics.list_campaign_metrics(self.campaign))

    @cached_property
    def metric(self) -> Metric | None:
        """The one that the reader has chosen, else the campaign's first."""
        chosen = self.given.get(parts.METRIC)
        chosen_metric = (
            next((metric for metric in self.metrics if metric.name == chosen), None)
            if chosen
            else None
        )
        # They are read where the scenario names none, once.
        every: Any = SimpleLazyObject(lambda: self.metrics)
        return chosen_metric or metrics.primary(self.campaign, among=every)

    @cached_property
    def measured(self) -> Measured:
        """Its cells and summaries."""
        return grids.measured(self.campaign, self.metric)

    @cached_property
    def grid(self) -> Grid:
        """The page of cells that the address names."""
        return grids.grid(
            self.campaign,
            self.metric,
            page=self.given.get(parts.CELLS, 1),
            among=self.measured,
            values=self.values,
        )

    @cached_property
    def values(self) -> dict[int, CellValue]:
        """By cell what the model says of it: what is drawn is what is compared.

        Of a wide campaign what control made last with its verdicts: that takes seconds.
        """
        if self.metric is None:
            return {}
        if self._is_wide:
            rows = kept_verdicts.values(self._campaign.pk, self.metric.name)
        else:
            key = ("values", self.campaign.pk, self.metric.name)
            rows = caching.answer(key, self._versions.results, self.value_rows)
        return {row["cell"]: CellValue.from_json(row) for row in rows}

    def value_rows(self) -> list[dict[str, Any]]:
        """The same as JSON has them, made now."""
        return [
            {"cell": cell, **value.to_json()}
            for cell, value in self.tables.values().items()
        ]

    @cached_property
    def words(self) -> Words:
        """Those of its factors, in the reader's language."""
        return factor_names.words(self.campaign)

    @cached_property
    def tables(self) -> Tables:
        """A table for each thing that the campaign asks about; none without a metric."""
        name = self.metric.name if self.metric else ""
        return Tables(self.campaign, name, among=self.measured)

    @property
    def subject(self) -> str:
        """The one that the reader has chosen; empty for the first."""
        chosen = self.given.get(parts.BY, "")
        return chosen if chosen in self.tables.subjects else ""

    @property
    def ratios(self) -> list[RatioRow]:
        """The table that is shown."""
        return self.tables.list_rows(self.subject)

    def index(self, rows: Sequence[grids.Row], factor: str) -> Index | None:
        """The chart of many versions; None for few, and where judging them takes seconds."""
        is_asked = self.metric is not None and not self._is_wide
        if is_asked and len(rows) > MOST_IN_COLOUR and STEPS in self.tables.subjects:
            versions = self.tables.list_rows(VERSION)
            steps = self.tables.list_rows(STEPS)
            version_index = index(rows, factor, versions, steps)
            self.has_index = version_index is not None
            return version_index
        return None


def again(campaign: Campaign, versions: Versions) -> Campaign:
    """The campaign as it is after the versions were read. One query; none without versions."""
    if versions.whole is None:
        return campaign
    campaigns = campaign_selectors.listed().select_related(
        "topology", "published__source"
    )
    return get_object_or_404(campaigns, pk=campaign.pk)


def written(template_part: str, context: dict[str, Any]) -> SafeString:
    """A part of a template as HTML."""
    return strip_indents(render_to_string(template_part, context))


def judged(results: Found, *tables: QueryDict) -> list[Verdicts]:
    """For each of these pages of the table."""
    conclusion = _conclusion(results)
    contexts = [_results_of(results, query) for query in tables]
    return [
        Verdicts(
            *conclusion,
            written("campaigns/_kept.html#results", context),
            has_heat=bool(context.get("heat")),
        )
        for context in contexts
    ]


def judge(campaign_id: int, page_query: str) -> dict[object, object]:
    """The verdicts of a wide campaign by their keys, in each language, and what they are made of.

    It takes seconds.
    """
    campaign = campaign_selectors.listed().filter(pk=campaign_id).first()
    if campaign is None:
        return {}
    every = Found(campaign, QueryDict(page_query.removeprefix("?")))

    def pages() -> Iterator[tuple[object, object]]:
        # Words are those of a language.
        results = Found(campaign, every.given)
        results.tables = every.tables
        last_page = Paginator(results.ratios, parts.SIZES[parts.RATIOS]).num_pages
        first_page = min(parts.number_of(results.given), last_page)
        numbers = range(first_page, min(first_page + PAGES_AT_ONCE, last_page + 1))
        tables = [parts.select_ratio_query(results.given, number) for number in numbers]
        addresses = [page_query, *map(parts.query, tables[1:])]
        for address, verdict_values in zip(
            addresses, judged(results, *tables), strict=True
        ):
            yield kept_verdicts.key(campaign_id, address), verdict_values
        if results.metric is not None:
            yield (
                kept_verdicts.values_key(campaign_id, results.metric.name),
                results.value_rows(),
            )

    verdicts_of: dict[object, object] = {}
    for language, _name in settings.LANGUAGES:
        with override(language):
            verdicts_of |= pages()
    return verdicts_of


def _conclusion(results: Found) -> tuple[SafeString, list[str], int | None, bool]:
    """What was found and its sentences, how many rounds may decide more, whether a history."""
    findings = ratios.findings(results.tables.conclusions(), results.words)
    written = SafeString()
    if findings:
        written = render_to_string(
            "campaigns/_parts.html#findings", ratios.folded(findings)
        )
    sentences = [finding.summary for finding in findings]
    rounds = more_rounds(results.campaign, results.ratios)
    return written, sentences, rounds, _has_history(results.campaign)


def _results_of(results: Found, query: QueryDict) -> dict[str, Any]:
    if results.metric is None:
        return {}
    ratio_part, words = parts.listed(results.ratios, parts.RATIOS, query), results.words
    bases = dict.fromkeys((row.subject, row.base_label) for row in results.ratios)
    return {
        "by": results.subject,
        "ratios": replace(
            ratio_part,
            rows=ratios.ratio_lines(ratio_part.rows, words, among=results.ratios),
        ),
        "baselines": ", ".join(dict.fromkeys(words.named(*base) for base in bases)),
        "heat": _heat(results),
        "compares_servers": any(row.subject == SERVER for row in results.ratios),
        "switch": _switch(results, query) if results.measured.summaries else [],
    }


def _heat(results: Found) -> dict[str, Any] | None:
    """The steps of many versions at a glance; None for few."""
    if STEPS not in results.tables.subjects or results.metric is None:
        return None
    steps = results.tables.list_rows(STEPS)
    # Before more is judged and worded, which takes seconds for tens of thousands.
    if not steps or len({repr(row.levels) for row in steps}) > MOST_CONDITIONS:
        return None
    return heat_table(
        steps,
        results.tables.list_rows(VERSION),
        results.words,
        results.metric.direction,
    )


def _switch(results: Found, query: QueryDict) -> list[tuple[str, str, bool]]:
    """(query, title, is shown) of the table about each factor.

    Empty if there is one, and if none has a row: no two cells differ in one factor alone.
    """
    subjects = results.tables.subjects
    if len(subjects) < 2:
        return []
    if not results.ratios and not any(map(results.tables.list_rows, subjects)):
        return []
    shown_subjects = {row.subject for row in results.ratios}
    return [
        (
            parts.query(query, **{parts.BY: name}),
            str(TITLES[name]) if name in TITLES else results.words.title(name),
            name == results.subject or (not results.subject and name in shown_subjects),
        )
        for name in subjects
    ]


def more_rounds(campaign: Campaign, rows: Sequence[RatioRow]) -> int | None:
    """How many rounds the button offers: as many as the rows say what they can show."""
    is_open = any(row.comparison.more_rounds for row in rows)
    is_at_work = campaign.state in Campaign.LIVE
    if not is_open or is_at_work or campaign.origin != Origin.EXECUTED:
        return None
    return MORE


def _has_history(campaign: Campaign) -> bool:
    """Whether there are revisions; the page then shows the newest."""
    is_uploaded = campaign.origin == Origin.UPLOADED
    return is_uploaded and campaign.cells.filter(revision__isnull=False).exists()
