"""What a data file must agree with outside of itself: units, settings, names, other files.

A mistake that would disable a rule, such as a ratio of a metric that the table lacks, is an
error here: a discrepancy must never disappear silently.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from runs.postgresql_settings import catalogue
from runs.published import figures
from runs.published.document import CampaignEntry, Document, MetricEntry
from runs.published.errors import PublishedFileError, Words
from runs.published.fields import as_text
from runs.published.figures import Figure
from runs.scenarios import registry
from runs.scenarios.themes import THEMES

CHART_KEYS = frozenset({"kind", "metric", "metrics", "x", "series", "log", "ratio"})
CHART_KINDS = ("lines", "bars", "stacked")
RATIO_KEYS = {"factor", "base"}
REPRODUCE_KEYS = frozenset(
    {"scenario", "parameters", "levels", "versions", "shown_by", "why_not"}
)
Figures = Sequence[Figure]
# Of the words that name a table's place.
LONGEST_PLACE = 40
# Text around a number that is not a unit.
AROUND = " ()[]約"


@dataclass(frozen=True)
class Known:
    """What all files together know: metrics with their units, and the names of scenarios."""

    metrics: Mapping[str, MetricEntry]
    scenarios: frozenset[str]


def known(documents: Iterable[Document]) -> Known:
    """Metrics of the code and of these files.

    Raises PublishedFileError if two files describe a metric differently, or share a slug.
    """
    metrics: dict[str, MetricEntry] = {}
    slugs: dict[str, str] = {}
    for document in documents:
        for entry in document.metrics:
            _same_metric(document, entry, metrics.setdefault(entry.name, entry))
        for campaign in document.campaigns:
            other_file = slugs.setdefault(campaign.slug, document.path.name)
            if other_file != document.path.name:
                message = (
                    f"its slug is that of a campaign in {other_file}; choose another."
                )
                fault = PublishedFileError(message, campaign=campaign.slug)
                fault.locate(document.path)
                raise fault
    scenarios = {scenario.slug for scenario in registry.every()} | THEMES.keys()
    return Known(metrics, frozenset(scenarios))


def check(document: Document, known_names: Known) -> None:
    """Raises PublishedFileError for the first fault; it names campaign, words and remedy."""
    for fault in faults(document, known_names):
        raise fault


def faults(document: Document, known_names: Known) -> list[PublishedFileError]:
    """Of the whole file, and of each campaign, the first fault."""
    tables = {campaign.table for campaign in document.campaigns}
    parts = [
        partial(_check_settings, document),
        partial(_check_corrections, document),
        partial(_check_quotes, document),
        partial(_check_disputes, document),
        *(
            partial(_check_campaign, campaign, tables, known_names)
            for campaign in document.campaigns
        ),
    ]
    faults_found = []
    for check_part in parts:
        try:
            check_part()
        except PublishedFileError as fault:
            faults_found.append(fault)
    return faults_found


def _check_settings(document: Document) -> None:
    for key, configuration in document.configurations.items():
        for name in configuration.settings:
            _check_setting(key, configuration.version, name)


def _check_campaign(
    campaign: CampaignEntry, tables: set[str], known_names: Known
) -> None:
    _check_lengths(campaign)
    figures_read = figures.figures(campaign)
    _check_names(campaign, figures_read, known_names)
    for check_part in (_check_derived, _check_chart, _check_texts):
        check_part(campaign, figures_read)
    _check_references(campaign, tables)
    for figure in figures_read:
        _check_unit(campaign, figure, known_names)


def _check_lengths(campaign: CampaignEntry) -> None:
    for name in ("table", "section", "page", "figure"):
        text = getattr(campaign, name)
        if len(text) > LONGEST_PLACE:
            message = (
                f"“{name}” has {len(text)} characters, and {LONGEST_PLACE} can be stored: shorten "
                "it, or leave it out."
            )
            raise _fault(campaign, message, words=text)


def _check_quotes(document: Document) -> None:
    """Each conclusion of the publication has its own words, or none has (`quotes: false`)."""
    for campaign in document.campaigns:
        for finding in campaign.findings:
            if finding.section and bool(finding.quote) != document.source.quotes:
                remedy = (
                    "needs the “quote” in which the publication says it; where its words must not "
                    "be printed, the source says “quotes: false”"
                    if document.source.quotes
                    else "has a “quote”, and the source says “quotes: false”; leave it out"
                )
                message = f"the conclusion “{finding.text.en}” {remedy}."
                raise _fault(campaign, message, words=finding.text.en)


def _check_disputes(document: Document) -> None:
    """What disputes a conclusion is a discrepancy of its table."""
    for campaign in document.campaigns:
        printed = {discrepancy.printed for discrepancy in campaign.discrepancies}
        for finding in campaign.findings:
            for words in finding.disputed_by:
                if words not in printed:
                    message = (
                        f"the conclusion “{finding.text.en}” is “disputed_by” “{words}”, which no "
                        "discrepancy of its table prints; name one as it is printed there."
                    )
                    raise _fault(campaign, message, words=words)


def _check_corrections(document: Document) -> None:
    printed = {
        campaign.table: {text for row in campaign.grid for text in row}
        for campaign in document.campaigns
    }
    for correction in document.source.corrections:
        if correction.table != "all" and correction.table not in printed:
            message = (
                f"a correction names the table {correction.table}, which the file does not have; "
                "name one of it, or “all”."
            )
            raise PublishedFileError(message, words=f'table: "{correction.table}"')
        for text in correction.figures:
            if text not in printed.get(correction.table, ()):
                message = (
                    f"a correction names the figure {text}, which table {correction.table} does "
                    "not print; write it as printed."
                )
                raise PublishedFileError(message, words=text)


def _same_metric(
    document: Document, entry: MetricEntry, first_entry: MetricEntry
) -> None:
    code = registry.metrics().get(entry.name)
    units_and_directions = [
        (first_entry.unit, first_entry.direction),
        *([(code.unit, code.direction)] if code else []),
    ]
    for unit, direction in units_and_directions:
        if (entry.unit, entry.direction) != (unit, direction):
            message = (
                f"the metric {entry.name} has the unit “{unit}” and the direction {direction} "
                "elsewhere; take these, or another name."
            )
            fault = PublishedFileError(message, words=f"{entry.name}:")
            fault.locate(document.path)
            raise fault


def _check_setting(key: str, version: str, name: str) -> None:
    if "." in name:
        return
    major = catalogue.known_major(version) if version else None
    if not (catalogue.setting(name, major) if major else catalogue.existence(name)):
        version_named = (
            f"PostgreSQL {major}" if major else "no version of PostgreSQL that we know"
        )
        verb = "does not have" if major else "has"
        raise PublishedFileError(
            f"configuration {key}: {version_named} {verb} a setting {name}. Write the name as the "
            "server knows it, and note a misprint of the publication in “notes”.",
            words=f"{name}:",
        )


def _check_names(
    campaign: CampaignEntry, figures_read: Figures, known_names: Known
) -> None:
    if campaign.scenario not in known_names.scenarios:
        names = ", ".join(sorted(known_names.scenarios))
        message = f"names the scenario {campaign.scenario}; known are {names}."
        raise _fault(campaign, message, words=("scenario:", campaign.scenario))
    unknown = campaign.reproduce.keys() - REPRODUCE_KEYS
    if unknown:
        message = f"“reproduce” has an unknown field: {', '.join(sorted(unknown))}"
        words = f"{min(unknown)}:"
        raise _fault(campaign, _add_known_names(message, REPRODUCE_KEYS), words=words)
    for name in ("shown_by", "why_not"):
        if name in campaign.reproduce:
            as_text(campaign.reproduce[name], f"“{name}”", campaign=campaign.slug)
    for figure in figures_read:
        if (
            figure.metric not in known_names.metrics
            and figure.metric not in registry.metrics()
        ):
            message = (
                f"the metric {figure.metric} is not described; put it in “metrics”."
            )
            raise _fault(campaign, message, row=figure.row, words=figure.metric)


def _check_derived(campaign: CampaignEntry, figures_read: Figures) -> None:
    metrics = {figure.metric for figure in figures_read}
    factors = {name for figure in figures_read for name in figure.levels}
    for metric, rule in campaign.derived.items():
        # A publication may print only what it derived, and its operand in a picture.
        may_be_elsewhere = metrics == {metric} and rule.operand in registry.metrics()
        for name in filter(None, (metric, "" if may_be_elsewhere else rule.operand)):
            if name not in metrics:
                message = (
                    f"“derived” names the metric {name}, which the table does not have"
                )
                raise _fault(
                    campaign,
                    _add_known_names(message, metrics),
                    words=(f"{metric}:", name),
                )
        for factor in (*rule.to, *rule.over):
            if factor not in factors:
                message = f"“derived” names the factor {factor}, which the table does not have"
                raise _fault(
                    campaign,
                    _add_known_names(message, factors),
                    words=(f"{metric}:", factor),
                )


def _check_chart(campaign: CampaignEntry, figures_read: Figures) -> None:
    if not campaign.has_figures:
        return
    metrics = {figure.metric for figure in figures_read}
    charts = campaign.chart if isinstance(campaign.chart, list) else [campaign.chart]
    for chart in filter(None, charts):
        unknown = chart.keys() - CHART_KEYS
        if unknown:
            names = sorted(unknown)
            message = _add_known_names(
                f"“chart” has an unknown field: {', '.join(names)}", CHART_KEYS
            )
            raise _fault(campaign, message, words=f"{names[0]}:")
        if chart.get("kind") not in CHART_KINDS:
            kinds = ", ".join(CHART_KINDS)
            raise _fault(campaign, f"“chart” needs a kind: {kinds}.", words="chart:")
        for name in chart.get("metrics") or [chart.get("metric")]:
            if name not in metrics:
                message = (
                    f"“chart” names the metric {name}, which the table does not have"
                )
                raise _fault(
                    campaign,
                    _add_known_names(message, metrics),
                    words=("chart:", str(name)),
                )
        _check_ratio(campaign, figures_read, chart.get("ratio"))


def _check_ratio(campaign: CampaignEntry, figures_read: Figures, ratio: Any) -> None:
    if not ratio:
        return
    if not isinstance(ratio, Mapping) or set(ratio) != RATIO_KEYS:
        raise _fault(
            campaign, "“ratio” needs a factor and a base, or false.", words="ratio:"
        )
    levels = {str(figure.levels.get(ratio["factor"], "")) for figure in figures_read}
    if str(ratio["base"]) not in levels:
        message = f"“ratio” names {ratio['factor']} {ratio['base']}, which the table does not have"
        words = ("ratio:", f"base: {ratio['base']}")
        raise _fault(campaign, _add_known_names(message, levels), words=words)


def _check_texts(campaign: CampaignEntry, figures_read: Figures) -> None:
    printed = {text for row in campaign.grid for text in row}
    for name in ("not_measured", "inexact"):
        for text in getattr(campaign, name) - printed:
            message = f"“{name}” names {text}, which the table does not print; write it as printed."
            raise _fault(campaign, message, words=(f"{name}:", text))
    levels = [figure.levels for figure in figures_read]
    for levels_of_repeat in campaign.unprinted_repeats:
        if not any(
            levels_of_repeat.items() <= figure_levels.items()
            for figure_levels in levels
        ):
            message = (
                f"“unprinted_repeats” names levels that no figure has: {levels_of_repeat}. Take "
                "levels of the columns or rows."
            )
            raise _fault(campaign, message, words="unprinted_repeats:")


def _check_references(campaign: CampaignEntry, tables: set[str]) -> None:
    rules = (rule.same_as for rule in campaign.derived.values() if rule.same_as)
    columns = (
        same_figure for column in campaign.columns for same_figure in column.same_as
    )
    for reference in (*rules, *columns, *campaign.same_as):
        if reference.table not in tables:
            message = f"“same_as” names the table {reference.table}, which the file does not have"
            words = ("same_as:", reference.table)
            raise _fault(campaign, _add_known_names(message, tables), words=words)


def _check_unit(campaign: CampaignEntry, figure: Figure, known_names: Known) -> None:
    if campaign.columns[figure.column].units:
        return
    metric = known_names.metrics.get(figure.metric) or registry.metrics()[figure.metric]
    printed = figures.unit(figure.text).strip(AROUND)
    if printed and not _is_unit(printed, metric.unit):
        message = (
            f"“{figure.text}” has the unit “{printed}”, and the metric {figure.metric} has "
            f"“{metric.unit}”. Name the right metric, or give the column its “units”."
        )
        raise _fault(campaign, message, row=figure.row, words=("|", figure.text))


def _is_unit(printed: str, unit: str) -> bool:
    """Whether both are one unit; inserts/s is printed as insert/s."""
    return printed.replace("s/", "/").casefold() == unit.replace("s/", "/").casefold()


def _add_known_names(message: str, names: Iterable[str]) -> str:
    """The message with its remedy: the names that can be taken."""
    return f"{message}; take one of {', '.join(sorted(filter(None, names)))}."


def _fault(
    campaign: CampaignEntry, message: str, *, row: int | None = None, words: Words = ""
) -> PublishedFileError:
    return PublishedFileError(message, campaign=campaign.slug, row=row, words=words)
