"""Reports of campaigns: everything that one needs to know about them, in one document."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import override

from runs.archive.selectors import archive, conclusions
from runs.archive.selectors.chart import Ratios, charts, draw, ratio_title, ratios_of
from runs.campaigns.selectors import annotations
from runs.campaigns.selectors.report_parts import conditions as report_conditions
from runs.campaigns.selectors.report_parts import recorded_commands
from runs.campaigns.selectors.report_parts import results as report_results
from runs.campaigns.selectors.report_parts.explanations import explanations
from runs.cells.selectors import factor_names, provenance
from runs.cells.selectors.level_names import citation, factors
from runs.loads.selectors import report_blocks
from runs.loads.selectors.answers import LoadAnswer
from runs.models import Annotation, Campaign, PrintedFigure, PublishedTable
from runs.reports.recorded_runs import RecordedRun
from runs.reports.report import (
    Block,
    Bullets,
    Facts,
    Listing,
    Paragraph,
    Picture,
    Remark,
    Report,
    Section,
    Table,
)
from runs.reports.shell_script import shell_script
from runs.servers.selectors import machine_words
from runs.shared.formats import factor, quantity, spoken, translate_field


def machines(table: PublishedTable) -> list[Block]:
    """The machines by role, and the settings of each configuration once."""
    nodes = list(table.nodes.select_related("hardware", "environment", "configuration"))
    rows = tuple(
        (
            spoken(node.name) or node.role,
            machine_words.hardware(node.hardware),
            machine_words.environment(node.environment),
            node.software or "–",
        )
        for node in nodes
    )
    heads = (_("Role"), _("Hardware"), _("Environment"), _("Software"))
    blocks: list[Block] = [Table(_("Machines"), heads, rows)] if rows else []
    configuration_of = {
        node.configuration.pk: node.configuration
        for node in nodes
        if node.configuration
    }
    blocks += [
        report_conditions.settings_table(configuration.name, configuration.settings)
        for configuration in configuration_of.values()
        if configuration.settings
    ]
    return blocks


def results(campaign: Campaign) -> list[Block]:
    """Charts, ratios computed from the printed figures, and the table as printed."""
    table = campaign.published
    drawn = charts(campaign, factors(table.columns))
    blocks: list[Block] = [
        Picture(
            f"chart-{number}", translate_field(campaign, "title"), draw(chart, plots)
        )
        for number, (chart, plots) in enumerate(drawn, start=1)
    ]
    if drawn and (ratios := ratios_of(*drawn[0])):
        blocks.append(_ratio_table(ratios, ratio_title(*drawn[0])))
    if table.grid:
        blocks += [_printed(table), *_provenance(table)]
    notes = tuple(spoken(note) for note in table.notes)
    return [*blocks, *([Bullets(notes)] if notes else [])]


def findings(table: PublishedTable) -> list[Block]:
    """Who draws which conclusions: the publication, BenchLab, and where they disagree."""
    blocks: list[Block] = []
    for title, party_conclusions in conclusions.grouped(table):
        blocks += [
            Paragraph(title),
            Bullets(tuple(conclusion.sentence for conclusion in party_conclusions)),
        ]
    return blocks


def discrepancies(table: PublishedTable) -> list[Block]:
    """Where it contradicts itself."""
    rows = tuple(
        (
            str(discrepancy.get_kind_display()),
            discrepancy.printed,
            discrepancy.recomputed or "–",
            spoken(discrepancy.explanation),
        )
        for discrepancy in archive.discrepancies().filter(table=table)
    )
    heads = (_("Kind"), _("Printed"), _("Computed"), _("Explanation"))
    return [Table("", heads, rows)] if rows else []


def _ratio_table(ratios: Ratios, title: str) -> Table:
    caption = _("Ratios computed from the printed figures; base: %(base)s") % {
        "base": ratios.base
    }
    rows = tuple(
        (name, *(factor(value) for value in values)) for name, values in ratios.rows
    )
    numbers = frozenset(range(1, len(ratios.heads) + 1))
    return Table(caption, (title, *ratios.heads), rows, numbers)


def _printed(table: PublishedTable) -> Table:
    figures = archive.printed(table)
    heads = tuple(map(provenance.head, table.columns))
    rows = tuple(
        (
            *(
                _text(text, table.columns[column], figures.get((row, column)))
                for column, text in enumerate(texts)
            ),
            *[""] * (len(heads) - len(texts)),
        )
        for row, texts in enumerate(table.grid)
    )
    numbers = frozenset(
        column
        for column, column_fields in enumerate(table.columns)
        if "factor" not in column_fields
    )
    return Table(_("As printed"), heads, rows, numbers)


def _provenance(table: PublishedTable) -> list[Block]:
    """The record of each figure, with its conditions where those of the table differ."""
    figures = list(
        table.printed.select_related("measurement__metric")
        .prefetch_related(*provenance.loaded(leaves_out=("grid",)))
        .order_by("row", "column")
    )
    conditions_of_figures = [
        "; ".join(provenance.condition_names(figure)) for figure in figures
    ]
    differ = len(set(conditions_of_figures)) > 1
    rows = tuple(
        (
            figure.text,
            figure.measurement.metric.unit if figure.measurement else "",
            f"{figure.row + 1}, {figure.column + 1}",
            str(figure.get_kind_display()),
            provenance.exactness([figure]),
            provenance.repeats(figure),
            "; ".join(provenance.disputes([figure])),
            *([conditions] if differ else []),
        )
        for figure, conditions in zip(figures, conditions_of_figures, strict=True)
    )
    heads = (
        _("As printed"),
        _("Unit"),
        _("Row, column"),
        _("Source"),
        _("Exactness"),
        _("Repeats"),
        _("Disputed"),
        *([_("Conditions")] if differ else []),
    )
    blocks: list[Block] = [Table(_("Where each figure comes from"), heads, rows)]
    if conditions_of_figures and conditions_of_figures[0] and not differ:
        blocks.append(
            Paragraph(
                _("Conditions of all figures: %(which)s")
                % {"which": conditions_of_figures[0]}
            )
        )
    return blocks


def _text(text: str, column: Mapping[str, Any], figure: PrintedFigure | None) -> str:
    """As printed; if BenchLab computes another value, that is added."""
    if figure and figure.differs:
        computed = _("computed: %(value)s") % {"value": quantity(figure.recomputed)}
        return f"{text} ({computed})"
    if figure and figure.kind == PrintedFigure.Kind.NOT_MEASURED:
        return f"{text} ({_('not measured')})"
    level = (column.get("values") or {}).get(text, text)
    return spoken((column.get("label_of") or {}).get(level)) or text


# A longer script of all runs is only a download; the report then has that of the first run.
MOST_SCRIPT_CHARACTERS = 200_000


def make_report(
    campaign: Campaign,
    *,
    language: str,
    address: str,
    today: date,
    load_answer: LoadAnswer | None = None,
) -> Report:
    """The report of any campaign: executed here, uploaded, or published.

    `address` is that of the campaign's page. `load_answer`, made in that language, is for a reader
    who may see the load that was measured. Expensive: some forty queries, whatever the size,
    and three for each of several servers.
    """
    with override(language):
        published = hasattr(campaign, "published")
        sections = (
            _published(campaign) if published else _executed(campaign, load_answer)
        )
        sections += [
            *_remarks(campaign),
            (_("Appendix: commands"), _appendix(campaign, address)),
            (_("Citation"), [Paragraph(_citation(campaign, address, today))]),
        ]
        return Report(
            name=f"{campaign.slug}-{language}",
            language=language,
            title=translate_field(campaign, "title"),
            subtitle=_subtitle(campaign, today),
            sections=tuple(
                Section(title, tuple(blocks)) for title, blocks in sections if blocks
            ),
        )


def _executed(
    campaign: Campaign, load_answer: LoadAnswer | None
) -> list[tuple[str, Sequence[Block]]]:
    statement_blocks = report_blocks.blocks(load_answer) if load_answer else []
    return [
        (_("Purpose"), _purpose(campaign)),
        (
            _("Conditions"),
            [
                *report_conditions.machines(campaign),
                *report_conditions.programs(campaign),
                *report_conditions.settings(campaign),
            ],
        ),
        (
            _("Method"),
            [
                report_conditions.kept(campaign),
                Paragraph(report_conditions.order(campaign)),
            ],
        ),
        (_("Statement by statement"), statement_blocks),
        (_("Results"), report_results.results(campaign)),
        (_("Verdicts"), report_results.verdicts(campaign)),
        (_("Why"), explanations(campaign)),
    ]


def _published(campaign: Campaign) -> list[tuple[str, Sequence[Block]]]:
    table = campaign.published
    method = [Paragraph(spoken(table.method))] if table.method else []
    return [
        (_("Purpose"), _purpose(campaign)),
        (_("Conditions"), machines(table)),
        (_("Method"), [*method, report_conditions.kept(campaign)]),
        (_("Results"), results(campaign)),
        (_("Findings of the publication, in our words"), findings(table)),
        (_("Discrepancies"), discrepancies(table)),
    ]


def _purpose(campaign: Campaign) -> list[Block]:
    question = translate_field(campaign, "question") if campaign.question else ""
    scenario = _("Scenario"), _(campaign.scenario.title)
    return [*([Paragraph(question)] if question else []), Facts((scenario,))]


def _remarks(campaign: Campaign) -> list[tuple[str, Sequence[Block]]]:
    annotations_found = annotations.list_annotations(campaign)
    words = factor_names.words(campaign)

    def remark(annotation: Annotation) -> Remark:
        # A note may be about a cell: Clients 8, Version 16.14.
        cell_text = words.listed(annotation.cell.levels) if annotation.cell else ""
        return Remark(
            annotation.text,
            " · ".join(filter(None, (cell_text, annotations.signature(annotation)))),
        )

    titles = {
        Annotation.Kind.DISCUSSION: _("Discussion"),
        Annotation.Kind.CONCLUSION: _("Conclusion"),
        Annotation.Kind.NOTE: _("Notes"),
    }
    return [
        (
            title,
            [
                remark(annotation)
                for annotation in annotations_found
                if annotation.kind == kind
            ],
        )
        for kind, title in titles.items()
    ]


def _appendix(campaign: Campaign, address: str) -> list[Block]:
    listings: list[Block] = []
    for server, name in (factor_names.server_names(campaign) or {"": ""}).items():
        runs = recorded_commands.read_campaign(campaign, server=server)
        if runs:
            listings.append(_script(campaign, runs, address, name))
    return listings


def _script(
    campaign: Campaign, runs: Sequence[RecordedRun], address: str, server: str
) -> Listing:
    """What a server executed, to be repeated by hand on a similar machine."""
    script = shell_script(campaign.slug, campaign.title, runs, address=address)
    caption = _("All runs in their order, as a shell script")
    if len(script) > MOST_SCRIPT_CHARACTERS:
        script = shell_script(campaign.slug, campaign.title, runs[:1], address=address)
        caption = _(
            "The first run as a shell script; that of all runs is on the campaign's page"
        )
    return Listing(f"{server}: {caption}" if server else caption, script)


def _citation(campaign: Campaign, address: str, today: date) -> str:
    if hasattr(campaign, "published"):
        return citation(campaign.published, address)
    title, year = translate_field(campaign, "title"), campaign.created_at.year
    return f"“{title}”, BenchLab, {year}. {address} ({today})"


def _subtitle(campaign: Campaign, today: date) -> str:
    if hasattr(campaign, "published"):
        table = campaign.published
        return f"{translate_field(table.source, 'title')} · {provenance.where(table)}"
    subtitle_texts = (
        str(campaign.get_origin_display()),
        f"{campaign.created_at:%Y-%m-%d}",
        _("report of %(day)s") % {"day": today},
    )
    return " · ".join(subtitle_texts)
